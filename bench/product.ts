/**
 * Owns: the product as a person runs it (`npm start`, durable Postgres, processes of their own), asked over HTTP,
 * with a scripted provider in this process whose clock the figures are read from.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { freePort } from "../local/ports.ts";
import { startScriptedServer, type ScriptedServer } from "../local/scripted/server.ts";
import { deferred } from "../test/support/waiting.ts";

export type Product = {
  readonly url: string;
  readonly temporalAddress: string;
  readonly model: ScriptedServer;
  /** Milliseconds from the start of the process to `ready`. */
  readonly startMs: number;
  readonly stop: () => Promise<void>;
};

export async function startProduct(
  dataDir: string,
  env: Readonly<Record<string, string>> = {},
): Promise<Product> {
  const model = await startScriptedServer();
  const started = performance.now();
  const child = spawn(process.execPath, ["local/run.mjs", "local/main.ts"], {
    cwd: `${import.meta.dirname}/..`,
    stdio: ["ignore", "pipe", "inherit"],
    env: {
      PATH: process.env["PATH"],
      HOME: process.env["HOME"],
      DATA_DIR: dataDir,
      PORT: String(await freePort()),
      ANTHROPIC_API_KEY: "bench",
      ANTHROPIC_BASE_URL: model.url,
      ...env,
    },
  });
  let temporalAddress = "";
  let url = "";
  for await (const line of createInterface(child.stdout)) {
    temporalAddress ||= /^Temporal\s+(\S+:\d+)$/.exec(line)?.[1] ?? "";
    url = /^ready (\S+)$/.exec(line)?.[1] ?? "";
    if (url !== "") break;
  }
  if (url === "") throw new Error("The product did not start.");
  child.stdout.resume();
  return {
    url,
    temporalAddress,
    model,
    startMs: performance.now() - started,
    stop: async () => {
      const exited = once(child, "exit");
      child.kill("SIGTERM");
      await exited;
      await model.close();
    },
  };
}

/** One conversation over HTTP. */
export class Conversation {
  readonly #base: string;
  readonly id: string;

  private constructor(base: string, id: string) {
    this.#base = base;
    this.id = id;
  }

  static async open(product: Product, cwd: string): Promise<Conversation> {
    const base = `${product.url}/api/conversations`;
    const { id } = (await post(base, { cwd })) as { readonly id: string };
    return new Conversation(`${base}/${id}`, id);
  }

  send(text: string, delivery: "direct" | "steer" | "followUp" = "direct"): Promise<unknown> {
    return post(`${this.#base}/messages`, { text, delivery });
  }

  cancel(): Promise<unknown> {
    return post(`${this.#base}/cancel`, {});
  }

  /** Follows the stream from now on; `onEvent` gets each event with the time of its arrival. */
  async follow(onEvent: (name: string, data: string, at: number) => void): Promise<() => void> {
    const abort = new AbortController();
    const response = await fetch(`${this.#base}/events`, { signal: abort.signal });
    if (response.body === null) throw new Error("no stream");
    const synced = deferred<undefined>();
    void (async () => {
      let text = "";
      const decoder = new TextDecoder();
      for await (const chunk of response.body ?? []) {
        const at = performance.now();
        text += decoder.decode(chunk as Uint8Array, { stream: true });
        for (let end = text.indexOf("\n\n"); end >= 0; end = text.indexOf("\n\n")) {
          const event = text.slice(0, end);
          text = text.slice(end + 2);
          const name = /^event: ?(.*)$/m.exec(event)?.[1] ?? "";
          if (name === "synced") synced.resolve(undefined);
          onEvent(name, /^data: ?(.*)$/m.exec(event)?.[1] ?? "", at);
        }
      }
    })().catch(() => undefined);
    await synced.promise;
    return () => abort.abort();
  }

  /** Resolves with the time at which the stream next says this state. */
  async nextState(kind: string): Promise<{ readonly at: Promise<number>; readonly stop: () => void }> {
    const { promise, resolve } = deferred<number>();
    const stop = await this.follow((name, data, at) => {
      if (name !== "state.changed") return;
      const { state } = JSON.parse(data) as { readonly state: { readonly kind: string } };
      if (state.kind === kind) resolve(at);
    });
    return { at: promise.finally(stop), stop };
  }
}

async function post(url: string, body: unknown): Promise<unknown> {
  const response = await fetch(url, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  const answer: unknown = await response.json();
  if (!response.ok) throw new Error(`${response.status} ${JSON.stringify(answer)}`);
  return answer;
}
