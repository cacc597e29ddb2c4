/**
 * Owns: the process of `npm start`: the person's signals, what is printed, the exit code. Standard output gets one line
 * `ready http://HOST:PORT` when requests are answered.
 */
import { ConfigError, loadConfig, type Config, type Env } from "../config.ts";
import { createSystem, type System } from "./system.ts";
import { sentenceOf } from "./start-error.ts";

/** Its own deadline, should an orderly end hang somewhere; in milliseconds. */
const STOP_WITHIN = 9500;

const say = (line: string) => console.log(line);

export async function main(env: Env): Promise<void> {
  // Nobody reads any more: no reason to end here, and to leave everything running that was started.
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
    // A start that fails because it is being stopped has nothing to say.
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
