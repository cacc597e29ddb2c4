/**
 * Owns: whether this Node is new enough. Plain JavaScript without dependencies, in old words: an old Node has to
 * understand it.
 */
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const PACKAGE = join(dirname(fileURLToPath(import.meta.url)), "..", "package.json");

/** @returns {string | null} what to do, as a sentence; null: it is new enough */
export function nodeProblem() {
  const { engines } = JSON.parse(readFileSync(PACKAGE, "utf8"));
  const least = engines.node
    .match(/(\d+)\.(\d+)\.(\d+)/)
    .slice(1)
    .map(Number);
  const found = process.versions.node.split(".").map(Number);
  const difference = found.map((part, i) => part - least[i]).find((part) => part !== 0) || 0;
  if (difference >= 0) return null;
  return `Node ${least.join(".")} or newer is needed, this is ${process.versions.node}. Install it from https://nodejs.org and start again.`;
}
