import { readdir, readFile, stat, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import type { Json } from "../../machine/message.ts";
import { callTool, completion, failure, temporaryDirectory } from "./support.ts";

async function file(content: string) {
  const cwd = await temporaryDirectory();
  const path = join(cwd, "a.txt");
  await writeFile(path, content);
  return {
    cwd,
    path,
    patch: (...edits: readonly Json[]) => callTool("patch", cwd, { path: "a.txt", edits }),
    content: () => readFile(path, "utf8"),
  };
}
const replace = (oldText: string, newText: string) => ({ operation: "replace", oldText, newText });
const insert = (text: string, afterLine?: number) => ({
  operation: "insert",
  text,
  ...(afterLine === undefined ? {} : { afterLine }),
});

describe("REQ-PATCH-009: in Unrestricted mode, patch", () => {
  test("makes several edits at once, each meant for the file as it was", async () => {
    const { patch, content, path } = await file("one\ntwo\nthree\n");
    expect(
      await patch(replace("three", "3"), insert("zero", 0), replace("one\n", ""), insert("four")),
    ).toEqual(completion(`Patched ${path}: 4 changes, at lines 1, 3, 4.`));
    expect(await content()).toBe("zero\ntwo\n3\nfour\n");
  });

  test("does not find in one edit the text that another brings in", async () => {
    const { patch, content } = await file("a\nb\n");
    expect(await patch(replace("a", "b"), replace("b", "c"))).toMatchObject({ status: "completed" });
    expect(await content()).toBe("b\nc\n");
  });

  test("all or none: every edit that does not apply is named, and nothing is written", async () => {
    const { patch, content, path, cwd } = await file("a\nb\nb\n");
    const before = await stat(path, { bigint: true });
    const { status, text } = await patch(
      replace("a", "A"),
      replace("b", "B"),
      insert("x", 4),
      replace("c", ""),
    );
    expect(status).toBe("failed");
    expect(text.split("\n")).toEqual([
      `${path} was not changed: `,
      expect.stringMatching(/^Edit 2: the old text is there 2 times, at lines 2, 3\./),
      "Edit 3: the file has 3 lines; there is no line 4 to insert after.",
      expect.stringMatching(/^Edit 4: the old text is not in the file\./),
    ]);
    expect(await content()).toBe("a\nb\nb\n");
    expect((await stat(path, { bigint: true })).mtimeNs).toBe(before.mtimeNs);
    expect(await readdir(cwd)).toEqual(["a.txt"]);
  });

  test.each([
    ["the same text", [replace("b", "x"), replace("b", "y")]],
    ["a part of it", [replace("b\nc", "x"), replace("c\nd", "y")]],
    ["the inside of it", [replace("a\nb\nc\nd", "x"), replace("d", "w"), replace("b", "y")]],
    ["a line inserted into it", [insert("x", 2), replace("b\nc", "y")]],
  ])("edits that overlap are refused: %s", async (_name, edits) => {
    const { patch, content } = await file("a\nb\nc\nd\n");
    expect(await patch(...edits)).toEqual(failure(/Edit \d: it overlaps with edit \d at line \d/));
    expect(await content()).toBe("a\nb\nc\nd\n");
  });

  test("edits that touch do not overlap; insertions at one place keep their order", async () => {
    const { patch, content } = await file("a\nb\nc\n");
    await patch(replace("b\n", "B\n"), insert("1", 1), replace("a\n", "A\n"), insert("2", 1), insert("3", 2));
    expect(await content()).toBe("A\n1\n2\nB\n3\nc\n");
  });

  test("inserted lines end as those around them; whether the file ends with a newline stays", async () => {
    const crlf = await file("\ufeffa\r\nb");
    await crlf.patch(insert("0\n0.5\n", 0), insert("c\nd\n"), insert(""));
    expect(await crlf.content()).toBe("\ufeff0\r\n0.5\r\na\r\nb\r\nc\r\nd\r\n");
    const empty = await file("");
    expect(await empty.patch(insert("x", 1))).toEqual(failure(/has 0 lines/));
    await empty.patch(insert("x"));
    expect(await empty.content()).toBe("x\n");
  });

  test("overwrites a file, through a link too, or creates it", async () => {
    const { patch, content, cwd } = await file("old");
    await symlink("a.txt", join(cwd, "link"));
    const overwrite = { operation: "overwrite", content: "new\r\n" };
    expect(await callTool("patch", cwd, { path: "link", edits: [overwrite] })).toEqual(
      completion(`Replaced ${cwd}/a.txt (5 bytes).`),
    );
    expect(await content()).toBe("new\r\n");
    expect((await readdir(cwd)).sort()).toEqual(["a.txt", "link"]);
    expect(await callTool("patch", cwd, { path: "new/b.txt", edits: [overwrite] })).toEqual(
      completion(`Created ${cwd}/new/b.txt (5 bytes).`),
    );
    expect(await patch(replace("new", "x"), overwrite)).toEqual(failure(/must be the only edit/));
    expect(await content()).toBe("new\r\n");
    expect(await callTool("patch", cwd, { path: "nothing", edits: [insert("x")] })).toEqual(
      failure(/does not exist/),
    );
  });
});
