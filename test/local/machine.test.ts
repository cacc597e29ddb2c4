/** On a machine that lacks something `npm start` says so before it starts anything. */
import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { checkMachine } from "../../local/machine.ts";
import { temporaryFolder } from "./support.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));

/** Runs `npm start` with only this on PATH. */
function start(PATH: string, DATA_DIR: string): Promise<{ code: unknown; output: string }> {
  return new Promise((resolve) => {
    const env = { PATH, DATA_DIR, PORT: "0" };
    execFile(process.execPath, ["local/run.mjs", "local/main.ts"], { cwd: ROOT, env }, (error, out, err) =>
      resolve({ code: error?.code ?? 0, output: out + err }),
    );
  });
}

test("without perl on PATH `npm start` says so and starts nothing", async () => {
  const folder = temporaryFolder();
  const dataDir = join(folder, "data");
  expect(await start(folder, dataDir)).toEqual({
    code: 1,
    output:
      "Not on PATH: perl, without which the agent has no commands. Install it (on Debian and Ubuntu: apt-get install perl) and start again.\n",
  });
  expect(existsSync(dataDir)).toBe(false);
});

test.each(["darwin", "win32"])(
  "on %s the start says that Linux is needed, and what serves instead",
  (platform) => {
    expect(() => checkMachine("/usr/bin", platform)).toThrow(
      /needs Linux.*container or virtual machine.*WSL/,
    );
  },
);
