/** The rooms of docs/architecture.md: who may import whom. */
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { describe, expect, test } from "vitest";

const ROOT = join(import.meta.dirname, "..");

/** What each room may import of the others; itself is always allowed. Types count like values. */
const MAY_IMPORT: { readonly [room: string]: readonly string[] } = {
  machine: [],
  // The contract of the activities is types only; the bundle test would notice anything else.
  workflows: ["machine", "activities"],
  activities: ["machine", "workflows", "db", "llm", "tools", "sandbox", "images"],
  llm: ["machine", "images"],
  images: ["machine"],
  tools: ["machine", "sandbox", "images"],
  sandbox: [],
  db: ["machine"],
  api: ["machine", "workflows", "db", "llm", "images", "config.ts", "activities"],
  local: ["machine", "workflows", "db", "config.ts", "llm"],
};

const filesOf = (folder: string): string[] =>
  readdirSync(join(ROOT, folder), { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".ts"))
    .map((name) => join(folder, name));

/** The top-level folder or file of each relative import. */
function importsOf(file: string): string[] {
  const source = readFileSync(join(ROOT, file), "utf8");
  const specifiers = [...source.matchAll(/(?:from|import)\s*\(?\s*"(\.[^"]+)"/g)].map(
    (match) => match[1] ?? "",
  );
  return specifiers.map((specifier) => {
    const [room = ""] = relative(ROOT, resolve(ROOT, dirname(file), specifier)).split("/");
    return room;
  });
}

describe.each(Object.entries(MAY_IMPORT))("%s", (room, allowed) => {
  test.each(filesOf(room))("%s", (file) => {
    const strangers = importsOf(file).filter((imported) => imported !== room && !allowed.includes(imported));
    expect(strangers).toEqual([]);
  });
});

test("workflow code takes only types from the activities", () => {
  for (const file of filesOf("workflows")) {
    const source = readFileSync(join(ROOT, file), "utf8");
    const values = [...source.matchAll(/^import (?!type)[^;]*from "\.\.\/activities\//gm)];
    expect(values, file).toEqual([]);
  }
});

test("no source file is longer than 300 lines", () => {
  const long = Object.keys(MAY_IMPORT)
    .flatMap(filesOf)
    .filter((file) => readFileSync(join(ROOT, file), "utf8").split("\n").length > 300);
  expect(long).toEqual([]);
});
