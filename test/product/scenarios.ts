/**
 * Owns: the states of a conversation in the running product, a way into each, and the outcome to expect when a process
 * dies there or the person stops it.
 */
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { hold } from "../../local/scripted/cues.ts";
import { fail, rateLimited, say, toolCall, type Answer } from "../../local/scripted/script.ts";
import { pidIn, processesWhere } from "../support/processes.ts";
import type { Product } from "../support/product.ts";
import { Talk } from "../support/talk.ts";

/** A conversation that has been brought into a state. */
export type Met = {
  /** Releases what was held; until then the state lasts. */
  readonly release: () => void;
  /** Kinds of states in which it may end up: without a Stop (`ends`), and after one. */
  readonly ends: readonly string[];
  readonly endsAfterStop: readonly string[];
  /** Processes that must be dead in the end. */
  readonly pids: readonly number[];
  /** How often each command ran so far. */
  readonly runs: () => readonly number[];
  /** Number of the person's messages that were accepted. */
  readonly said: number;
};

type Enter = (talk: Talk) => Promise<Partial<Met>>;

const REST: Met = {
  release: () => undefined,
  ends: ["idle"],
  endsAfterStop: ["idle"],
  pids: [],
  runs: () => [],
  said: 1,
};

/** Requests after the scripted ones are answered, too. */
const script = (talk: Talk, answers: readonly Answer[]): string =>
  talk.product.model.script(talk.id, (_request, n) => answers[n - 1] ?? say("And so on."));

const submit = say(toolCall("submit_result", { result: "done" }));

/** A command that waits for a file, and writes a line for each time that it is run. */
function patientCommand(talk: Talk) {
  const file = (suffix: string): string => join(talk.product.cwd, `${talk.id}.${suffix}`);
  const command = `echo $$ > ${file("pid")}; echo ran >> ${file("runs")}; until [ -e ${file("go")} ]; do sleep 0.02; done`;
  return {
    call: toolCall("bash", { command }),
    pid: () => pidIn(file("pid")),
    release: () => writeFileSync(file("go"), ""),
    runs: () => linesOf(file("runs")),
  };
}

/** The same for a Restricted conversation, which cannot leave a line. */
function patientReader(talk: Talk) {
  const go = join(talk.product.cwd, `${talk.id}.go`);
  return {
    call: toolCall("bash", { command: `until [ -e ${go} ]; do sleep 0.02; done` }),
    async pid(): Promise<number> {
      for (;;) {
        const [pid] = processesWhere((each) =>
          readFileSync(`/proc/${each}/cmdline`, "utf8").startsWith(`bash\0-c\0until [ -e ${go}`),
        );
        if (pid !== undefined) return Number(pid);
        await pause(20);
      }
    },
    release: () => writeFileSync(go, ""),
  };
}

const linesOf = (path: string): number =>
  existsSync(path) ? readFileSync(path, "utf8").split("\n").length - 1 : 0;

