/** Owns: what both versions of the protocol say in the same words. */
import type { Conversation } from "../client/index.ts";
import type { Approval } from "../client/outcome.ts";

export const AGENT = { name: "bedrock", title: "Bedrock", version: "0.1.0" };

const MODES = [
  { id: "restricted", name: "Restricted", description: "Reads, and changes nothing: by the kernel." },
  { id: "unrestricted", name: "Unrestricted", description: "Its commands have your rights." },
] as const;

/** Without the sandbox there is one. */
export const modesOf = ({ sandbox }: Conversation): (typeof MODES)[number][] =>
  MODES.filter(({ id }) => id === "unrestricted" || sandbox.kind === "available");

const TOOL_KINDS: Readonly<Record<string, "execute" | "read" | "search" | "edit" | "think" | "switch_mode">> =
  {
    bash: "execute",
    read: "read",
    ls: "read",
    grep: "search",
    find: "search",
    keyword_search: "search",
    write: "edit",
    edit: "edit",
    patch: "edit",
    think: "think",
    request_mode_upgrade: "switch_mode",
  };

/** What kind of thing a tool does. */
export const toolKindOf = (name: string): (typeof TOOL_KINDS)[string] | "other" =>
  TOOL_KINDS[name] ?? "other";

type Decision = "approve" | "deny";

export const questionOf = ({ reason }: Approval): string => `Leave Restricted mode: ${reason}`;

/** Single decisions only: an editor may remember others, and answer by itself. */
export const DECISIONS: { optionId: Decision; name: string; kind: "reject_once" | "allow_once" }[] = [
  { optionId: "deny", name: "Deny: stay in Restricted mode", kind: "reject_once" },
  { optionId: "approve", name: "Allow: commands have your rights", kind: "allow_once" },
];

/** Null: the person decided nothing. */
export const decisionOf = (optionId: string): Decision | null =>
  DECISIONS.find((option) => option.optionId === optionId)?.optionId ?? null;
