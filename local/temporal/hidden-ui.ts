/**
 * Owns: where the Web UI of Temporal's server listens when TEMPORAL_UI switches it on, and where its page finds the
 * codec. People reach it through api/temporal-ui only.
 */
import { randomInt } from "node:crypto";
import { freePort } from "../ports.ts";

export type UiAddress = { readonly ip: string; readonly port: number };

/** The guarded UI listens here. */
export const UI_HOST = "127.0.0.1";

/** An address that no web page can guess. Linux listens on any address of 127.0.0.0/8. */
export async function hiddenAddress(): Promise<UiAddress> {
  const ip = `127.${randomInt(1, 255)}.${randomInt(256)}.${randomInt(1, 255)}`;
  return { ip, port: await freePort(ip) };
}

/** Where the page of the guarded UI on this port asks for payloads in clear; it adds `/decode`. */
export const codecOf = (port: number): string => `http://${UI_HOST}:${port}/api/codec`;
