/**
 * REQ-BED-019, 020, 021, 023 in the running product: every way into the continuation and out of it, with each process
 * killed (`kill -9`) at each step. The steps are: during the request that fills the context, during the request for
 * the summary, and at the end. Whichever process dies, the conversation ends once, with the summary of its way.
 */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { hold } from "../../local/scripted/cues.ts";
import type { MessagesRequest, StopReason } from "../../local/scripted/messages.ts";
import { answer, fail, overloaded, say, toolCall, type Answer } from "../../local/scripted/script.ts";
import type { Message } from "../../machine/message.ts";
import { summaries } from "../../machine/wording.ts";
import { isDead } from "../support/processes.ts";
import { PROCESSES, startProduct, type Product } from "../support/product.ts";
import { Talk } from "../support/talk.ts";
import { until } from "../support/waiting.ts";

const SLOW = 180_000;
/** Tokens; the window of the conversations' model. */
const WINDOW = 1_000_000;
const SUMMARY = "In short: it went well.";

let product: Product;
beforeAll(async () => {
  product = await startProduct();
}, SLOW);
afterAll(() => product.stop(), SLOW);

const used = (share: number) => ({
  usage: {
    ...{ input_tokens: Math.round(WINDOW * share) - 10, output_tokens: 10 },
    ...{ cache_read_input_tokens: 0, cache_creation_input_tokens: 0 },
  },
});
const calls = () => [
  toolCall("bash", { command: "touch ran" }),
  toolCall("write", { path: "ran", content: "" }),
];

/** The model's answer that leads to the continuation; null: the person asks for it. */
const WAYS_IN: Readonly<Record<string, () => Answer | null>> = {
  "90.0 %, with calls": () => answer(["Let me see.", ...calls()], used(0.9)),
  "90.0 %, a finished turn": () => answer(["Done."], used(0.9)),
  "95 %, cut off": () => answer(["Half of"], { ...used(0.95), stopReason: "max_tokens" }),
  "99 %, a refusal": () => answer(["No."], { ...used(0.99), stopReason: "refusal" }),
  "the window is exceeded": () =>
    answer(["Half of"], { stopReason: "model_context_window_exceeded" as StopReason }),
  "the prompt is too long": () =>
    fail("invalid_request_error", { message: "prompt is too long: 1000001 tokens > 1000000 maximum" }),
  "the body is too large": () => fail("request_too_large"),
  "by hand, from idle": () => null,
  "by hand, from an error": () => null,
};

const GO_ON = "Go on from there.";

type Out = {
  /** The answer to the `n`th request for the summary, counted from 1. */
  readonly answer: (n: number) => Answer;
  readonly summary: string;
  readonly reason: "completed" | "interrupted" | "error";
};

const WAYS_OUT: Readonly<Record<string, Out>> = {
  "a summary": { answer: () => say(SUMMARY), summary: SUMMARY, reason: "completed" },
  "a summary at the second try": {
    answer: (n) => (n === 1 ? overloaded() : say(SUMMARY)),
    ...{ summary: SUMMARY, reason: "completed" },
  },
  "no credit": { answer: () => fail("billing_error"), summary: summaries.fallback, reason: "error" },
  "overloaded for good": { answer: overloaded, summary: summaries.fallback, reason: "error" },
  "even the summary is too long": {
    answer: () => fail("invalid_request_error", { message: "prompt is too long" }),
    ...{ summary: summaries.fallback, reason: "error" },
  },
  "nothing but blanks": { answer: () => say(" \n "), summary: summaries.fallback, reason: "error" },
  "a Stop": { answer: () => say(SUMMARY), summary: summaries.cancelled, reason: "interrupted" },
};

type Case = { readonly way: string; readonly out: string };
const CASES: readonly Case[] = [
  ...Object.keys(WAYS_IN).map((way) => ({ way, out: "a summary" })),
  ...Object.keys(WAYS_OUT)
    .slice(1)
    .map((out) => ({ way: "90.0 %, with calls", out })),
];

/** One conversation on its way. */
class Journey {
  readonly way: string;
  readonly out: Out;
  readonly talk: Talk;
  readonly #stops: boolean;
  readonly #filling = hold();
  readonly #summing = hold();
  readonly summaryRequests: MessagesRequest[] = [];

