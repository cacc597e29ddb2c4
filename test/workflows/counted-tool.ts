/** Owns: a tool call that leaves a trace of each of its runs. */
import { randomUUID } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { toolCall } from "../../local/scripted/script.ts";
import type { System } from "../support/system.ts";

/** A tool whose every run leaves a line in a file. */
export function countedTool(system: System) {
  const name = randomUUID();
  const path = join(system.cwd, name);
  const runs = (): number => (existsSync(path) ? readFileSync(path, "utf8").split("\n").length - 1 : 0);
  return { name, runs, call: toolCall("bash", { command: `echo ran >> ${name}` }) };
}
