/** Owns: an editor's prompt as a message: its text with what it mentions, and its images. Pure. */
import { ContentBlock } from "@agentclientprotocol/sdk/experimental/v2";

export type Prompt = {
  readonly text: string;
  readonly images: readonly { readonly mediaType: string; readonly data: string }[];
};

/** @param blocks of either version */
export function promptOf(blocks: readonly ContentBlock[]): Prompt {
  return {
    text: blocks
      .map(textOf)
      .filter((text) => text !== "")
      .join("\n"),
    images: blocks.filter(ContentBlock.isImage).map(({ mimeType, data }) => ({ mediaType: mimeType, data })),
  };
}

function textOf(block: ContentBlock): string {
  if (ContentBlock.isText(block)) return block.text;
  // The agent reads it itself: it works on the same files.
  if (ContentBlock.isResourceLink(block)) return pathOf(block.uri);
  if (!ContentBlock.isResource(block)) return "";
  const { resource } = block;
  const path = pathOf(resource.uri);
  return "text" in resource ? `${path}:\n\`\`\`\n${resource.text}\n\`\`\`` : path;
}

const pathOf = (uri: string): string =>
  uri.startsWith("file://") ? decodeURIComponent(uri.slice("file://".length)) : uri;
