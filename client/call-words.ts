/** Owns: a tool call in a person's words: what kind of thing it does, and to what. Pure. */
import type { Call } from "./transcript.ts";

/** "Listed a directory"; for a tool of another name, that name. */
export function labelOf(call: Call): string {
  switch (call.name) {
    case "ls":
      return "Listed a directory";
    case "grep":
    case "keyword_search":
      return "Searched";
    case "find":
      return "Looked for files";
    case "read":
      return "Read 1 file";
    case "patch":
      return "Patched files";
    case "think":
      return "Thought";
    case "request_mode_upgrade":
      return "Asked to leave Restricted mode";
    case "submit_result":
      return "Submitted its result";
    default:
      return call.name;
  }
}

/** "Allowed by ada", "Denied"; null: nothing was decided on the call. */
export function decisionOf({ decided }: Call): string | null {
  if (decided === null) return null;
  const by = decided.by === undefined ? "" : ` by ${decided.by}`;
  return `${decided.decision === "approve" ? "Allowed" : "Denied"}${by}`;
}

/**
 * What a call is about: its command, path, pattern or query; empty where its input has none.
 *
 * @param short writes a path for the place where it is shown
 */
export function subjectOf(call: Call, short: (path: string) => string): string {
  const path = textIn(call, "path");
  switch (call.name) {
    case "bash":
      return textIn(call, "command");
    case "grep":
    case "find":
      return [textIn(call, "pattern"), path === "" ? "" : `in ${short(path)}`].join(" ").trim();
    case "keyword_search":
      return textIn(call, "query");
    case "request_mode_upgrade":
      return textIn(call, "reason");
    default:
      return path === "" ? "" : short(path);
  }
}

/** A text field of a call's input; the model may have left it out. */
export function textIn({ input }: Call, field: string): string {
  if (typeof input !== "object" || input === null || Array.isArray(input)) return "";
  const value = (input as { readonly [name: string]: unknown })[field];
  return typeof value === "string" ? value : "";
}
