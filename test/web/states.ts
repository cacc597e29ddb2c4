/**
 * Owns: a way into each state of a conversation (docs/machine.md, State), as a person comes to see it on the page, and a
 * way on from it. A state lasts until it is ended.
 */
import { randomUUID } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { onTestFinished } from "vitest";
import { hold, type Hold } from "../../local/scripted/cues.ts";
import { answer, fail, rateLimited, say, text, thinking, toolCall } from "../../local/scripted/script.ts";
import { at as pathOf } from "../api/person.ts";
import { Conversations, decide, on } from "./conversations.ts";
import type { Stack } from "./stack.ts";

export type Met = {
  readonly id: string;
  readonly url: string;
  /** In the conversation, when the state has been reached. */
  readonly shows: readonly string[];
  /** In the state line. */
  readonly says: string | RegExp;
  /** Ends the state, on the page or elsewhere. */
  readonly goOn: (page: Page) => Promise<unknown>;
  /** What comes of that: in the conversation, and in the state line. */
  readonly ends: { readonly shows: string | RegExp; readonly says: string | RegExp };
};

/** The models of the tests have this window. Tokens. */
const WINDOW = 1_000_000;

/** An answer's options: it fills this share of the window. */
export const used = (share: number) => ({
  usage: {
    input_tokens: Math.round(WINDOW * share) - 10,
    output_tokens: 10,
    cache_read_input_tokens: 0,
    cache_creation_input_tokens: 0,
  },
});

/** Longer than any test, and short enough to be waited for. Seconds. */
const LONG = 50;

const submit = (result: string) => say(toolCall("submit_result", { result }));
const asks = say(text("I ask."), toolCall("request_mode_upgrade", { reason: "To **write** a file." }));
const write = (message: string) => async (page: Page) => {
  await on(page).message.fill(message);
  await on(page).send.click();
};
const released = (held: Hold) => () => {
  held.release();
  return Promise.resolve();
};
const READY = { shows: "And on.", says: "ready" };

type Way = (given: { readonly stack: Stack; readonly conversations: Conversations }) => Promise<Met>;

/** A command that prints, and goes on when `release` is called. It changes nothing, so it runs in either mode. */
function patientCommand({ system }: Stack) {
  const go = join(system.cwd, randomUUID());
  const command = `echo printed $((6 * 7)); echo complained $((5 * 5)) >&2; until [ -e ${go} ]; do sleep 0.02; done; echo finished`;
  return { call: toolCall("bash", { command }), release: () => writeFile(go, "") };
}

/** Commits that end the `cancelling` of this conversation wait until `release` is called. */
async function holdCancelling({ system: { db } }: Stack, id: string): Promise<() => Promise<unknown>> {
  await db.sql.unsafe(`
    create or replace function hold_cancelling() returns trigger language plpgsql as $$
      begin perform pg_advisory_xact_lock(hashtext(new.id)); return new; end $$;
    create or replace trigger hold_cancelling before update on conversations for each row
      when (old.state = 'cancelling' and new.state <> 'cancelling') execute function hold_cancelling()`);
  // A lock belongs to its connection.
  const connection = await db.sql.reserve();
  await connection`select pg_advisory_lock(hashtext(${id}))`;
  let released: Promise<unknown> | null = null;
  const release = () =>
    (released ??= connection`select pg_advisory_unlock(hashtext(${id}))`.then(() => connection.release()));
  // A commit that waits for ever would hold up those of the next tests.
  onTestFinished(async () => {
    await release();
  });
  return release;
}

const cancel = ({ person }: Conversations, id: string) => person.order("POST", pathOf(id, "/cancel"), {});

