/** Owns: which variables of the server's environment a command sees. An allowlist: the others may hold secrets. */

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

/** The environment of a command; `LC_*` included. */
export function commandEnvironment(source: NodeJS.ProcessEnv = process.env): Record<string, string> {
  const environment: Record<string, string> = { PATH: "/usr/local/bin:/usr/bin:/bin", TERM: "dumb" };
  for (const [name, value] of Object.entries(source)) {
    if (value !== undefined && (ALLOWED.has(name) || name.startsWith("LC_"))) environment[name] = value;
  }
  return { ...environment, ...FIXED };
}
