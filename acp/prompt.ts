/** Owns: an editor's prompt as a message: its text with what it mentions, and its images. Pure. */
import type { ContentBlock } from "@agentclientprotocol/sdk";

export type Prompt = {
  readonly text: string;
  readonly images: readonly { readonly mediaType: string; readonly data: string }[];
};

export function promptOf(blocks: readonly ContentBlock[]): Prompt {
  return {
    text: blocks
      .map(textOf)
      .filter((text) => text !== "")
      .join("\n"),
    images: blocks.flatMap((block) =>
      block.type === "image" ? [{ mediaType: block.mimeType, data: block.data }] : [],
    ),
  };
}

function textOf(block: ContentBlock): string {
  switch (block.type) {
    case "text":
      return block.text;
    // The agent reads it itself: it works on the same files.
    case "resource_link":
      return pathOf(block.uri);
    case "resource":
      return "text" in block.resource
        ? `${pathOf(block.resource.uri)}:\n\`\`\`\n${block.resource.text}\n\`\`\``
        : pathOf(block.resource.uri);
    case "image":
    case "audio":
      return "";
  }
}

const pathOf = (uri: string): string =>
  uri.startsWith("file://") ? decodeURIComponent(uri.slice("file://".length)) : uri;
