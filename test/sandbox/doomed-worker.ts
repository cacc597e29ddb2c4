/** A process that runs one command and is killed by the test: `node … doomed-worker.ts SCRIPT`. */
import { runCommand } from "../../sandbox/command.ts";

await runCommand({
  argv: ["bash", "-c", process.argv[2] ?? ""],
  cwd: "/",
  env: { PATH: process.env["PATH"] ?? "", MARK: process.env["MARK"] ?? "" },
  confinement: null,
  signal: new AbortController().signal,
  timeoutMs: 60_000,
  limitBytes: 1_000,
  onOutput: (_stream, text) => void process.stdout.write(text),
});
