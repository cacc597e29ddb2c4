/** Owns: adding the search attributes that the namespace lacks. The local server gets them as flags. */
import type { Connection } from "@temporalio/client";
import { SEARCH_ATTRIBUTES } from "../protocol/search-attributes.ts";

/** Its message names the command that adds what is missing: on some servers only an administrator may add it. */
export class MissingSearchAttributes extends Error {
  override readonly name = "MissingSearchAttributes";
}

/** Adds the missing search attributes; the namespace's other attributes stay. Throws MissingSearchAttributes. */
export async function ensureSearchAttributes(
  connection: Pick<Connection, "operatorService">,
  namespace: string,
): Promise<void> {
  const { customAttributes } = await connection.operatorService.listSearchAttributes({ namespace });
  const missing = Object.entries(SEARCH_ATTRIBUTES).filter(([name]) => !(name in customAttributes));
  if (missing.length === 0) return;
  try {
    await connection.operatorService.addSearchAttributes({
      namespace,
      searchAttributes: Object.fromEntries(missing),
    });
  } catch (error) {
    const flags = missing.map(([name]) => `--name ${name} --type Keyword`).join(" ");
    const reason = error instanceof Error ? error.message : String(error);
    throw new MissingSearchAttributes(
      `The Temporal namespace "${namespace}" lacks search attributes, and they could not be added (${reason}). ` +
        `Run: temporal operator search-attribute create --namespace ${namespace} ${flags}`,
      { cause: error },
    );
  }
}
