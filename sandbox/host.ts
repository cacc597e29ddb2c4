/**
 * Owns: whether this host can enforce Restricted mode (REQ-BED-014, REQ-BASH-009). A probe finds out: a confined
 * command tries to write, and to read what is hidden, and must fail. Otherwise there is no Restricted mode on this
 * host, and bash does not run in it.
 */
import { chmod, mkdir, mkdtemp, readFile, realpath, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { runCommand, type Command, type CommandResult } from "./command.ts";
import { confinement, type Confinement } from "./confinement.ts";
import { architecture, numberOf } from "./system-calls.ts";

/** What a host can enforce. `abi` is Landlock's; `reason` says, in sentences, why nothing can be enforced. */
export type Sandbox = {
  readonly available: boolean;
  readonly abi: number | null;
  readonly reason: string | null;
};

const NEEDS =
  "Restricted mode needs Linux 5.13 or newer (6.12 for all of it) with Landlock enabled, on x86_64 or arm64.";
const PROBE_TIMEOUT_MS = 10_000;
const LANDLOCK_CREATE_RULESET_VERSION = 1;

let found: Promise<Sandbox> | null = null;

/** The sandbox of this host. A success is probed once; after a failure the next caller probes again. */
export async function sandboxOfHost(): Promise<Sandbox> {
  found ??= probe().catch((error: unknown) => missing(`The sandbox could not be tried: ${String(error)}.`));
  const sandbox = await found;
  if (!sandbox.available) found = null;
  return sandbox;
}

/** The confinement of one command, or a sentence that says why there is none. @param hidden see confinement.ts */
export async function confine(hidden: readonly string[] = []): Promise<Confinement | string> {
  const { available, abi, reason } = await sandboxOfHost();
  const arch = architecture();
  if (!available || abi === null || arch === null) return reason ?? NEEDS;
  return confinement({ arch, abi, hidden });
}

const missing = (why: string): Sandbox => ({ available: false, abi: null, reason: `${why} ${NEEDS}` });

async function probe(): Promise<Sandbox> {
  const arch = architecture();
  if (process.platform !== "linux" || arch === null) {
    return missing(`This host runs ${process.platform} on ${process.arch}.`);
  }
  const version = `print syscall(${numberOf(arch, "landlock_create_ruleset") ?? 0}, 0, 0, ${LANDLOCK_CREATE_RULESET_VERSION})`;
  const asked = await run(["perl", "-e", version], null);
  if (asked.spawnError !== null) return missing(`Commands cannot be supervised: ${asked.spawnError}.`);
  const abi = Number(asked.output);
  if (!(abi >= 1)) return missing("The kernel has no Landlock, or it is switched off.");
  const leak = await tryOut((hidden) => confinement({ arch, abi, hidden }));
  return leak === null ? { available: true, abi, reason: null } : missing(leak);
}

/** null when everything was denied; else what went wrong, as a sentence. */
async function tryOut(confined: (hidden: readonly string[]) => Confinement): Promise<string | null> {
  const folder = await realpath(await mkdtemp(join(tmpdir(), "bedrock-probe-")));
  try {
    // Anybody may read and write here, so that only the sandbox can keep the command from it.
    await chmod(folder, 0o777);
    const [file, own] = [join(folder, "file"), join(folder, "own")];
    await writeFile(file, "untouched");
    await chmod(file, 0o666);
    await mkdir(own);
    await writeFile(join(own, "file"), "the secret");
    const script = 'echo written > "$0"; chmod 600 "$0"; echo made > "$0.new"; cat "$1"; echo ran';
    const { output, spawnError } = await run(
      ["bash", "-c", script, file, join(own, "file")],
      confined([own]),
    );
    if (spawnError !== null) return `${spawnError}.`;
    if (!output.includes("ran")) return "A command does not run under the sandbox.";
    if (output.includes("the secret")) return "A command under the sandbox could read what is hidden.";
    const isUntouched =
      (await readFile(file, "utf8")) === "untouched" && ((await stat(file)).mode & 0o777) === 0o666;
    const isNew = await stat(`${file}.new`).then(
      () => true,
      () => false,
    );
    return isUntouched && !isNew ? null : "A command under the sandbox could write.";
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

function run(argv: Command["argv"], confined: Confinement | null): Promise<CommandResult> {
  return runCommand({
    argv,
    cwd: "/",
    env: { PATH: process.env["PATH"] ?? "/usr/bin:/bin" },
    confinement: confined,
    signal: AbortSignal.timeout(PROBE_TIMEOUT_MS),
    timeoutMs: PROBE_TIMEOUT_MS,
    limitBytes: 4_000,
  });
}
