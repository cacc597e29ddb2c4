/**
 * Owns: what the searching tools have in common: where they search, how ripgrep is run and read line by line, and how
 * the end of a search is reported.
 */
import { realpath, stat } from "node:fs/promises";
import { basename, relative } from "node:path";
import { z } from "zod";
import { runCommand } from "../sandbox/command.ts";
import { confine } from "../sandbox/host.ts";
import { commandEnvironment } from "../sandbox/environment.ts";
import { compileGlob } from "./glob.ts";
import { isHidden, readablePath } from "./path.ts";
import {
  completed,
  failed,
  interrupted,
  isCancelled,
  ToolError,
  type ToolContext,
  type ToolRun,
} from "./tool.ts";

const TIMEOUT_SECONDS = 30;
/** UTF-16 code units of one line of ripgrep's output. Of a longer line only its existence is known. */
const MAX_LINE_CHARS = 1024 * 1024;
/** Bytes of ripgrep's error message. */
const MAX_ERROR_BYTES = 4 * 1024;

/** The same for every search: no configuration of the user's, a fixed order, .gitignore also outside a repository. */
const STANDARD = [
  "--no-config",
  "--no-messages",
  "--color=never",
  "--sort=path",
  "--hidden",
  "--no-require-git",
  "--glob=!.git",
];

/** A glob, from the root on, that leaves a path out of the search. */
const leaveOut = (path: string): string => `--glob=!${path.replace(/[*?[\]{}!\\]/g, "\\$&")}`;
/** Longer globs take long to interpret. */
export const MAX_GLOB_CHARS = 500;

/** The fields of a search's input that say where to search. */
export const WHERE = {
  path: z
    .string()
    .min(1)
    .optional()
    .describe("The file or directory to search, absolute or relative; default: the working directory"),
  glob: z
    .string()
    .min(1)
    .max(MAX_GLOB_CHARS)
    .optional()
    .describe(
      'Only files that this glob matches: "*.ts" by name, "src/**/*.ts" by path from the searched directory on',
    ),
};

export type Place = {
  /** Absolute and without links. */
  readonly path: string;
  /** The conversation's directory, without links. */
  readonly cwd: string;
  readonly isDirectory: boolean;
  /** What ripgrep must leave out. Its output is checked for it, because a path may look like another. */
  readonly hidden: readonly string[];
};

/** Where to search. Throws a ToolError, or an error of the system, if there is nothing that can be searched. */
export async function findPlace(path = ".", context: ToolContext): Promise<Place> {
  const real = await readablePath(path, context);
  // These are the files of all processes at once.
  if (real === "/proc" || real.startsWith("/proc/")) throw new ToolError(`${real} cannot be searched.`);
  const stats = await stat(real);
  if (!stats.isDirectory() && !stats.isFile()) throw new ToolError(`${real} is not a regular file.`);
  const { cwd, hidden = [] } = context;
  return { path: real, cwd: await realpath(cwd), isDirectory: stats.isDirectory(), hidden };
}

/** A path as the model reads it: relative to the conversation's directory if it lies below. */
export function shown({ cwd }: Place, path: string): string {
  const short = relative(cwd, path);
  return (short === ".." || short.startsWith("../") || short === "" ? path : short).replaceAll("\0", "");
}

export type Glob = {
  /** Tests an absolute path. A path matches only if it lies below the place and is not hidden. */
  readonly matches: (path: string) => boolean;
  /** With these arguments ripgrep leaves out most of what does not match. */
  readonly args: readonly string[];
};

/** A glob for the files below a place. */
export function globBelow(place: Place, glob: string | undefined): Glob {
  // If a name holds a newline, a line of ripgrep's output may look like another path.
  const isOf = (path: string): boolean =>
    (path === place.path || path.startsWith(place.path === "/" ? "/" : `${place.path}/`)) &&
    !isHidden(path, place.hidden);
  if (glob === undefined) return { matches: isOf, args: [] };
  const matches = compileGlob(glob);
  const name = glob.slice(glob.lastIndexOf("/") + 1);
  // ripgrep's globs bring back what .gitignore leaves out; its file types do not. Its ? stands for a byte.
  const directories = glob.slice(0, glob.length - name.length);
  const isPlain =
    /^[\w.*-]+(\{[\w.*-]+(,[\w.*-]+)*\})?$/.test(name) &&
    !name.includes("**") &&
    !/[{}[\]\\!]/.test(directories);
  return {
    matches: (path) => isOf(path) && matches(place.isDirectory ? relative(place.path, path) : basename(path)),
    args: isPlain ? [`--type-add=wanted:${name}`, "--type=wanted"] : [],
  };
}

