/** Owns: the sandboxes of the tool hosts as their workers describe them. An answer is reused for a while. */
import type { Sandbox } from "../machine/conversation.ts";
import { withTimeout } from "./with-timeout.ts";

/** Milliseconds for which an answer is reused; a probe costs a process on the host. */
const FRESH_MS = 5_000;
/** The same for health checks, which repeat for ever. TIMEOUT_MS is how long one waits while nothing is known yet. */
const FRESH_FOR_HEALTH_MS = 60_000;
const TIMEOUT_MS = 500;

type Asked = { readonly at: number; readonly answer: Promise<Sandbox> };

export class Sandboxes {
  readonly #ask: (host: string) => Promise<Sandbox>;
  readonly #asked = new Map<string, Asked>();
  readonly #last = new Map<string, Sandbox>();

  /** @param ask rejects when no worker of the host answers */
  constructor(ask: (host: string) => Promise<Sandbox>) {
    this.#ask = ask;
  }

  /** The sandbox, at most `freshMs` old. An answer that says nothing is not kept. Rejects as `ask` does. */
  of(host: string, freshMs = FRESH_MS): Promise<Sandbox> {
    const asked = this.#asked.get(host);
    if (asked !== undefined && performance.now() - asked.at < freshMs) return asked.answer;
    const answer = this.#ask(host);
    this.#asked.set(host, { at: performance.now(), answer });
    answer.then(
      (sandbox) => {
        this.#last.set(host, sandbox);
        if (sandbox.kind === "unknown") this.#asked.delete(host);
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
    const answer = this.of(host, FRESH_FOR_HEALTH_MS).catch(() => null);
    if (last !== undefined) return last;
    return withTimeout(answer, TIMEOUT_MS, null);
  }
}
