/**
 * Owns: the file of tokens (API_TOKENS_FILE): reading it, and noticing that it has changed. It is looked at once a
 * second by its name, so that a file that was renamed into its place, or a link that leads elsewhere now, is noticed.
 * Not here: what a token is good for (access.ts).
 */
import { accessSync, constants, readFileSync, statSync } from "node:fs";
import { z } from "zod";
import { ROLES, type TokenEntry } from "../../protocol/access.ts";
import { PERSON_NAME } from "../../protocol/formats.ts";

/** Milliseconds between two looks. */
const LOOK_MS = 1_000;
/** A change within this many milliseconds may leave a file's time as it was: such a file is read again. */
const TIME_STEP_MS = 2_000;
const MOST_PER_MINUTE = 10_000_000;

const entry = z.strictObject({
  name: z
    .string()
    .regex(PERSON_NAME, "A name has 1 to 64 letters, digits and ._@-, the first a letter or a digit."),
  role: z.enum(ROLES, { error: `A role is one of ${ROLES.join(", ")}.` }),
  sha256: z.string().regex(/^[0-9a-f]{64}$/, "A digest has 64 lower-case hex digits."),
  requestsPerMinute: z.int().min(1).max(MOST_PER_MINUTE).optional(),
  expires: z.iso.datetime({ offset: true, error: "A time looks like 2027-01-31T00:00:00Z." }).optional(),
});

const content = z.strictObject({
  tokens: z.array(entry).superRefine((entries, context) => {
    for (const member of ["name", "sha256"] as const) {
      const values = entries.map((each) => each[member]);
      const twice = values.find((value, place) => values.indexOf(value) !== place);
      if (twice !== undefined) context.addIssue(`Two tokens have the ${member} ${twice}.`);
    }
  }),
});

/** @throws Error with a sentence that says what is wrong */
export function readTokensFile(file: string): readonly TokenEntry[] {
  const parsed = content.safeParse(jsonIn(file));
  if (parsed.success) return parsed.data.tokens;
  const [issue] = parsed.error.issues;
  throw new Error(`${file}: ${issue?.path.join(".") ?? ""}: ${issue?.message ?? "is not valid"}`);
}

function jsonIn(file: string): unknown {
  const text = read(file);
  try {
    return JSON.parse(text);
  } catch {
    throw new Error(`${file} is not JSON.`);
  }
}

function read(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch (error) {
    throw new Error(`${file} cannot be read (${codeOf(error)}).`, { cause: error });
  }
}

/** Whether a program of this process's user, a tool among them, can give itself a token there. */
export function isWritable(file: string): boolean {
  try {
    accessSync(file, constants.W_OK);
    return true;
  } catch {
    return false;
  }
}

export type TokensWatcher = {
  readonly onTokens: (entries: readonly TokenEntry[]) => void;
  /** The file cannot be used as it is now; called once for each reason. */
  readonly onProblem: (sentence: string) => void;
  /** Ends the watching. */
  readonly signal: AbortSignal;
};

/** Calls back whenever the file has changed. */
export function watchTokensFile(file: string, { onTokens, onProblem, signal }: TokensWatcher): void {
  let known = stateOf(file);
  let readAt = Date.now();
  let problem = "";
  const look = (): void => {
    const now = stateOf(file);
    if (now.id === known.id && now.changedAt + TIME_STEP_MS < readAt) return;
    [known, readAt] = [now, Date.now()];
    try {
      onTokens(readTokensFile(file));
      problem = "";
    } catch (error) {
      const sentence = (error as Error).message;
      if (sentence !== problem) onProblem(sentence);
      problem = sentence;
    }
  };
  const timer = setInterval(look, LOOK_MS).unref();
  signal.addEventListener("abort", () => clearInterval(timer));
}

/** What tells one content of the file from another, and its time in milliseconds; of a missing file, now. */
function stateOf(file: string): { readonly id: string; readonly changedAt: number } {
  try {
    const { dev, ino, size, mtimeMs, ctimeMs } = statSync(file);
    return { id: [dev, ino, size, mtimeMs, ctimeMs].join(), changedAt: Math.max(mtimeMs, ctimeMs) };
  } catch (error) {
    return { id: codeOf(error), changedAt: Date.now() };
  }
}

const codeOf = (error: unknown): string =>
  error instanceof Error && "code" in error ? String(error.code) : String(error);
