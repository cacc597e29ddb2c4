/**
 * Owns: the formats and size limits of what crosses a process boundary, each defined once.
 * Temporal takes at most 2 MiB in one piece and 4 MiB in one answer to a workflow task. A larger transition would block
 * its conversation for ever, or the server would end the workflow. So each part is bounded where it comes in, and the
 * largest transition fits: a response, its calls once more in the state, a result for each call, and the waiting
 * messages (machine/size.ts; test/workflows/large.test.ts).
 */

/** An id that a client may choose (docs/http.md, General). */
export const CLIENT_ID = /^[A-Za-z0-9_-]{1,64}$/;
/** The name of a token, its person's or program's. It stands in messages, so it is a plain word. */
export const PERSON_NAME = /^[A-Za-z0-9][\w.@-]{0,63}$/;
/** The name of an image: SHA-256 of its bytes. */
export const IMAGE_HASH = /^[0-9a-f]{64}$/;
/** Images of one message. */
export const MAX_MESSAGE_IMAGES = 20;

/** Bytes of any text that a client sends, in UTF-8. */
export const MAX_TEXT_BYTES = 256 * 1024;
/** Bytes of a message's text as JSON, where control characters take six. */
export const MAX_MESSAGE_JSON_BYTES = 384 * 1024;
/** Bytes of one response of the model as JSON. */
export const MAX_RESPONSE_BYTES = 768 * 1024;
/** Bytes of all inputs of one response's calls as JSON; further calls are not executed. */
export const MAX_CALLS_BYTES = 320 * 1024;
/** Calls of one response, and characters of a call's name: each call gets a result, which names it. */
export const MAX_CALLS = 256;
export const MAX_CALL_NAME_LENGTH = 200;
/** UTF-16 code units of a request's or a command's live text that are kept while it goes on: the last ones. */
export const KEPT_LIVE_CHARS = 256 * 1024;