const enter: Readonly<Record<string, Enter>> = {
  idle: async (talk) => {
    const idle = talk.nextState("idle");
    await talk.send(`go ${script(talk, [say("Hello.")])}`);
    await idle;
    return {};
  },

  llm_requesting: async (talk) => {
    const held = hold();
    await talk.send(`go ${script(talk, [say("half ", held, "and half."), say("Whole.")])}`);
    await held.reached;
    return { release: () => held.release() };
  },

  "llm_requesting, waiting for its next attempt": async (talk) => {
    const retrying = talk.next(({ name }) => name === "llm.retry_scheduled");
    await talk.send(`go ${script(talk, [rateLimited(4), say("Finally.")])}`);
    await retrying;
    return {};
  },

  tool_executing: async (talk) => {
    const patient = patientCommand(talk);
    const after = join(talk.product.cwd, `${talk.id}.after`);
    const second = toolCall("bash", { command: `echo ran >> ${after}` });
    await talk.send(`go ${script(talk, [say("Now. ", patient.call, second), say("Done.")])}`);
    const pid = await patient.pid();
    return { release: patient.release, pids: [pid], runs: () => [patient.runs(), linesOf(after)] };
  },

  "tool_executing, with messages that wait": async (talk) => {
    const patient = patientCommand(talk);
    await talk.send(`go ${script(talk, [say("Now. ", patient.call), say("Done."), say("And that.")])}`);
    const pid = await patient.pid();
    // An accepted message must not be lost.
    const answers = [await talk.send("Be quick.", "steer"), await talk.send("And then that.", "followUp")];
    if (answers.some(({ status }) => status !== 202)) throw new Error("not accepted");
    return { release: patient.release, pids: [pid], runs: () => [patient.runs()], said: 3 };
  },

  cancelling: async (talk) => {
    const patient = patientCommand(talk);
    await talk.send(`go ${script(talk, [say("Now. ", patient.call), say("Done.")])}`);
    const pid = await patient.pid();
    // The Stop is under way: it may come before or after the death.
    void talk.cancel();
    return { release: patient.release, pids: [pid], runs: () => [patient.runs()] };
  },

  awaiting_mode_approval: async (talk) => {
    const file = join(talk.product.cwd, `${talk.id}.runs`);
    const id = `toolu_${talk.id.replaceAll("-", "")}`;
    const asking = talk.nextState("awaiting_mode_approval");
    const round = say(
      toolCall("request_mode_upgrade", { reason: "to leave a line" }, id),
      toolCall("bash", { command: `echo ran >> ${file}` }),
    );
    await talk.send(`go ${script(talk, [round, say("Left.")])}`);
    await asking;
    return { release: () => void talk.decide(id, "approve"), runs: () => [linesOf(file)] };
  },

  awaiting_sub_agents: async (talk) => {
    const patient = patientReader(talk);
    const held = hold();
    const child = (name: string, answers: readonly Answer[]) => ({
      task: `do it ${talk.product.model.script(`${talk.id}-${name}`, (_request, n) => answers[n - 1] ?? submit)}`,
    });
    const tasks = [child("tool", [say("Now. ", patient.call)]), child("request", [say("half ", held)])];
    const after = join(talk.product.cwd, `${talk.id}.after`);
    const second = toolCall("bash", { command: `echo ran >> ${after}` });
    await talk.send(`go ${script(talk, [say(toolCall("spawn_agents", { tasks }), second), say("Done.")])}`);
    const [pid] = await Promise.all([patient.pid(), held.reached]);
    return {
      release: () => {
        patient.release();
        held.release();
      },
      pids: [pid],
      runs: () => [linesOf(after)],
    };
  },

  awaiting_continuation: async (talk) => {
    const held = hold();
    const idle = talk.nextState("idle");
    const answers = [say("Hello."), say("In short: ", held, "hello."), say("In short.")];
    await talk.send(`go ${script(talk, answers)}`);
    await idle;
    await talk.continuation();
    await held.reached;
    return {
      release: () => held.release(),
      ends: ["context_exhausted"],
      endsAfterStop: ["context_exhausted"],
    };
  },

  context_exhausted: async (talk) => {
    const idle = talk.nextState("idle");
    await talk.send(`go ${script(talk, [say("Hello."), say("In short.")])}`);
    await idle;
    const exhausted = talk.nextState("context_exhausted");
    await talk.continuation();
    await exhausted;
    return { ends: ["context_exhausted"], endsAfterStop: ["context_exhausted"] };
  },

  error: async (talk) => {
    const failed = talk.nextState("error");
    await talk.send(`go ${script(talk, [fail("invalid_request_error"), say("Better.")])}`);
    await failed;
    return { ends: ["error"], endsAfterStop: ["error"] };
  },
};

export const STATES = Object.keys(enter);

/** Brings a new conversation into a state. */
export async function meet(
  product: Product,
  state: string,
): Promise<{ readonly talk: Talk; readonly met: Met }> {
  const found = enter[state];
  if (found === undefined) throw new Error(`no way into ${state}`);
  const talk = await (state === "awaiting_mode_approval" ? Talk.create(product) : Talk.open(product));
  return { talk, met: { ...REST, ...(await found(talk)) } };
}
