/**
 * Owns: the proof that a thinking block comes from this server unchanged. The key is fixed, so a stored conversation is
 * still valid after a restart. It protects no secret; it only detects modified blocks.
 */
import { createHmac } from "node:crypto";

const KEY = "scripted model";

/** The signature of a thinking block with this text. */
export const signThinking = (thinking: string): string =>
  createHmac("sha256", KEY).update(`thinking\n${thinking}`).digest("base64");

export const isSigned = (thinking: string, signature: string): boolean =>
  signThinking(thinking) === signature;

/** The `data` of a redacted thinking block: the text, unreadable at a glance, and its signature. */
export function redact(thinking: string): string {
  return `${Buffer.from(thinking).toString("base64url")}.${signThinking(thinking)}`;
}

export function isRedacted(data: string): boolean {
  const [encoded = "", signature = ""] = data.split(".");
  return isSigned(Buffer.from(encoded, "base64url").toString(), signature);
}
