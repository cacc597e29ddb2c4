/**
 * Owns: keeping the embedded Postgres running. It may be adopted from an earlier start, so its end is detected by
 * polling, not by an event.
 */
import { identify, isRunning, type ProcessIdentity } from "./process-identity.ts";
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

/** Milliseconds between two polls. */
const LOOK = 500;
const STOP_WITHIN = 2000;

export function keepPostgres(dataDir: string, say: (line: string) => void): KeptPostgres {
  let starting: Promise<RunningPostgres> | null = null;
  let running: { readonly server: RunningPostgres; readonly identity: ProcessIdentity | null } | null = null;
  let timer: NodeJS.Timeout | undefined;
  let stopping = false;

  const start = async (report: Report): Promise<RunningPostgres> => {
    starting = startPostgres({ dataDir, durable: true, onProgress: report });
    const server = await starting;
    running = { server, identity: identify(server.pid) };
    return server;
  };

  const look = async (): Promise<void> => {
    if (stopping) return;
    if (running?.identity == null || !isRunning(running.identity)) {
      say("Postgres ended and is started again");
      try {
        await withProgress("Postgres", { write: say }, start);
      } catch (error) {
        say(`Postgres cannot be started: ${sentenceOf(error)}`);
      }
    }
    timer = setTimeout(() => void look(), LOOK);
  };

  const kill = (): void => {
    stopping = true;
    clearTimeout(timer);
    const identity = running?.identity;
    // SIGQUIT: Postgres ends at once, and recovers when it is started again.
    if (identity != null && isRunning(identity)) process.kill(identity.pid, "SIGQUIT");
  };

  return {
    async start(report) {
      const server = await start(report);
      timer = setTimeout(() => void look(), LOOK);
      return server.url;
    },
    async stop() {
      stopping = true;
      clearTimeout(timer);
      const server = await starting?.catch(() => null);
      if (server == null) return;
      const late = setTimeout(kill, STOP_WITHIN);
      await server.stop();
      clearTimeout(late);
    },
    kill,
  };
}
