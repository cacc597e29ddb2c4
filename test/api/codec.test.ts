/** The codec server for Temporal's command line: and Web UI: it encrypts for one conversation, decrypts for all, and only with the token. */
import { expect, test } from "vitest";
import { PayloadEncryption } from "../../protocol/payload-encryption.ts";
import { startApi } from "./support.ts";

const TOKEN = "the-token-of-this-test";
const payloadKeys = [new Uint8Array(32).fill(3)];
const { api } = await startApi({ payloadKeys, apiToken: TOKEN });

const payload = { metadata: { encoding: "anNvbi9wbGFpbg==" }, data: "eyJ0ZXh0IjoiSGkuIn0=" };

const PATHS = {
  encode: "/api/conversations/one/codec/encode",
  decode: "/api/codec/decode",
  decodeBesideEncode: "/api/conversations/one/codec/decode",
};

const ask = async (name: keyof typeof PATHS, body: unknown, headers: Record<string, string> = {}) => {
  const response = await api.request(`http://127.0.0.1${PATHS[name]}`, {
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

test("an encoded payload is encrypted for that conversation and no other, and decodes to the original", async () => {
  const { status, body } = await ask("encode", { payloads: [payload] });
  expect(status).toBe(200);
  const [encrypted = payload] = body.payloads;
  const codec = new PayloadEncryption(payloadKeys);
  const decodedFor = async (workflowId: string) => {
    const context = { type: "workflow", namespace: "default", workflowId } as const;
    const [decoded] = await codec.decode([bytesOf(encrypted)], context);
    return Buffer.from(decoded?.data ?? []).toString();
  };
  expect(await decodedFor("one")).toBe('{"text":"Hi."}');
  expect(await decodedFor("another")).toBe('{"unauthenticated":true}');
  expect(Buffer.from(encrypted.data, "base64").toString("latin1")).not.toContain("Hi.");
  for (const decode of ["decode", "decodeBesideEncode"] as const) {
    expect((await ask(decode, { payloads: [encrypted] })).body).toEqual({ payloads: [payload] });
    // What cannot be decrypted is shown as it is.
    expect((await ask(decode, { payloads: [payload] })).body).toEqual({ payloads: [payload] });
  }
});

test("a request without the token, from another origin or of another content type gets nothing", async () => {
  for (const name of ["encode", "decode", "decodeBesideEncode"] as const) {
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
