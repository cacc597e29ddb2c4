/** Connections and servers that break while an answer comes: what a person sees is what they would have seen. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { expect, onTestFinished, vi } from "vitest";
import { hold, type Hold } from "../../local/scripted/cues.ts";
import { say, text, thinking, toolCall, type Answer, type Piece } from "../../local/scripted/script.ts";
import { Conversations, on, untilState } from "./conversations.ts";
import { installProbe } from "./probe/install.ts";
import type { Sample } from "./probe/probe.ts";
import { testWithStack, type Stack } from "./stack.ts";

const SLOW = 240_000;
/** So that a test does not wait for long until a silent connection counts as dead. */
const HEARTBEAT_MS = 500;

const test = testWithStack({ heartbeatMs: HEARTBEAT_MS });

/** The same numbers for the same seed. */
function random(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

const WAYS = ["reload", "cut", "killed API"] as const;

async function disturb(way: (typeof WAYS)[number], page: Page, stack: Stack): Promise<void> {
  switch (way) {
    case "reload":
      await page.reload();
      return;
    case "cut":
      stack.network.drop();
      return;
    case "killed API":
      await stack.restart();
      return;
  }
}

/** Words that say what they are a part of, and their place in it. */
const KINDS = { thought: "t", text: "w", output: "o", end: "e" } as const;
type Kind = keyof typeof KINDS;
const COUNTS: { readonly [kind in Kind]: number } = { thought: 25, text: 120, output: 90, end: 60 };
const POINTS = 50;

const wordOf = (kind: Kind, at: number): string => `${KINDS[kind]}${String(at).padStart(3, "0")};`;

/** The places at which something breaks: after this word of this part. */
type Point = { readonly kind: Kind; readonly at: number };

function choosePoints(next: () => number): readonly Point[] {
  const all = (Object.keys(COUNTS) as Kind[]).flatMap((kind) =>
    Array.from({ length: COUNTS[kind] }, (_, at): Point => ({ kind, at })),
  );
  const chosen = new Set<Point>();
  while (chosen.size < POINTS) {
    const point = all[Math.floor(next() * all.length)];
    if (point !== undefined) chosen.add(point);
  }
  return all.filter((point) => chosen.has(point));
}

/** A run with thinking, text, a command that prints, and a last text, which waits at each of these points. */
class Run {
  readonly answers: readonly Answer[];
  readonly #holds = new Map<Point, Hold>();
  readonly #cwd: string;

  constructor(points: readonly Point[], cwd: string) {
    this.#cwd = cwd;
    const pieces = (kind: Kind): Piece[] =>
      Array.from({ length: COUNTS[kind] }, (_, at): Piece[] => {
        const piece = `${wordOf(kind, at)} `;
        const point = points.find((one) => one.kind === kind && one.at === at);
        if (point === undefined) return [piece, { kind: "pause", ms: 3 }];
        const held = hold();
        this.#holds.set(point, held);
        return [piece, held];
      }).flat();
    this.answers = [
      say(
        thinking(pieces("thought")),
        text(...pieces("text")),
        toolCall("bash", { command: this.#command(points) }),
      ),
      say(text(...pieces("end"))),
    ];
  }

  /** Lets the run go on. */
  release(point: Point): void {
    if (point.kind === "output") writeFileSync(join(this.#cwd, this.#fileOf(point)), "");
    else this.#holds.get(point)?.release();
  }

  #command(points: readonly Point[]): string {
    const waits = points
      .filter(({ kind }) => kind === "output")
      .map((point) => `${point.at}) until [ -e ${this.#fileOf(point)} ]; do read -rt 0.02 -u 9; done;;`);
    const count = COUNTS.output - 1;
    // Waits without a process for each moment.
    return `exec 9<> <(:); for n in $(seq 0 ${count}); do printf 'o%03d;\n' $n; case $n in ${waits.join(" ")} *) ;; esac; done; exit 3`;
  }

  readonly #fileOf = ({ at }: Point): string => `goes-on-${at}`;
}

/** The words of each part, in the order in which they stand. */
const wordsIn = (shown: string, kind: Kind): readonly string[] =>
  shown.match(new RegExp(`${KINDS[kind]}\\d{3};`, "g")) ?? [];

/** What is wrong with what a person saw, one text after the other: words that are missing, doubled or taken away. */
function complaintsOf(samples: readonly Sample[]): readonly string[] {
  const complaints: string[] = [];
  for (const kind of Object.keys(KINDS) as Kind[]) {
    let before: { readonly page: number; readonly count: number } = { page: 0, count: 0 };
    for (const { page, text } of samples) {
      const words = wordsIn(text, kind);
      const wrong = words.findIndex((word, at) => word !== wordOf(kind, at));
      if (wrong !== -1) complaints.push(`${kind} ${wrong} is ${words[wrong] ?? ""}: ${words.join("")}`);
      if (page === before.page && words.length < before.count)
        complaints.push(`${kind} shrinks from ${before.count} to ${words.length}`);
      before = { page, count: words.length };
    }
  }
  return complaints;
}

/** What stands there in the end, but for names, times, and where the list has put it. */
const endOf = async (page: Page): Promise<string> =>
  (await on(page).transcript.innerHTML())
    .replace(/\[\[script:[\w-]+\]\]/g, "…")
    .replace(/ (style|title|datetime)="[^"]*"/gi, "")
    .replace(/\d+(\.\d+)? (ms|s|m)\b/g, "…")
    .replace(/\d\d:\d\d( [AP]M)?/g, "…");

/** Opens the conversation, and sees all texts that a person sees, whatever page shows them. */
async function openAndWatch(
  visitor: {
    readonly context: Parameters<typeof installProbe>[0];
    readonly open: (url: string) => Promise<Page>;
  },
  url: string,
): Promise<{ readonly page: Page; readonly samples: readonly Sample[] }> {
  const samples: Sample[] = [];
  await visitor.context.exposeFunction("takeSample", (sample: Sample) => void samples.push(sample));
  await installProbe(visitor.context);
  const page = await visitor.open(url);
  await page.setViewportSize(HIGH);
  return { page, samples };
}

/** Pixels. All of the conversation is in view: what is scrolled away is not on the page. */
const HIGH = { width: 1_280, height: 2_400 };

const SEED = Number(process.env["SEED"] ?? Date.now() % 100_000);

test(
  `at ${POINTS} random points of a run: reloads, cut connections, killed APIs; nothing is lost, doubled or taken away (SEED=${SEED})`,
  async ({ visitor, stack }) => {
    const conversations = new Conversations(stack);
    visitor.tolerate(/ERR_|Failed to (load|fetch)/);
    const next = random(SEED);
    const points = choosePoints(next);

    const run = new Run(points, stack.system.cwd);
    const { url } = await conversations.start("Go.", ...run.answers);
    const { page, samples } = await openAndWatch(visitor, url);
    for (const point of points) {
      const word = wordOf(point.kind, point.at);
      await vi.waitFor(async () => expect(await on(page).transcript.innerText()).toContain(word), 20_000);
      const way = WAYS[Math.floor(next() * WAYS.length)] ?? "cut";
      // Sometimes the run goes on while it is broken, sometimes when it has healed.
      const goesOnFirst = next() < 0.5;
      if (goesOnFirst) run.release(point);
      await disturb(way, page, stack);
      run.release(point);
    }
    await untilState(page, "ready");
    await page.getByText("done ·").waitFor();
    expect(complaintsOf(samples)).toEqual([]);
    expect(samples.length).toBeGreaterThan(POINTS);
    const shown = await on(page).transcript.innerText();
    for (const kind of Object.keys(COUNTS) as Kind[]) expect(wordsIn(shown, kind)).toHaveLength(COUNTS[kind]);

    // The same again, without a disturbance.
    const calm = new Run(points, stack.system.cwd);
    for (const point of points) calm.release(point);
    const undisturbed = await conversations.start("Go.", ...calm.answers);
    const other = await visitor.open(undisturbed.url);
    await other.setViewportSize(HIGH);
    await untilState(other, "ready");
    await other.getByText("done ·").waitFor();
    await expect.poll(() => endOf(page)).toBe(await endOf(other));
  },
  SLOW,
);

/** An answer whose second half comes when it is let go, and a draft in the composer. */
async function beginHalf(visitor: { readonly open: (url: string) => Promise<Page> }, stack: Stack) {
  const conversations = new Conversations(stack);
  const held = hold();
  const { id, url } = await conversations.start(
    "Go.",
    say(text("The first half, ", held, "the second half.")),
    say(text("Heard.")),
  );
  const page = await visitor.open(url);
  const at = on(page);
  await at.transcript.getByText("The first half,").waitFor();
  await at.message.pressSequentially("A draft");
  // The page's stream is older than this one, so it has had a heartbeat, too: from then on it knows how often they come.
  const events = await conversations.person.follow(id);
  await events.until(({ name }) => name === "heartbeat");
  await events.cancel();
  return { conversations, id, page, at, held };
}

/** Others, which the browser keeps for later, would be dead as well, and it could not know. The server ends them soon. */
const untilOneConnection = (stack: Stack) => expect.poll(() => stack.network.connections).toBe(1);

test("packets that pass no more are noticed; what is written is kept, sent once, and all heals when they pass again", async ({
  visitor,
  stack,
}) => {
  visitor.tolerate(/ERR_|Failed to (load|fetch)/);
  const { conversations, id, page, at, held } = await beginHalf(visitor, stack);
  onTestFinished(() => stack.network.mend());
  await stack.network.hang();
  held.release();
  await untilState(page, "connection lost");
  // It can be written on, and sent.
  await at.message.pressSequentially(" that goes on");
  await page.keyboard.press("Enter");
  await at.waiting.getByText("A draft that goes on").waitFor();
  await at.message.pressSequentially("Another draft");
  await stack.network.mend();
  await at.transcript.getByText("Heard.").waitFor({ timeout: 30_000 });
  await untilState(page, "connected");
  await at.waiting.waitFor({ state: "detached" });
  const said = await at.transcript.innerText();
  expect(said.split("The first half, the second half.")).toHaveLength(2);
  expect(said.split("A draft that goes on")).toHaveLength(2);
  const sent = (await conversations.person.messages(id)).filter(({ type }) => type === "user");
  expect(sent).toHaveLength(2);
  expect(await at.message.inputValue()).toBe("Another draft");
  expect(await at.message.evaluate((element) => element === document.activeElement)).toBe(true);
});

test("a connection that has died without a word while others work is noticed by itself", async ({
  visitor,
  stack,
}) => {
  visitor.tolerate(/ERR_|Failed to (load|fetch)/);
  const { page, at, held } = await beginHalf(visitor, stack);
  await untilOneConnection(stack);
  stack.network.strand();
  held.release();
  await at.transcript.getByText("The first half, the second half.").waitFor({ timeout: 30_000 });
  await untilState(page, "connected");
  expect(await at.message.inputValue()).toBe("A draft");
});

/** In the browser: the texts that the state line has from now on. */
function watchState(): void {
  const states: string[] = [];
  const line = document.querySelector("[role=group][aria-label=State]");
  new MutationObserver(() => states.push(line?.textContent ?? "")).observe(document, {
    subtree: true,
    childList: true,
    characterData: true,
  });
  Object.assign(globalThis, { states });
}

test("when the browser is back online, a dead connection is replaced at once, before anybody notices", async ({
  visitor,
  stack,
}) => {
  const { page, at, held } = await beginHalf(visitor, stack);
  await untilOneConnection(stack);
  await page.evaluate(watchState);
  stack.network.strand();
  await page.evaluate(() => window.dispatchEvent(new Event("online")));
  held.release();
  await at.transcript.getByText("The first half, the second half.").waitFor();
  const states = await page.evaluate("states");
  expect((states as readonly string[]).filter((state) => state.includes("connection lost"))).toEqual([]);
  expect(await at.message.inputValue()).toBe("A draft");
});
