/** Owns: the connection to the provider. Retries, timeouts and logging are ours, not the SDK's (ask.ts). */
import Anthropic from "@anthropic-ai/sdk";
import { boundedFetch } from "./bounded-fetch.ts";

export type ProviderClient = Anthropic;

/** Longer than any answer takes. ask.ts watches event by event for a stall. */
const NO_TIMEOUT_MS = 24 * 60 * 60 * 1000;

/**
 * A client for all conversations of a process. It uses only the credential given here: no other is taken from the
 * environment or the disk.
 *
 * @param options.baseURL null for the provider's own address.
 */
export function createClient(options: {
  readonly apiKey: string;
  readonly baseURL: string | null;
}): ProviderClient {
  return new Anthropic({
    apiKey: options.apiKey,
    authToken: null,
    ...(options.baseURL === null ? {} : { baseURL: options.baseURL }),
    maxRetries: 0,
    timeout: NO_TIMEOUT_MS,
    fetch: boundedFetch,
    // An answer that is small on the wire may be large when it is unpacked.
    defaultHeaders: { "accept-encoding": "identity" },
    // The SDK would log text that it cannot parse, and that text is the conversation.
    logLevel: "off",
  });
}
