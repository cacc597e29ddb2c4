/**
 * Owns: the process of `npm start`: the user's signals, the end of npm, its output, its exit code. It prints one line
 * `ready http://HOST:PORT` on standard output when requests are answered.
 */
import { ConfigError, loadConfig, type Config, type Env } from "../config.ts";
import { isAtLeast } from "../protocol/access.ts";
import { isParent, npmIn, untilGone } from "./npm.ts";
import { makeOwnerToken } from "./owner-token.ts";
import { createSystem, type System } from "./system.ts";
import { sentenceOf } from "./start-error.ts";

/** Milliseconds after which `npm start` kills everything, if an orderly stop hangs. */
const STOP_WITHIN = 9500;

/**
 * Milliseconds in which a second signal counts as the first. A terminal's Ctrl-C reaches npm and this process, and npm
 * passes it on. Who kills npm may signal this process next.
 */
const ECHO = 1000;

const say = (line: string) => console.log(line);

/** There is no terminal, so nobody could read the owner's token. */
const HOW_TO_APPROVE =
  "approve  needs a token, and there is no terminal to show one. Give your own: API_TOKEN_FILE with ANONYMOUS_ROLE=talk, or API_TOKENS_FILE (docs/security.md)";

/** @param args `--ends-with=PID` for a start by npm: stops when npm, the process PID, has ended */
export async function main(env: Env, args: readonly string[]): Promise<void> {
  // When its output is no longer read, this process must not end and leave running everything that it started.
  for (const stream of [process.stdout, process.stderr]) stream.on("error", () => undefined);

  const npm = npmIn(args);
  // npm ended during the setup.
  if (npm !== null && !isParent(npm)) process.exit(1);

  const config = readConfig(env);
  const owner = needsOwnerToken(config) ? makeOwnerToken() : null;
  const ownerTokenDigest = owner?.digest ?? config.ownerTokenDigest;
  const system = createSystem({ ...config, ownerTokenDigest }, say);
  let stopping: Promise<void> | null = null;
  const isStopping = () => stopping !== null;
  const stop = () => (stopping ??= stopInTime(system));
  const end = (line: string): void => {
    say(line);
    void stop().then(() => process.exit(0));
  };

  let signalled = Number.NEGATIVE_INFINITY;
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
    process.on(signal, () => {
      if (npm !== null && performance.now() - signalled < ECHO) return;
      signalled = performance.now();
      if (isStopping()) {
        system.kill();
        process.exit(1);
      }
      end("Stopping; once more stops at once");
    });
  }
  if (npm !== null)
    void untilGone(npm).then(() => {
      if (isStopping()) return;
      signalled = performance.now();
      end("npm has ended: stopping");
    });

  try {
    const url = await system.start();
    say(`ready ${url}`);
    if (owner?.show(url) === false) say(HOW_TO_APPROVE);
  } catch (error) {
    // A start that fails because of a stop prints nothing.
    if (isStopping()) return;
    console.error(sentenceOf(error));
    await stop();
    process.exit(1);
  }
}

function stopInTime(system: System): Promise<void> {
  const late = setTimeout(() => system.kill(), STOP_WITHIN);
  return system.stop().finally(() => clearTimeout(late));
}

function readConfig(env: Env): Config {
  try {
    return loadConfig(env);
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    for (const problem of error.problems) console.error(problem);
    process.exit(1);
  }
}

/** Where nobody else could approve. */
const needsOwnerToken = ({ ownerTokenDigest, apiTokensFile, anonymousRole }: Config): boolean =>
  ownerTokenDigest === null &&
  apiTokensFile === null &&
  !(anonymousRole !== null && isAtLeast(anonymousRole, "approve"));
