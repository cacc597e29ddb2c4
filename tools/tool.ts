/**
 * Owns: what a tool is: a static description for the model, a schema for its input, and a run that answers with a
 * result whatever happens.
 * Not here: which conversation has which tools (registry.ts).
 */
import { z } from "zod";
import type { PreparedImage } from "../images/prepare.ts";
import { WRITING_TOOLS } from "../machine/control-tools.ts";
import type { Mode } from "../machine/conversation.ts";
import type { Block, FileDiff, ImageBlock, Json, JsonObject } from "../machine/message.ts";
import { toModel } from "../machine/wording.ts";
import { isExpired, type Lease } from "../sandbox/lease.ts";

export type ToolContext = {
  /** The conversation's directory; where commands start and what relative paths are relative to (REQ-BED-010). */
  readonly cwd: string;
  readonly mode: Mode;
  /** A sub-agent cannot ask for another mode. */
  readonly isSubAgent: boolean;
  /** Folders of the server's own, absolute and without links: no tool that reads shows what is in them. */
  readonly hidden?: readonly string[];
  /** Ends the run at once; the result then holds what there was so far. */
  readonly signal: AbortSignal;
  /**
   * Nothing begins or goes on after its expiry, not even while this process is frozen. Without a lease there is no such
   * limit.
   */
  readonly lease?: Lease;
  /** Keeps an image and returns a reference to it. Without it, a run cannot show images. */
  readonly keepImage?: (image: PreparedImage) => Promise<ImageBlock>;
  /** Live output. Not rate limited here. */
  readonly onOutput?: (stream: "stdout" | "stderr", text: string) => void;
  /** The environment that a command sees; by default the allowlisted part of this process's. */
  readonly env?: Readonly<Record<string, string>>;
};

/** What ends a run. */
export type Cancellation = Pick<ToolContext, "signal" | "lease">;

/** Whether the run is cancelled or its lease has expired: nothing of it may take effect any more. */
export const isCancelled = ({ signal, lease }: Cancellation): boolean => signal.aborted || isExpired(lease);

/** To be called directly before an effect, because this process may have been frozen at any time before. */
export function assertGoesOn(ends: Cancellation): void {
  if (isCancelled(ends)) throw new ToolError("Stopped.");
}

export type ToolRun = {
  /** `interrupted`: stopped by the signal. */
  readonly status: "completed" | "failed" | "interrupted";
  readonly output: readonly Block[];
  /** How it changed files; the model does not get it. */
  readonly diffs?: readonly FileDiff[];
};

/** A text for the model of a person's conversation, and for that of a sub-agent, which has other tools. */
export type ByReader = { readonly user: string; readonly subAgent: string };

/** A tool whose input is not checked yet. */
export type Tool = {
  readonly name: string;
  readonly description: string;
  /** The end of the description: what to do where Restricted mode is in the way. */
  readonly whenRestricted?: ByReader;
  /** JSON Schema of an object. */
  readonly inputSchema: JsonObject & { readonly type: "object" };
  /** Never rejects: bad input and errors of the system are failed results. */
  readonly run: (input: Json, context: ToolContext) => Promise<ToolRun>;
};

type Definition<S extends z.ZodObject> = Pick<Tool, "name" | "description" | "whenRestricted"> & {
  readonly input: S;
  readonly run: (input: z.output<S>, context: ToolContext) => Promise<ToolRun>;
};

/** Thrown anywhere in a run: its message, a sentence for the model, is the failed result. */
export class ToolError extends Error {
  override readonly name = "ToolError";
}

/**
 * REQ-PATCH-009 for every tool that writes: in Restricted mode the machine does not even start one. If it did, the tool
 * would do nothing.
 */
export function defineTool<S extends z.ZodObject>(definition: Definition<S>): Tool {
  const { input: schema, run, ...described } = definition;
  const { name } = described;
  return {
    ...described,
    inputSchema: toJsonSchema(schema),
    async run(input, context) {
      if (context.mode === "restricted" && WRITING_TOOLS.includes(name)) {
        return failed(toModel.disabledInRestricted(name, context.isSubAgent));
      }
      const parsed = schema.safeParse(input);
      if (!parsed.success) return failed(`Invalid input for ${name}:\n${z.prettifyError(parsed.error)}`);
      if (isCancelled(context)) return interrupted("Stopped before it began.");
      try {
        return await run(parsed.data, context);
      } catch (error) {
        if (isCancelled(context)) return interrupted("Stopped.");
        return failed(explain(error));
      }
    },
  };
}

/** REQ-PATCH-009. */
export const DISABLED_WHEN_RESTRICTED: ByReader = {
  user: "Disabled in Restricted mode; use request_mode_upgrade to request write access.",
  subAgent: "Disabled in Restricted mode.",
};

/** Text for a file: half of a surrogate pair could not be written as it stands. */
export const wellFormed = (): z.ZodString =>
  z.string().refine((text) => text.isWellFormed(), "holds half of a character (a lone surrogate)");

/** The schema as the model reads it. */
export function toJsonSchema(schema: z.ZodObject): Tool["inputSchema"] {
  const described = z.toJSONSchema(schema, { io: "input" });
  delete described.$schema;
  return { ...(described as JsonObject), type: "object" };
}

export const completed = (text: string): ToolRun => answer("completed", text);
export const failed = (text: string): ToolRun => answer("failed", text);
export const interrupted = (text: string): ToolRun => answer("interrupted", text);

function answer(status: ToolRun["status"], text: string): ToolRun {
  return { status, output: [{ type: "text", text: text.trim() === "" ? "(no output)" : text }] };
}

const SYSTEM_ERRORS: Readonly<Record<string, string>> = {
  ENOENT: "does not exist",
  EACCES: "is not accessible: permission denied",
  EPERM: "is not accessible: operation not permitted",
  EISDIR: "is a directory",
  ENOTDIR: "is not a directory, or lies below something that is not",
  EROFS: "is on a read-only file system",
  ENOSPC: "cannot be written: no space is left",
  ELOOP: "is a loop of symbolic links",
  ENAMETOOLONG: "has too long a name",
};

/** A sentence for the model from an error of the system. */
function explain(error: unknown): string {
  if (!(error instanceof Error)) return "The tool failed.";
  if (error instanceof ToolError) return error.message;
  const { code, path } = error as NodeJS.ErrnoException;
  const sentence = code === undefined ? undefined : SYSTEM_ERRORS[code];
  return sentence === undefined ? `The tool failed: ${error.message}` : `${path ?? "The path"} ${sentence}.`;
}
