/** That a program always runs what its sources say, although they are not read at each start (local/sources.mjs). */
import { execFile, execFileSync } from "node:child_process";
import { readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { checkout } from "../support/checkout.ts";
import { eventually } from "./support.ts";

const SUMMARY = "the conversations, newest first";

test("a change is seen that keeps the size and the time of a file", async () => {
  const root = checkout({});
  const file = join(root, "cli", "main.ts");
  const help = async () =>
    (await promisify(execFile)(process.execPath, [join(root, "cli", "bedrock.mjs"), "--help"])).stdout;
  const write = (summary: string) => {
    const before = `${root}/before`;
    execFileSync("touch", ["-r", file, before]);
    writeFileSync(file, readFileSync(file, "utf8").replace(/the conversations, newest \w+/, summary));
    // To the nanosecond.
    execFileSync("touch", ["-r", before, file]);
  };
  expect(await help()).toContain(SUMMARY);
  const others = ["the conversations, newest fresh", "the conversations, newest there"] as const;
  expect(new Set([SUMMARY, ...others].map(({ length }) => length)).size).toBe(1);
  for (const summary of others) {
    write(summary);
    expect(await help()).toContain(summary);
    // Now it is known without reading.
    await eventually("rest", () => Date.now() - statSync(file).ctimeMs > 1100);
    expect(await help()).toContain(summary);
    write(SUMMARY);
    expect(await help()).toContain(SUMMARY);
  }
});