export type Search = {
  readonly args: readonly string[];
  readonly place: Place;
  /** What to search instead of the whole place. */
  readonly paths?: readonly string[];
  /** Gets every line of output, or null in place of one that is too long. It returns `false` to end the search. */
  readonly onLine: (line: string | null) => boolean;
};

export type SearchEnd =
  | { readonly kind: "whole"; readonly note: string | null }
  | { readonly kind: "interrupted" }
  /** `note` says why the search did not reach its end. */
  | { readonly kind: "partial"; readonly note: string };

/**
 * Runs ripgrep. Throws a ToolError if it is missing, or, with ripgrep's message, if it does not accept its arguments.
 */
export async function search(
  { args, place, paths = [place.path], onLine }: Search,
  context: ToolContext,
): Promise<SearchEnd> {
  const enough = new AbortController();
  const lines = lineSplitter((line) => {
    if (!enough.signal.aborted && !onLine(line)) enough.abort();
  });
  let complaint = "";
  const confinement = context.mode === "restricted" ? await confine(place.hidden) : null;
  if (typeof confinement === "string") throw new ToolError(`Sandbox unavailable: ${confinement}`);
  const { exitCode, spawnError, timedOut, flooded } = await runCommand({
    confinement,
    argv: [
      "rg",
      ...STANDARD,
      // /proc is another file system, and lies below.
      ...(place.path === "/" ? ["--one-file-system"] : []),
      ...(context.hidden ?? []).map(leaveOut),
      ...args,
      "--",
      ...paths,
    ],
    // Globs with a leading slash begin here.
    cwd: "/",
    env: context.env ?? commandEnvironment(),
    signal: AbortSignal.any([context.signal, enough.signal]),
    ...(context.lease === undefined ? {} : { lease: context.lease }),
    timeoutMs: TIMEOUT_SECONDS * 1000,
    limitBytes: MAX_ERROR_BYTES,
    onOutput: (stream, text) => {
      if (stream === "stdout") lines.add(text);
      else if (complaint.length < MAX_ERROR_BYTES) complaint += text;
    },
  });
  if (isCancelled(context)) return { kind: "interrupted" };
  if (enough.signal.aborted) return { kind: "partial", note: "not searched further: narrow the search" };
  if (spawnError !== null) throw new ToolError(missing(spawnError));
  if (timedOut) return { kind: "partial", note: `stopped after ${TIMEOUT_SECONDS} s: narrow the search` };
  if (flooded) return { kind: "partial", note: "stopped after too much output: narrow the search" };
  lines.end();
  // ripgrep does not report what it cannot open or read: a message is about the search itself.
  if (complaint.trim() !== "") throw new ToolError(`ripgrep: ${complaint.slice(0, MAX_ERROR_BYTES).trim()}`);
  if (exitCode === null) return { kind: "partial", note: "the search was killed" };
  return { kind: "whole", note: exitCode > 1 ? "some files could not be read" : null };
}

function missing(spawnError: string): string {
  return spawnError.startsWith("rg:")
    ? "Searching needs ripgrep, and there is no rg command here. Install the package ripgrep, or search with bash."
    : `The search could not be started: ${spawnError}.`;
}

/** The answer of a search: what was found, or `nothing`, and whether that is all. */
export function answerSearch(end: SearchEnd, found: string, nothing: string): ToolRun {
  const text = found === "" ? nothing : found;
  switch (end.kind) {
    case "whole":
      return completed(end.note === null ? text : `${text}\n[${end.note}]`);
    case "interrupted":
      return interrupted(found === "" ? "Stopped." : found);
    case "partial":
      return (found === "" ? failed : completed)(`${text}\n[${end.note}]`);
  }
}

function lineSplitter(onLine: (line: string | null) => void) {
  let rest = "";
  let isTooLong = false;
  const extend = (part: string): void => {
    isTooLong ||= rest.length + part.length > MAX_LINE_CHARS;
    rest = isTooLong ? "" : rest + part;
  };
  const end = (): void => {
    if (isTooLong || rest !== "") onLine(isTooLong ? null : rest);
    rest = "";
    isTooLong = false;
  };
  return {
    add(text: string): void {
      let start = 0;
      for (let newline = text.indexOf("\n"); newline !== -1; newline = text.indexOf("\n", start)) {
        extend(text.slice(start, newline));
        end();
        start = newline + 1;
      }
      extend(text.slice(start));
    },
    end,
  };
}
