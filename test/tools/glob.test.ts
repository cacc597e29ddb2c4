import { execFile } from "node:child_process";
import { mkdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { commandEnvironment } from "../../sandbox/environment.ts";
import { compileGlob } from "../../tools/glob.ts";
import { temporaryDirectory } from "./support.ts";

describe("a glob", () => {
  test.each([
    ["*.ts", ["a.ts", "src/deep/b.ts", ".hidden.ts"], ["a.tsx", "ts", "a.ts/b"]],
    ["src/*.ts", ["src/a.ts"], ["src/b/a.ts", "lib/src/a.ts"]],
    ["/a", ["a"], ["b/a"]],
    ["./a", ["a"], ["b/a"]],
    ["src/**/*.ts", ["src/a.ts", "src/b/c/a.ts"], ["a.ts", "lib/src/a.ts"]],
    ["**/test/**", ["test/a", "a/test/b/c"], ["test", "a/test"]],
    ["src/", ["src/a", "src/b/c"], ["src", "lib/src/a"]],
    ["?.ts", ["a.ts", "é.ts", "🐢.ts"], [".ts", "ab.ts"]],
    ["*.{ts,{md,txt}}", ["a.ts", "a.md", "b/a.txt"], ["a.{ts", "a.js"]],
    ["{src,lib}/**/*.ts", ["src/a.ts", "lib/a/b.ts"], ["test/a.ts"]],
    ["[a-c][!a-c]*", ["ad", "cx1"], ["ab", "da"]],
    ["[]x]", ["]", "x"], ["a"]],
    ["!*.ts", ["a.md"], ["a.ts", "b/a.ts"]],
    ["\\*\\{a", ["*{a"], ["b{a"]],
    ["a{b", ["a{b"], ["ab"]],
    ["[", ["["], ["a"]],
    ["a.b", ["a.b"], ["axb"]],
  ])("%s", (glob, yes, no) => {
    const matches = compileGlob(glob);
    expect(yes.filter((path) => !matches(path))).toEqual([]);
    expect(no.filter(matches)).toEqual([]);
  });

  test("is compiled and matched within the time limit, however complex it is", () => {
    const started = performance.now();
    expect(compileGlob("*a".repeat(100) + "b")("a".repeat(4_000))).toBe(false);
    expect(compileGlob("**/a/".repeat(100) + "b")("a/".repeat(2_000))).toBe(false);
    compileGlob("{a,b}".repeat(100))("a");
    expect(performance.now() - started).toBeLessThan(2_000);
  });

  test("matches the same paths as ripgrep", async () => {
    const cwd = await temporaryDirectory();
    // Only ASCII and no negated sets: in ripgrep ? and sets match bytes, and a negated set matches a slash.
    const paths = ["a", "b", "ab", "a.b", ".a", "d/a", "d/.b", "d/ab", "d/a.b/a", "d/d/a", "e/d/ab/b"];
    for (const path of paths) {
      await mkdir(dirname(join(cwd, path)), { recursive: true });
      await writeFile(join(cwd, path), "");
    }
    const name = fc
      .array(fc.constantFrom("a", "b", ".", "*", "?", "[ab]", "{a,b}", "é"), {
        minLength: 1,
        maxLength: 4,
      })
      .map((parts) => parts.join(""));
    const glob = fc
      .array(fc.oneof(name, fc.constantFrom("**", "d", "e", "{d,e}")), { minLength: 1, maxLength: 4 })
      .map((names) => names.join("/"));
    await fc.assert(
      fc.asyncProperty(glob, async (glob) => {
        fc.pre(!/(^|\/)\.{1,2}(\/|$)/.test(glob));
        const ripgrep = await new Promise<string>((resolve) =>
          execFile(
            "rg",
            ["--no-config", "--files", "--hidden", `--glob=${glob}`],
            { cwd, env: commandEnvironment() },
            (_error, stdout) => resolve(stdout),
          ),
        );
        expect(paths.filter(compileGlob(glob)).sort()).toEqual(
          ripgrep
            .split("\n")
            .filter((path) => path !== "")
            .sort(),
        );
      }),
      { numRuns: 150 },
    );
  });
});
