/** Measures: the page as `npm start` serves it: its first load, long conversations, many tabs, approvals, Stop. */
import { hostname } from "node:os";
import type { Browser } from "playwright-core";
import { openDatabase } from "../db/connect.ts";
import { createClient } from "../client/index.ts";
import { hold } from "../local/scripted/cues.ts";
import { say, text, toolCall } from "../local/scripted/script.ts";
import { MESSAGES_A_TURN, storeLong, type Stored } from "../test/support/long-conversation.ts";
import type { Product } from "../test/support/product.ts";
import { startProxy, type TcpProxy } from "../test/support/tcp-proxy.ts";
import { Talk } from "../test/support/talk.ts";
import { newProfile, now, Tab } from "./browser.ts";

const pathOf = (id: string): string => `/c/${id}`;

/** The entry of a conversation in the list. */
const entryOf = ({ page }: Tab, id: string) => page.locator(`nav a[href="${pathOf(id)}"]`);

/** Bytes of the scripts that the first load needs, compressed by gzip, and addresses of others that were asked. */
export async function firstLoad(
  browser: Browser,
  { url }: Product,
): Promise<{ readonly bytes: number; readonly elsewhere: readonly string[] }> {
  const context = await newProfile(browser);
  const elsewhere: string[] = [];
  context.on("request", (request) => {
    if (new URL(request.url()).origin !== new URL(url).origin) elsewhere.push(request.url());
  });
  const { page } = await Tab.open(context);
  await page.goto(url);
  await page.getByRole("main").waitFor();
  // What else it loads by itself.
  await page.waitForTimeout(1_000);
  // Programs of workers are among them.
  const loaded = await page.evaluate(() => performance.getEntriesByType("resource").map(({ name }) => name));
  await context.close();
  const scripts = new Set(loaded.filter((name) => name.endsWith(".js")));
  const sizes = await Promise.all(
    [...scripts].map(async (script) => {
      const response = await fetch(script, { method: "HEAD", headers: { "accept-encoding": "gzip" } });
      return Number(response.headers.get("content-length"));
    }),
  );
  return { bytes: sizes.reduce((sum, size) => sum + size, 0), elsewhere };
}

/** Times in milliseconds. */
export type LongFigures = {
  /** From the address to the last message, in a browser that has seen nothing of the page before. */
  readonly firstPaints: readonly number[];
  /** The most rows that were mounted, from the last message up to the very first. */
  readonly mounted: number;
  /** Bytes with all messages loaded. */
  readonly heap: number;
  /** From the click to the last message: of a conversation that was not open yet, and of one that was. */
  readonly firstSwitches: readonly number[];
  readonly switches: readonly number[];
};

const TURNS = 5_000 / MESSAGES_A_TURN;
const VISITS = 10;
const SWITCHES = 20;

export async function longConversations(
  browser: Browser,
  product: Product,
  cwd: string,
): Promise<LongFigures> {
  const db = openDatabase(product.databaseUrl, { max: 2, applicationName: "bench" });
  const store = (title: string): Promise<Stored> =>
    storeLong(db, { title, host: hostname(), cwd, turns: TURNS });
  const [one, other] = [await store("One that is long"), await store("Another that is long")];
  await db.close();

  const firstPaints: number[] = [];
  const firstSwitches: number[] = [];
  for (let n = 0; n < VISITS; n++) {
    const context = await newProfile(browser);
    const tab = await Tab.open(context);
    firstPaints.push(await tab.goto(product.url + pathOf(one.id), one.last));
    firstSwitches.push(await switchTo(tab, other));
    await context.close();
  }

  const context = await newProfile(browser);
  const tab = await Tab.open(context);
  await tab.goto(product.url + pathOf(one.id), one.last);
  let mounted = await readToTheFirst(tab, one);
  await switchTo(tab, other);
  mounted = Math.max(mounted, await readToTheFirst(tab, other));
  const heap = await tab.heap();
  const switches: number[] = [];
  for (let n = 0; n < SWITCHES; n++) switches.push(await switchTo(tab, n % 2 === 0 ? one : other));
  await context.close();
  return { firstPaints, mounted, heap, firstSwitches, switches };
}

