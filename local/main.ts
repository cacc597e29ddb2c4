/**
 * Owns: the process of `npm start`: the user's signals, its output, its exit code. It prints one line `ready
 * http://HOST:PORT` on standard output when requests are answered.
 */
import { ConfigError, loadConfig, type Config, type Env } from "../config.ts";
import { createSystem, type System } from "./system.ts";
import { sentenceOf } from "./start-error.ts";

/** Milliseconds after which `npm start` kills everything, if an orderly stop hangs. */
const STOP_WITHIN = 9500;

const say = (line: string) => console.log(line);

export async function main(env: Env): Promise<void> {
  // When its output is no longer read, this process must not end and leave running everything that it started.
  for (const stream of [process.stdout, process.stderr]) stream.on("error", () => undefined);

  const system = createSystem(readConfig(env), say);
  let stopping: Promise<void> | null = null;
  const isStopping = () => stopping !== null;
  const stop = () => (stopping ??= stopInTime(system));

  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
    process.on(signal, () => {
      if (isStopping()) {
        system.kill();
        process.exit(1);
      }
      say("Stopping; once more stops at once");
      void stop().then(() => process.exit(0));
    });
  }

  try {
    const url = await system.start();
    say(`ready ${url}`);
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
