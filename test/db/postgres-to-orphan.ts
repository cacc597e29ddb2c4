/** A process for a test to kill: it starts PostgreSQL on a folder and prints the server's process id. */
import { startPostgres } from "../../local/postgres.ts";

const [, , dataDir = ""] = process.argv;
const { pid } = await startPostgres({ dataDir, durable: false });
console.log(pid);
setInterval(() => undefined, 60_000);
