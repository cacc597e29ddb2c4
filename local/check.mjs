/**
 * Owns: `npm run check`: types, lint, format, unused code and known vulnerabilities of packages, at the same time; each
 * reports for itself.
 */
import { spawn } from "node:child_process";
import { join } from "node:path";

const ROOT = join(import.meta.dirname, "..");
const CHECKS = {
  types: ["tsc", "-p", "."],
  "types of the page": ["tsc", "-p", "web"],
  "types of its tests": ["tsc", "-p", "test/web"],
  lint: ["eslint", "."],
  format: ["prettier", "--check", "."],
  unused: ["knip", "--no-progress"],
  packages: ["node", "local/audit.mjs"],
};

const results = await Promise.all(Object.entries(CHECKS).map(([name, command]) => check(name, command)));
const failed = results.filter((result) => !result.passed).map((result) => result.name);
console.log(
  failed.length === 0 ? `passed: ${Object.keys(CHECKS).join(", ")}` : `failed: ${failed.join(", ")}`,
);
process.exitCode = failed.length === 0 ? 0 : 1;

function check(name, [program, ...args]) {
  const startedAt = Date.now();
  const path = program === "node" ? process.execPath : join(ROOT, "node_modules", ".bin", program);
  const child = spawn(path, args, {
    cwd: ROOT,
    stdio: ["ignore", "pipe", "pipe"],
  });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (chunk) => (output += chunk));
  return new Promise((resolve) => {
    child.once("error", (error) => (output += error.message));
    child.once("close", (code) => {
      const passed = code === 0;
      console.log(
        `${passed ? "ok    " : "FAILED"} ${name} (${((Date.now() - startedAt) / 1000).toFixed(1)} s)`,
      );
      // A linter that passes may still have hints, and what is known of packages may be harmless.
      if (!passed || (["lint", "packages"].includes(name) && output !== "")) console.log(output.trimEnd());
      resolve({ name, passed });
    });
  });
}
