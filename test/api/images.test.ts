/**
 * Images in the running system (REQ-BED-013): from the person to the model and back to the person, with every delivery.
 * A refused image leaves nothing behind, and a long conversation full of images goes on.
 */
import { randomUUID } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { MAX_IMAGE_BYTES } from "../../images/prepare.ts";
import { hold } from "../../local/scripted/cues.ts";
import { readImageHeader } from "../../local/scripted/images.ts";
import { say, toolCall } from "../../local/scripted/script.ts";
import type { ImageBlock, Message } from "../../machine/message.ts";
import {
  asSent,
  encodedImage,
  markedImage,
  quartersOf,
  sentImage,
  type Colour,
  type Format,
} from "../support/images.ts";
import { startSystem } from "../support/system.ts";
import { EventReader } from "./sse.ts";
import { bodyOf, problemOf, serveApi, startApiOn } from "./support.ts";

const system = await startSystem();
const { get, send } = await serveApi(startApiOn(system));

type Shown = { readonly [name: string]: unknown };

const at = (id: string, rest = "") => `/api/conversations/${id}${rest}`;
const script = (...answers: Parameters<typeof system.model.script>[1] & readonly unknown[]) => {
  const key = randomUUID();
  return { key, tag: system.model.script(key, answers) };
};

async function create(body: object = {}): Promise<string> {
  const response = await send("POST", "/api/conversations", { cwd: system.cwd, ...body });
  if (response.status !== 201) throw new Error(await response.text());
  return String((await bodyOf(response))["id"]);
}

async function accepted(id: string, body: object): Promise<Shown> {
  const response = await send("POST", at(id, "/messages"), body);
  if (response.status !== 202) throw new Error(await response.text());
  return bodyOf(response);
}

async function follow(id: string): Promise<EventReader> {
  const events = new EventReader(await get(at(id, "/events")));
  await events.until("synced");
  return events;
}

const isState =
  (kind: string) =>
  ({ name, data }: { readonly name: string | null; readonly data: Shown }): boolean =>
    name === "state.changed" && (data["state"] as Shown)["kind"] === kind;

const messagesOf = async (id: string): Promise<readonly Message[]> =>
  (await bodyOf(await get(at(id, "/messages?limit=1000"))))["messages"] as Message[];

const imagesOf = (messages: readonly Message[]): readonly ImageBlock[] =>
  messages.flatMap((message) =>
    message.type === "user"
      ? message.content.flatMap((block) => (block.type === "image" ? [block] : []))
      : [],
  );

/** The images of a request, in order. */
function filesIn(request: { readonly json: unknown }): Buffer[] {
  const found: Buffer[] = [];
  JSON.stringify(request.json, (_, value: unknown) => {
    if (typeof value === "object" && value !== null && "media_type" in value && "data" in value) {
      found.push(Buffer.from(String(value.data), "base64"));
    }
    return value;
  });
  return found;
}

/** Media types and sizes of the images of a request, as the provider read them. */
const imagesIn = (request: { readonly json: unknown }): string[] => filesIn(request).map(headerOf);

function headerOf(file: Buffer): string {
  const header = readImageHeader(file);
  return `${header?.mediaType ?? "unreadable"} ${header?.width ?? 0}x${header?.height ?? 0}`;
}

const WHITE: Colour = [255, 255, 255];
const RED: Colour = [210, 30, 30];
const GREEN: Colour = [30, 150, 30];
const BLUE: Colour = [30, 60, 210];
const GREY: Colour = [120, 120, 120];

const refusals = () => system.model.requests.filter(({ refusal }) => refusal !== null);

