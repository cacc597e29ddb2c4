/** REQ-BED-014: which answers of a tool host about its sandbox the API keeps, and for whom. */
import { expect, test } from "vitest";
import { Sandboxes } from "../../api/sandboxes.ts";
import type { Sandbox } from "../../machine/conversation.ts";

const available: Sandbox = { kind: "available", abi: 7 };
const unavailable: Sandbox = { kind: "unavailable", reason: "No Landlock." };
const unknown: Sandbox = { kind: "unknown", reason: "The disk is full." };

/** A host that gives these answers one after the other; null: none. */
function hostOf(...answers: (Sandbox | null)[]) {
  const left = [...answers];
  const sandboxes = new Sandboxes(() => {
    const answer = left.shift() ?? null;
    return answer === null ? Promise.reject(new Error("no worker answers")) : Promise.resolve(answer);
  });
  return { sandboxes, left: () => left.length };
}

test.each([
  ["unavailable", unavailable],
  ["unknown", unknown],
])("after the answer %s, the next creation asks the host anew", async (_, first) => {
  const { sandboxes } = hostOf(first, available);
  expect(await sandboxes.of("host")).toEqual(first);
  expect(await sandboxes.of("host")).toEqual(available);
});

test("after no answer, the next creation asks the host anew", async () => {
  const { sandboxes } = hostOf(null, available);
  await expect(sandboxes.of("host")).rejects.toThrow("no worker answers");
  expect(await sandboxes.of("host")).toEqual(available);
});

test("a success is kept for the creations that follow at once", async () => {
  const { sandboxes, left } = hostOf(available, unavailable);
  expect(await sandboxes.of("host")).toEqual(available);
  expect(await sandboxes.of("host")).toEqual(available);
  expect(left()).toBe(1);
});

test("a health check does not ask a host again that has no sandbox, and tells what a creation learned since", async () => {
  const { sandboxes, left } = hostOf(unavailable, available);
  expect(await sandboxes.lastOf("host")).toEqual(unavailable);
  expect(await sandboxes.lastOf("host")).toEqual(unavailable);
  expect(left()).toBe(1);
  await sandboxes.of("host");
  expect(await sandboxes.lastOf("host")).toEqual(available);
});

test("a health check asks again whether a host has a sandbox that could not find out", async () => {
  const { sandboxes, left } = hostOf(unknown, available);
  expect(await sandboxes.lastOf("host")).toEqual(unknown);
  // It does not wait for the second answer.
  expect(await sandboxes.lastOf("host")).toEqual(unknown);
  await sandboxes.settled();
  expect(await sandboxes.lastOf("host")).toEqual(available);
  expect(left()).toBe(0);
});
