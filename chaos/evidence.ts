/**
 * Owns: the evidence of a failed run: its complaints, its faults, the histories of the conversations in question, and
 * the logs.
 */
import { cpSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { historyToJSON } from "@temporalio/common/lib/proto-utils.js";
import type { Scene } from "./scene.ts";

const ROOT = join(import.meta.dirname, "..", "reports", "chaos");
const ID = /[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/g;

/** @returns the folder with the evidence */
export async function keepEvidence(
  seed: number,
  complaints: readonly string[],
  { product, journal }: Scene,
  logs: readonly string[],
): Promise<string> {
  const folder = join(ROOT, String(seed));
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, "complaints.txt"), complaints.join("\n"));
  writeFileSync(join(folder, "faults.txt"), journal.toString());
  for (const log of logs) cpSync(log, folder, { recursive: true, filter: (path) => !path.endsWith(".json") });
  const ids = new Set(complaints.flatMap((complaint) => complaint.match(ID) ?? []));
  for (const id of ids) {
    const history = await product.temporal.workflow.getHandle(id).fetchHistory().then(historyToJSON, String);
    writeFileSync(join(folder, `${id}.json`), history);
  }
  return folder;
}
