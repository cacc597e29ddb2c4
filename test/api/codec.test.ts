/** The codec server for Temporal's command line: it signs for one conversation, and only with the token. */
import { expect, test } from "vitest";
import { PayloadSignature } from "../../protocol/payload-signature.ts";
import { startApi } from "./support.ts";

const TOKEN = "the-token-of-this-test";
const payloadKey = new Uint8Array(32).fill(3);
const { api } = await startApi({ payloadKey, apiToken: TOKEN });

const payload = { metadata: { encoding: "anNvbi9wbGFpbg==" }, data: "eyJ0ZXh0IjoiSGkuIn0=" };

const ask = async (name: "encode" | "decode", body: unknown, headers: Record<string, string> = {}) => {
  const response = await api.request(`http://127.0.0.1/api/conversations/one/codec/${name}`, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: `Bearer ${TOKEN}`, ...headers },
    body: JSON.stringify(body),
  });
  return { status: response.status, body: (await response.json()) as { payloads: (typeof payload)[] } };
};

const bytesOf = ({ metadata, data }: typeof payload) => ({
  metadata: Object.fromEntries(
    Object.entries(metadata).map(([name, value]) => [name, Buffer.from(value, "base64")]),
  ),
  data: Buffer.from(data, "base64"),
});

test("an encoded payload is signed for that conversation and no other, and decodes to the original", async () => {
  const { status, body } = await ask("encode", { payloads: [payload] });
  expect(status).toBe(200);
  const [signed = payload] = body.payloads;
  const codec = new PayloadSignature(payloadKey);
  const decodedFor = async (workflowId: string) => {
    const context = { type: "workflow", namespace: "default", workflowId } as const;
    const [decoded] = await codec.decode([bytesOf(signed)], context);
    return Buffer.from(decoded?.data ?? []).toString();
  };
  expect(await decodedFor("one")).toBe('{"text":"Hi."}');
  expect(await decodedFor("another")).toBe('{"unsigned":true}');
  expect((await ask("decode", { payloads: [signed] })).body).toEqual({ payloads: [payload] });
});

test("a request without the token, from another origin or of another content type gets nothing signed", async () => {
  for (const name of ["encode", "decode"] as const) {
    expect((await ask(name, { payloads: [payload] }, { authorization: "" })).status).toBe(401);
    expect((await ask(name, { payloads: [payload] }, { authorization: "Bearer other" })).status).toBe(401);
    expect((await ask(name, { payloads: [payload] }, { origin: "http://evil.example" })).status).toBe(403);
    expect((await ask(name, { payloads: [payload] }, { "content-type": "text/plain" })).status).toBe(415);
  }
});

test("an absent or empty list encodes to an empty list, and an invalid payload is refused", async () => {
  for (const body of [{}, { payloads: [] }])
    expect(await ask("encode", body)).toEqual({ status: 200, body: { payloads: [] } });
  expect((await ask("encode", { payloads: [{ data: "not base64!" }] })).status).toBe(422);
});
