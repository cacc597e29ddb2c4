/** A system for a test to kill: it starts a process that obeys SIGTERM and one that ignores it, and prints "up". */
import { createProcessManager } from "../../local/process-manager.ts";

const [, , runDir = "", logDir = ""] = process.argv;
const supervisor = createProcessManager({ runDir, logDir, stopOrder: [], say: () => undefined });
for (const [name, trap] of [
  ["api", ""],
  ["temporal", "trap '' TERM;"],
] as const) {
  await supervisor.start({
    name,
    command: "/bin/sh",
    args: ["-c", `${trap} echo ready; while :; do sleep 0.05; done`],
    env: { PATH: process.env["PATH"] },
    ready: { line: /ready/ },
    stopWithin: 1000,
  });
}
console.log("up");