describe("a message with images", () => {
  test("reaches the model as the person sent it, in its own format, scaled to the limit, and the person can read it back", async () => {
    const { key, tag } = script(say("A square, and others."));
    const formats: readonly Format[] = ["png", "jpeg", "gif", "webp"];
    const colours: readonly Colour[] = [RED, GREEN, BLUE, GREY];
    const images = await Promise.all(
      formats.map(async (format, n) =>
        asSent(format, await markedImage(format, colours[n] ?? GREY, 2000, 1000)),
      ),
    );
    const id = await create();
    const events = await follow(id);
    await accepted(id, { text: `What is it? ${tag}`, images });
    await events.until(isState("idle"));
    await events.cancel();

    const [request] = system.model.requestsOf(key);
    const received = filesIn(request ?? { json: null });
    expect(received.map(headerOf)).toEqual(formats.map((format) => `image/${format} 1568x784`));
    expect(await Promise.all(received.map(quartersOf))).toEqual(
      colours.map((colour) => [WHITE, colour, colour, colour]),
    );
    const stored = imagesOf(await messagesOf(id));
    expect(stored.map(({ mediaType, width, height }) => [mediaType, width, height])).toEqual(
      formats.map((format) => [`image/${format}`, 1568, 784]),
    );
    for (const [n, { hash, mediaType }] of stored.entries()) {
      const response = await get(at(id, `/images/${hash}`));
      expect([response.status, response.headers.get("content-type")]).toEqual([200, mediaType]);
      expect(response.headers.get("cache-control")).toBe("private, max-age=31536000, immutable");
      expect(response.headers.get("x-content-type-options")).toBe("nosniff");
      // The person sees what the model saw.
      expect(received[n]?.equals(Buffer.from(await response.arrayBuffer()))).toBe(true);
    }
  });

  test("may have no text, and may begin a conversation", async () => {
    const images = [await sentImage("png", { seed: 2 })];
    const { tag } = script(say("Seen."));
    const id = await create({ title: "Images", message: { text: tag, images } });
    expect(imagesOf(await messagesOf(id))).toHaveLength(1);
    const alone = await create();
    const sent = await accepted(alone, { text: "", images });
    expect(sent["sequence"]).toBe(1);
    expect((await messagesOf(alone))[0]?.content).toEqual([expect.objectContaining({ type: "image" })]);
  });

  test("may be a steer or a follow-up, which is queued and delivered with its images", async () => {
    const held = hold();
    const { key, tag } = script(say("Let me ", held, "see."), say("Steered."), say("Followed."));
    const id = await create();
    const events = await follow(id);
    await accepted(id, { text: `go ${tag}` });
    await held.reached;
    const [steer, followUp] = [await sentImage("jpeg", { seed: 3 }), await sentImage("gif", { seed: 4 })];
    await accepted(id, { text: "like this", images: [steer], delivery: "steer" });
    await accepted(id, { text: "then this", images: [followUp], delivery: "followUp" });
    const { queue } = await bodyOf(await get(at(id)));
    expect((queue as { images: ImageBlock[] }[]).map(({ images }) => images[0]?.mediaType)).toEqual([
      "image/jpeg",
      "image/gif",
    ]);
    // The images of a queued message can be read, too.
    const [waiting] = queue as { images: ImageBlock[] }[];
    expect((await get(at(id, `/images/${waiting?.images[0]?.hash ?? ""}`))).status).toBe(200);
    held.release();
    // Between the two runs it is idle, too.
    await events.until(isState("idle"));
    await events.until(isState("idle"));
    await events.cancel();
    const seen = system.model.requestsOf(key).map(imagesIn);
    expect(seen).toEqual([[], ["image/jpeg 40x30"], ["image/jpeg 40x30", "image/gif 40x30"]]);
  });

  test("is idempotent by its id; other images under that id are a conflict", async () => {
    const { tag } = script(say("Once."));
    const id = await create();
    const [one, other] = [await sentImage("png", { seed: 5 }), await sentImage("png", { seed: 6 })];
    const message = { text: `go ${tag}`, id: "m-1", images: [one] };
    const first = await accepted(id, message);
    expect(await accepted(id, message)).toEqual(first);
    const conflict = await send("POST", at(id, "/messages"), { ...message, images: [other] });
    expect(await problemOf(conflict)).toMatchObject({ status: 409, code: "message_id_conflict" });
    expect(imagesOf(await messagesOf(id))).toHaveLength(1);
  });

  test("the same image in two conversations is stored once, and shown to both", async () => {
    const images = [await sentImage("png", { seed: 7 })];
    const ids = await Promise.all([create(), create()]);
    for (const id of ids) await accepted(id, { text: script(say("Yes.")).tag, images });
    const [hash, same] = await Promise.all(ids.map(async (id) => imagesOf(await messagesOf(id))[0]?.hash));
    expect(same).toBe(hash);
    const rows = await system.db.sql`select from images where hash = ${hash ?? ""}`;
    expect(rows).toHaveLength(1);
    for (const id of ids) expect((await get(at(id, `/images/${hash ?? ""}`))).status).toBe(200);
    const stranger = await create();
    expect((await get(at(stranger, `/images/${hash ?? ""}`))).status).toBe(404);
  });
});

