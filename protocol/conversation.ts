/** Owns: what is fixed when a conversation is created and never changes (REQ-BED-009, 010, 014, 022). */

/** The result of the probe on the conversation's host. `reason` says why the sandbox is missing. */
export type Sandbox = {
  readonly available: boolean;
  readonly abi: number | null;
  readonly reason: string | null;
};

export type ConversationConfig = {
  readonly id: string;
  /** Absolute path on `host`. */
  readonly cwd: string;
  readonly host: string;
  readonly model: string;
  /** The answers come from the built-in scripted model. */
  readonly scripted: boolean;
  readonly sandbox: Sandbox;
  readonly parentId: string | null;
  readonly continuedFrom: string | null;
  readonly userInitiated: boolean;
};
