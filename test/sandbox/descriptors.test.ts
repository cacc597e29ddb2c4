/** Descriptors that a worker inherited open, from any parent, do not reach its commands. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, openSync } from "node:fs";
import { expect, test } from "vitest";

/** Node closes the descriptors that it inherits in its children, but not those behind a gap. */
const BEHIND_A_GAP = 40;

test("an Unrestricted command gets no descriptor that its worker had inherited", async () => {
  const file = openSync(import.meta.filename, "r");
  const stdio = Array.from({ length: BEHIND_A_GAP + 1 }, (_, fd) => (fd === BEHIND_A_GAP ? file : "ignore"));
  const worker = spawn(
    process.execPath,
    ["--import", "tsx", `${import.meta.dirname}/doomed-worker.ts`, "ls -l /proc/self/fd", "unrestricted"],
    { stdio: ["ignore", "pipe", "inherit", ...stdio.slice(3)] },
  );
  closeSync(file);
  let open = "";
  worker.stdout?.on("data", (chunk: Buffer) => (open += chunk.toString()));
  await once(worker, "close");
  expect(open).toContain(" 2 -> ");
  expect(open).not.toContain(import.meta.filename);
});
