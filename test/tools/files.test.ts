import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { chmod, mkdir, readdir, readFile, stat, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import type { JsonObject } from "../../machine/message.ts";
import { callTool as call, failure, temporaryDirectory, toolsFor } from "./support.ts";

describe("read", () => {
  test("numbers lines, from an offset, up to a limit, and says how to go on", async () => {
    const cwd = await temporaryDirectory();
    await writeFile(join(cwd, "a.txt"), "one\r\ntwo\nthree\nfour");
    expect(await call("read", cwd, { path: "a.txt" })).toEqual({
      status: "completed",
      text: "1\tone\n2\ttwo\n3\tthree\n4\tfour",
    });
    expect((await call("read", cwd, { path: join(cwd, "a.txt"), offset: 2, limit: 2 })).text).toBe(
      "2\ttwo\n3\tthree\n[the file goes on; read on with offset 4]",
    );
    expect((await call("read", cwd, { path: "a.txt", offset: 3, limit: 2 })).text).toBe("3\tthree\n4\tfour");
    expect(await call("read", cwd, { path: "a.txt", offset: 9 })).toEqual(failure(/has 4 lines/));
    await writeFile(join(cwd, "empty"), "");
    expect((await call("read", cwd, { path: "empty" })).text).toBe("(the file is empty)");
    await writeFile(join(cwd, "ends.txt"), "x\n\n");
    expect((await call("read", cwd, { path: "ends.txt" })).text).toBe("1\tx\n2\t");
  });

  test("a large file is read no further than shown: 2,000 lines or 50 KiB; long lines are cut", async () => {
    const cwd = await temporaryDirectory();
    await writeFile(join(cwd, "lines"), "x\n".repeat(1_000_000));
    const lines = await call("read", cwd, { path: "lines" });
    expect(lines.text).toMatch(/\n2000\tx\n\[the file goes on; read on with offset 2001\]$/);
    expect((await call("read", cwd, { path: "lines", offset: 999_999 })).text).toBe("999999\tx\n1000000\tx");
    await writeFile(join(cwd, "wide"), `${"w".repeat(3_000)}\n`.repeat(200));
    const wide = await call("read", cwd, { path: "wide" });
    expect(wide.text.length).toBeLessThan(52_000);
    expect(wide.text).toMatch(/^1\tw{2000} \[… 1000 characters cut …\]\n2\t/);
    expect(wide.text).toMatch(/read on with offset \d+\]$/);
  });

  test("characters over chunk borders stay whole", async () => {
    const cwd = await temporaryDirectory();
    const lines = Array.from({ length: 600 }, () => "€".repeat(60));
    await writeFile(join(cwd, "a"), `x${lines.join("\n")}`);
    const first = (await call("read", cwd, { path: "a", limit: 200 })).text;
    const last = (await call("read", cwd, { path: "a", offset: 300, limit: 200 })).text;
    expect(first + last).not.toContain("\ufffd");
  });

  test("a path that cannot be read gives a clear failure", async () => {
    const cwd = await temporaryDirectory();
    await writeFile(join(cwd, "binary"), Buffer.from([1, 0, 2]));
    await promisify(execFile)("mkfifo", [join(cwd, "pipe")]);
    await symlink("loop", join(cwd, "loop"));
    expect(await call("read", cwd, { path: "." })).toEqual(failure(/is a directory.*ls/));
    expect(await call("read", cwd, { path: "nothing" })).toEqual(failure(/nothing does not exist/));
    expect(await call("read", cwd, { path: "binary" })).toEqual(failure(/binary file \(3 bytes\)/));
    expect(await call("read", cwd, { path: "pipe" })).toEqual(failure(/not a regular file/));
    expect(await call("read", cwd, { path: "loop" })).toEqual(failure(/loop of symbolic links/));
    expect(await call("read", cwd, { path: "binary/x" })).toEqual(failure(/not a directory/));
    expect(await call("read", cwd, { path: "a\0b" })).toEqual(failure(/./));
  });

  test("the server's own environment cannot be read as a file", async () => {
    const cwd = await temporaryDirectory();
    await symlink("/proc/self", join(cwd, "me"));
    for (const path of [
      "/proc/self/environ",
      `/proc/${process.pid}/environ`,
      "me/environ",
      "/proc/thread-self/environ",
    ]) {
      expect(await call("read", cwd, { path })).toEqual(failure(/belongs to a process/));
    }
    expect(await call("ls", cwd, { path: "/proc/self" })).toEqual(failure(/belongs to a process/));
    expect(await call("read", cwd, { path: "/proc/version" })).toMatchObject({ status: "completed" });
  });
});

