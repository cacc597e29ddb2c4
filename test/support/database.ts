/** Owns: a database of its own for each test, made from the migrated template of the run (global-setup.ts). */

/** The url of a new, migrated, empty database; it is dropped when the test or suite that asked for it ends. */
export async function freshDatabase(): Promise<string> {
  throw new Error("todo");
}
