/**
 * Owns: which of a conversation's images go into a request (REQ-BED-013). The number of images in a request is bounded,
 * and so are their bytes. The oldest images are left out, and a text tells the model so.
 * Not here: how large a single image may be, which is bounded when it comes in (images/).
 */
import { type Block, blocksOf, type Message } from "../machine/message.ts";

/** Bytes of all images of a request: in base64 20 MiB of the 32 MB that the provider takes. */
export const MAX_IMAGES_BYTES = 15 * 1024 * 1024;

const LEFT_OUT = "(an earlier image, left out: a request cannot hold all images of this conversation)";
const UNSEEN = "(an image; this model cannot see images)";

/** The hashes of all images in these messages, each as often as it occurs, in their order. */
export function imagesIn(messages: readonly Message[]): string[] {
  return messages.flatMap((message) => blocksOf(message).flatMap(hashOf));
}

/**
 * The messages with the oldest images replaced by a line of text, if need be.
 *
 * When there is no room for one more image, half of the room is made free at once. So the sent history changes seldom,
 * and between the changes the provider finds it in its cache.
 *
 * @param sizes bytes of each image by its hash.
 * @param maxImages that the model takes.
 */
export function withinLimits(
  messages: readonly Message[],
  sizes: ReadonlyMap<string, number>,
  maxImages: number,
): readonly Message[] {
  const bytes = imagesIn(messages).map((hash) => sizes.get(hash) ?? 0);
  if (bytes.length === 0) return messages;
  let left = maxImages === 0 ? bytes.length : firstSent(bytes, maxImages);
  if (left === 0) return messages;
  const text = maxImages === 0 ? UNSEEN : LEFT_OUT;
  const replace = (block: Block): Block =>
    block.type === "image" && left-- > 0 ? { type: "text", text } : block;
  return messages.map((message) => {
    if (left <= 0 || blocksOf(message).every((block) => block.type === "text")) return message;
    return withBlocks(message, replace);
  });
}

/** The index of the first image that is sent. It depends only on what came before: more images never bring one back. */
function firstSent(bytes: readonly number[], maxImages: number): number {
  let first = 0;
  let sum = 0;
  for (const [index, size] of bytes.entries()) {
    sum += size;
    if (index - first < maxImages && sum <= MAX_IMAGES_BYTES) continue;
    // The newest image is always sent.
    while (first < index && (index - first >= maxImages / 2 || sum > MAX_IMAGES_BYTES / 2)) {
      sum -= bytes[first] ?? 0;
      first++;
    }
  }
  return first;
}

const hashOf = (block: Block): string[] => (block.type === "image" ? [block.hash] : []);

function withBlocks(message: Message, replace: (block: Block) => Block): Message {
  switch (message.type) {
    case "user":
      return { ...message, content: message.content.map(replace) };
    case "system":
      return { ...message, content: message.content.map(replace) };
    case "tool": {
      const [outcome] = message.content;
      return { ...message, content: [{ ...outcome, output: outcome.output.map(replace) }] };
    }
    case "agent":
    case "note":
    case "error":
    case "continuation":
    case "run_stop":
      return message;
  }
}
