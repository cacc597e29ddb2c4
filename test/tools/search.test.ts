import { chmod, mkdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { describe, expect, test } from "vitest";
import { commandEnvironment } from "../../sandbox/environment.ts";
import { hostSandbox } from "../support/host-sandbox.ts";
import { isDead, pidIn } from "../support/processes.ts";
import { callTool, completion, failure, temporaryDirectory } from "./support.ts";

/** A directory with files by their paths. */
async function tree(files: Readonly<Record<string, string | Buffer>>): Promise<string> {
  const cwd = await temporaryDirectory();
  for (const [path, content] of Object.entries(files)) {
    await mkdir(dirname(join(cwd, path)), { recursive: true });
    await writeFile(join(cwd, path), content);
  }
  return cwd;
}

const { available } = await hostSandbox();
const MODES = available ? (["restricted", "unrestricted"] as const) : (["unrestricted"] as const);

const PROJECT = {
  ".gitignore": "ignored.ts\nbuild/\n",
  ".git/config": "needle",
  ".github/ci.yml": "needle",
  "src/a.ts": "one\nNeedle two\nthree needle\n",
  "src/deep/b.md": "needle",
  "ignored.ts": "needle",
  "build/c.ts": "needle",
};

describe("grep", () => {
  test("names files relative to the working directory, and lines by their numbers", async () => {
    const cwd = await tree(PROJECT);
    expect(await callTool("grep", cwd, { pattern: "ne+dle" })).toEqual(
      completion(".github/ci.yml\n1:needle\nsrc/a.ts\n3:three needle\nsrc/deep/b.md\n1:needle"),
    );
    expect(await callTool("grep", cwd, { pattern: "NEEDLE", ignoreCase: true, path: "src/a.ts" })).toEqual(
      completion("src/a.ts\n2:Needle two\n3:three needle"),
    );
    expect(await callTool("grep", join(cwd, "src/deep"), { pattern: "needle", path: ".." })).toEqual(
      completion(`${cwd}/src/a.ts\n3:three needle\nb.md\n1:needle`),
    );
  });

  test.each([
    ["*.ts", "src/a.ts"],
    ["**/*.{ts,md}", "src/a.ts\nsrc/deep/b.md"],
    ["src/**", "src/a.ts\nsrc/deep/b.md"],
    ["src/*", "src/a.ts"],
    ["!*.ts", ".github/ci.yml\nsrc/deep/b.md"],
    ["build/*", "No matches."],
  ])("searches only files of a glob, which brings back no ignored file: %s", async (glob, files) => {
    const cwd = await tree(PROJECT);
    const only = await callTool("grep", cwd, { pattern: "needle", glob, filesOnly: true });
    expect(only).toEqual(completion(files.replace("matches", "files")));
    const lines = await callTool("grep", cwd, { pattern: "needle", glob });
    expect(lines.text.split("\n").filter((line) => !/^\d/.test(line))).toEqual(files.split("\n"));
  });

  test("searches an ignored file when its path is given", async () => {
    const cwd = await tree(PROJECT);
    expect(await callTool("grep", cwd, { pattern: "needle", path: "build" })).toEqual(
      completion("build/c.ts\n1:needle"),
    );
    expect(await callTool("grep", cwd, { pattern: "needle", path: ".git/config" })).toEqual(
      completion(".git/config\n1:needle"),
    );
  });

  test("shows the lines around a match", async () => {
    const cwd = await tree({ a: "1\n2\nx\n4\n5\n6\n7\nx\n" });
    expect(await callTool("grep", cwd, { pattern: "x", context: 1 })).toEqual(
      completion("a\n2-2\n3:x\n4-4\n--\n7-7\n8:x"),
    );
  });

  test("handles line ends, characters of any width, and files that are not text", async () => {
    const cwd = await tree({
      "a b:c.txt": "żółw 🐢\r\nend",
      "latin.txt": Buffer.from([0x63, 0x61, 0x66, 0xe9, 0x0a]),
      binary: Buffer.from("\0 żółw"),
    });
    expect(await callTool("grep", cwd, { pattern: "ó..?🐢$|^end$|ó.*🐢$" })).toEqual(
      completion("a b:c.txt\n1:żółw 🐢\n2:end"),
    );
    expect(await callTool("grep", cwd, { pattern: "caf" })).toEqual(completion("latin.txt\n1:caf\ufffd"));
    expect((await callTool("grep", cwd, { pattern: "żółw", path: "binary" })).text).not.toContain("\0");
  });

  test("a pattern is never taken for an option", async () => {
    const cwd = await tree({ "-a": "--files\n", b: "a(b\n" });
    expect(await callTool("grep", cwd, { pattern: "--files" })).toEqual(completion("-a\n1:--files"));
    expect(await callTool("grep", cwd, { pattern: "a(b", literal: true, path: "b" })).toEqual(
      completion("b\n1:a(b"),
    );
  });

  test("shows the first 250 of 10,000 matches, and how many there are", async () => {
    const cwd = await tree(
      Object.fromEntries(Array.from({ length: 10 }, (_, n) => [`f${n}`, "match\n".repeat(1_000)])),
    );
    const { status, text } = await callTool("grep", cwd, { pattern: "match" });
    expect(status).toBe("completed");
    expect(text.split("\n")).toHaveLength(252);
    expect(text).toMatch(/^f0\n1:match\n[^]*\n250:match\n\[… 9750 more matches; 10 files match …\]$/);
  });

  test("stops when there are too many matches to count", async () => {
    const cwd = await tree({ a: "match\n".repeat(100_000) });
    const { text } = await callTool("grep", cwd, { pattern: "match" });
    expect(text).toMatch(/\[… at least 19750 more matches; 1 files match …\]\n\[not searched further/);
  });

  test("cuts long lines around the match, and bounds the whole answer", async () => {
    const cwd = await tree({ a: `${"x".repeat(5_000)}needle${"€".repeat(5_000)}\n`, b: "x\n" });
    const { text } = await callTool("grep", cwd, { pattern: "needle" });
    expect(text).toMatch(/^a\n1:\[… 4875 characters cut …\] x{125}needle€{369} \[… 4631 characters cut …\]$/);
    const wide = await tree({ a: `${"y".repeat(499)}\n`.repeat(200) });
    const long = await callTool("grep", wide, { pattern: "y" });
    expect(long.text.length).toBeLessThan(31 * 1024);
    expect(long.text).toMatch(/\[… 1\d\d more matches; 1 files match …\]$/);
  });

  test("does not hold a line of many megabytes", async () => {
    const long = `${"x".repeat(8_000_000)}\nx\n`;
    const cwd = await tree({ "a.txt": long, "b.js": long });
    expect(await callTool("grep", cwd, { pattern: "x+", glob: "*.{txt,md}" })).toEqual(
      completion("a.txt\n[… a line that is too long to show …]\n2:x"),
    );
  });

  test("finding nothing is an answer; an invalid pattern is a failure with ripgrep's words", async () => {
    const cwd = await tree({ a: "text" });
    expect(await callTool("grep", cwd, { pattern: "absent" })).toEqual(completion("No matches."));
    expect(await callTool("grep", cwd, { pattern: "a(" })).toEqual(
      failure(/^ripgrep: [^]*regex parse error[^]*unclosed group/),
    );
    expect(await callTool("grep", cwd, { pattern: "a\nb" })).toEqual(failure(/not allowed in a regex/));
    expect(await callTool("grep", cwd, { pattern: "a\0b" })).toEqual(failure(/NUL/));
    expect(await callTool("grep", cwd, { pattern: "a", path: "gone" })).toEqual(
      failure(/gone does not exist/),
    );
  });

  test("REQ-BED-005: stopped, it answers when ripgrep is dead", async () => {
    const cwd = await tree({});
    const bin = await tree({ rg: "#!/bin/sh\necho $$ > ${0%/*}/pid\nexec sleep 300\n" });
    await chmod(join(bin, "rg"), 0o755);
    const controller = new AbortController();
    const env = { PATH: `${bin}:/usr/bin:/bin` };
    const running = callTool("grep", cwd, { pattern: "x" }, { signal: controller.signal, env });
    const pid = await pidIn(join(bin, "pid"));
    controller.abort();
    expect(await running).toMatchObject({ status: "interrupted" });
    expect(isDead(pid)).toBe(true);
  });

  test.each(MODES)("%s, needs no ripgrep on the machine", async (mode) => {
    const cwd = await tree({ a: "match" });
    const env = commandEnvironment({ PATH: await tree({}) });
    expect(await callTool("grep", cwd, { pattern: "match" }, { env, mode })).toEqual(
      completion("a\n1:match"),
    );
  });

  test.skipIf(process.getuid?.() === 0)("says when files could not be read", async () => {
    const cwd = await tree({ a: "match", b: "match" });
    await chmod(join(cwd, "a"), 0);
    const note = "[some files could not be read]";
    expect(await callTool("grep", cwd, { pattern: "match" })).toEqual(completion(`b\n1:match\n${note}`));
    expect(await callTool("grep", cwd, { pattern: "absent" })).toEqual(completion(`No matches.\n${note}`));
  });
});

describe("find", () => {
  test("lists files by a glob, hidden ones too, without ignored ones", async () => {
    const cwd = await tree(PROJECT);
    expect(await callTool("find", cwd, { pattern: "*" })).toEqual(
      completion(".github/ci.yml\n.gitignore\nsrc/a.ts\nsrc/deep/b.md"),
    );
    expect(await callTool("find", cwd, { pattern: "*.ts" })).toEqual(completion("src/a.ts"));
    expect(await callTool("find", cwd, { pattern: "**/*.md", path: "src" })).toEqual(
      completion("src/deep/b.md"),
    );
    expect(await callTool("find", cwd, { pattern: "*.md", path: join(cwd, "src/deep") })).toEqual(
      completion("src/deep/b.md"),
    );
    await writeFile(join(cwd, "src/é.md"), "");
    expect(await callTool("find", cwd, { pattern: "src/?.md" })).toEqual(completion("src/é.md"));
    expect(await callTool("find", cwd, { pattern: "*.rs" })).toEqual(completion("No files."));
    expect(await callTool("find", cwd, { pattern: "*", path: "src/a.ts" })).toEqual(failure(/is a file/));
  });

  test("bounds a list of thousands of files", async () => {
    const cwd = await tree(
      Object.fromEntries(Array.from({ length: 1_500 }, (_, n) => [`f${String(n).padStart(4, "0")}`, ""])),
    );
    const { text } = await callTool("find", cwd, { pattern: "f*" });
    expect(text.split("\n")).toHaveLength(1_001);
    expect(text).toMatch(/^f0000\nf0001\n[^]*\nf0999\n\[… 500 more files …\]$/);
  });
});

test.each([
  ["grep", { pattern: "x" }],
  ["find", { pattern: "x" }],
  ["keyword_search", { terms: ["x", "y"] }],
])("without ripgrep %s says what to install", async (name, input) => {
  const cwd = await tree({ x: "x" });
  expect(await callTool(name, cwd, input, { env: { PATH: cwd } })).toEqual(
    failure(/^Searching needs ripgrep, .* Install the package ripgrep/),
  );
});
