/** Measures: which functions take the time of worker and server while fifty conversations work. */
import { mkdtempSync } from "node:fs";
import { join } from "node:path";
import { freePort } from "../../local/ports.ts";
import { say, toolCall } from "../../local/scripted/script.ts";
import { startProductionTemporal } from "../../test/support/production-temporal.ts";
import { startProduct } from "../../test/support/product.ts";
import { Talk } from "../../test/support/talk.ts";
import type { Stack } from "./flame.ts";
import { profileGo, profileNode } from "./profiles.ts";

const CONVERSATIONS = 50;
/** As many as a run may have: the profiles are over before. */
const ROUNDS = 90;
const PROFILED_MS = 10_000;

/**
 * On a Temporal server for production: the development server has no profiler.
 *
 * @param dir an empty directory for all data
 */
export async function flames(
  dir: string,
): Promise<{ readonly worker: readonly Stack[]; readonly server: readonly Stack[] }> {
  const pprof = await freePort();
  const tell = (line: string): void => console.log(`    ${line}`);
  const settings = { PPROF_PORT: String(pprof) };
  const temporal = await startProductionTemporal(mkdtempSync(join(dir, "temporal-")), tell, settings);
  try {
    const env = { TEMPORAL_ADDRESS: temporal.address };
    const product = await startProduct({ dataDir: join(dir, "data"), env });
    try {
      const answers = Array.from({ length: ROUNDS }, () => say(toolCall("bash", { command: "true" })));
      const talks = await Promise.all(
        Array.from({ length: CONVERSATIONS }, async () => {
          const talk = await Talk.open(product, dir);
          const tag = product.model.script(talk.id, [...answers, say("Done.")]);
          await talk.send(`go ${tag}`);
          return talk;
        }),
      );
      await Promise.all(talks.map(({ id }) => product.model.nextRequest(id, 3)));
      const worker = await profileNode(product.pidOf("worker"), PROFILED_MS);
      const server = await profileGo(`127.0.0.1:${pprof}`, PROFILED_MS);
      for (const talk of talks) talk.close();
      return { worker, server };
    } finally {
      await product.stop();
    }
  } finally {
    await temporal.stop();
  }
}
