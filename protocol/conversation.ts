/** Owns: what is fixed when a conversation is created and never changes (REQ-BED-009, 010, 014, 022). */
import type { Mode, Sandbox } from "../machine/conversation.ts";

export type ConversationConfig = {
  readonly id: string;
  /** Absolute path on `host`. */
  readonly cwd: string;
  readonly host: string;
  readonly model: string;
  /** The answers come from the built-in scripted model. */
  readonly scripted: boolean;
  /** As found when the conversation was created. A downgrade and a sub-agent ask the host again. */
  readonly sandbox: Sandbox;
  /** The mode that it began in. The system prompt names it, because nothing in a prompt may change. */
  readonly initialMode: Mode;
  readonly parentId: string | null;
  readonly continuedFrom: string | null;
  readonly userInitiated: boolean;
};
