/** A process that runs one command and is killed by the test: `node … doomed-worker.ts SCRIPT MODE GROUPS`. */
import { runCommand } from "../../sandbox/command.ts";
import { disableControlGroups } from "../../sandbox/control-groups.ts";
import { confine } from "../../sandbox/host.ts";

if (process.argv[4] === "without control groups") disableControlGroups();
const confinement = process.argv[3] === "restricted" ? await confine() : null;
if (typeof confinement === "string") throw new Error(confinement);

await runCommand({
  argv: ["bash", "-c", process.argv[2] ?? ""],
  cwd: "/",
  env: { PATH: process.env["PATH"] ?? "", MARK: process.env["MARK"] ?? "" },
  confinement,
  signal: new AbortController().signal,
  timeoutMs: 60_000,
  limitBytes: 1_000,
  onOutput: (_stream, text) => void process.stdout.write(text),
});
