/** What the writing tools report of the files that they changed. */
import { applyPatch, parsePatch } from "diff";
import fc from "fast-check";
import { chmod, mkdir, readFile, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import type { FileDiff, Json } from "../../machine/message.ts";
import { DIFF_BYTES, jsonBytes } from "../../machine/size.ts";
import { runTool } from "../../tools/registry.ts";
import type { ToolContext } from "../../tools/tool.ts";
import { makeContext, temporaryDirectory } from "./support.ts";

/** A directory with one file, if any, and the tools on it. */
async function directory(content: string | Uint8Array | null, more: Partial<ToolContext> = {}) {
  const cwd = await temporaryDirectory();
  const file = join(cwd, "a.txt");
  if (content !== null) await writeFile(file, content);
  const run = async (tool: string, input: Record<string, Json>) =>
    runTool(tool, { path: "a.txt", ...input }, await makeContext({ cwd, ...more }));
  /** The one diff of a call that must succeed. */
  const diff = async (tool: string, input: Record<string, Json>): Promise<FileDiff> => {
    const { status, diffs = [] } = await run(tool, input);
    expect([status, diffs.length]).toEqual(["completed", 1]);
    return diffs[0] ?? expect.fail("no diff");
  };
  return { cwd, file, run, diff, write: (text: string) => diff("write", { content: text }) };
}

const lines = (count: number, line: (n: number) => string): string =>
  Array.from({ length: count }, (_, n) => `${line(n + 1)}\n`).join("");

const patched = (before: string, { diff }: FileDiff): string | false =>
  applyPatch(before, diff, { autoConvertLineEndings: false });

describe("a diff", () => {
  test("of an edit has the changed lines, three lines around them, and the file's path", async () => {
    const { file, diff } = await directory(lines(9, (n) => `line ${n}`));
    expect(await diff("edit", { oldText: "line 5\n", newText: "five\nand a half\n" })).toEqual({
      path: file,
      change: "modified",
      diff: `--- ${file}
+++ ${file}
@@ -2,7 +2,8 @@
 line 2
 line 3
 line 4
-line 5
+five
+and a half
 line 6
 line 7
 line 8
`,
      addedLines: 2,
      removedLines: 1,
      truncated: false,
    });
  });

  test("of a patch has all of its edits, far apart and close together", async () => {
    const before = lines(40, (n) => `line ${n}`);
    const { file, diff } = await directory(before);
    const replace = (oldText: string, newText: string) => ({ operation: "replace", oldText, newText });
    const found = await diff("patch", {
      edits: [
        replace("line 2\n", "two\n"),
        replace("line 4\n", ""),
        replace("line 30\n", "thirty\n"),
        { operation: "insert", text: "the end" },
      ],
    });
    expect(found.diff.match(/^@@.*@@$/gm)).toEqual([
      "@@ -1,7 +1,6 @@",
      "@@ -27,7 +26,7 @@",
      "@@ -38,3 +37,4 @@",
    ]);
    expect(found).toMatchObject({ change: "modified", addedLines: 3, removedLines: 3, truncated: false });
    expect(patched(before, found)).toBe(await readFile(file, "utf8"));
  });

  test.for([
    ["write", { content: "one\ntwo" }],
    ["patch", { edits: [{ operation: "overwrite", content: "one\ntwo" }] }],
  ] as const)("of a file that %s creates adds all lines to nothing", async ([tool, input]) => {
    const { cwd, diff } = await directory(null);
    const path = join(cwd, "new", "b.txt");
    expect(await diff(tool, { ...input, path: "new/b.txt" })).toEqual({
      path,
      change: "created",
      diff: `--- /dev/null\n+++ ${path}\n@@ -0,0 +1,2 @@\n+one\n+two\n\\ No newline at end of file\n`,
      addedLines: 2,
      removedLines: 0,
      truncated: false,
    });
  });

  test("of a file that is created or made empty has no lines, or only removed ones", async () => {
    const empty = { diff: "", addedLines: 0, removedLines: 0, truncated: false };
    expect(await (await directory(null)).write("")).toMatchObject({ change: "created", ...empty });
    const { write, file } = await directory("one\ntwo\n");
    expect((await write("")).diff).toBe(`--- ${file}\n+++ ${file}\n@@ -1,2 +0,0 @@\n-one\n-two\n`);
  });

  test("shows changed line endings and a missing newline at the end", async () => {
    const { write } = await directory("one\r\ntwo\r\nthree");
    const found = await write("one\ntwo\r\nthree\n");
    expect(found.diff).toMatch(/\n-one\r\n\+one\n two\r\n-three\n\\ No newline at end of file\n\+three\n$/);
    expect(patched("one\r\ntwo\r\nthree", found)).toBe("one\ntwo\r\nthree\n");
  });

  test("has an empty first line among the lines around a change", async () => {
    const { diff } = await (await directory("\nold\n")).write("\nnew\n");
    expect(diff).toContain("@@ -1,2 +1,2 @@\n \n-old\n+new\n");
  });

  test("shows half of a character as it is written", async () => {
    const { run, write } = await directory(null);
    expect((await write("a\ud800b\n")).diff).toContain("\n+a\ufffdb\n");
    expect((await run("write", { content: "a\ud800b\n" })).diffs).toEqual([]);
  });

  test("names the file that a link leads to", async () => {
    const { cwd, file, diff } = await directory("old\n");
    await mkdir(join(cwd, "links"));
    await symlink("../a.txt", join(cwd, "links", "link"));
    for (const [tool, input] of [
      ["write", { content: "new\n" }],
      ["edit", { oldText: "new", newText: "newer" }],
    ] as const) {
      expect(await diff(tool, { path: "links/link", ...input })).toMatchObject({ path: file });
    }
  });

  test("is not there if nothing has changed, or the call failed or was stopped", async () => {
    const { run, cwd, file } = await directory("same\n");
    expect((await run("write", { content: "same\n" })).diffs).toEqual([]);
    const stopped = { cwd, signal: AbortSignal.abort() };
    for (const result of [
      await run("edit", { oldText: "other", newText: "x" }),
      await run("patch", { edits: [{ operation: "insert", afterLine: 7, text: "x" }] }),
      await runTool("write", { path: "a.txt", content: "x" }, await makeContext(stopped)),
    ]) {
      expect(result.status).not.toBe("completed");
      expect(result).not.toHaveProperty("diffs");
    }
    await chmod(file, 0o444);
    expect(await run("write", { content: "x" })).not.toHaveProperty("diffs");
    expect(await run("ls", { path: "." })).not.toHaveProperty("diffs");
  });

  test.for<[string, string | Uint8Array]>([
    ["is binary", "text\0more\n"],
    ["is not UTF-8", Uint8Array.of(0x63, 0x61, 0x66, 0xe9, 0x0a)],
    ["is larger than 10 MiB", "x\n".repeat(5 * 1024 * 1024 + 1)],
  ])("shows no line if the old content %s", async ([, content]) => {
    const { write, file } = await directory(content);
    expect(await write("new\n")).toEqual({
      ...{ path: file, change: "modified", diff: "" },
      ...{ addedLines: 0, removedLines: 0, truncated: true },
    });
    expect(await readFile(file, "utf8")).toBe("new\n");
  });

  test("shows no line if the new content is binary", async () => {
    const { write } = await directory("text\n");
    expect(await write("text\0\n")).toMatchObject({ diff: "", truncated: true });
  });

  test("shows no line of the server's own files", async () => {
    const { cwd, diff } = await directory("secret\nplain\n");
    const own = await directory("secret\nplain\n", { hidden: [cwd] });
    const path = join(cwd, "a.txt");
    for (const [tool, input] of [
      ["edit", { oldText: "plain", newText: "PLAIN" }],
      ["write", { content: "secret\n" }],
    ] as const) {
      const found = await own.diff(tool, { path, ...input });
      expect(found).toMatchObject({ path, change: "modified", diff: "", truncated: true });
    }
    expect((await diff("write", { content: "other\n" })).diff).toContain("-secret");
  });
});

describe("a large change", () => {
  test("is cut after a whole line: the rest is well-formed, and the counts are those of the change", async () => {
    const before = lines(3_000, (n) => `line ${n}`);
    const { file, diff } = await directory(before);
    const edits = Array.from({ length: 100 }, (_, n) => ({
      operation: "replace",
      oldText: `line ${n * 20 + 7}\n`,
      newText: lines(3, (m) => `new ${n}.${m} ${"\u0001ł".repeat(40)}`),
    }));
    const found = await diff("patch", { edits });
    expect(found).toMatchObject({ truncated: true, addedLines: 300, removedLines: 100 });
    expect(jsonBytes(found.diff)).toBeGreaterThan(DIFF_BYTES - 2_000);
    expect(jsonBytes(found.diff)).toBeLessThanOrEqual(DIFF_BYTES);
    // What is shown applies by itself, and leads to the beginning of the new content.
    const shown = patched(before, found) || expect.fail("it does not apply");
    const common = (await readFile(file, "utf8"))
      .split("\n")
      .findIndex((line, n) => line !== shown.split("\n")[n]);
    expect(common).toBeGreaterThan(300);
  });

  test("with a first line that is too long by itself shows no line", async () => {
    const { write } = await directory("short\n");
    expect(await write("x".repeat(100_000))).toMatchObject({
      addedLines: 1,
      removedLines: 1,
      truncated: true,
    });
    const { diff } = await (await directory(null)).write("x".repeat(100_000));
    expect(diff).toBe("");
  });

  test("of one line of 10 MB is found", async () => {
    const line = (n: number): string => `a line of thirty bytes ${n}`;
    const before = lines(300_000, line);
    const { write } = await directory(before);
    const at = before.indexOf(`${line(200_000)}\n`);
    const found = await write(`${before.slice(0, at)}new\n${before.slice(at)}`);
    expect(found).toMatchObject({ addedLines: 1, removedLines: 0, truncated: false });
    expect(found.diff).toMatch(/@@ -199997,6 \+199997,7 @@\n( a line.*\n){3}\+new\n( a line.*\n){3}$/);
  });

  const random = (n: number): string => `${(n * 7_919) % 104_729} ${Math.sin(n)}`;
  test.for<[string, () => readonly [string, string], number]>([
    ["long", () => [lines(300_000, random), lines(300_000, (n) => random(n + 300_000))], 300_000],
    ["empty", () => ["\n".repeat(5_000_000), "x\n".repeat(5_000_000)], 5_000_000],
  ])(
    "of every line of 10 MB, %s ones, blocks nothing else: the diff is given up, the counts stay",
    async (given) => {
      const [before, after] = given[1]();
      const { write } = await directory(before);
      let [longest, last] = [0, performance.now()];
      const turn = (): void => {
        const now = performance.now();
        [longest, last] = [Math.max(longest, now - last), now];
      };
      const timer = setInterval(turn, 5);
      const found = await write(after);
      turn();
      clearInterval(timer);
      expect(found).toMatchObject({ addedLines: given[2], removedLines: given[2], truncated: true });
      expect(jsonBytes(found.diff)).toBeLessThanOrEqual(DIFF_BYTES);
      expect(parsePatch(found.diff)).toHaveLength(1);
      // The shortest diff of these texts would take hours.
      expect(longest).toBeLessThan(2_000);
    },
  );

  test("of a thousand lines is a whole replacement, which applies", async () => {
    const before = lines(1_000, (n) => (n % 100 === 0 ? "same" : `a${n}`));
    const after = lines(1_000, (n) => (n % 100 === 0 ? "same" : `b${n}`));
    const found = await (await directory(before)).write(after);
    expect(found).toMatchObject({ addedLines: 999, removedLines: 999, truncated: false });
    expect(patched(before, found)).toBe(after);
  });
});

test("the diff of any two texts applies to the one and gives the other", async () => {
  const line = fc.constantFrom("", "a", "b", "  }", "a\r", "żółw 🐢", "-", "+x", "\\ No newline", "\ufeff");
  const text = fc
    .tuple(fc.array(line, { maxLength: 12 }), fc.constantFrom("", "\n"))
    .map(([all, end]) => all.join("\n") + end);
  const { file, run } = await directory(null);
  await fc.assert(
    fc.asyncProperty(text, text, async (before, after) => {
      await writeFile(file, before);
      const { diffs = [] } = await run("write", { content: after });
      expect(diffs).toHaveLength(before === after ? 0 : 1);
      const [found] = diffs;
      if (found === undefined) return;
      expect(patched(before, found)).toBe(after);
      const marked = (mark: string) =>
        parsePatch(found.diff)
          .flatMap(({ hunks }) => hunks.flatMap((hunk) => hunk.lines))
          .filter((shown) => shown.startsWith(mark)).length;
      expect([marked("+"), marked("-")]).toEqual([found.addedLines, found.removedLines]);
    }),
    { numRuns: 300 },
  );
});
