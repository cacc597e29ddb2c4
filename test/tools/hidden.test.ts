/**
 * Reading tools run inside the server. In neither mode can they reach the server's own files. The kernel does not let a
 * command of Restricted mode read them either.
 */
import { mkdir, symlink, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { basename, dirname, join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import type { Json } from "../../machine/message.ts";
import { hostSandbox } from "../support/host-sandbox.ts";
import { callTool, failure, temporaryDirectory } from "./support.ts";

const { available } = await hostSandbox();

/** The inputs of the tools besides a path. */
const MORE = {
  read: {},
  ls: {},
  grep: { pattern: "." },
  find: { pattern: "*" },
  keyword_search: { terms: ["PATH"] },
} as const;

/** A folder with a secret in it that looks like a glob, beside a project with links to it. */
async function server() {
  const above = await temporaryDirectory();
  const [own, cwd] = [join(above, "own [1] {a,b}*"), join(above, "project")];
  await mkdir(join(own, "run"), { recursive: true });
  await mkdir(cwd);
  for (const folder of [join(own, "run"), cwd]) await writeFile(join(folder, "file"), "needle\n");
  // Not hidden: only its name begins like the hidden one.
  await mkdir(`${own}x`);
  await writeFile(join(`${own}x`, "file"), "needle\n");
  await symlink(own, join(cwd, "link"));
  await symlink(join(own, "run", "file"), join(cwd, "file-link"));
  return { above, own, cwd, hidden: [own] };
}

describe.each(available ? (["restricted", "unrestricted"] as const) : (["unrestricted"] as const))(
  "%s",
  (mode) => {
    test("paths, links and .. into the server's folder are refused by each tool", async () => {
      const { own, cwd, hidden } = await server();
      const name = basename(own);
      const calls: readonly (readonly [string, Json])[] = [
        ["read", { path: join(own, "run", "file") }],
        ["read", { path: `../${name}/run/file` }],
        ["read", { path: "link/run/file" }],
        ["read", { path: "file-link" }],
        ["read", { path: `/proc/self/root${join(own, "run", "file")}` }],
        ["ls", { path: own }],
        ["ls", { path: "link" }],
        ["ls", { path: "link/run" }],
        ["grep", { pattern: "needle", path: `../${name}` }],
        ["grep", { pattern: "needle", path: "file-link" }],
        ["find", { pattern: "*", path: "link" }],
        ["keyword_search", { terms: ["needle"], path: join(own, "run") }],
      ];
      for (const [tool, input] of calls) {
        const answer = await callTool(tool, cwd, input, { mode, hidden });
        const expected = failure(/is the server's own and cannot be read/);
        expect({ tool, input, ...answer }).toEqual({ tool, input, ...expected });
      }
    });

    test("a search from above leaves out the server's folder, and nothing else", async () => {
      const { above, own, hidden } = await server();
      for (const [tool, input] of [
        ["grep", { pattern: "needle" }],
        ["grep", { pattern: "needle", filesOnly: true }],
        ["find", { pattern: "file" }],
        ["keyword_search", { terms: ["needle"] }],
        ["find", { pattern: "file", path: dirname(above) }],
      ] as const) {
        const { text } = await callTool(tool, above, input, { mode, hidden });
        expect(text).toMatch(/^project\/file/m);
        expect(text).toContain(`${basename(own)}x/file`);
        expect(text).not.toContain(`${basename(own)}/`);
      }
    });

    test("a file name that looks like a path into the server's folder leads nowhere", async () => {
      const { own, cwd, hidden } = await server();
      const secret = join(own, "run", "file");
      for (const target of [secret, join(cwd, "link", "run", "file"), `/proc/${process.pid}/environ`]) {
        const file = join(cwd, "x:1\n", target);
        await mkdir(dirname(file), { recursive: true });
        await writeFile(file, "needle\n");
      }
      await writeFile(secret, "needle: the secret\n");
      for (const [tool, input] of [
        ["keyword_search", { terms: ["needle", "PATH="] }],
        ["grep", { pattern: "needle" }],
        ["find", { pattern: "*" }],
      ] as const) {
        const { text } = await callTool(tool, cwd, input, { mode, hidden });
        expect(text).not.toMatch(/the secret|PATH=.*:/);
        expect(text).toMatch(/^file/m);
      }
    });

    test("an answer does not show whether a path exists in the server's folder", async () => {
      const { own, cwd, hidden } = await server();
      const ask = async (path: string) => (await callTool("read", cwd, { path }, { hidden })).text;
      const [there, missing] = [join(own, "run"), join(own, "none")];
      expect((await ask(missing)).replace(missing, there)).toBe(await ask(there));
    });

    test("the files of processes and sockets are refused", async () => {
      const { cwd } = await server();
      const socket = join(cwd, "socket");
      const listening = createServer().listen(socket);
      onTestFinished(() => void listening.close());
      await symlink("/proc/self/environ", join(cwd, "environ"));
      for (const [tool, path] of [
        ["read", "/proc/self/environ"],
        ["read", "environ"],
        ["read", `/proc/${process.pid}/environ`],
        ["read", `/proc/thread-self/environ`],
        ["read", `../../../../../../proc/self/environ`],
        ["read", `/proc/self/task/${process.pid}/environ`],
        ["read", "/proc/self/mem"],
        ["read", "/proc/kmsg"],
        ["ls", "/proc/self/fd"],
        ["ls", "/dev/fd"],
        ["grep", "/proc/self/environ"],
        ["grep", "environ"],
        ["grep", "/proc"],
        ["find", "/proc/self"],
        ["keyword_search", "environ"],
        ["read", socket],
        ["grep", socket],
      ] as const) {
        const answer = await callTool(tool, cwd, { path, ...MORE[tool] }, { mode });
        expect({ tool, path, ...answer }).toEqual({
          tool,
          path,
          ...failure(/belongs to a process|cannot be searched|not a regular file|emptied by being read/),
        });
      }
    });
  },
);

test.skipIf(!available)("a Restricted command reads files beside the folder, but none in it", async () => {
  const { own, cwd, hidden } = await server();
  const run = (command: string, folders: readonly string[] = hidden) =>
    callTool("bash", cwd, { command }, { mode: "restricted", hidden: folders });
  for (const path of [join(own, "run", "file"), join("link", "run", "file"), "file-link"]) {
    expect(await run(`cat ${JSON.stringify(path)}`)).toEqual(failure(/Permission denied/));
  }
  const beside = `cat file ${JSON.stringify(join(`${own}x`, "file"))}`;
  expect((await run(beside)).text).toBe("needle\nneedle\n");
  expect((await run("cat file-link", [])).text).toBe("needle\n");
});
