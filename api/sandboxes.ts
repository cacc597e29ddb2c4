/** Owns: the sandboxes of the tool hosts as their workers describe them. A success is reused for a while. */
import type { Sandbox } from "../machine/conversation.ts";
import { withTimeout } from "./with-timeout.ts";

/** Milliseconds for which a success is reused: many conversations may be created at once. */
const FRESH_MS = 5_000;
/**
 * Milliseconds for which health checks reuse an answer. They repeat for ever, and where there is no sandbox each one
 * would cost a process on the host. TIMEOUT_MS is how long one waits while nothing is known yet.
 */
const FRESH_FOR_HEALTH_MS = 60_000;
const TIMEOUT_MS = 500;

type Asked = { readonly at: number; readonly answer: Promise<Sandbox> };
type Answered = { readonly at: number; readonly sandbox: Sandbox };

export class Sandboxes {
  readonly #ask: (host: string) => Promise<Sandbox>;
  readonly #asked = new Map<string, Asked>();
  readonly #last = new Map<string, Answered>();

  /** @param ask rejects when no worker of the host answers */
  constructor(ask: (host: string) => Promise<Sandbox>) {
    this.#ask = ask;
  }

  /** The sandbox. Only a success is kept: after any other answer the next caller asks anew. Rejects as `ask` does. */
  of(host: string): Promise<Sandbox> {
    const asked = this.#asked.get(host);
    if (asked !== undefined && performance.now() - asked.at < FRESH_MS) return asked.answer;
    const answer = this.#ask(host);
    this.#asked.set(host, { at: performance.now(), answer });
    answer.then(
      (sandbox) => {
        this.#last.set(host, { at: performance.now(), sandbox });
        if (sandbox.kind !== "available") this.#asked.delete(host);
      },
      () => this.#asked.delete(host),
    );
    return answer;
  }

  /** Resolves when no call of `ask` is under way. */
  async settled(): Promise<void> {
    await Promise.allSettled([...this.#asked.values()].map(({ answer }) => answer));
  }

  /** The last known sandbox, within TIMEOUT_MS; null when no worker has answered yet. Never rejects. */
  async lastOf(host: string): Promise<Sandbox | null> {
    const last = this.#last.get(host);
    if (last !== undefined && isFreshForHealth(last)) return last.sandbox;
    const answer = this.of(host).catch(() => null);
    return last?.sandbox ?? withTimeout(answer, TIMEOUT_MS, null);
  }
}

const isFreshForHealth = ({ at, sandbox }: Answered): boolean =>
  sandbox.kind !== "unknown" && performance.now() - at < FRESH_FOR_HEALTH_MS;
