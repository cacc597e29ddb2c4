/** Measures: where processors spend their time: the threads of a Node process, and a Go program with pprof. */
import { execFile } from "node:child_process";
import { rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import type { Stack } from "./flame.ts";

const run = promisify(execFile);
/** A Node process that gets SIGUSR1 listens here. */
const INSPECTOR = "http://127.0.0.1:9229/json/list";
const MICROSECONDS = 1_000;
const ATTACHES_WITHIN_MS = 5_000;

type Profile = {
  readonly nodes: readonly {
    readonly id: number;
    readonly callFrame: { readonly functionName: string; readonly url: string; readonly lineNumber: number };
    readonly children?: readonly number[];
  }[];
  readonly samples: readonly number[];
  readonly timeDeltas: readonly number[];
};
type Answer = { readonly id?: number; readonly result?: unknown };
type Event = { readonly method?: string; readonly params?: Readonly<Record<string, string>> };

/** Of all threads with JavaScript, for so many milliseconds. Needs Node 22. */
export async function profileNode(pid: number, milliseconds: number): Promise<readonly Stack[]> {
  process.kill(pid, "SIGUSR1");
  const socket = new WebSocket(await inspectorUrl());
  await new Promise((resolve) => socket.addEventListener("open", resolve, { once: true }));
  const waiting = new Map<string, (result: unknown) => void>();
  const workers: string[] = [];
  let last = 0;
  const take = (thread: string, { id, result }: Answer): void =>
    waiting.get(`${thread} ${id ?? ""}`)?.(result);
  socket.addEventListener("message", ({ data }) => {
    const message = JSON.parse(String(data)) as Answer & Event;
    const { sessionId = "", message: text = "{}" } = message.params ?? {};
    if (message.method === "NodeWorker.attachedToWorker") workers.push(sessionId);
    else if (message.method === "NodeWorker.receivedMessageFromWorker")
      take(sessionId, JSON.parse(text) as Answer);
    else take("", message);
  });
  const ask = (thread: string, method: string, params: object = {}): Promise<unknown> => {
    const id = ++last;
    const asked = JSON.stringify({ id, method, params });
    const toWorker = { sessionId: thread, message: asked };
    socket.send(
      thread === ""
        ? asked
        : JSON.stringify({ id: ++last, method: "NodeWorker.sendMessageToWorker", params: toWorker }),
    );
    return new Promise((resolve) => waiting.set(`${thread} ${id}`, resolve));
  };
  await ask("", "NodeWorker.enable", { waitForDebuggerOnStart: false });
  const threads = ["", ...workers];
  const onAll = (method: string, params?: object): Promise<unknown[]> =>
    Promise.all(threads.map((thread) => ask(thread, method, params)));
  await onAll("Profiler.enable");
  await onAll("Profiler.setSamplingInterval", { interval: MICROSECONDS });
  await onAll("Profiler.start");
  await sleep(milliseconds);
  const profiles = (await onAll("Profiler.stop")) as { readonly profile: Profile }[];
  socket.close();
  return profiles.flatMap(({ profile }, n) => stacksOf(profile, n === 0 ? "main thread" : "workflow thread"));
}

async function inspectorUrl(): Promise<string> {
  const deadline = performance.now() + ATTACHES_WITHIN_MS;
  for (;;) {
    const listed = await fetch(INSPECTOR).catch(() => null);
    const [target] = ((await listed?.json()) ?? []) as { readonly webSocketDebuggerUrl: string }[];
    if (target !== undefined) return target.webSocketDebuggerUrl;
    if (performance.now() > deadline) throw new Error(`No inspector answers at ${INSPECTOR}.`);
    await sleep(50);
  }
}

function stacksOf({ nodes, samples, timeDeltas }: Profile, thread: string): Stack[] {
  const frames = new Map<number, readonly string[]>();
  const byId = new Map(nodes.map((node) => [node.id, node]));
  const isBelow = new Set(nodes.flatMap(({ children = [] }) => children));
  const walk = (id: number, above: readonly string[]): void => {
    const node = byId.get(id);
    if (node === undefined) return;
    const { functionName, url } = node.callFrame;
    const file = url.split("/").slice(-2).join("/");
    const name = `${functionName === "" ? "(anonymous)" : functionName}${file === "" ? "" : ` ${file}`}`;
    const here = functionName === "(root)" ? [thread] : [...above, name];
    frames.set(id, here);
    for (const child of node.children ?? []) walk(child, here);
  };
  for (const { id } of nodes) if (!isBelow.has(id)) walk(id, [thread]);
  return samples.flatMap((id, n) => {
    const found = frames.get(id) ?? [];
    return found.at(-1) === "(idle)" ? [] : [{ frames: found, weight: timeDeltas[n] ?? 0 }];
  });
}

/** @param address `host:port` of its pprof; needs Go */
export async function profileGo(address: string, milliseconds: number): Promise<readonly Stack[]> {
  const seconds = Math.round(milliseconds / 1_000);
  const answer = await fetch(`http://${address}/debug/pprof/profile?seconds=${seconds}`);
  const file = join(tmpdir(), `bedrock-${process.pid}.pprof`);
  await writeFile(file, Buffer.from(await answer.arrayBuffer()));
  const { stdout } = await run("go", ["tool", "pprof", "-traces", file], { maxBuffer: 1 << 28 });
  await rm(file);
  // Each trace: a line of dashes, then the innermost function after its time, then its callers.
  return stdout.split(/^-+\+-+$/m).flatMap((trace) => {
    const lines = trace
      .trimEnd()
      .split("\n")
      .filter((line) => line.trim() !== "");
    const [, amount = "", unit = "", first = ""] = /^\s*([\d.]+)(ms|s|us)\s+(.+)$/.exec(lines[0] ?? "") ?? [];
    if (first === "") return [];
    const weight = Number(amount) * (unit === "s" ? 1_000 : unit === "us" ? 0.001 : 1);
    const frames = [first, ...lines.slice(1)].map((line) => shortName(line.trim())).reverse();
    return [{ frames, weight }];
  });
}

/** Without the path of the package. */
const shortName = (name: string): string => name.replace(/ \(inline\)$/, "").replace(/^.*\/(?=[^/]+$)/, "");
