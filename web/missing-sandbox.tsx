/** Owns: the warning that a host cannot enforce Restricted mode (docs/sandbox.md). */
import type { Conversation } from "../client/index.ts";

type Sandbox = Conversation["sandbox"];

export const NO_SANDBOX = "Restricted mode is not available on this host.";

export function MissingSandbox({ sandbox }: { readonly sandbox: Sandbox }) {
  if (sandbox.kind === "available") return null;
  return (
    <p className="missing-sandbox" role="note">
      <b>{NO_SANDBOX}</b> {sandbox.reason}{" "}
      {sandbox.kind === "unavailable" &&
        "The agent’s commands have your rights from the beginning, and it does not ask you before it changes something."}
    </p>
  );
}
