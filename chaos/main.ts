/**
 * `npm run chaos`: people talk with the product while everything that it consists of is killed, frozen and cut off; then
 * it is looked at what is left. `-- --seed 7` repeats a run, `-- --seeds 20` makes so many, `-- --short` a small one.
 */
import { parseArgs } from "node:util";
import { FULL, SHORT } from "./plan.ts";
import { run, type Verdict } from "./run.ts";

const { values } = parseArgs({
  options: { seed: { type: "string" }, seeds: { type: "string" }, short: { type: "boolean" } },
});
const first = values.seed === undefined ? Date.now() % 2 ** 31 : Number(values.seed);
const count = Number(values.seeds ?? 1);
if (!Number.isSafeInteger(first) || !Number.isSafeInteger(count))
  throw new Error("A seed is a whole number.");

const verdicts: Verdict[] = [];
for (let n = 0; n < count; n++) {
  const seed = first + n;
  console.log(`seed ${seed} (npm run chaos -- --seed ${seed}${values.short === true ? " --short" : ""})`);
  const verdict = await run({
    seed,
    size: values.short === true ? SHORT : FULL,
    say: (line) => console.log(`  ${line}`),
  });
  verdicts.push(verdict);
  print(verdict);
}
const failed = verdicts.filter(({ complaints }) => complaints.length > 0);
console.log(
  `${count - failed.length} of ${count} runs passed${failed.map(({ seed }) => `, ${seed} failed`).join("")}`,
);
process.exitCode = failed.length === 0 ? 0 : 1;

function print({ hits, complaints, messages, carriedOver, seconds }: Verdict): void {
  console.log("  | fault | with a tool under way | a request | a commit | all three |");
  for (const [name, { tool, request, commit, all }] of Object.entries(hits)) {
    console.log(`  | ${name} | ${tool} | ${request} | ${commit} | ${all} |`);
  }
  for (const complaint of complaints) console.log(`  ✗ ${complaint.slice(0, 2_000)}`);
  console.log(
    `  ${messages} messages in ${seconds} s, ${carriedOver} conversations under both releases: ${complaints.length === 0 ? "all is well" : "FAILED"}`,
  );
}
