import { randomUUID } from "node:crypto";
import { mkdir, mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { runCommand, type Command } from "../../sandbox/command.ts";
import { commandEnvironment } from "../../sandbox/environment.ts";
import { createOutputBuffer } from "../../sandbox/output.ts";
import { isDead, survivors } from "../support/processes.ts";
import { until } from "../support/waiting.ts";

const run = (script: string, changes: Partial<Command> = {}) =>
  runCommand({
    argv: ["bash", "-c", script],
    cwd: "/",
    env: commandEnvironment(),
    confinement: null,
    signal: new AbortController().signal,
    timeoutMs: 20_000,
    limitBytes: 10_000,
    ...changes,
  });

/** Collects what is printed, and waits for it. */
function printed() {
  let output = "";
  return {
    onOutput: (_stream: string, text: string) => void (output += text),
    text: () => output,
    matches: async (pattern: RegExp) => {
      await until(() => pattern.test(output));
      return pattern.exec(output)?.slice(1).map(Number) ?? [];
    },
  };
}

describe("a command", () => {
  test("gives its output, both streams, and its exit code", async () => {
    const streams: string[] = [];
    const result = await run("echo out; echo err >&2; exit 3", {
      onOutput: (stream, text) => streams.push(`${stream}:${text}`),
    });
    expect(result).toMatchObject({
      exitCode: 3,
      signal: null,
      truncated: false,
      timedOut: false,
      aborted: false,
    });
    expect(result.output.split("\n").sort()).toEqual(["", "err", "out"]);
    expect(streams.sort()).toEqual(["stderr:err\n", "stdout:out\n"]);
  });

  test("has no input, the given directory and only the given environment", async () => {
    const result = await run("cat; pwd; env", {
      cwd: "/usr",
      env: { PATH: process.env["PATH"] ?? "", ONLY: "this" },
    });
    const lines = result.output.split("\n");
    expect(lines[0]).toBe("/usr");
    expect(lines).toContain("ONLY=this");
    expect(lines.some((line) => line.startsWith("HOME="))).toBe(false);
  });

  test("that cannot be started says why", async () => {
    expect(await run("true", { cwd: "/does/not/exist" })).toMatchObject({
      exitCode: null,
      spawnError: expect.stringMatching(/\/does\/not\/exist: No such file or directory$/) as string,
    });
    expect(await run("", { argv: ["no-such-program"] })).toMatchObject({
      exitCode: null,
      spawnError: "no-such-program: No such file or directory",
    });
    // A folder of PATH that this user may not enter gives another reason.
    const closed = join(await mkdtemp(join(tmpdir(), "bedrock-closed-")), "bin");
    await mkdir(closed, { mode: 0o000 });
    const path = process.env["PATH"] ?? "";
    vi.stubEnv("PATH", `${closed}:${path}`);
    onTestFinished(() => void vi.unstubAllEnvs());
    expect(await run("", { argv: ["no-such-program"] })).toMatchObject({
      spawnError: "no-such-program: No such file or directory",
    });
    expect(await run("echo a\0b")).toMatchObject({
      exitCode: null,
      spawnError: expect.stringContaining("NUL") as string,
    });
  });

  test("any bytes become valid text without NUL, characters over chunk borders whole", async () => {
    const result = await run(
      String.raw`printf 'a\0b\xff\xfe\n'; printf '\xe2\x82'; sleep 0.05; printf '\xac\n'`,
    );
    expect(result.output).toBe("ab\ufffd\ufffd\n€\n");
  });
});

test("a program can open its own output, as scripts do with /dev/stderr", async () => {
  const result = await run("echo one > /dev/stderr; echo two > /dev/stdout; echo three | tee /dev/fd/2");
  expect(result.output.split("\n").sort()).toEqual(["", "one", "three", "three", "two"]);
});

test("a command's own exit code is distinguished from a failure to start it", async () => {
  expect(await run("exit 126")).toMatchObject({ exitCode: 126, spawnError: null });
  expect(await run("kill -SEGV $$")).toMatchObject({ exitCode: null, signal: "SIGSEGV", spawnError: null });
});

test("commands run side by side do not see each other's output", async () => {
  const results = await Promise.all(
    Array.from({ length: 30 }, (_, n) => run(`sleep 0.0${n % 7}; echo ${n}`)),
  );
  expect(results.map((result) => result.output)).toEqual(Array.from({ length: 30 }, (_, n) => `${n}\n`));
});

describe("a command that does not want to end", () => {
  test("returns with its shell: background processes are killed, and their pipe is not waited for", async () => {
    const result = await run("sleep 300 & echo child $!; exit 0");
    expect(result).toMatchObject({ exitCode: 0, timedOut: false });
    expect(isDead(Number(/child (\d+)/.exec(result.output)?.[1]))).toBe(true);
  });

  test("is killed with its whole group when the time is over", async () => {
    const result = await run("trap '' TERM INT; sleep 300 & echo child $!; wait; sleep 300", {
      timeoutMs: 300,
    });
    expect(result).toMatchObject({ exitCode: null, signal: "SIGKILL", timedOut: true, aborted: false });
    expect(isDead(Number(/child (\d+)/.exec(result.output)?.[1]))).toBe(true);
  });

  test("REQ-BED-005: after an abort, its result is known when its last process is dead, and keeps what was printed", async () => {
    const controller = new AbortController();
    const mark = randomUUID();
    const output = printed();
    const running = run("trap '' TERM; echo before; setsid sleep 300 & echo up; while :; do :; done", {
      env: { ...commandEnvironment(), MARK: mark },
      signal: controller.signal,
      onOutput: output.onOutput,
    });
    await output.matches(/up/);
    expect(survivors(mark)).not.toEqual([]);
    controller.abort();
    const result = await running;
    expect(survivors(mark)).toEqual([]);
    expect(result).toMatchObject({ aborted: true, exitCode: null, output: "before\nup\n" });
  });

  // A command that started while the launcher looked for orphans was once taken for one and killed: one of a hundred
  // commands that ran at the same time as others.
  test("runs and is answered also when it begins while the launcher looks for orphans", async () => {
    const bell = new AbortController();
    onTestFinished(() => bell.abort());
    const ringing = run(
      "read -r _ _ _ launcher _ < /proc/$PPID/stat; while sleep 0.001; do kill -CHLD $launcher; done",
      {
        signal: bell.signal,
        timeoutMs: 60_000,
      },
    );
    for (let n = 0; n < 200; n++)
      expect(await run(`echo ${n}`)).toMatchObject({
        exitCode: 0,
        output: `${n}\n`,
        timedOut: false,
        spawnError: null,
      });
    bell.abort();
    expect(await ringing).toMatchObject({ aborted: true });
  });

  test("in a directory that does not exist says so, and the name of the directory cannot forge other answers", async () => {
    const others = Array.from({ length: 5 }, () => run("sleep 0.3; echo whole"));
    const forged = Array.from({ length: 300 }, (_, id) => `${id} exit 0`).join("\n/\n");
    const { spawnError } = await run("true", { cwd: `/nowhere\n${forged}\n` });
    expect(spawnError).toMatch(/^The directory \/nowhere .*: No such file or directory$/);
    for (const other of others) expect(await other).toMatchObject({ exitCode: 0, output: "whole\n" });
  });

  test("is not started after an abort", async () => {
    expect(await run("echo ran", { signal: AbortSignal.abort() })).toMatchObject({
      aborted: true,
      output: "",
    });
  });
});

describe("a flood of output", () => {
  test("is bounded while it is read: beginning and end stay, memory does not grow", async () => {
    const before = process.memoryUsage().rss;
    const result = await run("head -c 100000000 /dev/zero | tr '\\0' x; echo THE END", { limitBytes: 1_000 });
    expect(result).toMatchObject({ exitCode: 0, truncated: true });
    expect(result.output.length).toBeLessThan(1_100);
    expect(result.output).toMatch(/^x+\n\[… \d+ bytes cut …\]\nx+THE END\n$/);
    expect(process.memoryUsage().rss - before).toBeLessThan(100_000_000);
  });

  test("of 10 GB is ended where no reader can want more, in flat memory", async () => {
    const before = process.memoryUsage().rss;
    let most = before;
    let chunks = 0;
    const result = await run("yes 'a line of output' | head -c 10G", {
      limitBytes: 30_000,
      onOutput: () => {
        if (chunks++ % 100 === 0) most = Math.max(most, process.memoryUsage().rss);
      },
    });
    expect(result).toMatchObject({ flooded: true, exitCode: null, truncated: true });
    expect(chunks).toBeGreaterThan(1_000);
    expect(most - before).toBeLessThan(100_000_000);
  });
});

describe("the kept part of an output", () => {
  test("property: all of it, or its two ends with the size of what is missing, and never half a character", () => {
    const chunks = fc.array(fc.string({ unit: fc.constantFrom("a", "é", "€", "🙂", "\n"), maxLength: 40 }));
    fc.assert(
      fc.property(chunks, fc.integer({ min: 8, max: 200 }), (parts, limit) => {
        const buffer = createOutputBuffer(limit);
        for (const part of parts) buffer.add(part);
        const { text, truncated, totalBytes } = buffer.finish();
        const whole = parts.join("");
        const size = Buffer.byteLength(whole);
        expect(totalBytes).toBe(size);
        expect(truncated).toBe(size > limit);
        if (!truncated) {
          expect(text).toBe(whole);
          return;
        }
        const [, head = "", cut = "", tail = ""] = /^(.*)\n\[… (\d+) bytes cut …\]\n(.*)$/s.exec(text) ?? [];
        expect(whole.startsWith(head) && whole.endsWith(tail)).toBe(true);
        const kept = Buffer.byteLength(head) + Buffer.byteLength(tail);
        expect(kept + Number(cut)).toBe(size);
        expect(kept).toBeLessThanOrEqual(limit);
        expect(kept).toBeGreaterThan(limit - 8);
        expect(text).not.toContain("\ufffd");
      }),
    );
  });
});

test("no secret of the server is in a command's environment", () => {
  const environment = commandEnvironment({
    PATH: "/bin",
    HOME: "/home/me",
    LC_ALL: "C",
    ANTHROPIC_API_KEY: "secret",
    DATABASE_URL: "secret",
    API_TOKEN: "secret",
    BASH_ENV: "/evil",
    LD_PRELOAD: "/evil.so",
  });
  expect(environment).toMatchObject({ HOME: "/home/me", LC_ALL: "C" });
  expect(environment["PATH"]).toMatch(/^\/bin(:|$)/);
  expect(JSON.stringify(environment)).not.toMatch(/secret|evil/);
});
