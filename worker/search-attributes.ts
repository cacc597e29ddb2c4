/** Owns: adding the search attributes that the namespace lacks. The local server gets them as flags. */
import type { Connection } from "@temporalio/client";
import { SEARCH_ATTRIBUTES } from "../protocol/search-attributes.ts";

/** Its message says what an administrator can do: on some servers nobody else may add search attributes. */
export class SearchAttributeError extends Error {
  override readonly name = "SearchAttributeError";
}

/** Adds the missing search attributes; the namespace's other attributes stay. Throws SearchAttributeError. */
export async function ensureSearchAttributes(
  connection: Pick<Connection, "operatorService">,
  namespace: string,
): Promise<void> {
  const { customAttributes } = await connection.operatorService.listSearchAttributes({ namespace });
  const ours = Object.entries(SEARCH_ATTRIBUTES);
  // The server may refuse what a workflow writes to an attribute of another type, and no conversation would go on.
  const others = ours.flatMap(([name, type]) =>
    name in customAttributes && Number(customAttributes[name]) !== type ? [name] : [],
  );
  if (others.length > 0) {
    throw new SearchAttributeError(
      `The Temporal namespace "${namespace}" has these search attributes with another type than Keyword: ${others.join(", ")}. ` +
        `Set TEMPORAL_NAMESPACE to another namespace, or remove them: temporal operator search-attribute remove ` +
        `--namespace ${namespace} ${others.map((name) => `--name ${name}`).join(" ")}`,
    );
  }
  const missing = ours.filter(([name]) => !(name in customAttributes));
  if (missing.length === 0) return;
  try {
    await connection.operatorService.addSearchAttributes({
      namespace,
      searchAttributes: Object.fromEntries(missing),
    });
  } catch (error) {
    const flags = missing.map(([name]) => `--name ${name} --type Keyword`).join(" ");
    const reason = error instanceof Error ? error.message : String(error);
    throw new SearchAttributeError(
      `The Temporal namespace "${namespace}" lacks search attributes, and they could not be added (${reason}). ` +
        `Run: temporal operator search-attribute create --namespace ${namespace} ${flags}`,
      { cause: error },
    );
  }
}
