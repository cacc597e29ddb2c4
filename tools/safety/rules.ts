/** Owns: the commands that are never run (REQ-BASH-007), one rule each. */
import { posix } from "node:path";
import { has, parseArguments, type Grammar } from "./options.ts";
import { baseName, GIT } from "./wrappers.ts";
import { asPattern } from "./words.ts";

const PUSH: Grammar = { short: "o", long: ["push-option", "repo", "receive-pack", "exec"] };

/** Whether there are rules for commands of this name. */
export const isRuled = (path: string): boolean => ["git", "rm"].includes(baseName(path));

/** @returns why this command is not run, in a sentence with what to do instead; null for any other command */
export function dangerOf([path = "", ...args]: readonly string[], home: string): string | null {
  switch (baseName(path)) {
    case "git": {
      const [subcommand, ...rest] = parseArguments(args, GIT).operands;
      if (subcommand === "add" || subcommand === "stage") return dangerOfAdd(rest);
      return subcommand === "push" ? dangerOfPush(rest) : null;
    }
    case "rm":
      return dangerOfRemoval(args, home);
    default:
      return null;
  }
}

/** Options with which git stages no file that it does not know yet, or asks about each, or stages nothing at all. */
const CAREFUL = [
  ["u", "update"],
  ["p", "patch"],
  ["i", "interactive"],
  ["e", "edit"],
  ["n", "dry-run"],
  ["N", "intent-to-add"],
  ["", "refresh"],
] as const;

function dangerOfAdd(args: readonly string[]): string | null {
  const { options, operands } = parseArguments(args, { long: ["chmod", "pathspec-from-file"] });
  const isCareful = CAREFUL.some(([letter, name]) => has(options, letter, name, name.slice(0, 2)));
  if (isCareful) return null;
  const paths = operands.map((operand) => asPattern(operand));
  const isBlind =
    has(options, "A", "all", "al") ||
    has(options, "", "no-ignore-removal", "no-ignore-r") ||
    paths.some(isEverything) ||
    (paths.length > 0 && paths.every((path) => /^:[!^]|^:\(exclude\)/.test(path)));
  return isBlind
    ? "git add with -A, --all, . or * would stage whatever lies around. Name the files to add."
    : null;
}

/** Whether git's pathspec means everything here, above, or from the top of the repository on. */
const isEverything = (path: string): boolean =>
  /^(\.\.\/)*(\.{1,2}|\.?\*+(\/\*+)*)\/?$/.test(
    posix.normalize(path.replace(/^:(\/|\(top\))?(?=.|$)/, "") || "."),
  );

function dangerOfPush(args: readonly string[]): string | null {
  const { options, operands } = parseArguments(args, PUSH);
  if (has(options, "n", "dry-run", "dr")) return null;
  const isForced =
    has(options, "f", "force", "force") ||
    has(options, "", "mirror", "mi") ||
    operands.some((ref) => ref.startsWith("+"));
  return isForced
    ? "A forced git push can destroy commits of others. Use --force-with-lease, or ask the user to push."
    : null;
}

function dangerOfRemoval(args: readonly string[], home: string): string | null {
  const { options, operands } = parseArguments(args, {});
  if (!has(options, "rR", "recursive", "r") || !has(options, "f", "force", "f")) return null;
  const all = operands.find((operand) => isIrreplaceable(operand, posix.normalize(home)));
  return all === undefined
    ? null
    : `rm -rf ${all} would delete far more than can be made again. Name exactly what is to be deleted, one by one, or ask the user to do it.`;
}

/**
 * Whether a path is the root, a home, directly below one of them, or the history of a repository, or means everything
 * in that history, here, or above.
 */
function isIrreplaceable(target: string, home: string): boolean {
  const path = posix.normalize(target).replace(/(?<=.)\/$/, "");
  const name = posix.basename(path);
  const folder = posix.dirname(path).replace(/(^|\/)\*\*(?=\/|$)/g, "$1.");
  if (path === "/" || path === home || meansHistory(name)) return true;
  // A person's documents, projects and settings, and the parts of the system.
  if (folder === home || folder === "/") return true;
  // Another name means everything only if it consists of nothing but wildcards: `*`, `.*`, `?*`, `.[!.]*`.
  if (!/^(\[[!^]\.\]|[.?*])*\*$/.test(name)) return false;
  return posix.basename(folder) === ".git" || /^\.\.?(\/\.\.?)*$/.test(folder);
}

/** Whether a name is `.git`, or a pattern for names with a leading dot that matches it. */
function meansHistory(name: string): boolean {
  if (!/^\.g?i?t?\*$/.test(name)) return name === ".git";
  return name !== ".*";
}
