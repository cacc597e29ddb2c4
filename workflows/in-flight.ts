/**
 * Owns: the operations that are being performed, each in its own cancellation scope under its generation id, and the
 * operations that are deferred to the next run.
 */
import { CancellationScope } from "@temporalio/workflow";
import type { Operation } from "../machine/effect.ts";
import type { ConversationEvent } from "../machine/event.ts";
import { idOf, lostEvent, perform, type Surroundings } from "./operations.ts";

export class InFlight {
  readonly #parent: CancellationScope;
  /** Called with the event that answers an operation. */
  readonly #answer: (event: ConversationEvent) => void;
  #scopes = new Map<string, CancellationScope>();
  #deferred: Operation[] = [];

  constructor(parent: CancellationScope, answer: (event: ConversationEvent) => void) {
    this.#parent = parent;
    this.#answer = answer;
  }

  get isEmpty(): boolean {
    return this.#scopes.size === 0;
  }

  /** Operations for the next run to perform. */
  get deferred(): readonly Operation[] {
    return this.#deferred;
  }

  start(operation: Operation, around: Surroundings): void {
    const id = idOf(operation);
    const scope = new CancellationScope({ cancellable: true, parent: this.#parent });
    const scopes = this.#scopes;
    scopes.set(id, scope);
    void perform(operation, scope, around).then((event) => {
      scopes.delete(id);
      // If `forget` was called meanwhile, the answer belongs to a history that is closed.
      if (scopes === this.#scopes && event !== null) this.#answer(event);
    });
  }

  defer(operations: readonly Operation[]): void {
    this.#deferred.push(...operations);
  }

  /** Aborts an operation; its answer follows. A deferred operation is answered as if it had been running. */
  abort(operationId: string): void {
    this.#scopes.get(operationId)?.cancel();
    const deferred = this.#deferred.find((operation) => idOf(operation) === operationId);
    if (deferred === undefined) return;
    this.#deferred = this.#deferred.filter((operation) => operation !== deferred);
    const event = lostEvent(deferred);
    // Answer later, not within the transition that aborts the operation.
    if (event !== null) void Promise.resolve().then(() => this.#answer(event));
  }

  /** Aborts all operations and ignores their answers. */
  forget(): void {
    for (const scope of this.#scopes.values()) scope.cancel();
    this.#scopes = new Map();
    this.#deferred = [];
  }
}
