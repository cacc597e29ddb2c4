/** Tools whose lease expires while they run, as in a frozen worker: nothing takes effect afterwards. */
import { readdirSync } from "node:fs";
import { chmod, readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { clock, type Lease } from "../../sandbox/lease.ts";
import { callTool as call, temporaryDirectory } from "./support.ts";

/** A lease that expires at the moment when `isSo` is true for the first time. */
function leaseUntil(isSo: () => boolean): Lease {
  let until = Infinity;
  return {
    get expiresAt() {
      if (isSo()) until = 0;
      return until;
    },
    onRenewed: () => () => undefined,
  };
}

const isWriting = (cwd: string) => () => readdirSync(cwd).some((name) => name.endsWith(".tmp"));

const CHANGES = [
  ["write", { path: "file", content: "new" }],
  ["edit", { path: "file", oldText: "old", newText: "new" }],
  ["patch", { path: "file", edits: [{ operation: "replace", oldText: "old", newText: "new" }] }],
  ["patch", { path: "file", edits: [{ operation: "overwrite", content: "new" }] }],
] as const;

describe.each(CHANGES)("%s %j", (name, input) => {
  test("does not replace a file when its lease has expired, however far it was", async () => {
    const cwd = await temporaryDirectory();
    await writeFile(join(cwd, "file"), "old");
    const run = await call(name, cwd, input, { lease: leaseUntil(isWriting(cwd)) });
    expect(run).toEqual({ status: "interrupted", text: "Stopped." });
    expect(await readFile(join(cwd, "file"), "utf8")).toBe("old");
    expect(await readdir(cwd)).toEqual(["file"]);
  });
});

test("a tool whose lease expires after its start makes no directories", async () => {
  const cwd = await temporaryDirectory();
  let looks = 0;
  const lease = leaseUntil(() => ++looks > 1);
  const run = await call("write", cwd, { path: "a/b/file", content: "new" }, { lease });
  expect(run).toEqual({ status: "interrupted", text: "Stopped." });
  expect(await readdir(cwd)).toEqual([]);
});

test("a search whose lease expires is interrupted", async () => {
  const cwd = await temporaryDirectory();
  await writeFile(join(cwd, "rg"), "#!/bin/sh\nexec sleep 300\n");
  await chmod(join(cwd, "rg"), 0o755);
  const env = { PATH: `${cwd}:${process.env["PATH"] ?? ""}` };
  const lease = { expiresAt: clock() + 200, onRenewed: () => () => undefined };
  const run = await call("grep", cwd, { pattern: "x" }, { lease, env });
  expect(run.status).toBe("interrupted");
});
