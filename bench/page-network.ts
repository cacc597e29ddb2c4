/** Measures: connections that break without a word: how long until the page knows, and until it has healed. */
import type { Browser } from "playwright-core";
import { hold, type Hold } from "../local/scripted/cues.ts";
import { say, text } from "../local/scripted/script.ts";
import type { Product } from "../test/support/product.ts";
import { Talk } from "../test/support/talk.ts";
import type { TcpProxy } from "../test/support/tcp-proxy.ts";
import { newProfile, now, Tab } from "./browser.ts";
import { proxyTo } from "./page.ts";

/** Milliseconds. */
export type NetworkFigures = {
  /** From the last packet until the page says so. */
  readonly noticed: readonly number[];
  /** From the return of the network until what came meanwhile is painted. */
  readonly healed: readonly number[];
  /** From the browser's word that there is a network until what came meanwhile is painted. */
  readonly online: readonly number[];
  /** Times in which the composer still had its text. */
  readonly kept: number;
};

/** An answer that goes on, and a draft in the composer. */
type Scene = {
  readonly tab: Tab;
  readonly proxy: TcpProxy;
  readonly held: Hold;
  readonly end: () => Promise<void>;
};

const DRAFT = "A half-written message";

async function begin(browser: Browser, product: Product, cwd: string): Promise<Scene> {
  const proxy = await proxyTo(product);
  const context = await newProfile(browser);
  const talk = await Talk.open(product, cwd);
  const held = hold();
  const tag = product.model.script(`network-${talk.id}`, [say(text("Before. ", held, "After."))]);
  await talk.send(`Speak. ${tag}`);
  const tab = await Tab.open(context);
  await tab.goto(`http://127.0.0.1:${proxy.port}/c/${talk.id}`, "Before.");
  await tab.page.getByRole("textbox", { name: "Message" }).fill(DRAFT);
  const end = async (): Promise<void> => {
    await context.close();
    await proxy.cut();
    talk.close();
  };
  return { tab, proxy, held, end };
}

const isKept = async ({ tab }: Scene): Promise<number> =>
  Number((await tab.page.getByRole("textbox", { name: "Message" }).inputValue()) === DRAFT);

export async function brokenConnections(
  browser: Browser,
  product: Product,
  cwd: string,
  counts: { readonly silent: number; readonly online: number },
): Promise<NetworkFigures> {
  const figures = { noticed: [] as number[], healed: [] as number[], online: [] as number[], kept: 0 };
  for (let n = 0; n < counts.silent; n++) {
    const scene = await begin(browser, product, cwd);
    const { tab, proxy, held, end } = scene;
    await tab.expect("state", "connection lost");
    const broken = now();
    await proxy.hang();
    held.release();
    figures.noticed.push((await tab.seen()).paintedAt - broken);
    await tab.expect("conversation", "After.");
    const back = now();
    await proxy.mend();
    figures.healed.push((await tab.seen()).paintedAt - back);
    figures.kept += await isKept(scene);
    await end();
  }
  for (let n = 0; n < counts.online; n++) {
    const scene = await begin(browser, product, cwd);
    const { tab, proxy, held, end } = scene;
    // Connections that the browser keeps for later are dead, too, and it cannot know: by now the server has ended them.
    while (proxy.connections > 1) await tab.page.waitForTimeout(100);
    proxy.strand();
    held.release();
    await tab.expect("conversation", "After.");
    const back = now();
    // As the browser says when the machine has another network.
    await tab.page.evaluate('dispatchEvent(new Event("online"))');
    figures.online.push((await tab.seen()).paintedAt - back);
    figures.kept += await isKept(scene);
    await end();
  }
  return figures;
}