const switchTo = (tab: Tab, { id, last }: Stored): Promise<number> =>
  tab.after(() => entryOf(tab, id).click(), "conversation", last);

/** Goes up as a person does who wants to see the beginning. Returns the most rows that were mounted. */
async function readToTheFirst({ page }: Tab, { first }: Stored): Promise<number> {
  const conversation = page.getByRole("region", { name: "Conversation" });
  let mounted = 0;
  await conversation.focus();
  while (!(await conversation.getByText(first).isVisible())) {
    await page.keyboard.press("Home");
    mounted = Math.max(mounted, await conversation.locator(".row").count());
    await page.waitForTimeout(20);
  }
  return mounted;
}

export type TabFigures = {
  readonly loads: readonly number[];
  readonly switches: readonly number[];
  /** Open at the API, at the end. */
  readonly streams: number;
  /** Tabs that showed what came in the end. */
  readonly live: number;
};

const TABS = 12;

/** Twelve tabs on conversations of which one is written all the time. */
export async function manyTabs(browser: Browser, product: Product, cwd: string): Promise<TabFigures> {
  const context = await newProfile(browser);
  const [one, other] = [await shortOne(product, cwd, "One"), await shortOne(product, cwd, "Other")];
  const tabs: Tab[] = [];
  const loads: number[] = [];
  for (let n = 0; n < TABS; n++) {
    const tab = await Tab.open(context);
    await tab.page.bringToFront();
    loads.push(await tab.goto(product.url + pathOf(one.id), one.last));
    tabs.push(tab);
  }
  const switches: number[] = [];
  for (const tab of tabs) {
    await tab.page.bringToFront();
    switches.push(await switchTo(tab, other));
    switches.push(await switchTo(tab, one));
  }
  for (const tab of tabs) await tab.expect("conversation", "Once more.");
  const said = one.talk.nextState("idle");
  await one.talk.send("Go on.");
  await said;
  const seen = await Promise.all(
    tabs.map((tab) => Promise.race([tab.seen().then(() => 1), tab.page.waitForTimeout(5_000).then(() => 0)])),
  );
  const metrics = await (await fetch(`${product.url}/metrics`)).text();
  await context.close();
  // Two of them are the bench's own.
  const streams = Number(/^bedrock_event_streams (\d+)/m.exec(metrics)?.[1]) - 2;
  for (const { talk } of [one, other]) talk.close();
  return { loads, switches, streams, live: seen.reduce<number>((sum, value) => sum + value, 0) };
}

async function shortOne(product: Product, cwd: string, name: string): Promise<Stored & { talk: Talk }> {
  const talk = await Talk.open(product, cwd);
  const last = `${name} is ready.`;
  const tag = product.model.script(`tabs-${talk.id}`, [say(last), say("Once more.")]);
  const idle = talk.nextState("idle");
  await talk.send(`${name} ${tag}`);
  await idle;
  return { id: talk.id, first: name, last, talk };
}

/** Milliseconds from the model's call until list, title and icon of another conversation's page show that it asks. */
export async function approvals(
  browser: Browser,
  product: Product,
  cwd: string,
  count: number,
): Promise<Readonly<Record<"list" | "title" | "icon", readonly number[]>>> {
  const context = await newProfile(browser);
  const elsewhere = await shortOne(product, cwd, "Elsewhere");
  const figures = { list: [] as number[], title: [] as number[], icon: [] as number[] };
  const marks = { list: "Waits for you", title: "Approval needed", icon: "waiting" } as const;
  const tab = await Tab.open(context);
  await tab.goto(product.url + pathOf(elsewhere.id), elsewhere.last);
  for (let n = 0; n < count; n++) {
    for (const place of ["list", "title", "icon"] as const) {
      const talk = await Talk.create(product, cwd);
      const held = hold();
      const call = toolCall("request_mode_upgrade", { reason: "To write." });
      const tag = product.model.script(`asks-${talk.id}`, [say(held, call), say("Well.")]);
      await talk.send(`Ask. ${tag}`);
      await held.reached;
      await tab.expect(place, marks[place]);
      const released = now();
      held.release();
      figures[place].push((await tab.seen()).paintedAt - released);
      const idle = talk.nextState("idle");
      await talk.cancel();
      await idle;
      await tab.page.getByRole("heading", { name: "Waits for you" }).waitFor({ state: "detached" });
      talk.close();
    }
  }
  elsewhere.talk.close();
  await context.close();
  return figures;
}

