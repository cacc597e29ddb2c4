/** How durations, moments, sizes and paths are written. */
import { describe, expect, test } from "vitest";
import {
  byteSize,
  counted,
  duration,
  localMoment,
  localTime,
  relativeTime,
  shortPath,
} from "../../../web/text/format.ts";

test.each([
  [-5, "0 s"],
  [Number.NaN, "0 s"],
  [0, "0 s"],
  [0.4, "1 ms"],
  [40, "40 ms"],
  [100, "0.1 s"],
  [199, "0.1 s"],
  [9_999, "9.9 s"],
  [10_000, "10 s"],
  [41_400, "41 s"],
  [59_999, "59 s"],
  [60_000, "1 m 00 s"],
  [62_000, "1 m 02 s"],
  [134_000, "2 m 14 s"],
  [3_599_999, "59 m 59 s"],
  [3_720_000, "1 h 02 m"],
  [277_200_000, "3 d 5 h"],
])("%d ms is %s", (ms, text) => expect(duration(ms)).toBe(text));

describe("a moment", () => {
  const now = Date.parse("2026-11-23T12:00:00Z");
  test.each([
    ["2026-11-23T12:00:05Z", "now"],
    ["2026-11-23T11:59:01Z", "now"],
    ["2026-11-23T11:59:00Z", "1 m"],
    ["2026-11-23T11:00:01Z", "59 m"],
    ["2026-11-23T09:00:00Z", "3 h"],
    ["2026-11-20T09:00:00Z", "Fri"],
    ["2026-11-10T09:00:00Z", "10 Nov"],
    ["2025-12-31T09:00:00Z", "31 Dec 2025"],
    ["not a time", ""],
  ])("%s is %s", (at, text) => expect(relativeTime(at, now, "UTC")).toBe(text));
});

test.each([
  [0, "0 B"],
  [Number.NaN, "0 B"],
  [999, "999 B"],
  [1000, "1.0 kB"],
  [1540, "1.5 kB"],
  [24_300_000, "24 MB"],
  [999_900, "1.0 MB"],
  [5e15, "5000 TB"],
])("%d bytes are %s", (bytes, text) => expect(byteSize(bytes)).toBe(text));

test("a count has its unit, in singular or plural", () => {
  expect(counted(1, "line")).toBe("1 line");
  expect(counted(1234, "line")).toBe("1,234 lines");
  expect(counted(0, "entry", "entries")).toBe("0 entries");
});

describe("a path", () => {
  test("is relative to the base, or begins with ~ at home", () => {
    expect(shortPath("/home/me/app/src/a.ts", { base: "/home/me/app", home: "/home/me" })).toBe("src/a.ts");
    expect(shortPath("/home/me/other/a.ts", { base: "/home/me/app", home: "/home/me/" })).toBe(
      "~/other/a.ts",
    );
    expect(shortPath("/home/me/application", { base: "/home/me/app" })).toBe("/home/me/application");
    expect(shortPath("/home/me/app", { base: "/home/me/app" })).toBe("/home/me/app");
  });

  test("loses folders of its middle until it fits, and never its name", () => {
    expect(shortPath("/a/bb/ccc/dddd/file.ts", { limit: 16 })).toBe("/…/dddd/file.ts");
    expect(shortPath("/a/bb/a-very-long-name-of-a-file.ts", { limit: 10 })).toBe(
      "/…/a-very-long-name-of-a-file.ts",
    );
    expect(shortPath("a-very-long-name-of-a-file.ts", { limit: 10 })).toBe("a-very-long-name-of-a-file.ts");
  });
});

test("moments of the person's own clock", () => {
  const at = new Date(2026, 0, 2, 3, 4, 5);
  expect([localMoment(at), localTime(at)]).toEqual(["2026-01-02 03:04:05", "03:04"]);
});
