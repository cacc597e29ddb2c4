/**
 * Owns: the check of docs/requirements.md. At the end of a full run every test that the table names, for whatever
 * state, must have run and passed. A skipped test counts as missing.
 */
import { readFileSync } from "node:fs";
import { join, relative } from "node:path";
import type { Reporter, TestModule, TestRunEndReason } from "vitest/node";

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

export default class RequirementsReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], _errors: readonly unknown[], reason: TestRunEndReason): void {
    // A filter, by file or by name, runs a part of the tests, which cannot confirm the table.
    const isWhole = process.argv.slice(2).every((argument) => argument === "run");
    if (!isWhole || reason === "interrupted") return;
    const passed = new Set<string>();
    let counts = { passed: 0, failed: 0, skipped: 0 };
    for (const module of modules) {
      for (const test of module.children.allTests()) {
        const { state } = test.result();
        if (state === "passed") passed.add(`${relative(ROOT, module.moduleId)} › ${test.fullName}`);
        counts = { ...counts, [state]: counts[state as keyof typeof counts] + 1 };
      }
    }
    const rows = readTable(readFileSync(TABLE, "utf8"));
    const problems = problemsOf(rows, passed);
    const shown = rows.filter((row) => row.state === "shown").length;
    console.log(`\nrequirements: ${shown} of ${rows.length} shown, ${problems.length} claims not borne out`);
    for (const problem of problems) console.log(`  ${problem}`);
    if (problems.length > 0) process.exitCode = 1;
    console.log(`${counts.passed} passed, ${counts.failed} failed, ${counts.skipped} skipped`);
  }
}
