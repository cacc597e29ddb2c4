/**
 * `npm run chaos`: virtual users talk with the product while all its processes are killed, frozen and cut off. Then the
 * final check looks at what is left. `-- --seed 7` repeats a run, `-- --seeds 20` makes 20 runs, `-- --short` makes a
 * small one. `-- --fault "fill disk"` makes a small one with this fault alone (or several). `-- --hostile` lets
 * neighbours attack ordinary conversations. `-- --team` makes a run of a team on several hosts. `-- --prove` puts
 * defects into the product and looks for a run that finds them; so does `-- --team --prove`.
 */
import { parseArgs } from "node:util";
import { DEFECTS, TEAM_DEFECTS } from "./defects.ts";
import { FAULTS, type FaultName } from "./faults.ts";
import { runHostile } from "./hostile.ts";
import { FULL, PROOF, SHORT, smallWith, type Size } from "./plan.ts";
import { run, type Verdict } from "./run.ts";
import { runTeam, TEAM, TEAM_PROOF, TEAM_SHORT } from "./team-run.ts";

/** Runs for each defect; if none of them finds it, it counts as not found. */
const PROOF_SEEDS = 10;

const { values } = parseArgs({
  options: {
    seed: { type: "string" },
    seeds: { type: "string", default: "1" },
    short: { type: "boolean", default: false },
    fault: { type: "string", multiple: true, default: [] },
    prove: { type: "boolean", default: false },
    hostile: { type: "boolean", default: false },
    team: { type: "boolean", default: false },
  },
});
const named = values.seed === undefined ? null : Number(values.seed);
const count = Number(values.seeds);
if (!Number.isSafeInteger(named ?? 0) || !Number.isSafeInteger(count)) {
  console.error("A seed, and a number of seeds, is a whole number.");
  process.exit(2);
}
const isFault = (name: string): name is FaultName => FAULTS.some((each) => each === name);
const chosen = values.fault.filter(isFault);
if (chosen.length < values.fault.length) {
  console.error(`A fault is one of: ${FAULTS.join("; ")}.`);
  process.exit(2);
}
const size: Size = chosen.length > 0 ? smallWith(chosen) : values.short ? SHORT : FULL;
const options = [
  ...(values.team ? [" --team"] : []),
  ...(values.short ? [" --short"] : []),
  ...chosen.map((name) => ` --fault "${name}"`),
].join("");
/** A run, as the options say. */
const perform = (seed: number): Promise<Verdict> =>
  values.team
    ? runTeam({ seed, size: values.short ? TEAM_SHORT : TEAM, say }, interrupted.signal)
    : run({ seed, size, say }, interrupted.signal);
/** The seed of a run: from the clock, or counted up from the given one. */
const seedOf = (run: number): number => (named === null ? Date.now() % 2 ** 31 : named + run);

class Interrupted extends Error {}
const interrupted = new AbortController();
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
  process.once(signal, () => {
    console.log("Stopping what was started");
    interrupted.abort(new Interrupted());
  });
}
// A mistake of the run itself must not leave its processes running.
for (const mistake of ["unhandledRejection", "uncaughtException"] as const)
  process.on(mistake, (error: unknown) => interrupted.abort(error));

try {
  process.exitCode = (await (values.hostile ? hostile() : values.prove ? prove() : runSeeds())) ? 0 : 1;
} catch (error) {
  if (!(error instanceof Interrupted)) console.error(error);
  // The virtual users of a run that broke off would go on for ever.
  process.exit(1);
}

async function runSeeds(): Promise<boolean> {
  const verdicts: Verdict[] = [];
  for (let i = 0; i < count; i++) {
    const seed = seedOf(i);
    console.log(`seed ${seed} (npm run chaos -- --seed ${seed}${options})`);
    const verdict = await perform(seed);
    print(verdict);
    verdicts.push(verdict);
  }
  if (count > 1) printTogether(verdicts);
  const passed = verdicts.filter(({ complaints }) => complaints.length === 0).length;
  console.log(`${passed} of ${count} runs passed`);
  return passed === count;
}

async function hostile(): Promise<boolean> {
  const seed = seedOf(0);
  console.log(`seed ${seed} (npm run chaos -- --hostile --seed ${seed})`);
  const { complaints } = await runHostile({ seed, say }, interrupted.signal);
  for (const complaint of complaints) say(`✗ ${complaint.slice(0, 500)}`);
  say(complaints.length === 0 ? "all is well" : `${complaints.length} complaints: FAILED`);
  return complaints.length === 0;
}

/** Each defect must be found by one of the seeds. */
async function prove(): Promise<boolean> {
  let isProven = true;
  for (const { name, shows, ...defect } of values.team ? TEAM_DEFECTS : DEFECTS) {
    let found: string | undefined;
    for (let i = 0; i < PROOF_SEEDS && found === undefined; i++) {
      const seed = seedOf(i);
      console.log(`"${name}", seed ${seed}`);
      const { complaints } = await (values.team
        ? runTeam({ seed, size: TEAM_PROOF, say, ...defect }, interrupted.signal)
        : run({ seed, size: PROOF, say, ...defect }, interrupted.signal));
      found = complaints.find((complaint) => shows.test(complaint));
    }
    console.log(found === undefined ? `"${name}" was NOT found` : `"${name}" was found: ${found}`);
    isProven &&= found !== undefined;
  }
  return isProven;
}

function say(line: string): void {
  console.log(`  ${line}`);
}

function print({ hits, complaints, messages, carriedOver, outcomes, interruptions, seconds }: Verdict): void {
  say(
    Object.entries(hits)
      .map(([name, times]) => `${name}: ${times}`)
      .join(", "),
  );
  say(
    [...Object.entries(outcomes), ["interrupted by a restart and asked for again", interruptions] as const]
      .map(([outcome, times]) => `${times} ${outcome}`)
      .join(", "),
  );
  for (const complaint of complaints) say(`✗ ${complaint.slice(0, 2_000)}`);
  say(
    `${messages} messages in ${seconds} s${
      values.team ? "" : `, ${carriedOver} conversations under both releases`
    }: ${complaints.length === 0 ? "all is well" : "FAILED"}`,
  );
}

/** Prints one line for each run, with the hits of the fault that hit least often. */
function printTogether(verdicts: readonly Verdict[]): void {
  const shared = values.team ? "messages" : "under both releases";
  console.log(`| seed | turns that failed | ${shared} | hits of each fault | s | |`);
  console.log("| - | - | - | - | - | - |");
  for (const { seed, outcomes, messages, carriedOver, hits, seconds, complaints } of verdicts) {
    const least = Math.min(...Object.values(hits));
    const verdict = complaints.length === 0 ? "passed" : "FAILED";
    const cells = [
      ...[seed, outcomes["failed"] ?? 0, values.team ? messages : carriedOver],
      ...[least, seconds, verdict],
    ];
    console.log(`| ${cells.join(" | ")} |`);
  }
}
