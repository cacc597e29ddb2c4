#!/usr/bin/env node
/** Owns: the program `bedrock` on a person's PATH. It runs cli/main.ts, compiled. Plain JavaScript, as run.mjs. */
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { nodeProblem } from "../local/node-version.mjs";

const modules = fileURLToPath(new URL("../node_modules/.bedrock-setup", import.meta.url));
const problem =
  nodeProblem() ??
  (existsSync(modules)
    ? null
    : `The packages are not installed. Run once: npm run setup, in ${fileURLToPath(new URL("..", import.meta.url))}`);
if (problem !== null) {
  console.error(problem);
  process.exit(1);
}
process.argv.splice(2, 0, "cli/main.ts");
await import("../local/run.mjs");