export const WAYS: Readonly<Record<string, Way>> = {
  idle: async ({ conversations }) => {
    const met = await conversations.start(
      "Begin.",
      say(thinking("Secret."), text("**All** is well.")),
      say("And on."),
    );
    await conversations.person.untilState(met.id, "idle");
    return { ...met, shows: ["Begin.", "All is well."], says: "ready", goOn: write("Go on."), ends: READY };
  },

  "llm_requesting, before the first word": async ({ conversations }) => {
    const held = hold();
    const met = await conversations.start("Begin.", answer(["And on."], { beforeHeaders: [held] }));
    await held.reached;
    return {
      ...met,
      shows: ["Begin."],
      says: "asks the model",
      goOn: released(held),
      ends: READY,
    };
  },

  "llm_requesting, in the middle of its text": async ({ conversations }) => {
    const held = hold();
    const met = await conversations.start(
      "Begin.",
      say(thinking("Secret."), text("One, **two**, and ", held, "three. And on.")),
    );
    await held.reached;
    return {
      ...met,
      shows: ["Begin.", "One, two, and"],
      says: "writes",
      goOn: released(held),
      ends: { shows: "One, two, and three. And on.", says: "ready" },
    };
  },

  "llm_requesting, between two attempts": async ({ conversations }) => {
    const met = await conversations.start("Begin.", rateLimited(LONG), say("And on."));
    await conversations.person.untilState(met.id, "llm_requesting");
    return {
      ...met,
      shows: ["Begin."],
      says: /will ask again in \d+ s · The provider's rate limit was reached\./,
      goOn: async (page) => {
        await on(page).stop.click();
        await on(page).transcript.getByText("stopped ·").waitFor();
        await write("Go on.")(page);
      },
      ends: READY,
    };
  },

  tool_executing: async ({ stack, conversations }) => {
    const patient = patientCommand(stack);
    const met = await conversations.start(
      "Begin.",
      say(text("I look."), toolCall("ls", { path: "." }), patient.call),
      say("And on."),
    );
    await conversations.person.untilState(met.id, "tool_executing");
    return {
      ...met,
      shows: ["Begin.", "I look.", "Runs 1 command", "printed 42", "complained 25"],
      says: "runs bash",
      goOn: patient.release,
      ends: READY,
    };
  },

  "tool_executing, with messages that wait": async ({ stack, conversations }) => {
    const patient = patientCommand(stack);
    const met = await conversations.start("Begin.", say(patient.call), say("Steered."), say("And on."));
    await conversations.person.untilState(met.id, "tool_executing");
    await conversations.person.say(met.id, { text: "Be quick.", delivery: "steer" });
    await conversations.person.say(met.id, { text: "Then that.", delivery: "followUp" });
    return {
      ...met,
      shows: ["Begin.", "printed 42", "complained 25", "Be quick.", "Then that."],
      says: "runs bash",
      goOn: patient.release,
      ends: READY,
    };
  },

  awaiting_mode_approval: async ({ conversations }) => {
    const met = await conversations.start("Begin.", asks, say("And on."));
    await conversations.person.untilState(met.id, "awaiting_mode_approval");
    return {
      ...met,
      shows: ["I ask.", "The agent asks to leave Restricted mode", "To **write** a file."],
      says: "waits for you",
      goOn: (page) => decide(page, "deny"),
      ends: READY,
    };
  },

  awaiting_sub_agents: async ({ conversations }) => {
    const held = hold();
    const fast = conversations.script(submit("Forty-two."));
    const slow = conversations.script(say(text("Hm", held, ".")), submit("Seven."));
    const tasks = [{ task: `Fast ${fast}` }, { task: `Slow ${slow}` }];
    const met = await conversations.start("Begin.", say(toolCall("spawn_agents", { tasks })), say("And on."));
    await held.reached;
    return {
      ...met,
      shows: ["2 sub-agents", "Fast", "done · Forty-two.", "Slow", "asks the model"],
      says: "sub-agents: 1 of 2 done",
      goOn: released(held),
      ends: READY,
    };
  },

  "cancelling, a request": async ({ stack, conversations }) => {
    const held = hold();
    const met = await conversations.start("Begin.", say(text("Half", held)), say("And on."));
    await held.reached;
    const release = await holdCancelling(stack, met.id);
    await cancel(conversations, met.id);
    return {
      ...met,
      shows: ["Begin."],
      says: "stopping",
      goOn: release,
      ends: { shows: "stopped ·", says: "ready" },
    };
  },

  "cancelling, a tool": async ({ stack, conversations }) => {
    // What a command had printed is told again only while it lives, and here it is dead.
    const call = toolCall("bash", { command: "sleep 100" });
    const met = await conversations.start("Begin.", say(text("I look."), call), say("And on."));
    await conversations.person.untilState(met.id, "tool_executing");
    const release = await holdCancelling(stack, met.id);
    await cancel(conversations, met.id);
    return {
      ...met,
      shows: ["Begin.", "I look.", "stopping"],
      says: "stopping",
      goOn: release,
      ends: { shows: "cancelled", says: "ready" },
    };
  },

  "cancelling, sub-agents": async ({ stack, conversations }) => {
    const held = hold();
    const tasks = [{ task: `Slow ${conversations.script(say(text("Hm", held, ".")))}` }];
    const met = await conversations.start("Begin.", say(toolCall("spawn_agents", { tasks })));
    await held.reached;
    const release = await holdCancelling(stack, met.id);
    await cancel(conversations, met.id);
    return {
      ...met,
      shows: ["1 sub-agent", "Slow", "interrupted"],
      says: "stopping",
      goOn: release,
      ends: { shows: "1 sub-agent · cancelled", says: "ready" },
    };
  },

  "idle, with messages that are held": async ({ conversations }) => {
    const met = await conversations.start("Begin.", say(text("Well", hold())), say("And on."));
    await conversations.person.untilState(met.id, "llm_requesting");
    await conversations.person.say(met.id, { text: "Then that.", delivery: "followUp" });
    await conversations.person.order("POST", pathOf(met.id, "/cancel"), { queue: "hold" });
    await conversations.person.untilState(met.id, "idle");
    return {
      ...met,
      shows: ["Begin.", "stopped ·", "Held since you stopped the agent.", "Then that."],
      says: "ready",
      goOn: (page) => page.getByRole("button", { name: "Let them go on" }).click(),
      ends: READY,
    };
  },

  "error, which passes by itself": async ({ conversations }) => {
    const met = await conversations.start("Begin.", rateLimited(100_000), say("And on."));
    await conversations.person.untilState(met.id, "error");
    return {
      ...met,
      shows: ["Begin.", "The provider's rate limit was reached. Try again", "ended by an error"],
      says: "rate limit",
      goOn: write("Go on."),
      ends: READY,
    };
  },

  "error, which wants something done": async ({ conversations }) => {
    const met = await conversations.start("Begin.", fail("authentication_error"), say("And on."));
    await conversations.person.untilState(met.id, "error");
    return {
      ...met,
      shows: ["Begin.", "Check ANTHROPIC_API_KEY", "ended by an error"],
      says: "key refused",
      goOn: write("Go on."),
      ends: READY,
    };
  },

  "awaiting_continuation, in the middle of the summary": async ({ conversations }) => {
    const held = hold();
    const met = await conversations.start(
      "Begin.",
      answer(["Much."], used(0.95)),
      say(text("In **short**: ", held, "it went well.")),
    );
    await held.reached;
    return {
      ...met,
      shows: ["Begin.", "Much.", "In short:"],
      says: "writes a summary",
      goOn: released(held),
      ends: { shows: "In short: it went well.", says: "context used up" },
    };
  },

  "awaiting_continuation, between two attempts": async ({ conversations }) => {
    const met = await conversations.start("Begin.", answer(["Much."], used(0.95)), rateLimited(LONG));
    await conversations.person.untilState(met.id, "awaiting_continuation");
    return {
      ...met,
      shows: ["Begin.", "Much."],
      says: /will ask again for a summary in \d+ s/,
      goOn: (page) => on(page).stop.click(),
      ends: { shows: "Continuation cancelled by user.", says: "context used up" },
    };
  },

  context_exhausted: async ({ conversations }) => {
    const met = await conversations.start(
      "Begin.",
      answer(["Much."], used(0.95)),
      say("In **short**: it went well."),
    );
    await conversations.person.untilState(met.id, "context_exhausted");
    return {
      ...met,
      shows: ["Begin.", "Much.", "The context is used up", "In short: it went well."],
      says: "context used up",
      goOn: (page) => page.getByRole("button", { name: "Go on without it" }).click(),
      ends: { shows: "Continues", says: "ready" },
    };
  },

  "context_exhausted, without a summary": async ({ conversations }) => {
    const met = await conversations.start(
      "Begin.",
      answer(["Much."], used(0.95)),
      fail("invalid_request_error"),
    );
    await conversations.person.untilState(met.id, "context_exhausted");
    return {
      ...met,
      shows: ["Begin.", "Much.", "The continuation summary could not be generated."],
      says: "context used up",
      goOn: (page) => page.getByRole("button", { name: "Go on with the last requests" }).click(),
      ends: { shows: "Begins with an excerpt", says: "ready" },
    };
  },

  "a sub-agent, at work": async ({ stack, conversations }) => {
    const held = hold();
    const child = conversations.script(say(text("Half ", held, "and half.")), submit("Whole."));
    const { id } = await conversations.start("Begin.", say(spawn(`Slow ${child}`)), say("And on."));
    await held.reached;
    return {
      ...(await childOf(stack, conversations, id)),
      shows: ["A sub-agent of Begin..", "Slow", "Half", "A sub-agent takes no messages."],
      says: "writes",
      goOn: released(held),
      ends: { shows: "Whole.", says: "done" },
    };
  },

  "completed (a sub-agent)": async ({ stack, conversations }) => {
    const child = conversations.script(submit("Forty-two."));
    const { id } = await conversations.start("Begin.", say(spawn(`Fast ${child}`)), say("And on."));
    await conversations.person.untilState(id, "idle");
    return {
      ...(await childOf(stack, conversations, id)),
      shows: ["Fast", "Forty-two."],
      says: "done",
      goOn: (page) => on(page).transcript.getByRole("link", { name: "Begin." }).click(),
      ends: READY,
    };
  },

  "failed (a sub-agent)": async ({ stack, conversations }) => {
    const child = conversations.script(fail("invalid_request_error", { message: "It will not do." }));
    const { id } = await conversations.start("Begin.", say(spawn(`Vain ${child}`)), say("And on."));
    await conversations.person.untilState(id, "idle");
    return {
      ...(await childOf(stack, conversations, id)),
      shows: ["Vain", "The provider refused the request: It will not do."],
      says: "request refused",
      goOn: (page) => on(page).transcript.getByRole("link", { name: "Begin." }).click(),
      ends: READY,
    };
  },
};

const spawn = (task: string) => toolCall("spawn_agents", { tasks: [{ task }] });

async function childOf({ url }: Stack, { person }: Conversations, parent: string) {
  const { conversations } = await person.read(pathOf(parent, "/children"));
  const [child] = conversations as readonly { readonly id: string }[];
  if (child === undefined) throw new Error("There is no sub-agent.");
  return { id: child.id, url: `${url}/c/${child.id}` };
}
