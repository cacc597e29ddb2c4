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

/** What a host can enforce of Restricted mode. The reasons are sentences. */
export type Sandbox =
  /** `abi`: of Landlock. */
  | { readonly kind: "available"; readonly abi: number }
  /** A completed probe shows that the kernel does not enforce it. */
  | { readonly kind: "unavailable"; readonly reason: string }
  /** The probe could not be completed. Nothing may be concluded from that. */
  | { readonly kind: "unknown"; readonly reason: string };

const NEEDS =
  "Restricted mode needs Linux 5.13 or newer (6.12 for all of it) with Landlock enabled, on x86_64 or arm64.";
const PROBE_TIMEOUT_MS = 10_000;
const LANDLOCK_CREATE_RULESET_VERSION = 1;
/** Errors of a system call by which the kernel says that it does not have it, or does not permit it: not for a moment. */
const KERNEL_LACKS_IT =
  /Function not implemented|Operation not supported|Operation not permitted|Invalid argument/;

let found: Promise<Sandbox> | null = null;

/** The sandbox of this host. A success is probed once; after any other answer the next caller probes again. */
export async function sandboxOfHost(): Promise<Sandbox> {
  found ??= probe().catch((error: unknown) =>
    unknown(error instanceof Error ? error.message : String(error)),
  );
  const sandbox = await found;
  if (sandbox.kind !== "available") found = null;
  return sandbox;
}

/** The confinement of one command, or a sentence that says why there is none. @param hidden see confinement.ts */
export async function confine(hidden: readonly string[] = []): Promise<Confinement | string> {
  const sandbox = await sandboxOfHost();
  const arch = architecture();
  if (sandbox.kind !== "available") return sandbox.reason;
  return arch === null ? NEEDS : confinement({ arch, abi: sandbox.abi, hidden });
}

const unavailable = (why: string): Sandbox => ({ kind: "unavailable", reason: `${why} ${NEEDS}` });

const unknown = (why: string): Sandbox => ({
  kind: "unknown",
  reason: `The sandbox could not be tried in ${tmpdir()}: ${why.replace(/\.$/, "")}.`,
});

async function probe(): Promise<Sandbox> {
  const arch = architecture();
  if (process.platform !== "linux" || arch === null) {
    return unavailable(`This host runs ${process.platform} on ${process.arch}.`);
  }
  const number = numberOf(arch, "landlock_create_ruleset") ?? 0;
  const version = `print syscall(${number}, 0, 0, ${LANDLOCK_CREATE_RULESET_VERSION}), " $!"`;
  const asked = await run(["perl", "-e", version], null);
  const [, abi, error = ""] = /^(-?\d+) (.*)$/s.exec(asked.output) ?? [];
  if (abi === undefined) return unknown(asked.spawnError ?? "a command gave no answer");
  if (Number(abi) >= 1)
    return tryOut((hidden) => confinement({ arch, abi: Number(abi), hidden }), Number(abi));
  return KERNEL_LACKS_IT.test(error)
    ? unavailable("The kernel has no Landlock, or it is switched off.")
    : unknown(error);
}

/** Available when everything was denied. */
async function tryOut(confined: (hidden: readonly string[]) => Confinement, abi: number): Promise<Sandbox> {
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
    if (spawnError !== null)
      return KERNEL_LACKS_IT.test(spawnError) ? unavailable(`${spawnError}.`) : unknown(spawnError);
    if (output.includes("the secret"))
      return unavailable("A command under the sandbox could read what is hidden.");
    const isUntouched =
      (await readFile(file, "utf8")) === "untouched" && ((await stat(file)).mode & 0o777) === 0o666;
    const isNew = await stat(`${file}.new`).then(
      () => true,
      () => false,
    );
    if (!isUntouched || isNew) return unavailable("A command under the sandbox could write.");
    return output.includes("ran") ? { kind: "available", abi } : unknown("a command gave no answer");
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
