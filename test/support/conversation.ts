/**
 * Owns: driving one conversation through its workflow's own interface, as the API does, and waiting for commits. For
 * tests below HTTP.
 */
import { randomUUID } from "node:crypto";
import type { Client } from "@temporalio/client";
import type { UpdateDefinition } from "@temporalio/common";
import type { TransactionSql } from "postgres";
import { wasOverlooked } from "../../api/workflow.ts";
import { loadConversation, type LoadedConversation } from "../../db/load.ts";
import { readMessages } from "../../db/messages.ts";
import type { Mode, State, StateOf } from "../../machine/conversation.ts";
import type { Delivery, Message, ToolOutcome } from "../../machine/message.ts";
import * as contract from "../../protocol/workflow.ts";
import { reportOnFailure } from "./report.ts";
import { createInputFor, startOperation } from "./create-input.ts";
import type { System } from "./system.ts";
import { deferred } from "./waiting.ts";

type Handle = ReturnType<Client["workflow"]["getHandle"]>;

export class TestConversation {
  readonly id: string;
  readonly system: System;

  constructor(system: System, id: string = randomUUID()) {
    this.system = system;
    this.id = id;
  }

  /** @param mode by default the product's; a test whose commands leave something behind asks for "unrestricted" */
  static async open(system: System, mode?: Mode): Promise<TestConversation> {
    const conversation = new TestConversation(system);
    reportOnFailure(conversation);
    await conversation.#committed(
      system.temporal.workflow.executeUpdateWithStart(contract.openUpdate, {
        startWorkflowOperation: startOperation(system, {
          conversationId: conversation.id,
          createInput: createInputFor(system, conversation.id, mode),
        }),
      }),
    );
    return conversation;
  }

  get handle(): Handle {
    return this.system.temporal.workflow.getHandle(this.id);
  }

  send(
    text: string,
    options: { readonly id?: string; readonly delivery?: Delivery } = {},
  ): Promise<contract.SendMessageResult> {
    const { id = randomUUID(), delivery = "direct" } = options;
    return this.#update(contract.sendMessageUpdate, { messageId: id, text, images: [], delivery });
  }

  cancel(): Promise<contract.StateResult> {
    return this.#update(contract.cancelUpdate, { queue: "run" });
  }

  /** Asks for the summary. */
  windUp(): Promise<contract.StateResult> {
    return this.#update(contract.triggerContinuationUpdate, { triggerContinuation: true });
  }

  /** Starts the workflow if it does not run. Sends an update again that its worker overlooked. */
  async #update<Ret extends contract.Accepted, Input>(
    definition: UpdateDefinition<Ret, [Input]>,
    input: Input,
  ): Promise<Ret> {
    for (;;) {
      try {
        return await this.#committed(
          this.system.temporal.workflow.executeUpdateWithStart(definition, {
            startWorkflowOperation: startOperation(this.system, { conversationId: this.id }),
            args: [input],
          }),
        );
      } catch (error) {
        if (!wasOverlooked(error)) throw error;
      }
    }
  }

  /** As in the API, an answer counts when its revision is stored. */
  async #committed<T extends contract.Accepted>(update: Promise<T>): Promise<T> {
    const answer = await update;
    await this.until((stored) => stored.revision >= answer.revision);
    return answer;
  }

  /** The conversation as it is committed now. */
  async stored(): Promise<LoadedConversation> {
    const stored = await loadConversation(this.system.db, this.id);
    if (stored === null) throw new Error(`conversation ${this.id} is not stored`);
    return stored;
  }

  /** Resolves with the first committed value for which the predicate holds. */
  async until<T extends LoadedConversation>(
    predicate: (stored: LoadedConversation) => boolean,
  ): Promise<LoadedConversation | T> {
    const { promise, resolve, reject } = deferred<LoadedConversation>();
    const check = (): void => {
      loadConversation(this.system.db, this.id)
        .then((stored) => {
          if (stored !== null && predicate(stored)) resolve(stored);
        })
        .catch(reject);
    };
    const unsubscribe = this.system.notifications.onCommit((notice) => {
      if (notice.conversationId === this.id) check();
    });
    check();
    return promise.finally(unsubscribe);
  }

  /** Rejects when the conversation stops in an error that is not awaited, because it would not leave it by itself. */
  async untilState<K extends State["kind"]>(kind: K): Promise<StateOf<K>> {
    const { conversation } = await this.until(({ conversation: { state } }) => {
      if (state.kind === "error" && state.kind !== kind) throw new Error(`error: ${state.message}`);
      return state.kind === kind;
    });
    return conversation.state as StateOf<K>;
  }

  /** Resolves when the workflow knows that everything is committed: a workflow task later than the commit. */
  async settled(): Promise<void> {
    for (;;) {
      const { unconfirmed } = await this.handle.query(contract.stateQuery);
      const { pendingWorkflowTask } = (await this.handle.describe()).raw;
      if (unconfirmed === 0 && pendingWorkflowTask == null) return;
    }
  }

  messages(): Promise<Message[]> {
    return readMessages(this.system.db, this.id, { limit: 1_000 });
  }

  async types(): Promise<string[]> {
    return (await this.messages()).map((message) => message.type);
  }

  /** The results of all calls, in order. */
  async results(): Promise<ToolOutcome[]> {
    const messages = await this.messages();
    return messages.flatMap((message) => (message.type === "tool" ? [...message.content] : []));
  }

  /**
   * Locks the row as a slow commit would; nothing of this conversation is committed until it is released.
   *
   * @param change to the row, just before it is released.
   */
  async block(
    change: (sql: TransactionSql) => Promise<unknown> = () => Promise.resolve(),
  ): Promise<() => Promise<void>> {
    const { promise: released, resolve: release } = deferred<undefined>();
    const { promise: locked, resolve: lock, reject } = deferred<undefined>();
    const transaction = this.system.db.sql.begin(async (sql) => {
      await sql`select from conversations where id = ${this.id} for update`;
      lock(undefined);
      await released;
      await change(sql);
    });
    transaction.catch(reject);
    await locked;
    return async () => {
      release(undefined);
      await transaction;
    };
  }

  /** Resolves when `count` commits of this conversation wait for the row's lock. */
  async untilBlocked(count: number): Promise<number[]> {
    for (;;) {
      const rows = await this.system.db.sql<{ pid: number }[]>`
        select pid from pg_stat_activity
        where wait_event_type = 'Lock' and query like '%commit_revisions%' and datname = current_database()
        order by query_start`;
      if (rows.length >= count) return rows.map((row) => row.pid);
      await this.system.db.sql`select pg_sleep(0.01)`;
    }
  }
}

export const textOf = (outcome: ToolOutcome | undefined): string =>
  (outcome?.output ?? []).flatMap((block) => (block.type === "text" ? [block.text] : [])).join("\n");
