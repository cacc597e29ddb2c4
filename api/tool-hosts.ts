/** Owns: the tool host that a request names. */
import type { Deps } from "./deps.ts";
import { invalidRequest } from "./router.ts";

/**
 * The host; the default one where the request names none.
 *
 * @throws Problem `invalid_request`
 */
export function toolHostOf(
  { toolHost, toolHosts }: Pick<Deps, "toolHost" | "toolHosts">,
  wanted: string | undefined,
): string {
  if (wanted === undefined || toolHosts.includes(wanted)) return wanted ?? toolHost;
  const message = `There is no such tool host. There are: ${toolHosts.join(", ")}.`;
  throw invalidRequest([{ path: "host", message }]);
}
