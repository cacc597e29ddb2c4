/**
 * Owns: one text worker as the page sees it: jobs are asked one after the other, each within a time limit. A worker
 * that is silent for longer is ended, its job given up, and a new one goes on with the others. So no text can block
 * the page, nor for long another text.
 */
import type { Language } from "./languages.ts";
import type { Answer, FromWorker, Request } from "./messages.ts";
import { tellMissingPart } from "./missing-part.ts";

/** Milliseconds until a worker that does not start counts as missing, and until it is tried again. */
const START_LIMIT_MS = 15_000;
const RETRY_MS = 30_000;
/** Milliseconds for an answer that has come while the page itself was busy or asleep. */
const GRACE_MS = 50;

/** What a job gets: the worker's answer, or why there is none. */
export type Result =
  | Exclude<Answer, { readonly kind: "loading" }>
  | { readonly kind: "late" }
  | { readonly kind: "unavailable" };

export type Job = {
  /** Somebody watches this text grow. */
  readonly isUrgent: boolean;
  /** What to ask now; null: nothing any more. */
  request(): Request | null;
  /** The job may be enqueued again by then. */
  settle(result: Result): void;
};

type Timer = ReturnType<typeof setTimeout>;

type State =
  | { readonly kind: "stopped"; readonly notBefore: number }
  | { readonly kind: "starting"; readonly worker: Worker; readonly timer: Timer }
  | { readonly kind: "idle"; readonly worker: Worker; readonly port: MessagePort }
  | {
      readonly kind: "busy";
      readonly worker: Worker;
      readonly port: MessagePort;
      readonly job: Job;
      readonly timer: Timer;
    };

export class TextWorkerClient {
  readonly #limitMs: number;
  #state: State = { kind: "stopped", notBefore: 0 };
  readonly #queue = new Set<Job>();
  /** Jobs that wait for a grammar. */
  readonly #waiting = new Map<Language, Set<Job>>();

  /** @param limitMs milliseconds that a worker may take for one answer */
  constructor(limitMs: number) {
    this.#limitMs = limitMs;
  }

  /** Asks for the job when its turn comes. A job that is in the queue stays at its place. */
  enqueue(job: Job): void {
    this.#queue.add(job);
    this.#next();
  }

  /** What the worker knows of `id` is not needed any more. */
  forget(id: number): void {
    const state = this.#state;
    if (state.kind === "idle" || state.kind === "busy")
      state.port.postMessage({ kind: "forget", id } satisfies Request);
  }

  #next(): void {
    const state = this.#state;
    switch (state.kind) {
      case "stopped":
        if (this.#queue.size === 0) return;
        if (performance.now() < state.notBefore) this.#refuse();
        else this.#start();
        return;
      case "starting":
      case "busy":
        return;
      case "idle":
        for (;;) {
          const job = this.#take();
          if (job === undefined) return;
          const request = job.request();
          if (request === null) continue;
          state.port.postMessage(request);
          const timer = setTimeout(() => this.#giveGrace(), this.#limitMs);
          this.#state = { ...state, kind: "busy", job, timer };
          return;
        }
    }
  }

  /** The first urgent job, else the first. */
  #take(): Job | undefined {
    const jobs = [...this.#queue];
    const job = jobs.find(({ isUrgent }) => isUrgent) ?? jobs[0];
    if (job !== undefined) this.#queue.delete(job);
    return job;
  }

  #start(): void {
    const { port1: port, port2 } = new MessageChannel();
    let worker: Worker;
    try {
      worker = new Worker(TEXT_WORKER_URL, { type: "module" });
    } catch {
      this.#fail();
      return;
    }
    const timer = setTimeout(() => this.#fail(), START_LIMIT_MS);
    this.#state = { kind: "starting", worker, timer };
    port.onmessage = ({ data }: MessageEvent<FromWorker>) => this.#receive(worker, port, data);
    worker.onerror = () => {
      if (this.#state.kind === "stopped" || this.#state.worker !== worker) return;
      if (this.#state.kind === "starting") this.#fail();
      else this.#end({ kind: "failed" });
    };
    worker.postMessage(null, [port2]);
  }

  #receive(worker: Worker, port: MessagePort, message: FromWorker): void {
    const state = this.#state;
    // Another worker has taken its place.
    if (state.kind === "stopped" || state.worker !== worker) return;
    switch (message.kind) {
      case "ready":
        if (state.kind === "starting") clearTimeout(state.timer);
        this.#state = { kind: "idle", worker, port };
        this.#next();
        return;
      case "loaded":
        this.#requeue(message.language);
        this.#next();
        return;
      case "unloadable":
        tellMissingPart();
        return;
      case "loading":
      case "blocks":
      case "runs":
      case "unknown":
      case "failed":
        if (state.kind !== "busy") return;
        clearTimeout(state.timer);
        this.#state = { kind: "idle", worker, port };
        if (message.kind === "loading") this.#wait(message.language, state.job);
        else state.job.settle(message);
        this.#next();
        return;
    }
  }

  #wait(language: Language, job: Job): void {
    const jobs = this.#waiting.get(language) ?? new Set();
    this.#waiting.set(language, jobs.add(job));
  }

  #requeue(language: Language): void {
    for (const job of this.#waiting.get(language) ?? []) this.#queue.add(job);
    this.#waiting.delete(language);
  }

  /** The timer may have come before an answer that is already here. */
  #giveGrace(): void {
    const state = this.#state;
    if (state.kind !== "busy") return;
    this.#state = { ...state, timer: setTimeout(() => this.#end({ kind: "late" }), GRACE_MS) };
  }

  /** Ends the worker because of its present job, if it has one. */
  #end(result: Result): void {
    const state = this.#state;
    if (state.kind === "stopped") return;
    state.worker.terminate();
    this.#state = { kind: "stopped", notBefore: 0 };
    for (const language of [...this.#waiting.keys()]) this.#requeue(language);
    if (state.kind === "busy") {
      clearTimeout(state.timer);
      state.job.settle(result);
    }
    this.#next();
  }

  /** The worker does not start. */
  #fail(): void {
    if (this.#state.kind === "starting") {
      clearTimeout(this.#state.timer);
      this.#state.worker.terminate();
    }
    this.#state = { kind: "stopped", notBefore: performance.now() + RETRY_MS };
    tellMissingPart();
    this.#refuse();
  }

  #refuse(): void {
    const jobs = [...this.#queue];
    this.#queue.clear();
    for (const job of jobs) job.settle({ kind: "unavailable" });
  }
}
