/**
 * A process that runs one command under a lease, which it renews as long as it can. The test freezes it:
 * `node … SCRIPT MARK GROUPS`.
 */
import { runCommand } from "../../sandbox/command.ts";
import { disableControlGroups } from "../../sandbox/control-groups.ts";
import { clock } from "../../sandbox/lease.ts";

const LEASE_MS = 300;

if (process.argv[4] === "without control groups") disableControlGroups();
let until = clock() + LEASE_MS;
const listeners = new Set<() => void>();
setInterval(() => {
  // An expired lease stays expired.
  if (clock() > until) return;
  until = clock() + LEASE_MS;
  for (const listener of listeners) listener();
}, 50);

const result = await runCommand({
  argv: ["bash", "-c", process.argv[2] ?? ""],
  cwd: "/",
  env: { PATH: process.env["PATH"] ?? "", MARK: process.argv[3] ?? "" },
  confinement: null,
  lease: {
    get expiresAt() {
      return until;
    },
    onRenewed: (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  },
  signal: new AbortController().signal,
  timeoutMs: 60_000,
  limitBytes: 1_000,
  onOutput: (_stream, text) => void process.stdout.write(text),
});
console.log(JSON.stringify(result));
process.exit();
