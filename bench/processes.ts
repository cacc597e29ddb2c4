/** Owns: what the product's processes take: memory, and time of the processors. */
import { readFileSync } from "node:fs";
import { familyOf } from "../test/support/processes.ts";
import { PROCESSES, type ProcessName, type Product } from "../test/support/product.ts";

export type ByProcess = Readonly<Record<ProcessName, number>>;
/** The ids of the processes of each name. */
export type Processes = Readonly<Record<ProcessName, readonly number[]>>;

/** Milliseconds of a clock tick: Linux tells programs 100 a second on every architecture that Node runs on. */
const TICK_MS = 10;

export const processesOf = (product: Product): Processes => mapped((name) => [product.pidOf(name)]);

/** Bytes of each process with its descendants. What several share is divided among them. */
export const memoryOf = (processes: Processes): ByProcess => byProcess(processes, proportionalBytes);

/** Milliseconds of processor time that each has taken so far, with all that it has started. */
export const processorOf = (processes: Processes): ByProcess => byProcess(processes, processorMs);

/** The sum of all processes. */
export const total = (figures: ByProcess): number =>
  Object.values(figures).reduce((sum, value) => sum + value, 0);

export const difference = (after: ByProcess, before: ByProcess): ByProcess =>
  mapped((name) => after[name] - before[name]);

export const dividedBy = (figures: ByProcess, count: number): ByProcess =>
  mapped((name) => figures[name] / count);

/** `worker 12.3, api 2.0`, the largest first. */
export const listed = (figures: ByProcess, unit: string): string =>
  Object.entries(figures)
    .sort(([, a], [, b]) => b - a)
    .map(([name, value]) => `${name} ${value.toFixed(value < 10 ? 1 : 0)}`)
    .join(", ") + ` ${unit}`;

function byProcess(processes: Processes, measure: (pid: number) => number): ByProcess {
  return mapped((name) => processes[name].flatMap(familyOf).reduce((sum, pid) => sum + measure(pid), 0));
}

function mapped<T>(figure: (name: ProcessName) => T): Readonly<Record<ProcessName, T>> {
  return Object.fromEntries(PROCESSES.map((name) => [name, figure(name)])) as Record<ProcessName, T>;
}

/** 0 for a process that has ended. */
export function proportionalBytes(pid: number): number {
  const [, kibibytes = "0"] = /^Pss:\s+(\d+) kB$/m.exec(textOf(`/proc/${pid}/smaps_rollup`)) ?? [];
  return Number(kibibytes) * 1024;
}

/** Its own, and that of its children that have ended. */
export function processorMs(pid: number): number {
  const stat = textOf(`/proc/${pid}/stat`);
  // After the name, which may hold anything, comes the third field.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  const ticks = fields.slice(11, 15).reduce((sum, value) => sum + Number(value), 0);
  return ticks * TICK_MS;
}

function textOf(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}
