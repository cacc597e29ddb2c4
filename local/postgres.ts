/**
 * Owns: the embedded PostgreSQL of `npm start` and the tests: its data folder, its process, its socket.
 * Not here: what is in the database (db/).
 */

export type PostgresOptions = {
  /** Folder for the cluster; the data go to a subfolder named by the major version. */
  readonly dataDir: string;
  /** false: a crash may lose data, for tests. */
  readonly durable: boolean;
  /** Told one sentence a step. */
  readonly onProgress?: (sentence: string) => void;
};

export type RunningPostgres = {
  /** Of the database `bedrock`; for openDatabase. */
  readonly url: string;
  readonly pid: number;
  /** Ends the server, whoever started it, and waits until it is gone. */
  stop(): Promise<void>;
};

/** Starts the server on a data folder, or adopts the one that runs there already. */
export async function startPostgres(options: PostgresOptions): Promise<RunningPostgres> {
  throw new Error("todo");
}
