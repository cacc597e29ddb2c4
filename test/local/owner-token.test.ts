/** Where the owner's token is shown (docs/security.md, Who may do what): on a terminal only, whatever the output is. */
import { execFile, spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, onTestFinished, test } from "vitest";
import { digestOfToken } from "../../protocol/access.ts";

const run = promisify(execFile);
const hasTerminals = spawnSync("script", ["--version"]).status === 0;
if (!hasTerminals) console.warn("SKIPPED, the owner's token on a terminal: `script` is not installed.");

const SOURCE = join(import.meta.dirname, "..", "..", "local", "owner-token.ts");
const LINK = /^approve {2}http:\/\/here\/#token=([0-9a-f]{64})\r?$/m;

/** Tells on standard error what only the caller knows: the digest, and whether the token was shown. */
const PROGRAM = `
  import { makeOwnerToken } from ${JSON.stringify(SOURCE)};
  const owner = makeOwnerToken();
  process.stdout.write("ready\\n");
  console.error(owner.digest, owner.show("http://here"));`;
const ARGS = ["--import", "tsx", "--input-type=module", "--eval", PROGRAM];
const quoted = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`;
const LINE = [process.execPath, ...ARGS].map(quoted).join(" ");

/** Runs the program in a terminal of its own. What its shell writes to `$OUT` and `$ERRORS` is read afterwards. */
async function inTerminal(line: string) {
  const folder = mkdtempSync(join(tmpdir(), "bedrock-token-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const [out, errors] = [join(folder, "out"), join(folder, "errors")];
  const { stdout } = await run("script", ["--quiet", "--return", "--command", line, "/dev/null"], {
    env: { ...process.env, SHELL: "/bin/sh", OUT: out, ERRORS: errors },
  });
  const read = (file: string) => readFileSync(file, { encoding: "utf8", flag: "a+" });
  const [digest = "", shown = ""] = read(errors).trim().split(" ");
  return { terminal: stdout, output: read(out), digest, shown };
}

describe.skipIf(!hasTerminals)("the owner's token", () => {
  test("is shown where standard output is the terminal", async () => {
    const { terminal, digest, shown } = await inTerminal(`${LINE} 2> "$ERRORS"`);
    expect(shown).toBe("true");
    expect(digestOfToken(LINK.exec(terminal)?.[1] ?? "")).toBe(digest);
  });

  test("goes to the terminal of the session where standard output is a file, which tools could read", async () => {
    const { terminal, output, digest, shown } = await inTerminal(`${LINE} > "$OUT" 2> "$ERRORS"`);
    expect(shown).toBe("true");
    expect(output).toBe("ready\n");
    expect(digestOfToken(LINK.exec(terminal)?.[1] ?? "")).toBe(digest);
  });
});

test("without any terminal the owner's token is shown nowhere, and the caller is told", async () => {
  // A session of its own has no terminal.
  const { stdout, stderr } = await run("setsid", ["--wait", process.execPath, ...ARGS]);
  expect(stdout).toBe("ready\n");
  expect(stderr).toMatch(/^[0-9a-f]{64} false\n$/);
});
