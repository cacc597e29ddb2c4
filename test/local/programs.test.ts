/** A machine without the programs that tools need hears so before anything is started. */
import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { script, temporaryFolder } from "./support.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));

/** `npm start` where only this is on PATH. */
function start(PATH: string, DATA_DIR: string): Promise<{ code: unknown; output: string }> {
  return new Promise((resolve) => {
    const env = { PATH, DATA_DIR, PORT: "0" };
    execFile(process.execPath, ["local/run.mjs", "local/main.ts"], { cwd: ROOT, env }, (error, out, err) =>
      resolve({ code: error?.code ?? 0, output: out + err }),
    );
  });
}

test.each([
  [[], "perl and rg", "perl ripgrep"],
  [["perl"], "rg", "ripgrep"],
])("with %j on PATH the start says what is missing, and starts nothing", async (there, missing, packages) => {
  const folder = temporaryFolder();
  for (const program of there) script(join(folder, program), "exit 0");
  const dataDir = join(folder, "data");
  expect(await start(folder, dataDir)).toEqual({
    code: 1,
    output: `Not on PATH: ${missing}, without which the agent has no commands or no search. Install them (on Debian and Ubuntu: apt-get install ${packages}) and start again.\n`,
  });
  expect(existsSync(dataDir)).toBe(false);
});
