import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { appendFileSync, watch } from "node:fs";
import { appendFile, chmod, mkdir, readdir, readFile, stat, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { callTool, completion, failure, temporaryDirectory } from "./support.ts";

const BOM = "\ufeff";

/** A directory with one file `a.txt`, and `edit` on it. */
async function file(content: string | Buffer) {
  const cwd = await temporaryDirectory();
  const path = join(cwd, "a.txt");
  await writeFile(path, content);
  return {
    cwd,
    path,
    edit: (oldText: string, newText: string, replaceAll?: boolean) =>
      callTool("edit", cwd, {
        path: "a.txt",
        oldText,
        newText,
        ...(replaceAll === undefined ? {} : { replaceAll }),
      }),
    content: () => readFile(path, "utf8"),
  };
}

describe("edit", () => {
  test("replaces the one place and says where", async () => {
    const { edit, content, path, cwd } = await file("one\ntwo\nthree");
    expect(await edit("two\nth", "2\n2.5\nTh")).toEqual(completion(`Edited ${path}: 1 change, at line 2.`));
    expect(await content()).toBe("one\n2\n2.5\nThree");
    await edit("2\n2.5\n", "");
    expect(await content()).toBe("one\nThree");
    expect(await readdir(cwd)).toEqual(["a.txt"]);
  });

  test("with replaceAll replaces each place, except those that begin inside another one", async () => {
    const { edit, content, path } = await file("aaa\nb\naa\n");
    expect(await edit("aa", "x", true)).toEqual(completion(`Edited ${path}: 2 changes, at lines 1, 3.`));
    expect(await content()).toBe("xa\nb\nx\n");
  });

  test("refuses a text at several places and names their lines, overlapping ones too", async () => {
    const { edit, content } = await file("x\naaa\nx\n");
    expect(await edit("aa", "b")).toEqual(failure(/there 2 times, at lines 2\. Give more.*replaceAll/));
    expect(await edit("x", "b")).toEqual(failure(/there 2 times, at lines 1, 3\./));
    expect(await content()).toBe("x\naaa\nx\n");
    const many = await file("x\n".repeat(10_000));
    expect(await many.edit("x", "y")).toEqual(
      failure(/there 10000 times, at lines 1, 2, .*20 and 9980 more/),
    );
  });

  test("a text that is there with other whitespace is shown as it is", async () => {
    const { edit, content } = await file("begin\r\n\tif (a) {\r\n\t\treturn  b;\r\n\t}\r\nend\r\n");
    expect(await edit("  if (a) {\n    return b;\n  }\n", "")).toEqual(
      failure(/With other whitespace it is at lines 2-4:\n\tif \(a\) \{\n\t\treturn {2}b;\n\t\}$/),
    );
    expect(await edit("return   b ;", "")).toEqual(failure(/With other whitespace it is at line 3:/));
    expect(await edit("nowhere", "")).toEqual(
      failure(/the old text is not in the file\. Read the file again/),
    );
    expect(await edit(" \n ", "")).toEqual(failure(/Read the file again/));
    expect(await content()).toContain("\t\treturn  b;\r\n");
  });

  test("refuses a new text that is the same as the old one", async () => {
    expect(await (await file("a")).edit("a", "a")).toEqual(failure(/are the same/));
  });

  test("line endings and a byte order mark are kept, a missing last newline too", async () => {
    const { edit, content } = await file(`${BOM}one\r\ntwo\r\nthree`);
    expect(await edit("one\ntwo", "1\n1.5\n2")).toMatchObject({ status: "completed" });
    expect(await content()).toBe(`${BOM}1\r\n1.5\r\n2\r\nthree`);
    await edit("three", "3\n4");
    expect(await content()).toBe(`${BOM}1\r\n1.5\r\n2\r\n3\r\n4`);
    await edit("\n3", "");
    expect(await content()).toBe(`${BOM}1\r\n1.5\r\n2\r\n4`);
  });

  test("in a file with both line endings the rest stays, and new lines end like the edited place", async () => {
    const { edit, content } = await file("a\r\nb\nc\r\n");
    await edit("b\nc", "b\nB\nc");
    expect(await content()).toBe("a\r\nb\nB\nc\r\n");
    await edit("a\nb", "A\nb");
    expect(await content()).toBe("A\r\nb\nB\nc\r\n");
    // An old text with a carriage return is literal.
    await edit("A\r\n", "A\n");
    expect(await content()).toBe("A\nb\nB\nc\r\n");
    expect(await edit("b\r\n", "b\n")).toEqual(failure(/not in the file/));
  });

  test("takes characters of any width, and texts that look like patterns, literally", async () => {
    const { edit, content } = await file("żółw 🐢 $& \u2028 e\u0301\n");
    await edit("🐢 $&", "$1 👩‍👩‍👧 $$");
    expect(await content()).toBe("żółw $1 👩‍👩‍👧 $$ \u2028 e\u0301\n");
    expect(await edit("\ud83d", "x")).toEqual(failure(/half of a character/));
  });

  test("keeps the mode and the link, and changes the file that the link points to", async () => {
    const { cwd, path, content } = await file("old");
    await chmod(path, 0o750);
    await mkdir(join(cwd, "links"));
    await symlink("../a.txt", join(cwd, "links/link"));
    expect(await callTool("edit", cwd, { path: "links/link", oldText: "old", newText: "new" })).toEqual(
      completion(`Edited ${path}: 1 change, at line 1.`),
    );
    expect(await content()).toBe("new");
    expect((await stat(path)).mode & 0o777).toBe(0o750);
    expect(await readdir(join(cwd, "links"))).toEqual(["link"]);
  });

  test("a file that cannot be edited gives a clear failure and stays as it is", async () => {
    const { cwd, path, edit, content } = await file("x");
    await chmod(path, 0o444);
    expect(await edit("x", "y")).toEqual(failure(/a\.txt is read-only/));
    expect(await content()).toBe("x");
    await writeFile(join(cwd, "binary"), Buffer.from([120, 0]));
    await writeFile(join(cwd, "latin"), Buffer.from([120, 0xe9]));
    await writeFile(join(cwd, "large"), Buffer.alloc(10 * 1024 * 1024 + 1, "x"));
    await promisify(execFile)("mkfifo", [join(cwd, "pipe")]);
    const on = (path: string) => callTool("edit", cwd, { path, oldText: "x", newText: "y" });
    expect(await on(".")).toEqual(failure(/is a directory/));
    expect(await on("nothing")).toEqual(failure(/nothing does not exist/));
    expect(await on("binary")).toEqual(failure(/is a binary file/));
    expect(await on("latin")).toEqual(failure(/is not UTF-8 text/));
    expect(await on("large")).toEqual(failure(/larger than 10 MiB/));
    expect(await on("pipe")).toEqual(failure(/not a regular file/));
    expect(await on("/proc/self/environ")).toEqual(failure(/belongs to a process/));
    expect((await readdir(cwd)).sort()).toEqual(["a.txt", "binary", "large", "latin", "pipe"]);
  });

  test("a file does not become larger than one that can be edited", async () => {
    const { edit, path } = await file("x".repeat(10_000));
    expect(await edit("x", "y".repeat(2_000), true)).toEqual(failure(/would become larger/));
    expect((await stat(path)).size).toBe(10_000);
  });

  test("a file that something else changed between reading and writing is not overwritten", async () => {
    const { cwd, path, edit, content } = await file(`first\n${"x".repeat(8_000_000)}`);
    // The new content is written beside the file before the old content is checked again.
    const watcher = watch(cwd, (_event, name) => {
      if (name?.endsWith(".tmp") !== true) return;
      watcher.close();
      appendFileSync(path, "late");
    });
    onTestFinished(() => watcher.close());
    expect(await edit("first", "FIRST")).toEqual(failure(/changed by something else.*read it again/));
    expect(await content()).toMatch(/^first\nx+late$/);
    expect(await readdir(cwd)).toEqual(["a.txt"]);
  });

  test("a file that grows all the time loses nothing", async () => {
    const { path, edit, content } = await file("state 0\n");
    const writer = promisify(execFile)("bash", [
      "-c",
      'for i in {1..2000}; do echo "line $i" >>"$1"; done',
      "_",
      path,
    ]);
    let [done, edits] = [false, 0];
    void writer.finally(() => (done = true));
    while (!done) {
      const { status, text } = await edit(`state ${edits}\n`, `state ${edits + 1}\n`);
      if (status === "completed") edits++;
      else expect(text).toMatch(/changed by something else/);
    }
    await appendFile(path, "end\n");
    expect(await content()).toMatch(new RegExp(`^state ${edits}\n(line \\d+\n)*end\n$`));
  });

  test("writes nothing when it is stopped", async () => {
    const { cwd, content } = await file("x".repeat(1_000_000) + "old");
    const controller = new AbortController();
    const input = { path: "a.txt", oldText: "old", newText: "new" };
    const running = callTool("edit", cwd, input, { signal: controller.signal });
    controller.abort();
    expect(await running).toMatchObject({ status: "interrupted" });
    expect((await content()).endsWith("old")).toBe(true);
  });
});
