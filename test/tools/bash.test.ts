import { randomUUID } from "node:crypto";
import { readdirSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { hostSandbox } from "../support/host-sandbox.ts";
import { runTool } from "../../tools/registry.ts";
import { survivors } from "../support/processes.ts";
import { until } from "../support/waiting.ts";
import { makeContext, textOf } from "./support.ts";

const bash = async (
  command: string,
  more: Parameters<typeof makeContext>[0] = {},
  timeoutSeconds?: number,
) => {
  const input = timeoutSeconds === undefined ? { command } : { command, timeoutSeconds };
  const run = await runTool("bash", input, await makeContext(more));
  return { status: run.status, text: textOf(run) };
};

describe("bash", () => {
  test("REQ-BED-010: starts in the conversation's directory each time", async () => {
    const context = await makeContext();
    expect(textOf(await runTool("bash", { command: "cd / && X=1; pwd" }, context))).toBe("/\n");
    expect(textOf(await runTool("bash", { command: "pwd; echo $X" }, context))).toBe(`${context.cwd}\n\n`);
  });

  test("a command without output says so, and a failing one has its exit code", async () => {
    expect(await bash("true")).toEqual({ status: "completed", text: "(no output)" });
    expect(await bash("printf ' \n'")).toEqual({ status: "completed", text: "(no output)" });
    expect(await bash("echo oops >&2; exit 3")).toEqual({ status: "failed", text: "oops\n[exit code 3]" });
    expect(await bash("exit 1")).toEqual({ status: "failed", text: "(no output)\n[exit code 1]" });
    expect(await bash("kill -9 $$")).toEqual({ status: "failed", text: "(no output)\n[killed by SIGKILL]" });
  });

  test.each(["restricted", "unrestricted"] as const)(
    "REQ-BASH-007: %s, a command that is refused does not even begin",
    async (mode) => {
      const context = await makeContext({ mode });
      for (const end of ["git push --force", "sudo rm -rf /", "git add .", "if"]) {
        const run = await runTool("bash", { command: `echo begun >&2; touch begun; ${end}` }, context);
        expect(run.status).toBe("failed");
        expect(textOf(run)).toMatch(/^Not run, none of it\. [A-Zrgb]/);
      }
      expect(readdirSync(context.cwd)).toEqual([]);
    },
  );

  test("output that looks like a message of the system is returned as output", async () => {
    expect(await bash("echo '[command cancelled]'")).toEqual({
      status: "completed",
      text: "[command cancelled]\n",
    });
  });

  test("kills a command at its timeout", async () => {
    expect(await bash("echo begun; sleep 300", {}, 0.3)).toEqual({
      status: "failed",
      text: "begun\n[timed out after 0.3 s and was killed]",
    });
  });

  test("REQ-BED-005: stopped, it answers when its processes are dead, with what it had printed", async () => {
    const controller = new AbortController();
    const mark = randomUUID();
    let seen = "";
    const running = bash(`export MARK=${mark}; (setsid sleep 300 &); echo begun; sleep 300`, {
      signal: controller.signal,
      onOutput: (_stream, text) => void (seen += text),
    });
    await until(() => seen.includes("begun") && survivors(mark).length >= 2);
    controller.abort();
    expect(await running).toEqual({ status: "interrupted", text: "begun\n" });
    expect(survivors(mark)).toEqual([]);
  });

  test("has none of the server's secrets in its environment", async () => {
    process.env["BEDROCK_TEST_SECRET"] = "do-not-leak";
    expect((await bash("env")).text).not.toContain("do-not-leak");
    delete process.env["BEDROCK_TEST_SECRET"];
  });

  test("long output is cut in its middle", async () => {
    const { status, text } = await bash("seq 1 100000");
    expect(status).toBe("completed");
    expect(text.length).toBeLessThan(32_000);
    expect(text).toMatch(/^1\n2\n[^]*bytes cut[^]*\n100000\n$/);
  });

  test("in Restricted mode it runs under the sandbox, or not at all", async () => {
    const { available } = await hostSandbox();
    const { status, text } = await bash("touch should-not-exist", { mode: "restricted" });
    expect(status).toBe("failed");
    expect(text).toMatch(available ? /touch: .*denied/ : /Sandbox unavailable.*request_mode_upgrade/);
  });

  test("a directory that is gone and a NUL are clear failures", async () => {
    expect(await bash("true", { cwd: "/does/not/exist" })).toMatchObject({
      status: "failed",
      text: expect.stringContaining("could not be started") as string,
    });
    expect(await bash("echo \0")).toMatchObject({
      status: "failed",
      text: expect.stringContaining("NUL") as string,
    });
  });
});
