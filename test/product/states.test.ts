/**
 * The running product with a conversation in every state: each of its processes is killed (`kill -9`), and the person
 * stops the conversations. Nothing is lost, runs twice or is stuck, and no process is left running. A client that
 * resumes by number gets every event once.
 */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { hostSandbox } from "../support/host-sandbox.ts";
import { isDead } from "../support/processes.ts";
import { PROCESSES, startProduct, type Product } from "../support/product.ts";
import type { Talk } from "../support/talk.ts";
import { until } from "../support/waiting.ts";
import { meet, STATES, type Met } from "./scenarios.ts";

const SLOW = 120_000;

const { available, reason } = await hostSandbox();
if (!available) console.warn(`SKIPPED, awaiting_mode_approval: ${reason ?? ""}`);
const states = STATES.filter((state) => available || state !== "awaiting_mode_approval");

let product: Product;
beforeAll(async () => {
  product = await startProduct();
}, SLOW);
afterAll(() => product.stop(), SLOW);

/** One conversation in each state, all at the same time. */
const meetAll = (): Promise<readonly { readonly state: string; readonly talk: Talk; readonly met: Met }[]> =>
  Promise.all(states.map(async (state) => ({ state, ...(await meet(product, state)) })));

describe("every state", () => {
  test.each(PROCESSES)("survives kill -9 of the process %s", { timeout: SLOW }, async (name) => {
    const all = await meetAll();
    const pid = product.pidOf(name);
    process.kill(pid, "SIGKILL");
    for (const { met } of all) met.release();
    for (const { state, talk, met } of all) {
      await talk.untilState(({ kind }) => met.ends.includes(kind));
      expect({ state, runs: met.runs() }).toEqual({ state, runs: met.runs().map(() => 1) });
      await goesOn(state, talk, met);
    }
    await until(() => isDead(pid));
  });

  test("accepts two Stops at once and leaves no process running", { timeout: SLOW }, async () => {
    const all = await meetAll();
    for (const { state, talk, met } of all) {
      const answers = await Promise.all([talk.cancel(), talk.cancel()]);
      expect({ state, answers: answers.map(({ status }) => status) }).toEqual({ state, answers: [202, 202] });
      await talk.untilState(({ kind }) => met.endsAfterStop.includes(kind));
      expect({ state, alive: met.pids.filter((pid) => !isDead(pid)) }).toEqual({ state, alive: [] });
      // The commands after it did not run.
      expect({ state, runs: met.runs().slice(1) }).toEqual({
        state,
        runs: met
          .runs()
          .slice(1)
          .map(() => 0),
      });
      await goesOn(state, talk, met);
    }
  });
});

/** Checks that it takes the next message, and that its client and the model have every message once, in order. */
async function goesOn(state: string, talk: Talk, met: Met): Promise<void> {
  const isOver = met.ends.includes("context_exhausted");
  const idle = isOver ? null : talk.nextState("idle");
  const { status, body } = await talk.send("And now?");
  if (isOver)
    expect({ state, status, code: body["code"] }).toEqual({ state, status: 409, code: "context_exhausted" });
  else expect({ state, status }).toEqual({ state, status: 202 });
  await idle;

  const messages = await talk.messages();
  expect(messages.map(({ sequence }) => sequence)).toEqual(messages.map((_, n) => n + 1));
  const said = messages.filter(({ type }) => type === "user");
  expect({ state, said: said.length }).toEqual({ state, said: isOver ? met.said : met.said + 1 });
  const last = messages.at(-1);
  await until(() => talk.heard.some(({ name, data }) => name === "message.added" && data["id"] === last?.id));
  const first = talk.heard[0]?.id ?? 0;
  expect({ state, heard: talk.heard.map(({ id }) => id) }).toEqual({
    state,
    heard: talk.heard.map((_, n) => first + n),
  });
  const added = talk.heard.filter(({ name }) => name === "message.added").map(({ data }) => data["id"]);
  expect({ state, added }).toEqual({ state, added: messages.map(({ id }) => id) });
  expect(product.model.requests.filter(({ refusal }) => refusal !== null)).toEqual([]);
  expect(met.pids.filter((pid) => !isDead(pid))).toEqual([]);
  talk.close();
}
