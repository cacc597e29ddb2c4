#!/usr/bin/env node
/** Owns: the program `bedrock` on a person's PATH. It runs cli/main.ts, compiled. Plain JavaScript, as run.mjs. */
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";

const modules = fileURLToPath(new URL("../node_modules/.bedrock-setup", import.meta.url));
if (!existsSync(modules)) {
  console.error(
    `The packages are not installed. Run once: npm run setup, in ${fileURLToPath(new URL("..", import.meta.url))}`,
  );
  process.exit(1);
}
process.argv.splice(2, 0, "cli/main.ts");
await import("../local/run.mjs");
