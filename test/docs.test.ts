/** The pages: the tests that they name exist, and their links lead somewhere. */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, test } from "vitest";

const ROOT = join(import.meta.dirname, "..");
const PAGES = ["README.md", ...readdirSync(join(ROOT, "docs")).map((name) => `docs/${name}`)].filter((name) =>
  name.endsWith(".md"),
);
const read = (page: string): string => readFileSync(join(ROOT, page), "utf8");

/** As GitHub makes them of headings. */
const anchorsOf = (page: string): ReadonlySet<string> =>
  new Set(
    [...read(page).matchAll(/^#{1,6} (.+)$/gm)].map(([, heading = ""]) =>
      heading
        .toLowerCase()
        .replaceAll(/[^\p{L}\p{N} _-]/gu, "")
        .replaceAll(" ", "-"),
    ),
  );

describe.each(PAGES)("%s", (page) => {
  const text = read(page);

  test("names tests that exist", () => {
    const named = [...text.matchAll(/\btest\/[\w./-]*\w/g)].map(([path]) => path);
    expect(
      named.filter((path) => !existsSync(join(ROOT, path)) && !existsSync(join(ROOT, `${path}.test.ts`))),
    ).toEqual([]);
  });

  test("has links that lead somewhere", () => {
    const broken = [...text.matchAll(/\]\(([^)\s]+)\)/g)].flatMap(([, target = ""]) => {
      if (/^https?:/.test(target)) return [];
      const [path = "", anchor] = target.split("#");
      const file = path === "" ? page : join(dirname(page), path);
      if (!existsSync(join(ROOT, file))) return [target];
      return anchor === undefined || anchorsOf(file).has(anchor) ? [] : [target];
    });
    expect(broken).toEqual([]);
  });
});
