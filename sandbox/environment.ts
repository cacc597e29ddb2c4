/** Owns: what of the server's environment a command gets to see. An allowlist: the rest may hold secrets. */

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

/** Nobody is there to page through output or to type a password. */
const FIXED = { PAGER: "cat", GIT_PAGER: "cat", GIT_TERMINAL_PROMPT: "0" } as const;

/** The environment of a command; `LC_*` included. */
export function commandEnvironment(source: NodeJS.ProcessEnv = process.env): Record<string, string> {
  const environment: Record<string, string> = { PATH: "/usr/local/bin:/usr/bin:/bin", TERM: "dumb" };
  for (const [name, value] of Object.entries(source)) {
    if (value !== undefined && (ALLOWED.has(name) || name.startsWith("LC_"))) environment[name] = value;
  }
  return { ...environment, ...FIXED };
}
