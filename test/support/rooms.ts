/**
 * Owns: which rooms may import each other, and what docs/architecture.md says of the files: the map of the imports and
 * the ways. `npm run map` draws the map anew; the tests compare it.
 */
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";

/**
 * The rooms from the bottom to the top, each with the rooms below that it may import. A room may always import itself.
 * Types count like values. So there is no import cycle, and no import upwards.
 */
export const MAY_IMPORT: { readonly [room: string]: readonly string[] } = {
  machine: [],
  protocol: ["machine"],
  observability: ["machine", "protocol"],
  workflows: ["machine", "protocol"],
  sandbox: [],
  images: ["machine"],
  db: ["machine", "protocol", "observability"],
  llm: ["machine", "protocol", "images"],
  tools: ["machine", "sandbox", "images"],
  activities: ["machine", "protocol", "observability", "db", "llm", "tools", "sandbox"],
  "config.ts": ["machine", "protocol", "observability", "llm"],
  worker: ["machine", "protocol", "observability", "db"],
  "worker.ts": [
    "machine",
    "protocol",
    "observability",
    "db",
    "llm",
    "tools",
    "sandbox",
    "activities",
    "config.ts",
    "worker",
  ],
  api: ["machine", "protocol", "observability", "db", "llm", "images", "config.ts"],
  // It imports only the API's checks: Temporal's Web UI is behind the same checks. Of the sandbox, the numbers of system
  // calls.
  local: ["machine", "protocol", "observability", "sandbox", "db", "api", "config.ts"],
  client: ["machine", "protocol", "api"],
  web: ["machine", "client"],
  acp: ["machine", "client"],
  // Of images, only how a format is recognised.
  cli: ["machine", "protocol", "images", "config.ts", "local", "client", "acp"],
};

/** Rooms of whose code another has nothing when it runs. */
export const ONLY_TYPES_OF: { readonly [room: string]: readonly string[] } = { client: ["api"] };

export const ROOMS = Object.keys(MAY_IMPORT);

const ROOT = join(import.meta.dirname, "..", "..");
const PAGE = join(ROOT, "docs", "architecture.md");
const MAP = /(?<=<!-- map of the rooms -->\n\n)```mermaid\n.*?```/s;

/** The TypeScript files of a room: a folder, or a file. */
export const filesOf = (room: string): string[] =>
  room.endsWith(".ts")
    ? [room]
    : readdirSync(join(ROOT, room), { recursive: true, encoding: "utf8" })
        .filter((name) => /\.tsx?$/.test(name))
        .map((name) => join(room, name));

export const sourceOf = (file: string): string => readFileSync(join(ROOT, file), "utf8");

/** The top-level folder or file of each relative import. */
export const importsOf = (file: string): string[] => importsIn(sourceOf(file), file);

/** The same, without those of types. */
export const valueImportsOf = (file: string): string[] =>
  importsIn(sourceOf(file).replaceAll(/^(?:import|export) type [^;]*;/gm, ""), file);

function importsIn(source: string, file: string): string[] {
  const specifiers = source.matchAll(/(?:from|import)\s*\(?\s*"(\.[^"]+)"/g);
  return [...specifiers].map(([, specifier = ""]) => {
    const [room = ""] = relative(ROOT, resolve(ROOT, dirname(file), specifier)).split("/");
    return room;
  });
}

/** Draws an arrow for each import between rooms, without the arrows that follow from two others. */
export function drawMap(): string {
  const imported = new Map(ROOMS.map((room) => [room, new Set(filesOf(room).flatMap(importsOf))]));
  const reaches = (from: string, to: string): boolean =>
    from === to || ROOMS.some((next) => next !== from && has(from, next) && reaches(next, to));
  const has = (from: string, to: string): boolean => imported.get(from)?.has(to) === true;
  const arrows = ROOMS.flatMap((room) => {
    const below = ROOMS.filter((other) => other !== room && has(room, other));
    return below
      .filter((other) => !below.some((between) => between !== other && reaches(between, other)))
      .map((other) => `  ${room} --> ${other}`);
  });
  return ["```mermaid", "flowchart TD", ...arrows, "```"].join("\n");
}

export const mapInPage = (): string | undefined => MAP.exec(readFileSync(PAGE, "utf8"))?.[0];

export function writeMap(map: string): void {
  writeFileSync(
    PAGE,
    readFileSync(PAGE, "utf8").replace(MAP, () => map),
  );
}

/** A way of docs/architecture.md, "The ways, file by file". */
export type Way = {
  readonly name: string;
  /** How many files it says it has; null: it does not say. */
  readonly stated: number | null;
  /** The files that it names, each once; a name that no file has stays as it is written. */
  readonly files: readonly string[];
};

export function waysInPage(): readonly Way[] {
  const [, section = ""] = /^## The ways, .*?\n(.*?)^## /ms.exec(readFileSync(PAGE, "utf8")) ?? [];
  return [...section.matchAll(/^- \*\*(.*?)\*\*(?: \((\d+) files\))?(.*)$/gm)].map(
    ([, name = "", stated, text = ""]) => ({
      name,
      stated: stated === undefined ? null : Number(stated),
      files: filesNamedIn(text),
    }),
  );
}

/** A name without a folder is in the nearest folder before it that has such a file. */
function filesNamedIn(text: string): readonly string[] {
  const folders: string[] = [];
  const files = [...text.matchAll(/`([\w./-]+\.(?:tsx?|mjs|pl|sql))`/g)].map(([, name = ""]) => {
    if (!name.includes("/")) {
      const folder = folders.findLast((each) => exists(join(each, name)));
      return folder === undefined ? name : join(folder, name);
    }
    folders.push(dirname(name));
    return name;
  });
  return [...new Set(files)];
}

export const exists = (file: string): boolean => existsSync(join(ROOT, file));
