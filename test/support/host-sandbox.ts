/** Owns: whether a test of Restricted mode can run on this host. */
import { sandboxOfHost } from "../../sandbox/host.ts";

/** `abi` is Landlock's version. It is null if there is no sandbox, and then `reason` says why. */
export async function hostSandbox(): Promise<{
  readonly available: boolean;
  readonly abi: number | null;
  readonly reason: string | null;
}> {
  const sandbox = await sandboxOfHost();
  return sandbox.kind === "available"
    ? { available: true, abi: sandbox.abi, reason: null }
    : { available: false, abi: null, reason: sandbox.reason };
}
