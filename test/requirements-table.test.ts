/** The check of docs/requirements.md itself: it must be able to say no. */
import { expect, test } from "vitest";
import { problemsOf, readTable } from "./support/requirements-reporter.ts";

const TABLE = `| requirement | state | tests |
| --- | --- | --- |
| REQ-A-001 — one | shown | a.test.ts › x<br>a.test.ts › y \\| z |
| REQ-A-001 — two | shown |  |
| REQ-A-002 | partly | b.test.ts › w |
| REQ-A-003 | open |  |
`;

test("rows, and names with bars in them, are read as they are written", () => {
  expect(readTable(TABLE)).toEqual([
    { requirement: "REQ-A-001 — one", state: "shown", tests: ["a.test.ts › x", "a.test.ts › y | z"] },
    { requirement: "REQ-A-001 — two", state: "shown", tests: [] },
    { requirement: "REQ-A-002", state: "partly", tests: ["b.test.ts › w"] },
    { requirement: "REQ-A-003", state: "open", tests: [] },
  ]);
});

test("a test that did not run and pass, and a claim without a test, are problems", () => {
  const passed = new Set(["a.test.ts › x", "b.test.ts › w"]);
  expect(problemsOf(readTable(TABLE), passed)).toEqual([
    "REQ-A-001 — one: did not run and pass: a.test.ts › y | z",
    "REQ-A-001 — two is said to be shown, but names no test.",
  ]);
  expect(problemsOf(readTable(TABLE), new Set())).toHaveLength(4);
});