describe("limits", () => {
  test("20 images are accepted, 21 are not", async () => {
    const id = await create();
    const images = await Promise.all(
      Array.from({ length: 21 }, (_, seed) => sentImage("png", { seed: seed + 100 })),
    );
    const tooMany = await send("POST", at(id, "/messages"), { text: "x", images });
    expect(await problemOf(tooMany)).toMatchObject({ status: 422, code: "invalid_request" });
    await accepted(id, { text: script(say("Many.")).tag, images: images.slice(1) });
    expect(imagesOf(await messagesOf(id))).toHaveLength(20);
  });

  test("10 MB are accepted within the body's limit, one byte more is not", async () => {
    const id = await create();
    const small = await encodedImage("png", { seed: 8 });
    const padded = (bytes: number): object => ({
      mediaType: "image/png",
      data: Buffer.concat([small, Buffer.alloc(bytes - small.length)]).toString("base64"),
    });
    const tooLarge = await send("POST", at(id, "/messages"), {
      text: "x",
      images: [padded(MAX_IMAGE_BYTES + 1)],
    });
    expect(await problemOf(tooLarge)).toMatchObject({ status: 422, code: "invalid_image" });
    await accepted(id, {
      text: script(say("Large.")).tag,
      images: [padded(MAX_IMAGE_BYTES), padded(MAX_IMAGE_BYTES)],
    });
    const three = [1, 2, 3].map(() => padded(MAX_IMAGE_BYTES));
    const tooMuch = await send("POST", at(id, "/messages"), { text: "x", images: three });
    expect(await problemOf(tooMuch)).toMatchObject({ status: 413, code: "payload_too_large" });
  });
});

test("one bad image among good ones is a 422 that names it, and nothing is stored", async () => {
  const id = await create();
  const good = await sentImage("png", { seed: 9 });
  const traces = async () => ({
    images: (await system.db.sql`select hash from images order by hash`).map((row) => String(row["hash"])),
    messages: await messagesOf(id),
    conversations: (await system.db.sql`select from conversations`).length,
  });
  const before = await traces();
  const broken = (await encodedImage("png", { noise: true })).subarray(0, 500).toString("base64");
  for (const [bad, sentence] of [
    [
      { mediaType: "image/png", data: (await encodedImage("jpeg")).toString("base64") },
      /says image\/png and is image\/jpeg/,
    ],
    [{ mediaType: "image/png", data: broken }, /broken/],
    [{ mediaType: "image/png", data: "" }, /none of/],
    [{ mediaType: "image/png", data: "not base64!" }, /base64/],
    [{ mediaType: "image/png", data: `${good.data.slice(0, 76)}\n${good.data.slice(76)}` }, /base64/],
    [{ mediaType: "image/svg+xml", data: Buffer.from("<svg/>").toString("base64") }, /none of/],
    [{ mediaType: "text/html", data: good.data }, /says text\/html/],
  ] as const) {
    const message = { text: "x", images: [good, bad] };
    const problem = await problemOf(await send("POST", at(id, "/messages"), message));
    expect(problem).toMatchObject({ status: 422, code: "invalid_image", errors: [{ path: "images.1" }] });
    expect(problem.detail).toMatch(sentence);
    const created = await problemOf(await send("POST", "/api/conversations", { cwd: system.cwd, message }));
    expect(created).toMatchObject({ code: "invalid_image", errors: [{ path: "message.images.1" }] });
  }
  expect(await traces()).toEqual(before);
});

