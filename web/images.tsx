/** Owns: images that a person adds by pasting, dropping or choosing, and images that the server has. */
import { useEffect, useMemo, useState } from "react";
import type { DraftImage } from "./drafts.ts";
import { useSession } from "./session.tsx";

/** What the server takes (docs/long-conversations.md). */
const TYPES = ["image/png", "image/jpeg", "image/gif", "image/webp"];
export const ACCEPTED = TYPES.join(",");
const MAX_BYTES = 10 * 1024 * 1024;

export type Chosen = { readonly images: readonly DraftImage[]; readonly problems: readonly string[] };

/** Those of the files that the server takes, and a sentence for each other one. */
export function chooseImages(files: Iterable<File>): Chosen {
  const images: DraftImage[] = [];
  const problems: string[] = [];
  for (const file of files) {
    const name = file.name === "" ? "The image" : file.name;
    if (!TYPES.includes(file.type)) problems.push(`${name} is not a PNG, JPEG, GIF or WebP image.`);
    else if (file.size > MAX_BYTES) problems.push(`${name} has more than 10 MB.`);
    else images.push({ mediaType: file.type, blob: file, name });
  }
  return { images, problems };
}

export function Thumbnails({
  images,
  onRemove,
}: {
  readonly images: readonly DraftImage[];
  readonly onRemove: (image: DraftImage) => void;
}) {
  if (images.length === 0) return null;
  return (
    <ul className="thumbnails" aria-label="Images of this message">
      {images.map((image, index) => (
        <li key={index}>
          <DraftThumbnail image={image} />
          <button aria-label={`Remove ${image.name}`} onClick={() => onRemove(image)}>
            ×
          </button>
        </li>
      ))}
    </ul>
  );
}

function DraftThumbnail({ image }: { readonly image: DraftImage }) {
  const url = useMemo(() => URL.createObjectURL(image.blob), [image]);
  useEffect(() => () => URL.revokeObjectURL(url), [url]);
  return <img src={url} alt={image.name} />;
}

type Stored = { readonly hash: string; readonly width: number; readonly height: number };

/** An image of a message. It is read with the token, which an `img` cannot send. */
export function StoredImage({
  conversationId,
  image,
}: {
  readonly conversationId: string;
  readonly image: Stored;
}) {
  const { bytes } = useSession();
  const [source, setSource] = useState<{ readonly url: string } | "failed" | null>(null);
  const { hash, width, height } = image;
  useEffect(() => {
    let url: string | null = null;
    let isWanted = true;
    bytes(`/api/conversations/${conversationId}/images/${hash}`).then(
      (blob) => {
        if (!isWanted) return;
        url = URL.createObjectURL(blob);
        setSource({ url });
      },
      () => setSource("failed"),
    );
    return () => {
      isWanted = false;
      if (url !== null) URL.revokeObjectURL(url);
    };
  }, [bytes, conversationId, hash]);
  if (source === "failed") return <span className="quiet">The image cannot be read.</span>;
  return (
    <a className="image" href={source?.url} target="_blank" rel="noreferrer">
      <img src={source?.url} width={width} height={height} alt={`Image, ${width} by ${height} pixels`} />
    </a>
  );
}
