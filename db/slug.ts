/** Owns: the slug that is made of a title. */

const SLUG_LENGTH = 60;

/** Lower-case ASCII letters and digits joined by hyphens; never empty. Not unique by itself. */
export function slugFrom(title: string): string {
  const slug = title
    .normalize("NFKD")
    .replace(/\p{M}/gu, "")
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, "-")
    .slice(0, SLUG_LENGTH)
    .replace(/^-+|-+$/g, "");
  return slug === "" ? "conversation" : slug;
}