describe("read of an image", () => {
  test("gives it to the model, and stores it for the person", async () => {
    await writeFile(
      join(system.cwd, "shot.png"),
      await encodedImage("png", { width: 3136, height: 100, seed: 10 }),
    );
    await writeFile(join(system.cwd, "lying.txt"), await encodedImage("webp", { seed: 11 }));
    await writeFile(
      join(system.cwd, "torn.jpg"),
      (await encodedImage("jpeg", { noise: true })).subarray(0, 700),
    );
    const { key, tag } = script(
      say(
        toolCall("read", { path: "shot.png" }),
        toolCall("read", { path: "lying.txt" }),
        toolCall("read", { path: "torn.jpg" }),
      ),
      say("I see."),
    );
    const id = await create();
    const events = await follow(id);
    await accepted(id, { text: `look ${tag}` });
    await events.until(isState("idle"));
    await events.cancel();
    const second = system.model.requestsOf(key)[1];
    expect(second?.refusal).toBeNull();
    expect(imagesIn(second ?? { json: null })).toEqual(["image/png 1568x50", "image/webp 40x30"]);
    const results = (await messagesOf(id)).flatMap((message) =>
      message.type === "tool" ? message.content : [],
    );
    expect(results.map(({ status }) => status)).toEqual(["completed", "completed", "failed"]);
    expect(results[0]?.output).toEqual([
      { type: "text", text: expect.stringMatching(/shot\.png: an image of 3136 × 100 pixels/) as string },
      expect.objectContaining({ type: "image", mediaType: "image/png", width: 1568, height: 50 }),
    ]);
    expect(results[2]?.output).toEqual([
      { type: "text", text: expect.stringMatching(/cannot be shown as an image.*broken/) as string },
    ]);
    const shown = results[0]?.output[1] as ImageBlock;
    expect((await get(at(id, `/images/${shown.hash}`))).status).toBe(200);
  });
});

test("the provider accepts every request of 50 turns with more images than one request holds", async () => {
  const key = randomUUID();
  const tag = system.model.script(key, (_, n) => say(`Seen ${n}.`));
  // This model takes 100 images a request; every tenth message has large ones, to reach the limit of bytes.
  const id = await create({ model: "claude-haiku-4-5" });
  const large = await Promise.all(
    [1, 2, 3].map((seed) => sentImage("jpeg", { seed, width: 1568, height: 1568, noise: true })),
  );
  const events = await follow(id);
  let sent = 0;
  for (let turn = 1; turn <= 50; turn++) {
    const images =
      turn % 10 === 0
        ? large
        : await Promise.all([1, 2, 3].map((n) => sentImage("png", { seed: turn * 10 + n })));
    sent += images.length;
    await accepted(id, { text: turn === 1 ? `go ${tag}` : `and these? (${turn})`, images });
    await events.until(isState("idle"));
  }
  await events.cancel();
  expect(sent).toBe(150);
  const requests = system.model.requestsOf(key);
  // On a machine that stands still for two seconds, a request is lost with its worker and made again.
  expect(requests.length).toBeGreaterThanOrEqual(50);
  expect(refusals()).toEqual([]);
  const counts = requests.map((request) => imagesIn(request).length);
  // The newest are always sent; the oldest are dropped in few large steps, so that the cache is read in between.
  expect(Math.max(...counts)).toBeLessThanOrEqual(100);
  expect(counts.every((count) => count >= 3)).toBe(true);
  const drops = counts.filter((count, index) => count < (counts[index - 1] ?? 0));
  expect(drops.length).toBeGreaterThan(0);
  expect(drops.length).toBeLessThan(6);
  expect(JSON.stringify(requests.at(-1)?.json)).toContain("left out");
  expect(imagesOf(await messagesOf(id))).toHaveLength(150);
});