describe("write", () => {
  test("creates the file and the directories above it, replaces it, and says how many bytes", async () => {
    const cwd = await temporaryDirectory();
    expect(await call("write", cwd, { path: "a/b/c.txt", content: "héllo" })).toEqual({
      status: "completed",
      text: `Created ${cwd}/a/b/c.txt (6 bytes).`,
    });
    expect((await call("write", cwd, { path: "a/b/c.txt", content: "" })).text).toMatch(
      /^Replaced .* \(0 bytes\)/,
    );
    expect(await readFile(join(cwd, "a/b/c.txt"), "utf8")).toBe("");
    expect(await readdir(join(cwd, "a/b"))).toEqual(["c.txt"]);
  });

  test("keeps a file's mode and writes through a link", async () => {
    const cwd = await temporaryDirectory();
    await writeFile(join(cwd, "run.sh"), "old");
    await chmod(join(cwd, "run.sh"), 0o750);
    await symlink("run.sh", join(cwd, "link"));
    await call("write", cwd, { path: "link", content: "new" });
    expect(await readFile(join(cwd, "run.sh"), "utf8")).toBe("new");
    expect((await stat(join(cwd, "run.sh"))).mode & 0o777).toBe(0o750);
    expect((await readdir(cwd)).sort()).toEqual(["link", "run.sh"]);
  });

  test("REQ-BED-014: is disabled in Restricted mode and says what to do", async () => {
    const cwd = await temporaryDirectory();
    expect(await call("write", cwd, { path: "a", content: "x" }, { mode: "restricted" })).toEqual(
      failure(/^Write tool is disabled in Restricted mode\. Use request_mode_upgrade/),
    );
    expect(await readdir(cwd)).toEqual([]);
  });

  test("a path that cannot be written gives a clear failure and leaves nothing behind", async () => {
    const cwd = await temporaryDirectory();
    await mkdir(join(cwd, "directory"));
    await writeFile(join(cwd, "file"), "x");
    await writeFile(join(cwd, "fixed"), "x", { mode: 0o444 });
    expect(await call("write", cwd, { path: "fixed", content: "y" })).toEqual(failure(/is read-only/));
    expect(await call("write", cwd, { path: "directory", content: "x" })).toEqual(failure(/is a directory/));
    expect(await call("write", cwd, { path: "file/below", content: "x" })).toEqual(
      failure(/not a directory/),
    );
    expect((await readdir(cwd)).sort()).toEqual(["directory", "file", "fixed"]);
  });

  test("the name of a file may be as long as the file system allows", async () => {
    const cwd = await temporaryDirectory();
    const name = "名".repeat(85);
    expect(await call("write", cwd, { path: name, content: "x" })).toMatchObject({ status: "completed" });
    expect(await readdir(cwd)).toEqual([name]);
  });
});

describe("ls", () => {
  test("lists types and sizes, hidden entries included", async () => {
    const cwd = await temporaryDirectory();
    await mkdir(join(cwd, "src"));
    await writeFile(join(cwd, ".hidden"), "12345");
    await symlink("nowhere", join(cwd, "link"));
    expect(await call("ls", cwd, {})).toEqual({
      status: "completed",
      text: ".hidden (5 bytes)\nlink -> nowhere\nsrc/",
    });
    expect((await call("ls", cwd, { path: "src" })).text).toBe("(the directory is empty)");
    expect(await call("ls", cwd, { path: ".hidden" })).toEqual(failure(/not a directory/));
    expect(await call("ls", cwd, { path: "gone" })).toEqual(failure(/gone does not exist/));
  });

  test("bounds the list of a directory with many entries", async () => {
    const cwd = await temporaryDirectory();
    await Promise.all(
      Array.from({ length: 600 }, (_, n) => writeFile(join(cwd, `f${String(n).padStart(3, "0")}`), "")),
    );
    const { text } = await call("ls", cwd, {});
    expect(text.split("\n")).toHaveLength(501);
    expect(text).toMatch(/^f000 \(0 bytes\)\n.*\n\[… 100 more entries …\]$/s);
  });
});

describe("a path with a NUL character", () => {
  /** The other inputs of each tool that takes a path. */
  const inputs: Readonly<Record<string, JsonObject>> = {
    read: {},
    ls: {},
    find: { pattern: "*" },
    grep: { pattern: "x" },
    keyword_search: { terms: ["x"] },
    write: { content: "x" },
    edit: { oldText: "x", newText: "y" },
    patch: { edits: [{ operation: "insert", afterLine: 0, text: "x" }] },
  };

  test("is tested with every tool that takes a path", () => {
    const takePaths = toolsFor({ isSubAgent: false }).filter(({ inputSchema }) =>
      Object.hasOwn(inputSchema["properties"] as JsonObject, "path"),
    );
    expect(takePaths.map(({ name }) => name).sort()).toEqual(Object.keys(inputs).sort());
  });

  test.each(Object.keys(inputs))("is refused by %s with a sentence of ours", async (name) => {
    const cwd = await temporaryDirectory();
    for (const path of ["a\0b", "/a\0b", "~/a\0b"]) {
      expect(await call(name, cwd, { ...inputs[name], path })).toEqual(
        failure(/^The path contains a NUL character/),
      );
    }
    expect(await readdir(cwd)).toEqual([]);
  });
});
