/** Owns: a conversation that has spawned sub-agents, each with a script of its own. */
import { randomUUID } from "node:crypto";
import { children } from "../../db/conversations.ts";
import { say, toolCall, type Answer, type ScriptedBlock } from "../../local/scripted/script.ts";
import type { Handler } from "../../local/scripted/scripts.ts";
import { TestConversation, textOf } from "./conversation.ts";
import type { System } from "./system.ts";
import { deferred } from "./waiting.ts";

export type Task = {
  readonly script: Handler | readonly Answer[];
  readonly timeoutSeconds?: number;
  readonly model?: string;
};

export type Family = {
  readonly parent: TestConversation;
  /** The names of the scripts: the parent's and the children's, in the order of the tasks. */
  readonly names: { readonly parent: string; readonly children: readonly string[] };
  /** The sub-agents that have a row, oldest first. */
  readonly children: () => Promise<readonly TestConversation[]>;
  /** The child with the `n`th task, when it has a row. */
  readonly child: (n: number) => Promise<TestConversation>;
  /** The result of the n-th `spawn_agents` call as the parent's model reads it; waits for it. */
  readonly report: (n?: number) => Promise<{ readonly status: string; readonly text: string }>;
};

export type FamilyOptions = {
  /** Calls after `spawn_agents` in the same response. */
  readonly calls?: readonly ScriptedBlock[];
  /** The answers of the parent's model afterwards; then it answers "Done." to everything. */
  readonly then?: readonly Answer[];
  readonly parent?: TestConversation;
};

/** The call that spawns sub-agents with these scripts, and their names. */
export function spawning(
  system: System,
  tasks: readonly Task[],
): { readonly call: ScriptedBlock; readonly names: readonly string[] } {
  const scripted = tasks.map(({ script, ...rest }, n) => {
    const name = `child-${n + 1}-${randomUUID()}`;
    return { name, task: { task: `task ${n + 1} ${system.model.script(name, script)}`, ...rest } };
  });
  return {
    call: toolCall("spawn_agents", { tasks: scripted.map(({ task }) => task) }),
    names: scripted.map(({ name }) => name),
  };
}

/** Lets a conversation spawn a sub-agent for each task. */
export async function spawnFamily(
  system: System,
  tasks: readonly Task[],
  options: FamilyOptions = {},
): Promise<Family> {
  const parent = options.parent ?? (await TestConversation.open(system));
  const { call, names } = spawning(system, tasks);
  const name = `parent-${randomUUID()}`;
  const answers = [say("I delegate. ", call, ...(options.calls ?? [])), ...(options.then ?? [])];
  const tag = system.model.script(name, (_request, n) => answers[n - 1] ?? say("Done."));
  await parent.send(`go ${tag}`);
  const find = async (): Promise<TestConversation[]> => {
    const rows = await children(system.db, parent.id);
    return rows.map(({ id }) => new TestConversation(system, id));
  };
  return {
    parent,
    names: { parent: name, children: names },
    children: find,
    async child(n) {
      const { conversation } = await parent.until(({ conversation: { state } }) => "all" in state);
      const id = "all" in conversation.state ? conversation.state.all[n - 1]?.id : undefined;
      if (id === undefined) throw new Error(`no task ${n}`);
      await rowOf(system, id);
      return new TestConversation(system, id);
    },
    async report(n = 1) {
      for (;;) {
        const { revision } = await parent.stored();
        const results = await parent.results();
        const result = results.filter(({ name: tool }) => tool === "spawn_agents")[n - 1];
        if (result !== undefined) return { status: result.status, text: textOf(result) };
        await parent.until((stored) => stored.revision > revision);
      }
    },
  };
}

/** The outcome of each sub-agent, by the heads of the paragraphs: "Succeeded", "Failed (unknown)", … */
export const outcomesIn = (report: string): readonly string[] =>
  [...report.matchAll(/^(Succeeded|Did not succeed|Failed \(\w+\)): /gm)].map(([, head = ""]) => head);

async function rowOf(system: System, id: string): Promise<void> {
  const { promise, resolve, reject } = deferred<undefined>();
  const look = (): void =>
    void system.db.sql`select from conversations where id = ${id}`.then(
      (rows) => rows.length > 0 && resolve(undefined),
      reject,
    );
  const unsubscribe = system.notifications.onCommit((notice) => {
    if (notice.conversationId === id) look();
  });
  look();
  await promise.finally(unsubscribe);
}
