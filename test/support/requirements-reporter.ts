/**
 * Owns: the last lines of a run: the check of docs/requirements.md after a whole one, the tests that failed or needed a
 * second try, and the counts. Every test that the table names, for whatever state, must have run and passed. A skipped
 * test counts as missing.
 */
import { readFileSync } from "node:fs";
import { join, relative } from "node:path";
import type { Reporter, TestCase, TestModule, TestRunEndReason } from "vitest/node";

const ROOT = join(import.meta.dirname, "..", "..");
const TABLE = join(ROOT, "docs", "requirements.md");

export type Row = { readonly requirement: string; readonly state: string; readonly tests: readonly string[] };

/** The rows of the table. A test is `file › name`, the name with its groups joined by " > ". */
export function readTable(markdown: string): Row[] {
  return markdown
    .split("\n")
    .filter((line) => line.startsWith("| REQ-"))
    .map((line) => {
      const [, requirement = "", state = "", tests = ""] = line.split(/(?<!\\)\|/).map((cell) => cell.trim());
      const names = tests.split("<br>").map((name) => name.trim().replaceAll("\\|", "|"));
      return { requirement, state, tests: names.filter((name) => name !== "") };
    });
}

/** One sentence for each claim of the table that the run does not show. */
export function problemsOf(rows: readonly Row[], passed: ReadonlySet<string>): string[] {
  return rows.flatMap(({ requirement, state, tests }) => {
    if (state === "shown" && tests.length === 0) {
      return [`${requirement} is said to be shown, but names no test.`];
    }
    return tests
      .filter((test) => !passed.has(test))
      .map((test) => `${requirement}: did not run and pass: ${test}`);
  });
}

/** The test's name as the table has it, and the first line of what was wrong. */
function problemOf(name: string, test: TestCase): string {
  const [first = ""] = (test.result().errors?.[0]?.message ?? "").split("\n");
  return first === "" ? name : `${name}: ${first}`;
}

function checkTable(passed: ReadonlySet<string>): void {
  const rows = readTable(readFileSync(TABLE, "utf8"));
  const problems = problemsOf(rows, passed);
  const shown = rows.filter((row) => row.state === "shown").length;
  console.log(`\nrequirements: ${shown} of ${rows.length} shown, ${problems.length} claims not borne out`);
  for (const problem of problems) console.log(`  ${problem}`);
  if (problems.length > 0) process.exitCode = 1;
}

export default class RequirementsReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], _errors: readonly unknown[], reason: TestRunEndReason): void {
    if (reason === "interrupted") return;
    const passed = new Set<string>();
    const lines: string[] = [];
    let counts = { passed: 0, failed: 0, skipped: 0 };
    for (const module of modules) {
      const file = relative(ROOT, module.moduleId);
      for (const error of module.errors())
        lines.push(`failed: ${file}: ${error.message.split("\n")[0] ?? ""}`);
      for (const test of module.children.allTests()) {
        const { state } = test.result();
        const name = `${file} › ${test.fullName}`;
        if (state === "passed") passed.add(name);
        if (state === "failed") lines.push(`failed: ${problemOf(name, test)}`);
        // vitest.config.ts allows a second try in CI.
        if (test.diagnostic()?.flaky === true)
          lines.push(`passed on the second try: ${problemOf(name, test)}`);
        counts = { ...counts, [state]: counts[state as keyof typeof counts] + 1 };
      }
    }
    // A filter, by file or by name, runs a part of the tests, which cannot confirm the table.
    const isWhole = process.argv.slice(2).every((argument) => argument === "run");
    if (isWhole) checkTable(passed);
    for (const line of lines) console.log(line);
    console.log(`${counts.passed} passed, ${counts.failed} failed, ${counts.skipped} skipped`);
  }
}
