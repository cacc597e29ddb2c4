/** Owns: the commands that are never run (REQ-BASH-007), one rule each. */
import { posix } from "node:path";
import { has, parseArguments, type Grammar } from "./options.ts";
import { baseName } from "./wrappers.ts";
import { asPattern } from "./words.ts";

const GIT: Grammar = {
  short: "Cc",
  long: ["git-dir", "work-tree", "namespace", "super-prefix", "config-env", "exec-path", "attr-source"],
  stopsAtOperand: true,
};
const PUSH: Grammar = { short: "o", long: ["push-option", "repo", "receive-pack", "exec"] };

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

function dangerOfAdd(args: readonly string[]): string | null {
  const { options, operands } = parseArguments(args, { long: ["chmod", "pathspec-from-file"] });
  const isBlind =
    has(options, "A", "all", "al") ||
    has(options, "", "no-ignore-removal", "no-ignore-r") ||
    operands.some((operand) => EVERYTHING.has(posix.normalize(asPattern(operand))));
  return isBlind
    ? "git add with -A, --all, . or * would stage whatever lies around. Name the files to add."
    : null;
}

/** As git's pathspecs: the last two begin at the top of the repository. */
const EVERYTHING = new Set([".", "./", "*", "./*", ":/", ":/*"]);

function dangerOfPush(args: readonly string[]): string | null {
  const { options, operands } = parseArguments(args, PUSH);
  const isForced = has(options, "f", "force", "force") || operands.some((ref) => ref.startsWith("+"));
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

/** The root, a home, the history of a repository; and everything in them, or here, or above. */
function isIrreplaceable(target: string, home: string): boolean {
  const path = posix.normalize(target).replace(/(?<=.)\/$/, "");
  const [folder, name] = [posix.dirname(path), posix.basename(path)];
  if (path === "/" || path === home || name === ".git") return true;
  if (!/^\.?\*+$/.test(name)) return false;
  return (
    folder === "/" || folder === home || posix.basename(folder) === ".git" || /^\.\.?(\/\.\.)*$/.test(folder)
  );
}
