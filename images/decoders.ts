/**
 * Owns: the few processes that decode (decode.mjs). They are kept for the next image, and killed when a job takes too
 * long or is no longer wanted.
 */
import { fork, type ChildProcess } from "node:child_process";
import { join } from "node:path";
import type { ImageType } from "./format.ts";
import { Semaphore } from "./semaphore.ts";

export type Job = {
  readonly bytes: Uint8Array;
  readonly mediaType: ImageType;
  readonly maxPixels: number;
  readonly maxLongSide: number;
  readonly maxBytes: number;
};

export type Decoded =
  | {
      readonly kind: "decoded";
      readonly bytes: Uint8Array;
      readonly mediaType: ImageType;
      readonly width: number;
      readonly height: number;
      /** The size of the original, upright. */
      readonly original: { readonly width: number; readonly height: number };
    }
  | { readonly kind: "broken" | "too_large" | "too_slow" };

const PROGRAM = join(import.meta.dirname, "decode.mjs");
/** Decoders at a time; so the memory is that of this many images. */
const PROCESSES = 2;
/** Milliseconds for one image. Any image within the limits takes a third of it. */
const LIMIT_MS = 8_000;
/** Milliseconds after which an idle process is ended, because it would keep its memory. */
const IDLE_MS = 30_000;

const gate = new Semaphore(PROCESSES);
const idle: { readonly child: ChildProcess; readonly timer: NodeJS.Timeout }[] = [];

/** @throws the signal's reason when it aborts; the work ends with it. */
export function decode(job: Job, signal?: AbortSignal): Promise<Decoded> {
  return gate.run(async () => {
    const child = take();
    const answer = await ask(child, job, signal);
    if (answer === null || !child.connected) child.kill("SIGKILL");
    else keep(child);
    signal?.throwIfAborted();
    return answer ?? { kind: "too_slow" };
  }, signal);
}

/** null: the job was given up. If the process died over the image, the image is broken. */
function ask(child: ChildProcess, job: Job, signal: AbortSignal | undefined): Promise<Decoded | null> {
  return new Promise((resolve, reject) => {
    const clear = (): void => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", giveUp);
      child.removeAllListeners().on("error", () => undefined);
    };
    const settle = (answer: Decoded | null): void => {
      clear();
      resolve(answer);
    };
    const giveUp = (): void => settle(null);
    const timer = setTimeout(giveUp, LIMIT_MS);
    signal?.addEventListener("abort", giveUp, { once: true });
    child.once("message", (answer) => settle(answer as Decoded));
    child.once("exit", () => settle({ kind: "broken" }));
    // The process could not be started.
    child.once("error", (error) => {
      clear();
      reject(error);
    });
    child.send(job, (error) => {
      if (error !== null) settle({ kind: "broken" });
    });
  });
}

function take(): ChildProcess {
  for (let kept = idle.pop(); kept !== undefined; kept = idle.pop()) {
    clearTimeout(kept.timer);
    kept.child.removeAllListeners();
    if (!kept.child.connected) continue;
    kept.child.ref();
    kept.child.channel?.ref();
    return kept.child;
  }
  // The child gets nothing of this process's environment, options or output, because decoding needs none of it.
  return fork(PROGRAM, {
    serialization: "advanced",
    execArgv: [],
    env: {},
    stdio: ["ignore", "ignore", "ignore", "ipc"],
  });
}

/** Keeps an idle decoder. It does not prevent this process from ending, and ends with it. */
function keep(child: ChildProcess): void {
  const timer = setTimeout(() => child.kill("SIGKILL"), IDLE_MS).unref();
  child.unref();
  child.channel?.unref();
  idle.push({ child, timer });
}
