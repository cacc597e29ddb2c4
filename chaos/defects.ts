/** Owns: defects that a run must find. If a run passes with one of them, the run proves nothing. */
import type { Edit } from "./sources.ts";

export type Defect = {
  readonly name: string;
  readonly edits: readonly Edit[];
  /** false: the standby of a team's Postgres may be behind what was answered. */
  readonly synchronous?: false;
  /** The complaint that it must lead to; anything else does not count. */
  readonly shows: RegExp;
};

const COMMIT = "db/migrations/0004_spending.sql";

/** A commit is applied whatever the row says, and answers every operation that the row waits for it. */
const FENCE_OFF: Defect = {
  name: "fence off",
  shows: /told of \d+ times|ran \d+ times| began |revision \d+ in its workflow|its workflow says/,
  edits: [
    {
      file: COMMIT,
      from: "    existed := FOUND;\n",
      to: `    existed := FOUND;
    IF existed AND jsonb_array_length(p -> 'revisions') > 0 THEN
      r.revision := (p #>> '{revisions,0,number}')::bigint - 1;
      r.revision_id := p #>> '{revisions,0,previous}';
    END IF;
`,
    },
    {
      file: COMMIT,
      from: `        "cycleId" text, "createdAt" timestamptz);`,
      to: `        "cycleId" text, "createdAt" timestamptz)
      ON CONFLICT DO NOTHING;`,
    },
    {
      file: COMMIT,
      from: "  IF jsonb_typeof(claimant) = 'object' AND claimant ->> 'operationId' = awaited THEN",
      to: `  awaited := coalesce(claimant ->> 'operationId', awaited);
  IF jsonb_typeof(claimant) = 'object' AND claimant ->> 'operationId' = awaited THEN`,
    },
    {
      file: COMMIT,
      from: "    granted := (claimant",
      to: "    granted := true OR (claimant",
    },
  ],
};

/** A stopped tool is reported at once, and dies a little later. */
const IDLE_BEFORE_THE_KILL: Defect = {
  name: "idle before the kill",
  shows: /: at rest, and .* alive$/,
  edits: [
    {
      file: "activities/tools.ts",
      from: "  const result = await liveTexts.during(conversationId, shown, (live) =>\n",
      to: `  const late = new AbortController();
  const stopped = new Promise<Awaited<ReturnType<typeof runTool>>>((resolve) => {
    ends.signal.addEventListener("abort", () => {
      setTimeout(() => late.abort(), 250);
      resolve({ status: "interrupted", output: [] });
    });
  });
  const tool = liveTexts.during(conversationId, shown, (live) =>\n`,
    },
    {
      file: "activities/tools.ts",
      from: "      ...ends,\n",
      to: "      ...ends,\n      signal: late.signal,\n",
    },
    {
      file: "activities/tools.ts",
      from: "  const durationMs = Math",
      to: "  const result = await Promise.race([tool, stopped]);\n  const durationMs = Math",
    },
  ],
};

export const DEFECTS: readonly Defect[] = [FENCE_OFF, IDLE_BEFORE_THE_KILL];

/** A commit is answered before the standby has it, and is lost with the primary. */
const ASYNCHRONOUS_STANDBY: Defect = {
  name: "asynchronous standby",
  shows: /is there 0 times|has no row|revision \d+ in its workflow|its workflow says|heard \d+ events/,
  edits: [],
  synchronous: false,
};

export const TEAM_DEFECTS: readonly Defect[] = [ASYNCHRONOUS_STANDBY];
