/**
 * REQ-BED-014: a probe that could not be completed says nothing about the kernel. It is `unknown`, and the next caller
 * probes again, in the same process.
 */
import { execFileSync } from "node:child_process";
import { chmod, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, expect, test, vi } from "vitest";
import { sandboxOfHost } from "../../sandbox/host.ts";

/** What this host answers when nothing is in the way. */
const undisturbed = await sandboxOfHost();
const isAvailable = undisturbed.kind === "available";
if (!isAvailable) console.warn(`SKIPPED, most probes that fail: ${undisturbed.reason}`);

const folders: string[] = [];
afterEach(async () => {
  vi.unstubAllEnvs();
  vi.restoreAllMocks();
  for (const folder of folders.splice(0)) await rm(folder, { recursive: true, force: true });
});

async function newFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "bedrock-host-"));
  folders.push(folder);
  // A confined command of root runs as another user.
  await chmod(folder, 0o755);
  return folder;
}

/** A host that nothing has asked yet, with a launcher of its own. */
async function freshHost() {
  vi.resetModules();
  return (await import("../../sandbox/host.ts")).sandboxOfHost;
}

/** Puts a program of this name first on PATH. The launcher itself, a Perl script, is started as ever. */
async function replaceProgram(name: "perl" | "bash", script: string): Promise<void> {
  const folder = await newFolder();
  const real = execFileSync("sh", ["-c", `command -v ${name}`], { encoding: "utf8" }).trim();
  const launcher = `case "$1" in *launcher.pl) exec ${real} "$@" ;; esac`;
  await writeFile(join(folder, name), `#!/bin/sh\n${launcher}\n${script}\n`, { mode: 0o755 });
  vi.stubEnv("PATH", `${folder}:${process.env["PATH"] ?? ""}`);
}

/** The time limit of the probe is ten seconds. */
function shortenTimeLimit(): void {
  const original = AbortSignal.timeout.bind(AbortSignal);
  vi.spyOn(AbortSignal, "timeout").mockImplementation(() => original(500));
}

test.skipIf(!isAvailable)(
  "a missing TMPDIR is unknown; once it is there, the same process succeeds",
  async () => {
    const ask = await freshHost();
    const missing = join(await newFolder(), "missing");
    vi.stubEnv("TMPDIR", missing);
    const reason = expect.stringMatching(/^The sandbox could not be tried in .*ENOENT/) as string;
    expect(await ask()).toEqual({ kind: "unknown", reason });
    expect(await ask()).toMatchObject({ kind: "unknown" });
    vi.unstubAllEnvs();
    expect(await ask()).toEqual(undisturbed);
  },
);

test.skipIf(!isAvailable)("a success is kept, whatever happens to the host afterwards", async () => {
  const ask = await freshHost();
  expect(await ask()).toEqual(undisturbed);
  await replaceProgram("perl", "exit 0");
  vi.stubEnv("TMPDIR", join(await newFolder(), "missing"));
  expect(await ask()).toEqual(undisturbed);
});

const perl = { program: "perl", runs: true } as const;
/** It is run only where there is Landlock. */
const bash = { program: "bash", runs: isAvailable } as const;

for (const { program, runs } of [perl, bash]) {
  test.skipIf(!runs)(`a ${program} that says nothing is unknown, and is asked again`, async () => {
    const ask = await freshHost();
    await replaceProgram(program, "exit 0");
    expect(await ask()).toMatchObject({ kind: "unknown" });
    vi.unstubAllEnvs();
    expect(await ask()).toEqual(undisturbed);
  });

  test.skipIf(!runs)(
    `a ${program} that hangs is unknown after the time limit, and is asked again`,
    async () => {
      const ask = await freshHost();
      await replaceProgram(program, "exec sleep 300");
      shortenTimeLimit();
      expect(await ask()).toMatchObject({ kind: "unknown" });
      vi.restoreAllMocks();
      vi.unstubAllEnvs();
      expect(await ask()).toEqual(undisturbed);
    },
  );
}
