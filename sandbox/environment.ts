/** Owns: which variables of the server's environment a command sees. An allowlist: the others may hold secrets. */
import { createRequire } from "node:module";
import { dirname } from "node:path";

const ALLOWED = new Set([
  "PATH",
  "HOME",
  "USER",
  "LOGNAME",
  "SHELL",
  "LANG",
  "LANGUAGE",
  "TERM",
  "TMPDIR",
  "TZ",
]);

/** Nobody can page through a command's output or type a password. */
const FIXED = { PAGER: "cat", GIT_PAGER: "cat", GIT_TERMINAL_PROMPT: "0" } as const;

export const PACKAGED_PROGRAMS = packagedPrograms();

/** The environment of a command; `LC_*` included. PATH ends with the folder of the ripgrep that comes as a package. */
export function commandEnvironment(source: NodeJS.ProcessEnv = process.env): Record<string, string> {
  const environment: Record<string, string> = { TERM: "dumb" };
  for (const [name, value] of Object.entries(source)) {
    if (value !== undefined && (ALLOWED.has(name) || name.startsWith("LC_"))) environment[name] = value;
  }
  const { PATH = "/usr/local/bin:/usr/bin:/bin", ...others } = environment;
  return { ...others, PATH: [PATH, ...PACKAGED_PROGRAMS].join(":"), ...FIXED };
}

/** Empty where the package has no program for this platform, or was left out. */
function packagedPrograms(): readonly string[] {
  const { resolve } = createRequire(import.meta.url);
  try {
    return [dirname(resolve(`@vscode/ripgrep-${process.platform}-${process.arch}/bin/rg`))];
  } catch {
    return [];
  }
}
