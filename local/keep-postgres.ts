/** Owns: keeping the embedded Postgres running: it is started again when it dies, and ended with `npm start`. */
import { startPostgres, type RunningPostgres } from "./postgres.ts";
import { withProgress, type Report } from "./progress.ts";
import { sentenceOf } from "./start-error.ts";

export type KeptPostgres = {
  /** Resolves to its url when it answers; from then on it is started again when it dies. */
  start(report: Report): Promise<string>;
  /** Ends Postgres; after two seconds, at once. */
  stop(): Promise<void>;
  /** Ends it at once; the next start recovers. */
  kill(): void;
};

/** Milliseconds from its end, or from a start that failed, to the next start. */
const PAUSE = 300;
const STOP_WITHIN = 2000;

export function keepPostgres(dataDir: string, say: (line: string) => void): KeptPostgres {
  let latest: Promise<RunningPostgres> | null = null;
  let running: RunningPostgres | null = null;
  let timer: NodeJS.Timeout | undefined;
  let stopping = false;

  const start = async (report: Report): Promise<RunningPostgres> => {
    latest = startPostgres({ dataDir, durable: true, onProgress: report });
    const server = await latest;
    running = server;
    void server.ended.then(() => {
      if (stopping) return;
      say("Postgres ended and is started again");
      startAgain();
    });
    return server;
  };

  const startAgain = (): void => {
    if (stopping) return;
    timer = setTimeout(() => {
      withProgress("Postgres", { write: say }, start).catch((error: unknown) => {
        say(`Postgres cannot be started: ${sentenceOf(error)}`);
        startAgain();
      });
    }, PAUSE);
  };

  const kill = (): void => {
    stopping = true;
    clearTimeout(timer);
    running?.kill();
  };

  return {
    async start(report) {
      return (await start(report)).url;
    },
    async stop() {
      stopping = true;
      clearTimeout(timer);
      const server = await latest?.catch(() => null);
      if (server == null) return;
      const late = setTimeout(kill, STOP_WITHIN);
      await server.stop();
      clearTimeout(late);
    },
    kill,
  };
}