/**
 * Milliseconds from a person's decision in one client until the others know it: the card of a page that shows it goes,
 * and the typed client, on which the command line and the bridge for editors are built, has it.
 */
export async function decisionsElsewhere(
  browser: Browser,
  product: Product,
  cwd: string,
  count: number,
): Promise<Readonly<Record<"page" | "client", readonly number[]>>> {
  const context = await newProfile(browser);
  const figures = { page: [] as number[], client: [] as number[] };
  for (let n = 0; n < count; n++) {
    const talk = await Talk.create(product, cwd);
    const asks = say(toolCall("request_mode_upgrade", { reason: "To write." }));
    const asking = talk.nextState("awaiting_mode_approval");
    await talk.send(`Ask. ${product.model.script(`decided-${talk.id}`, [asks, say("Well.")])}`);
    const { data } = await asking;
    const { toolCall: call } = data["state"] as { readonly toolCall: { readonly id: string } };
    const client = createClient({ url: product.url, token: null }, { list: false });
    client.open(talk.id);
    const isAsked = (): boolean => {
      const model = client.models.conversation(talk.id);
      return model.kind === "loaded" && model.conversation.state.kind === "awaiting_mode_approval";
    };
    const until = (wanted: boolean) =>
      new Promise<number>((resolve) => {
        const look = (): void => {
          if (isAsked() !== wanted) return;
          unsubscribe();
          resolve(now());
        };
        const unsubscribe = client.models.subscribe(look);
        look();
      });
    await until(true);
    const tab = await Tab.open(context);
    await tab.page.goto(product.url + pathOf(talk.id));
    const allow = tab.page.getByRole("button", { name: "Allow" });
    await allow.waitFor();
    const idle = talk.nextState("idle");
    const decidedAt = now();
    const gone = allow.waitFor({ state: "detached" }).then(now);
    const known = until(false);
    await talk.decide(call.id, "deny");
    figures.page.push((await gone) - decidedAt);
    figures.client.push((await known) - decidedAt);
    await idle;
    client.end();
    await tab.page.close();
    talk.close();
  }
  await context.close();
  return figures;
}

/** Milliseconds from Escape until "stopping" is painted, with a server that answers and without. */
export async function stops(
  browser: Browser,
  product: Product,
  cwd: string,
  count: number,
): Promise<{ readonly connected: readonly number[]; readonly cut: readonly number[] }> {
  const context = await newProfile(browser);
  const proxy = await proxyTo(product);
  const figures = { connected: [] as number[], cut: [] as number[] };
  for (let n = 0; n < count; n++) {
    for (const way of ["connected", "cut"] as const) {
      const talk = await Talk.open(product, cwd);
      const tag = product.model.script(`stop-${talk.id}`, [say(text("It is written", hold()))]);
      await talk.send(`Write. ${tag}`);
      const tab = await Tab.open(context);
      await tab.goto(`http://127.0.0.1:${proxy.port}${pathOf(talk.id)}`, "It is written");
      const idle = talk.nextState("idle");
      if (way === "cut") await proxy.cut();
      figures[way].push(await tab.after(() => tab.page.keyboard.press("Escape"), "state", "stopping"));
      await proxy.mend();
      await idle;
      await tab.page.close();
      talk.close();
    }
  }
  await context.close();
  await proxy.cut();
  return figures;
}

/** Between the browser and the product's API. */
export function proxyTo({ url }: Product): Promise<TcpProxy> {
  return startProxy({ host: "127.0.0.1", port: Number(new URL(url).port) });
}
