/** Owns: the connection to the provider. Retries, timeouts and logging are ours, not the SDK's (ask.ts). */
import Anthropic from "@anthropic-ai/sdk";
import { boundedFetch } from "./bounded-fetch.ts";

export type ProviderClient = Anthropic;

/** Beyond any answer: what may stall is watched event by event (ask.ts). */
const NO_TIMEOUT_MS = 24 * 60 * 60 * 1000;

/**
 * A client for all conversations of a process. Nothing but what is given here is used: no other credential is taken
 * from the environment or the disk.
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
    // What is small on the wire may be large when it is unpacked.
    defaultHeaders: { "accept-encoding": "identity" },
    // The SDK would log what it cannot parse, which is the conversation.
    logLevel: "off",
  });
}
