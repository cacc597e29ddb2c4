/** What is known of the packages, by an `npm` that answers as the registry's service does. */
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { expect, test } from "vitest";
import { script, temporaryFolder } from "./support.ts";

const AUDIT = join(import.meta.dirname, "..", "..", "local", "audit.mjs");

/** Returns the exit code and what it says, where npm prints this. */
function audit(answer: string) {
  const folder = temporaryFolder();
  script(join(folder, "npm"), `cat <<'ANSWER'\n${answer}\nANSWER`);
  const { status, stdout } = spawnSync(process.execPath, [AUDIT], {
    env: { PATH: `${folder}:/usr/bin:/bin` },
    encoding: "utf8",
  });
  return { status, stdout };
}

const knows = (severity: string) =>
  JSON.stringify({ vulnerabilities: { old: { name: "old", severity, range: "<2" } } });

test.each([
  ["low", 0],
  ["moderate", 0],
  ["high", 1],
  ["critical", 1],
])("a vulnerability that is %s exits with %i, and is named", (severity, status) => {
  expect(audit(knows(severity))).toEqual({ status, stdout: `${severity}: old <2\n` });
});

test("no vulnerability says nothing", () => {
  expect(audit(JSON.stringify({ vulnerabilities: {} }))).toEqual({ status: 0, stdout: "" });
});

test("a registry that does not answer fails nothing, and that is said", () => {
  for (const answer of [JSON.stringify({ message: "405 Method Not Allowed" }), "", "<html>"]) {
    const { status, stdout } = audit(answer);
    expect(status).toBe(0);
    expect(stdout).toMatch(/^NOT ASKED: the registry does not say/);
  }
});
