/** The rooms of docs/architecture.md: which room may import which. */
import { describe, expect, test } from "vitest";
import {
  drawMap,
  exists,
  filesOf,
  importsOf,
  mapInPage,
  MAY_IMPORT,
  ONLY_TYPES_OF,
  ROOMS,
  valueImportsOf,
  waysInPage,
} from "./support/rooms.ts";

describe.each(Object.entries(MAY_IMPORT))("%s", (room, allowed) => {
  test.each(filesOf(room))("%s imports only rooms that it may", (file) => {
    const strangers = importsOf(file).filter((imported) => imported !== room && !allowed.includes(imported));
    expect(strangers).toEqual([]);
  });
});

describe.each(Object.entries(ONLY_TYPES_OF))("%s", (room, others) => {
  test.each(filesOf(room))(`%s imports nothing but types of ${others.join()}`, (file) => {
    expect(valueImportsOf(file).filter((imported) => others.includes(imported))).toEqual([]);
  });
});

test("each room imports only rooms below it", () => {
  for (const [height, room] of ROOMS.entries())
    for (const below of MAY_IMPORT[room] ?? []) expect(ROOMS.indexOf(below), room).toBeLessThan(height);
});

test("the map in docs/architecture.md matches the imports (`npm run map` draws it)", () => {
  expect(mapInPage()).toBe(drawMap());
});

describe("the ways of docs/architecture.md", () => {
  const ways = waysInPage();

  test("are those of a message, a tool call, a Stop, an approval, a sub-agent and a divergence", () => {
    const names = ["A message", "A tool call", "A Stop", "An approval", "A sub-agent", "A divergence"];
    expect(ways.map(({ name }) => name)).toEqual(names);
    expect(ways.find(({ name }) => name === "A message")?.stated).not.toBe(null);
  });

  test.each(ways)("$name: every file that it names exists, and they are as many as it says", (way) => {
    expect(way.files.filter((file) => !exists(file))).toEqual([]);
    expect(way.files.length).toBeGreaterThan(1);
    if (way.stated !== null) expect(way.files).toHaveLength(way.stated);
  });
});
