/** Properties of every file and every edit. */
import { readdir, readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import fc from "fast-check";
import { expect, test } from "vitest";
import { callTool, temporaryDirectory } from "./support.ts";

const pieces = fc.string({
  unit: fc.constantFrom("a", "b", "c", " ", "\t", "\n", "é", "€", "🐢", "$&"),
  maxLength: 40,
});

/** How often a text occurs in another, overlapping places counted. */
function occurrences(text: string, wanted: string): number {
  let count = 0;
  for (let at = text.indexOf(wanted); at !== -1; at = text.indexOf(wanted, at + 1)) count++;
  return count;
}

test("an edit changes exactly its place, and its inverse gives the original, in bytes", async () => {
  const cwd = await temporaryDirectory();
  const path = join(cwd, "file");
  const edit = (oldText: string, newText: string) =>
    callTool("edit", cwd, { path: "file", oldText, newText });
  let [checked, crlf] = [0, 0];
  await fc.assert(
    fc.asyncProperty(
      pieces,
      pieces,
      pieces,
      pieces,
      fc.boolean(),
      fc.boolean(),
      async (before, oldText, after, newText, hasCrlf, hasBom) => {
        const [text, changed] = [before + oldText + after, before + newText + after];
        fc.pre(oldText !== "" && newText !== "");
        fc.pre(
          oldText !== newText && occurrences(text, oldText) === 1 && occurrences(changed, newText) === 1,
        );
        // The line ending is known only from the existing lines.
        fc.pre(!hasCrlf || (text.includes("\n") && changed.includes("\n")));
        const bytes = (unix: string) =>
          (hasBom ? "\ufeff" : "") + (hasCrlf ? unix.replaceAll("\n", "\r\n") : unix);
        await writeFile(path, bytes(text));
        expect(await edit(oldText, newText)).toMatchObject({ status: "completed" });
        expect(await readFile(path, "utf8")).toBe(bytes(changed));
        expect(await edit(newText, oldText)).toMatchObject({ status: "completed" });
        expect(await readFile(path, "utf8")).toBe(bytes(text));
        checked++;
        if (hasCrlf && (oldText + newText).includes("\n")) crlf++;
      },
    ),
    { numRuns: 300 },
  );
  expect(Math.min(checked, crlf)).toBeGreaterThan(20);
});

/** Lines that each occur once in the file. */
const numbered = (count: number): string[] => Array.from({ length: count }, (_, n) => `<line ${n + 1}>`);

const lineEdits = fc.integer({ min: 1, max: 12 }).chain((count) =>
  fc.record({
    count: fc.constant(count),
    replaced: fc.uniqueArray(
      fc.record({ line: fc.integer({ min: 1, max: count }), text: fc.constantFrom("", "x", "y\nz", "🐢") }),
      { selector: ({ line }) => line, maxLength: 6 },
    ),
    inserted: fc.uniqueArray(
      fc.record({ line: fc.integer({ min: 0, max: count }), text: fc.constantFrom("", "i", "j\nk") }),
      { selector: ({ line }) => line, maxLength: 6 },
    ),
    hasLastNewline: fc.boolean(),
    ending: fc.constantFrom("\n", "\r\n"),
  }),
);

test("a patch applies all its edits, whatever their order", async () => {
  const cwd = await temporaryDirectory();
  const path = join(cwd, "file");
  await fc.assert(
    fc.asyncProperty(
      lineEdits.chain((edits) => fc.tuple(fc.constant(edits), fc.infiniteStream(fc.nat()))),
      async ([{ count, replaced, inserted, hasLastNewline, ending }, random]) => {
        fc.pre(replaced.length + inserted.length > 0 && (count > 1 || ending === "\n"));
        const lines = numbered(count);
        const bytes = (lines: readonly string[]) =>
          (lines.join("\n") + (hasLastNewline ? "\n" : "")).replaceAll("\n", ending);
        const expected = ["", ...lines].flatMap((line, n) => [
          ...(n === 0 ? [] : [replaced.find((edit) => edit.line === n)?.text ?? line]),
          ...inserted.filter((edit) => edit.line === n).map(({ text }) => text),
        ]);
        const edits = [
          ...replaced.map(({ line, text }) => ({
            operation: "replace",
            oldText: `<line ${line}>`,
            newText: text,
          })),
          ...inserted.map(({ line, text }) => ({ operation: "insert", afterLine: line, text })),
        ]
          .map((edit) => ({ edit, order: Number(random.next().value) }))
          .sort((a, b) => a.order - b.order)
          .map(({ edit }) => edit);
        await writeFile(path, bytes(lines));
        expect(await callTool("patch", cwd, { path: "file", edits })).toMatchObject({ status: "completed" });
        expect(await readFile(path, "utf8")).toBe(bytes(expected));
      },
    ),
    { numRuns: 200 },
  );
});

test("all or none: one edit that fails, wherever it stands, leaves the file as it is", async () => {
  const cwd = await temporaryDirectory();
  const path = join(cwd, "file");
  const failing = fc.constantFrom(
    { operation: "replace", oldText: "nowhere", newText: "" },
    { operation: "replace", oldText: "line", newText: "lines" },
    { operation: "replace", oldText: "<line 1>", newText: "<line 1>" },
    { operation: "insert", afterLine: 1_000, text: "x" },
    { operation: "overwrite", content: "x" },
  );
  await fc.assert(
    fc.asyncProperty(
      fc.integer({ min: 2, max: 10 }),
      fc.uniqueArray(fc.integer({ min: 1, max: 10 }), { minLength: 1, maxLength: 5 }),
      failing,
      fc.nat(5),
      async (count, targets, bad, position) => {
        const good = targets
          .filter((line) => line <= count)
          .map((line) => ({ operation: "replace", oldText: `<line ${line}>`, newText: "changed" }));
        fc.pre(good.length > 0);
        const edits = good.toSpliced(position, 0, bad as (typeof good)[number]);
        await writeFile(path, numbered(count).join("\n"));
        const before = await stat(path, { bigint: true });
        expect(await callTool("patch", cwd, { path: "file", edits })).toMatchObject({ status: "failed" });
        expect(await readFile(path, "utf8")).toBe(numbered(count).join("\n"));
        const after = await stat(path, { bigint: true });
        expect([after.ino, after.mtimeNs]).toEqual([before.ino, before.mtimeNs]);
        expect(await readdir(cwd)).toEqual(["file"]);
      },
    ),
    { numRuns: 150 },
  );
});
