/**
 * Owns: commands that run another one, or a script, given as their arguments or as their input.
 */
import { parseArguments, type Grammar } from "./options.ts";

/** What a command runs besides itself. */
export type Inner = {
  readonly commands: readonly (readonly string[])[];
  readonly scripts: readonly { readonly text: string; readonly args: readonly string[] }[];
};

type Prefix = Omit<Grammar, "stopsAtOperand"> & {
  /** Operands of its own before the command. */
  readonly operands?: number;
  /** Options whose value is a script. */
  readonly script?: readonly string[];
};

const COMMAND = ["c", "command", "session-command"];

/** `sudo -u somebody COMMAND`: options, then another command. */
const PREFIXES: Readonly<Record<string, Prefix>> = {
  sudo: {
    short: "ughpCDRTUrt",
    long: ["user", "group", "host", "prompt", "chdir", "chroot", "other-user", "role", "type"],
  },
  doas: { short: "uC" },
  env: { short: "uCS", long: ["unset", "chdir", "split-string"], script: ["S", "split-string"] },
  nice: { short: "n", long: ["adjustment"] },
  ionice: { short: "cnpPu", long: ["class", "classdata"] },
  chrt: { operands: 1 },
  taskset: { operands: 1 },
  timeout: { short: "sk", long: ["signal", "kill-after"], operands: 1 },
  stdbuf: { short: "ioe", long: ["input", "output", "error"] },
  time: { short: "fo", long: ["format", "output"] },
  strace: { short: "eopsuaEIPSX" },
  chroot: { long: ["userspec", "groups"], operands: 1 },
  flock: {
    short: "wEc",
    long: ["timeout", "wait", "conflict-exit-code", "command"],
    operands: 1,
    script: COMMAND,
  },
  su: {
    short: "cgGsw",
    long: ["command", "group", "shell", "session-command"],
    operands: 1,
    script: COMMAND,
  },
  runuser: { short: "cgGlsuw", long: ["command", "group", "shell", "user"], script: COMMAND },
  script: { short: "cEIOBmo", long: ["command"], operands: 1, script: COMMAND },
  unshare: { short: "RwSG" },
  setpriv: { long: ["reuid", "regid", "groups", "pdeathsig"] },
  exec: { short: "a" },
  busybox: {},
  command: {},
  builtin: {},
  nohup: {},
  setsid: {},
  unbuffer: {},
  chronic: {},
};

const XARGS: Grammar = {
  short: "adEILnPs",
  long: ["arg-file", "delimiter", "max-lines", "max-args", "max-procs", "max-chars", "process-slot-var"],
  stopsAtOperand: true,
};
const SHELLS = new Set(["bash", "sh", "dash", "zsh", "ksh", "ash", "rbash"]);
const SHELL: Grammar = { short: "oO", long: ["rcfile", "init-file"], stopsAtOperand: true };

const none: Inner = { commands: [], scripts: [] };
const command = (fields: readonly string[]): Inner => ({ commands: [fields], scripts: [] });
const scripts = (texts: readonly string[], args: readonly string[] = []): Inner => ({
  commands: [],
  scripts: texts.map((text) => ({ text, args })),
});

/** The arguments of git up to the subcommand. */
export const GIT: Grammar = {
  short: "Cc",
  long: ["git-dir", "work-tree", "namespace", "super-prefix", "config-env", "exec-path", "attr-source"],
  stopsAtOperand: true,
};

const OTHERS = new Set(["eval", "watch", "trap", "source", ".", "find", "xargs", "git"]);

/** Whether a command of this name may run another one. */
export function runsOthers(path: string): boolean {
  const name = baseName(path);
  return Object.hasOwn(PREFIXES, name) || SHELLS.has(name) || OTHERS.has(name);
}

/** The name of a command without the folder it lies in. */
export const baseName = (name: string): string => name.slice(name.lastIndexOf("/") + 1);

/** @param input texts that the command reads, where they are known */
export function inside([path = "", ...args]: readonly string[], input: readonly string[]): Inner {
  const name = baseName(path);
  const prefix = Object.hasOwn(PREFIXES, name) ? PREFIXES[name] : undefined;
  if (prefix !== undefined) return insidePrefix(args, prefix);
  if (SHELLS.has(name)) return insideShell(args, input);
  switch (name) {
    case "eval":
    case "watch":
      return scripts([parseArguments(args, { short: "n", stopsAtOperand: true }).operands.join(" ")]);
    case "git":
      return insideGit(parseArguments(args, GIT).operands);
    case "trap":
      return scripts(parseArguments(args, {}).operands.slice(0, 1));
    case "source":
    case ".":
      return isInput(args[0]) ? scripts(input) : none;
    case "find":
      return { commands: executed(args), scripts: [] };
    case "xargs":
      return command([
        ...parseArguments(args, XARGS).operands,
        ...input.flatMap((text) => text.split(/\s+/)),
      ]);
    default:
      return none;
  }
}

function insideGit([subcommand, ...args]: readonly string[]): Inner {
  if (subcommand === "submodule" && args[0] === "foreach") {
    return scripts([parseArguments(args.slice(1), { stopsAtOperand: true }).operands.join(" ")]);
  }
  if (subcommand !== "rebase") return none;
  const { options } = parseArguments(args, { short: "x", long: ["exec", "onto", "strategy"] });
  return scripts(
    options.flatMap(({ name, value }) => (value !== null && ["x", "exec"].includes(name) ? [value] : [])),
  );
}

function insidePrefix(
  args: readonly string[],
  { operands: own = 0, script = [], ...grammar }: Prefix,
): Inner {
  const found = parseArguments(args, { ...grammar, stopsAtOperand: true });
  const { options } = found;
  // `su -` is an option without a letter.
  const operands = found.operands[0] === "-" ? found.operands.slice(1) : found.operands;
  // flock, su and script take their options after their operand, too.
  const later = parseArguments(operands.slice(own), { ...grammar, stopsAtOperand: true });
  const texts = [...options, ...later.options].flatMap(({ name, value }) =>
    script.includes(name) && value !== null ? [value] : [],
  );
  const start = later.operands.findIndex((operand) => !/^\w+=/.test(operand));
  const fields = start === -1 ? [] : later.operands.slice(start);
  return { ...scripts(texts), commands: fields.length === 0 ? [] : [fields] };
}

function insideShell(args: readonly string[], input: readonly string[]): Inner {
  // `+x` switches off what `-x` switches on.
  const { options, operands } = parseArguments(
    args.map((arg) => arg.replace(/^\+(?=\w)/, "-")),
    SHELL,
  );
  const [first, ...more] = operands;
  if (options.some(({ name }) => name === "c")) return first === undefined ? none : scripts([first], more);
  return first === undefined || isInput(first) || options.some(({ name }) => name === "s")
    ? scripts(input, ["", ...operands])
    : none;
}

const isInput = (file: string | undefined): boolean =>
  file === "-" || file === "/dev/stdin" || file === "/proc/self/fd/0";

/** The commands of `find`: `-exec COMMAND ;`. */
function executed(args: readonly string[]): string[][] {
  const found: string[][] = [];
  let open: string[] | null = null;
  for (const arg of args) {
    if (open === null) {
      if (/^-(exec|ok)(dir)?$/.test(arg)) open = [];
    } else if (arg === ";" || arg === "+") {
      found.push(open);
      open = null;
    } else open.push(arg);
  }
  return found;
}
