/** The race at the start of a child. Its end together with its parent: process-manager.test.ts, embedded-postgres.test.ts. */
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { dyingWithParent } from "../../local/die-with-parent.ts";

const run = promisify(execFile);

test("a child becomes the program, with its arguments and its exit code", async () => {
  const { command, args } = dyingWithParent({ command: "/bin/echo", args: ["two words", "*"] }, "SIGKILL");
  expect((await run(command, [...args])).stdout).toBe("two words *\n");
  const failing = dyingWithParent({ command: "sh", args: ["-c", "exit 7"] }, "SIGKILL");
  await expect(run(failing.command, [...failing.args])).rejects.toMatchObject({ code: 7 });
});

test("a child whose parent has ended before it could tell the kernel does not run the program", async () => {
  const { command, args } = dyingWithParent({ command: "/bin/echo", args: ["it runs"] }, "SIGKILL");
  // The shell is its parent, as the process that inherits an orphan would be.
  expect((await run("sh", ["-c", `"$@"; echo "exit $?"`, "sh", command, ...args])).stdout).toBe("exit 1\n");
});

test("a program that does not exist is named", async () => {
  const { command, args } = dyingWithParent({ command: "/does/not/exist", args: [] }, "SIGKILL");
  await expect(run(command, [...args])).rejects.toThrow("/does/not/exist: No such file or directory");
});
