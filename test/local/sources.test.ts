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
  const hasSettled = () => eventually("rest", () => Date.now() - statSync(file).ctimeMs > 1100);
  expect(await help()).toContain(SUMMARY);
  for (const summary of ["the conversations, newest fresh", "the conversations, newest there", SUMMARY]) {
    expect(summary).toHaveLength(SUMMARY.length);
    write(summary);
    expect(await help()).toContain(summary);
    await hasSettled();
    // Now nothing has to be read.
    expect(await help()).toContain(summary);
  }
  write("the conversations, newest last.");
  await hasSettled();
  expect(await help()).toContain("newest last.");
});
