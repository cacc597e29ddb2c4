/**
 * `bedrock run` and `attach` while what they follow is killed: the API alone, and the whole system of `npm start`, which
 * is started again or not. The commands, the system and the model's requests are real processes and connections.
 */
import { randomUUID } from "node:crypto";
import { afterAll, describe, expect, test } from "vitest";
import { isRunning, type ProcessIdentity } from "../../local/process-identity.ts";
import { hold, type Hold } from "../../local/scripted/cues.ts";
import { say, text, toolCall, type Answer } from "../../local/scripted/script.ts";
import { processesOf } from "../local/npm-start.ts";
import { isDead } from "../support/processes.ts";
import { startProduct, type Product } from "../support/product.ts";
import { until } from "../support/waiting.ts";
import { bedrock, linesOf, run, type Options, type Running } from "./support.ts";

const SLOW = 120_000;

type Shown = { readonly state: { readonly kind: string }; readonly lastEvent: number };

/** A product of its own for a group of tests, with a policy for conversations that a restart finds at work. */
async function productWith(policy: "idle" | "resume") {
  const product = await startProduct({ env: { RESTART_POLICY: policy } });
  afterAll(() => product.stop(), SLOW);
  const here: Options = { url: product.url, cwd: product.cwd };

  /** `run` in a new conversation, up to its first words, and an `attach` that has seen them, too. */
  const runAndAttach = async (answers: readonly Answer[], options: readonly string[] = []) => {
    const tag = product.model.script(randomUUID(), [...answers]);
    const id = (await run(["new"], here)).stdout.trim();
    const running = bedrock(["run", "--stream-json", ...options, "-c", id, "Go.", tag], here);
    await running.shows("One");
    const attached = bedrock(["attach", "--stream-json", "--after", "0", ...options, id], here);
    await attached.shows("One");
    return { id, running, attached };
  };
  const conversation = async (id: string): Promise<Shown> =>
    (await (await fetch(`${product.url}/api/conversations/${id}`)).json()) as Shown;
  return { product, here, runAndAttach, conversation };
}

/** The end of the whole system by SIGKILL, as by a crash of its machine. */
async function killAll(product: Product): Promise<void> {
  const all: ProcessIdentity[] = Object.values(processesOf(product.dataDir));
  process.kill(product.pid, "SIGKILL");
  await until(() => isDead(product.pid) && !all.some(isRunning));
}

const numbersOf = (...outputs: readonly string[]): number[] =>
  outputs.flatMap((output) => linesOf(output).flatMap(({ number }) => number ?? []));
/** The numbers of all events after one of them. */
const allAfter = (first: number, last: number): number[] =>
  Array.from({ length: last - first }, (_, n) => first + 1 + n);

const answersWith = (held: Hold): readonly Answer[] => [
  say(text("One, ", held, "two."), toolCall("ls", { path: "." })),
  say(text("Three.")),
];

const both = ({ running, attached }: { running: Running; attached: Running }) => [running, attached];

describe("a command that follows a run", async () => {
  const { product, here, runAndAttach, conversation } = await productWith("idle");

  test(
    "says at once that the API was killed, follows again, and has every durable event once",
    async () => {
      const held = hold();
      const followers = await runAndAttach(answersWith(held));
      const pid = product.pidOf("api");
      process.kill(pid, "SIGKILL");
      for (const each of both(followers)) await each.shows("Trying again");
      for (const each of both(followers)) await each.shows("Connected again");
      held.release();
      const { lastEvent, ...ended } = await endOf(followers);
      expect(ended).toEqual({ codes: [0, 0], says: ["Trying again …", "Connected again."] });
      expect(lastEvent).toBe((await conversation(followers.id)).lastEvent);
    },
    SLOW,
  );

  test(
    "ends with 130 when the whole system was killed and its restart has interrupted the run",
    async () => {
      const followers = await runAndAttach(answersWith(hold()));
      await killAll(product);
      for (const each of both(followers)) await each.shows("Trying again");
      await product.startAgain();
      const { lastEvent, ...ended } = await endOf(followers);
      expect(ended).toEqual({ codes: [130, 130], says: ["Trying again …", "Connected again."] });
      expect(lastEvent).toBe((await conversation(followers.id)).lastEvent);
      const told = await run(["attach", followers.id], here);
      expect(told.stderr).toMatch(/restart/i);
    },
    SLOW,
  );

  test(
    "ends with 69 after --patience when nothing comes back, and what it misses can be had later, once",
    async () => {
      const { id, running, attached } = await runAndAttach(answersWith(hold()), ["--patience", "2"]);
      await killAll(product);
      for (const each of [running, attached]) {
        const { code, stderr } = await each.ended;
        expect(code, stderr).toBe(69);
        expect(stderr).toMatch(/Trying again …\nThe server is still away\. What it does goes on\.\n/);
        expect(stderr).toContain(`Follow it again with: bedrock attach ${id}`);
      }
      const refused = await run(["attach", id], here);
      expect(refused.code).toBe(69);
      await product.startAgain();
      const last = Math.max(...numbersOf(attached.stdout()));
      const later = await run(["attach", "--stream-json", "--after", String(last), id], here);
      expect(later.code, later.stderr).toBe(130);
      const { lastEvent } = await conversation(id);
      expect(numbersOf(attached.stdout(), later.stdout)).toEqual(allAfter(0, lastEvent));
    },
    SLOW,
  );
});

describe("a command that follows a run which a restart resumes", async () => {
  const { product, runAndAttach, conversation } = await productWith("resume");

  test(
    "ends with 0 although the whole system was killed under it, and has every durable event once",
    async () => {
      const followers = await runAndAttach([say(text("One, ", hold())), say(text("One, and no more."))]);
      await killAll(product);
      for (const each of both(followers)) await each.shows("Trying again");
      await product.startAgain();
      const { lastEvent, ...ended } = await endOf(followers);
      expect(ended).toEqual({ codes: [0, 0], says: ["Trying again …", "Connected again."] });
      expect(lastEvent).toBe((await conversation(followers.id)).lastEvent);
      expect(followers.running.stdout()).toContain("One, and no more.");
    },
    SLOW,
  );
});

/** Both have ended; each has every event of its time once, in order, on standard output, and nothing else. */
async function endOf({ running, attached }: { readonly running: Running; readonly attached: Running }) {
  const [first, second] = [await running.ended, await attached.ended];
  const all = numbersOf(second.stdout);
  const lastEvent = all.at(-1) ?? 0;
  expect(all).toEqual(allAfter(0, lastEvent));
  const ofRun = numbersOf(first.stdout);
  expect(ofRun).toEqual(allAfter((ofRun[0] ?? 1) - 1, lastEvent));
  const saysOf = ({ stderr }: { readonly stderr: string }) =>
    ["Trying again …", "Connected again."].filter((words) => stderr.split(words).length === 2);
  expect(saysOf(first)).toEqual(saysOf(second));
  return { codes: [first.code, second.code], says: saysOf(first), lastEvent };
}