  constructor({ way, out }: Case, talk: Talk) {
    this.way = `${way}; ${out}`;
    this.#stops = out === "a Stop";
    const found = WAYS_OUT[out];
    if (found === undefined) throw new Error(out);
    this.out = found;
    this.talk = talk;
  }

  static async begin(kind: Case): Promise<Journey> {
    const journey = new Journey(kind, await Talk.open(product));
    await journey.#fill(kind.way);
    return journey;
  }

  /** Goes up to the step from which the continuation will follow. */
  async #fill(way: string): Promise<void> {
    const { talk } = this;
    const filling = WAYS_IN[way]?.() ?? null;
    const failing = way === "by hand, from an error";
    const tag = product.model.script(talk.id, ({ body }) => {
      if (body.tools === undefined) return this.#sum(body);
      // An excerpt has the tag of this script, too.
      if (JSON.stringify(body.messages).includes(GO_ON)) return say("I go on.");
      if (filling === null) return failing ? fail("permission_error") : say("Hello.");
      return { ...filling, beforeHeaders: [this.#filling] };
    });
    await talk.send(`go ${tag}`);
    if (filling === null) await talk.untilState(failing ? "error" : "idle");
    else await this.#filling.reached;
  }

  #sum(request: MessagesRequest): Answer {
    this.summaryRequests.push(request);
    return { ...this.out.answer(this.summaryRequests.length), beforeHeaders: [this.#summing] };
  }

  /** Lets the model fill the context, or asks for the continuation as the person. */
  async trigger(): Promise<void> {
    this.#filling.release();
    if (this.way.startsWith("by hand")) {
      // After a kill it is not known whether the first try got through.
      const { status, body } = await this.talk.continuation();
      expect([this.way, status === 202 || body["code"] === "agent_busy"]).toEqual([this.way, true]);
    }
  }

  async untilAsked(): Promise<void> {
    await this.#summing.reached;
    await this.talk.untilState("awaiting_continuation");
  }

  /** Lets the summary come, or stops it. */
  finish(): void {
    if (this.#stops) void this.talk.cancel();
    else this.#summing.release();
  }

  async check(): Promise<void> {
    const { talk, way, out } = this;
    await talk.untilState("context_exhausted");
    expect([way, await talk.state()]).toMatchObject([way, { summary: out.summary }]);
    const messages = (await talk.messages()) as unknown as readonly Message[];
    const types = messages.map(({ type }) => type);
    const ofType = (type: Message["type"]) => messages.filter((message) => message.type === type);
    expect([way, ofType("continuation").map(({ content }) => content)]).toEqual([
      way,
      [[{ summary: out.summary }]],
    ]);
    // A continuation by hand belongs to no run; any other ends its run, once.
    const byHand = way.startsWith("by hand");
    expect([way, types.at(-1)]).toEqual([way, byHand ? "continuation" : "run_stop"]);
    if (!byHand) expect([way, messages.at(-1)?.content]).toEqual([way, [{ reason: out.reason }]]);
    expect([way, ofType("run_stop").length, ofType("user").length]).toEqual([way, 1, 1]);
    this.#checkCalls(messages);
    this.#checkRequests();
    // A read may be ahead of the stream.
    await until(() => talk.heard.some(({ name }) => name === "context.exhausted"));
    const told = talk.heard.filter(({ name }) => name === "context.exhausted");
    expect([way, told.map(({ data }) => data)]).toMatchObject([way, [{ summary: out.summary }]]);
    const numbers = talk.heard.map(({ id }) => id);
    expect([way, numbers]).toEqual([way, numbers.map((_, n) => (numbers[0] ?? 0) + n)]);
  }

  /** The calls of the response that filled the context are stored, answered and not executed. */
  #checkCalls(messages: readonly Message[]): void {
    const results = messages.flatMap((message) => (message.type === "tool" ? message.content : []));
    const expected = this.way.includes("with calls") ? ["bash skipped", "write skipped"] : [];
    expect([this.way, results.map(({ name, status }) => `${name} ${status}`)]).toEqual([this.way, expected]);
    const answered = messages.filter(({ type }) => type === "agent").length;
    const hasAnswer = !/prompt is too long|body is too large|from an error/.test(this.way);
    expect([this.way, answered]).toEqual([this.way, hasAnswer ? 1 : 0]);
    expect([this.way, existsSync(join(product.cwd, "ran"))]).toEqual([this.way, false]);
  }

  /** Each request has no tools, has the history as text, and names the calls that were not executed. */
  #checkRequests(): void {
    expect([this.way, this.summaryRequests.length > 0]).toEqual([this.way, true]);
    for (const request of this.summaryRequests) {
      expect(request).not.toHaveProperty("tools");
      expect(request.messages).toHaveLength(1);
      const sent = JSON.stringify(request.messages);
      expect([this.way, sent.includes("- bash\\n- write")]).toEqual([
        this.way,
        this.way.includes("with calls"),
      ]);
    }
  }

  /** REQ-BED-021: the conversation refuses a message and says how to go on; that way works, up to the model. */
  async checkEnd(): Promise<void> {
    const { talk, way, out } = this;
    const refused = await talk.send("And now?");
    expect([way, refused.status]).toEqual([way, 409]);
    expect(refused.body).toMatchObject({
      code: "context_exhausted",
      summary: out.summary,
      startAnew: { method: "POST", body: { continuedFrom: { id: talk.id, seed: true } } },
    });
    const next = await talk.startAnew();
    expect(await next.read()).toMatchObject({
      continuedFrom: talk.id,
      cwd: product.cwd,
      state: { kind: "idle" },
    });
    const key = `${talk.id}, continued`;
    const idle = next.nextState("idle");
    await next.send(`${GO_ON} ${product.model.script(key, () => say("I go on."))}`);
    await idle;
    const request = product.model.requestsOf(key)[0] ?? product.model.requestsOf(talk.id).at(-1);
    const read = request?.body.messages.map(({ content }) => content) ?? [];
    // The summary, or an excerpt where the model wrote none, and the new message.
    expect([way, read]).toEqual([
      way,
      [
        [
          { type: "text", text: expect.stringMatching(/continues an earlier one/) as string },
          expect.objectContaining({
            type: "text",
            text: expect.stringMatching(/^Go on from there\. /) as string,
          }),
        ],
      ],
    ]);
    // An excerpt has the last requests, and not the sentence that stands in place of a summary.
    const isWritten = out.reason === "completed";
    const sent = JSON.stringify(read);
    expect([way, sent.includes(out.summary)]).toEqual([way, isWritten]);
    expect([way, sent.includes("No summary of it could be written")]).toEqual([way, !isWritten]);
    expect([way, sent.includes("1. go ")]).toEqual([way, !isWritten]);
    for (const each of [talk, next]) each.close();
  }
}

test.each(PROCESSES)("every way survives kill -9 of %s at each step", { timeout: SLOW }, async (name) => {
  const killed: number[] = [];
  const kill = (): void => {
    const pid = product.pidOf(name);
    killed.push(pid);
    process.kill(pid, "SIGKILL");
  };
  const journeys = await Promise.all(CASES.map((each) => Journey.begin(each)));
  kill();
  await Promise.all(journeys.map((journey) => journey.trigger()));
  await Promise.all(journeys.map((journey) => journey.untilAsked()));
  // The killed process is replaced by now, because every journey was served.
  await until(() => product.pidOf(name) !== killed[0]);
  for (const journey of journeys) journey.finish();
  kill();
  for (const journey of journeys) await journey.check();
  await until(() => product.pidOf(name) !== killed[1]);
  kill();
  for (const journey of journeys) await journey.checkEnd();
  expect(product.model.requests.filter(({ refusal }) => refusal !== null)).toEqual([]);
  await until(() => killed.every(isDead));
});

test("below the threshold the conversation goes on: at 89.9 % the calls run, from 80 % the person is warned once", async () => {
  const talk = await Talk.open(product);
  const tag = product.model.script(talk.id, [
    answer(["So", toolCall("bash", { command: "echo 1" })], used(0.799)),
    answer(["far", toolCall("bash", { command: "echo 2" })], used(0.8)),
    answer(["so", toolCall("bash", { command: "echo 3" })], used(0.899)),
    answer(["good."], used(0.899999)),
  ]);
  const idle = talk.nextState("idle");
  await talk.send(`go ${tag}`);
  await idle;
  const results = (await talk.messages()).flatMap(({ type, content }) => (type === "tool" ? [content] : []));
  expect(results).toMatchObject(
    [1, 2, 3].map((n) => [{ status: "completed", output: [{ text: `${n}\n` }] }]),
  );
  const warned = talk.heard.filter(({ name }) => name === "context.warned").map(({ data }) => data);
  expect(warned).toMatchObject([{ contextRatio: 0.8 }]);
  talk.close();
});
