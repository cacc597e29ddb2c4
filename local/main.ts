/**
 * Owns: the process of `npm start`: the person's signals, what is printed, the exit code. Standard output gets one line
 * `ready http://HOST:PORT` when requests are answered.
 */
import { ConfigError, loadConfig, type Config } from "../config.ts";
import { createLauncher } from "./launcher.ts";
import { sentenceOf } from "./start-error.ts";

/** Its own deadline, should an orderly end hang somewhere; in milliseconds. */
const STOP_WITHIN = 9500;

const say = (line: string) => console.log(line);

// Nobody reads any more: no reason to end here, and to leave everything running that was started.
for (const stream of [process.stdout, process.stderr]) stream.on("error", () => undefined);

const config = readConfig();
const launcher = createLauncher(config, say);

let stopping: Promise<void> | null = null;

for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
  process.on(signal, () => {
    if (isStopping()) {
      launcher.kill();
      process.exit(1);
    }
    say("Stopping; once more stops at once");
    void stop().then(() => process.exit(0));
  });
}

try {
  const url = await launcher.start();
  say(`ready ${url}`);
} catch (error) {
  // A start that fails because it is being stopped has nothing to say.
  if (!isStopping()) {
    console.error(sentenceOf(error));
    await stop();
    process.exit(1);
  }
}

function isStopping(): boolean {
  return stopping !== null;
}

function stop(): Promise<void> {
  const late = setTimeout(() => launcher.kill(), STOP_WITHIN);
  stopping ??= launcher.stop().finally(() => clearTimeout(late));
  return stopping;
}

function readConfig(): Config {
  try {
    return loadConfig(process.env);
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    for (const problem of error.problems) console.error(problem);
    process.exit(1);
  }
}
