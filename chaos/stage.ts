/** Owns: the set-up of a run: the product with a second worker, a network to the provider, the model, the files. */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { ScriptedServer } from "../local/scripted/server.ts";
import { encodedImage } from "../test/support/images.ts";
import { startProduct } from "../test/support/product.ts";
import { startProxy, type TcpProxy } from "../test/support/tcp-proxy.ts";
import { DeafClients } from "./deaf-clients.ts";
import type { World } from "./faults.ts";
import { answerOf, SCRIPT, type Places } from "./model.ts";
import { Journal } from "./journal.ts";
import { Restarts } from "./restarts.ts";
import type { Ends } from "./site.ts";
import type { SmallDisk } from "./small-disk.ts";
import type { Sources } from "./sources.ts";
import { STUCK_AFTER_MS } from "./stuck-detector.ts";
import { Workers } from "./workers.ts";

/** `remarks` are the model's complaints about requests. */
export type Stage = { readonly world: World; readonly remarks: readonly string[] };

/** The data folder of a run; it may be a file system of its own. */
export const dataIn = (folder: string): string => join(folder, "data");

/** @param ends gets a function for each started part that ends it */
export async function setStage(
  folder: string,
  { root }: Sources,
  places: Places,
  { ends, disk }: { readonly ends: Ends; readonly disk: SmallDisk | null },
): Promise<Stage> {
  const dataDir = dataIn(folder);
  const proxies: TcpProxy[] = [];
  const product = await startProduct({
    root,
    dataDir,
    providerBehind: async (url) => {
      const { hostname, port } = new URL(url);
      const proxy = await startProxy({ host: hostname, port: Number(port) });
      proxies.push(proxy);
      ends.push(() => proxy.cut());
      return addressOf(proxy);
    },
  });
  ends.push(product.stop);
  const [provider] = proxies;
  if (provider === undefined) throw new Error("There is no way to the provider.");
  const workers = await Workers.start(product, {
    ...{ root, dataDir, provider: addressOf(provider) },
    folder: join(folder, "second-worker"),
  });
  ends.push(() => workers.stop());
  const remarks = scriptFor(product.model, places);
  const deaf = await DeafClients.prepare(product);
  ends.push(() => deaf.close());
  const journal = new Journal();
  const copies = join(folder, "copies");
  const restarts = new Restarts(product, workers, journal, { cwd: places.cwd, copies });
  const world: World = {
    ...{ product, workers, provider, deaf, restarts, journal, disk },
    ...{
      cwd: places.cwd,
      others: [deaf.talk.id],
      stuckAfterMs: STUCK_AFTER_MS,
      replaceWorkers: () => workers.restart(),
    },
  };
  return { world, remarks };
}

/** Lets the model answer the virtual users. Returns its complaints about requests, which grow. */
export function scriptFor(model: ScriptedServer, places: Places): readonly string[] {
  const remarks: string[] = [];
  model.script(SCRIPT, ({ body }) => {
    try {
      return answerOf(body, places);
    } catch (error) {
      remarks.push(`the model says: ${String(error)}`);
      throw error;
    }
  });
  return remarks;
}

const addressOf = ({ port }: TcpProxy): string => `http://127.0.0.1:${port}`;

/** @param folder of the run */
export async function placesIn(folder: string): Promise<Places> {
  const cwd = join(folder, "work");
  mkdirSync(cwd);
  const files = { ledger: join(folder, "ledger"), image: join(folder, "image.png") };
  writeFileSync(files.ledger, "");
  writeFileSync(files.image, await encodedImage("png", { width: 200, height: 100 }));
  return { ...files, cwd, pidsOf: (turn) => join(folder, `${turn}.pids`) };
}
