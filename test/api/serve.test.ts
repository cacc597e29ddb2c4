/** Bytes that are no HTTP request get a problem document, too, as far as HTTP allows it. */
import { describe, expect, test } from "vitest";
import { connectTo, postOf, problemIn } from "./raw.ts";
import { serveApi, startApi } from "./support.ts";

const api = await startApi();
const { url } = await serveApi(api);

async function answerTo(bytes: string): Promise<string> {
  const client = await connectTo(url);
  await client.write(bytes);
  client.socket.end();
  await client.closed;
  return client.received();
}

describe("bytes that are no HTTP request", () => {
  test.each([
    ["a Host that is no address", "GET /api/models HTTP/1.1\r\nhost: a b\r\n\r\n"],
    ["a Host with more than an address", "GET /api/models HTTP/1.1\r\nhost: localhost/x?y\r\n\r\n"],
    ["no Host", "GET /api/models HTTP/1.1\r\n\r\n"],
    ["a target that is no path", "GET nowhere HTTP/1.1\r\nhost: localhost\r\n\r\n"],
    ["a broken request line", "WHAT IS THIS\r\n\r\n"],
    ["another protocol", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"],
    ["a header without a colon", "GET / HTTP/1.1\r\nhost: localhost\r\nnonsense\r\n\r\n"],
    ["two lengths", "POST / HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n"],
    [
      "a broken chunk",
      "POST /api/conversations HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n" +
        "transfer-encoding: chunked\r\n\r\nnonsense\r\n",
    ],
  ])("are refused as malformed: %s", async (_, bytes) => {
    const answer = await answerTo(bytes);
    expect(problemIn(answer)).toMatchObject({ status: 400, code: "malformed_request" });
    expect(answer).toMatch(/^x-content-type-options: nosniff\r$/im);
    expect(api.reports).toEqual([]);
  });

  test("are refused with 431 if their headers are too large", async () => {
    const answer = await answerTo(`GET / HTTP/1.1\r\nhost: localhost\r\nx: ${"x".repeat(20_000)}\r\n\r\n`);
    expect(problemIn(answer)).toMatchObject({ status: 431, code: "headers_too_large" });
  });
});

test("no problem is written into an answer that has begun", async () => {
  const client = await connectTo(url);
  await client.write("GET /api/events HTTP/1.1\r\nhost: localhost\r\n\r\n");
  await expect.poll(client.received).toContain("event: synced");
  await client.write("WHAT IS THIS\r\n\r\n");
  await client.closed;
  expect(client.received().match(/HTTP\/1\.1/g)).toHaveLength(1);
});

test("a connection stays usable after a malformed request", async () => {
  const client = await connectTo(url);
  for (let n = 1; n <= 3; n++) {
    await client.write(postOf("/api/conversations", 2) + "{}");
    await expect.poll(() => client.received().match(/"invalid_cwd"/g)?.length ?? 0).toBe(n);
    await client.write("GET /healthz HTTP/1.1\r\nhost: a b\r\n\r\n");
    await expect.poll(() => client.received().match(/"malformed_request"/g)?.length ?? 0).toBe(n);
  }
});
