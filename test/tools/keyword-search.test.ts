import { mkdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { describe, expect, test } from "vitest";
import { callTool, completion, temporaryDirectory } from "./support.ts";

async function tree(files: Readonly<Record<string, string>>): Promise<string> {
  const cwd = await temporaryDirectory();
  for (const [path, content] of Object.entries(files)) {
    await mkdir(dirname(join(cwd, path)), { recursive: true });
    await writeFile(join(cwd, path), content);
  }
  return cwd;
}

/** The paths of an answer, best first. */
const filesIn = (text: string): string[] =>
  text.split("\n").flatMap((line) => /^(\S+) \(\d+ of/.exec(line)?.[1] ?? []);

describe("keyword_search", () => {
  test("the file with the most terms comes first, with its most relevant lines", async () => {
    const cwd = await tree({
      "a.ts": "retry\n".repeat(50),
      "b.ts": "nothing\nretry\nthe BACKOFF of a retry\njitter\nretry\n",
      "c.ts": "backoff and retry\n",
      "d.ts": "none of them\n",
    });
    const { status, text } = await callTool("keyword_search", cwd, {
      terms: ["retry", "backoff", "jitter", "absent"],
    });
    expect(status).toBe("completed");
    expect(text).toBe(
      [
        'b.ts (3 of 4 terms; lines: "retry" 3, "backoff" 1, "jitter" 1)',
        "  2: retry",
        "  3: the BACKOFF of a retry",
        "  4: jitter",
        'c.ts (2 of 4 terms; lines: "retry" 1, "backoff" 1)',
        "  1: backoff and retry",
        'a.ts (1 of 4 terms; lines: "retry" 50)',
        "  1: retry",
        "  2: retry",
        "  3: retry",
        '[no file has "absent"]',
      ].join("\n"),
    );
  });

  test("a rare term counts more than a common one, and the name of a file counts too", async () => {
    const cwd = await tree({
      ...Object.fromEntries(Array.from({ length: 10 }, (_, n) => [`common${n}.ts`, "import\nimport\n"])),
      "rare.ts": "flux\n",
    });
    const rare = await callTool("keyword_search", cwd, { terms: ["import", "flux"] });
    expect(filesIn(rare.text)[0]).toBe("rare.ts");
    await writeFile(join(cwd, "zz-import.ts"), "import\nimport\n");
    const named = await callTool("keyword_search", cwd, { terms: ["import"] });
    expect(filesIn(named.text)[0]).toBe("zz-import.ts");
  });

  test("terms are texts, in any case; a glob, a path and .gitignore narrow", async () => {
    const cwd = await tree({
      ".gitignore": "out.ts",
      "src/a.ts": "call(FOO.*[)\n",
      "src/a.md": "foo.*[\n",
      "out.ts": "foo.*[\n",
      "test/a.ts": "foo.*[\n",
      "b.ts": "fooo\n",
    });
    const search = async (input: Record<string, string>) =>
      filesIn((await callTool("keyword_search", cwd, { terms: ["foo.*[", "Foo.*["], ...input })).text);
    expect(await search({})).toEqual(["src/a.md", "src/a.ts", "test/a.ts"]);
    expect(await search({ glob: "*.ts" })).toEqual(["src/a.ts", "test/a.ts"]);
    expect(await search({ glob: "src/*.ts" })).toEqual(["src/a.ts"]);
    expect(await search({ path: "test" })).toEqual(["test/a.ts"]);
    expect(await search({ path: "b.ts" })).toEqual([]);
    expect(await callTool("keyword_search", cwd, { terms: ["nowhere", "absent"] })).toEqual(
      completion("No matches."),
    );
  });

  test("many files and long lines are bounded", async () => {
    const line = `${"x".repeat(3_000)}needle${"y".repeat(3_000)}\n`;
    const cwd = await tree(
      Object.fromEntries(Array.from({ length: 100 }, (_, n) => [`f${n}.ts`, line.repeat(5)])),
    );
    const { text } = await callTool("keyword_search", cwd, { terms: ["needle"] });
    expect(filesIn(text)).toHaveLength(20);
    expect(text.length).toBeLessThan(22 * 1024);
    expect(text).toMatch(/\n {2}1: \[… 2950 characters cut …\] x+needley+ \[… 2856 characters cut …\]\n/);
    expect(text).toMatch(/\[… 80 more files have some of the terms …\]$/);
  });

  test("a path may hold a newline", async () => {
    const cwd = await tree({ "a\nb": "needle\n" });
    const { text } = await callTool("keyword_search", cwd, { terms: ["needle"] });
    expect(text).toMatch(/^a\nb \(1 of 1 terms/);
  });
});

test("think changes nothing and answers", async () => {
  const cwd = await temporaryDirectory();
  expect(await callTool("think", cwd, { thought: "First read, then write." })).toEqual(completion("Noted."));
});
