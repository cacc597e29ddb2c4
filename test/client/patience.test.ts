/** A client waits as long as the server says, and only where waiting helps (client/patience.ts). */
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { patiently } from "../../client/patience.ts";

type Reply = { readonly status: number; readonly retryAfter?: string };

/** Gives these answers, in order; the last one again and again. */
function serverWith(...replies: readonly Reply[]) {
  let asked = 0;
  const ask = () => {
    const { status, retryAfter } = replies[Math.min(asked++, replies.length - 1)] ?? { status: 500 };
    const headers = retryAfter === undefined ? undefined : { "retry-after": retryAfter };
    return Promise.resolve(new Response(null, { status, ...(headers === undefined ? {} : { headers }) }));
  };
  return { ask, asked: () => asked };
}

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

test("a request that was refused because there were too many is sent again when the server has said, and not before", async () => {
  const { ask, asked } = serverWith(
    { status: 429, retryAfter: "7" },
    { status: 429, retryAfter: "2" },
    { status: 202 },
  );
  const answered = patiently(ask);
  await vi.advanceTimersByTimeAsync(6_999);
  expect(asked()).toBe(1);
  await vi.advanceTimersByTimeAsync(1);
  expect(asked()).toBe(2);
  await vi.advanceTimersByTimeAsync(1_999);
  expect(asked()).toBe(2);
  await vi.advanceTimersByTimeAsync(1);
  expect((await answered).status).toBe(202);
  expect(asked()).toBe(3);
});

test("after two minutes it gives up, and the refusal is the answer", async () => {
  const { ask, asked } = serverWith({ status: 429, retryAfter: "60" });
  const answered = patiently(ask);
  await vi.advanceTimersByTimeAsync(120_000);
  expect((await answered).status).toBe(429);
  expect(asked()).toBe(3);
});

test.each<Reply>([
  // A full queue, which no waiting empties.
  { status: 429 },
  { status: 429, retryAfter: "tomorrow" },
  // The day's limit on spending: longer than anybody waits at a screen.
  { status: 429, retryAfter: "3600" },
  { status: 503, retryAfter: "1" },
  { status: 403 },
])("%j is the answer at once", async (reply) => {
  const { ask, asked } = serverWith(reply);
  expect((await patiently(ask)).status).toBe(reply.status);
  expect(asked()).toBe(1);
});
