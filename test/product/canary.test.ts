/**
 * A full run with recognisable secrets: tools that look for them, a provider that repeats its key in every error, a
 * worker that is killed, a restart. Nothing of it leaves a secret anywhere, in no form.
 */
import { randomBytes, randomUUID } from "node:crypto";
import { once } from "node:events";
import { readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { createServer, request, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { openClient } from "../../db/connect.ts";
import { hold } from "../../local/scripted/cues.ts";
import { say, toolCall } from "../../local/scripted/script.ts";
import { eventually, temporaryFolder } from "../local/support.ts";
import { familyOf } from "../support/processes.ts";
import { startProduct, type Product } from "../support/product.ts";

const SLOW = 240_000;
/** Quotes and backslashes, so that the forms differ. No beginning by which a key of this provider is known. */
const SECRETS: Readonly<Record<string, Buffer>> = {
  ANTHROPIC_API_KEY: Buffer.from(`key"\\${randomUUID()}`),
  API_TOKEN: Buffer.from(`token"\\${randomUUID()}`),
  PAYLOAD_KEY: Buffer.from(randomBytes(32).toString("base64")),
};
const settings = Object.fromEntries(Object.entries(SECRETS).map(([name, value]) => [name, value.toString()]));
const token = settings["API_TOKEN"] ?? "";

/** In base64 the first and the last characters depend on what is around. */
const base64 = (secret: Buffer): readonly string[] =>
  [0, 1, 2].map((before) => {
    const text = Buffer.concat([Buffer.alloc(before), secret])
      .toString("base64")
      .replace(/=+$/, "");
    return text.slice(before === 0 ? 0 : before + 1, -2);
  });

const FORMS = Object.entries(SECRETS).flatMap(([name, secret]) => {
  const all = name === "PAYLOAD_KEY" ? [secret, Buffer.from(secret.toString(), "base64")] : [secret];
  const forms = all.flatMap((each) => [
    each.toString("latin1"),
    JSON.stringify(each.toString("latin1")).slice(1, -1),
    encodeURIComponent(each.toString("latin1")),
    ...[each.toString("hex"), each.toString("hex").toUpperCase()],
    ...base64(each).flatMap((text) => [text, text.replaceAll("+", "-").replaceAll("/", "_")]),
  ]);
  return [...new Set(forms)].map((form) => ({ name, form }));
});

/** The names of the secrets in the bytes. */
const secretsIn = (bytes: Buffer | string): readonly string[] => {
  const text = typeof bytes === "string" ? Buffer.from(bytes).toString("latin1") : bytes.toString("latin1");
  return [...new Set(FORMS.filter(({ form }) => text.includes(form)).map(({ name }) => name))];
};

const filesIn = (folder: string): readonly string[] =>
  readdirSync(folder, { recursive: true, encoding: "utf8" })
    .map((name) => join(folder, name))
    .filter((file) => statSync(file, { throwIfNoEntry: false })?.isFile() === true);

/** A provider that repeats the key in its list of models, and as often as it is asked to in place of an answer. */
async function echoing(url: string) {
  const refusals = [400, 403, 404, 422, 500];
  const answer = (incoming: IncomingMessage, outgoing: ServerResponse): void => {
    const isList = incoming.url?.startsWith("/v1/models") === true;
    const status = isList ? 401 : refusals.pop();
    if (status !== undefined) {
      const key = incoming.headers["x-api-key"];
      const message = `Not with ${String(key)}, that is ${JSON.stringify({ key })}`;
      incoming.resume();
      outgoing.writeHead(status, { "content-type": "application/json", "x-should-retry": "false" });
      outgoing.end(JSON.stringify({ type: "error", error: { type: "invalid_request_error", message } }));
      return;
    }
    const { method, headers } = incoming;
    const onward = request(url + (incoming.url ?? ""), { method, headers }, (response) => {
      outgoing.writeHead(response.statusCode ?? 500, response.headers);
      response.pipe(outgoing);
    });
    onward.on("error", () => outgoing.destroy());
    outgoing.on("close", () => onward.destroy());
    incoming.pipe(onward);
  };
  const server = createServer(answer).listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => void server.close());
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, refusals };
}

/** Everything that the API says in the run. */
class Client {
  readonly heard: string[] = [];
  readonly #product: Product;

  constructor(product: Product) {
    this.#product = product;
  }

  async ask(path: string, body?: object, authorization = `Bearer ${token}`): Promise<string> {
    const headers = { "content-type": "application/json", authorization };
    const init = body === undefined ? {} : { method: "POST", body: JSON.stringify(body) };
    const response = await fetch(this.#product.url + path, { ...init, headers, redirect: "manual" });
    const text = `${JSON.stringify([...response.headers])} ${await response.text()}`;
    this.heard.push(text);
    return text;
  }

  /** Sends a message and waits for the end of its turn. */
  async turn(id: string, text: string): Promise<void> {
    const stops = async () =>
      (await this.ask(`/api/conversations/${id}/messages`)).split('"run_stop"').length;
    const before = await stops();
    const isOver = async () => {
      const state = /"state":\{"kind":"(\w+)"/.exec(await this.ask(`/api/conversations/${id}`))?.[1];
      return state === "error" || (await stops()) > before;
    };
    await this.ask(`/api/conversations/${id}/messages`, { text });
    await eventually(text, isOver, SLOW);
  }
}

test("a secret is found in each of its forms", () => {
  for (const { name, form } of FORMS)
    expect(secretsIn(Buffer.from(`before ${form} after`, "latin1"))).toContain(name);
  for (const [name, secret] of Object.entries(SECRETS))
    for (const around of ["", "a", "ab"])
      expect(secretsIn(Buffer.from(`${around}${secret.toString()}, more`).toString("base64"))).toContain(
        name,
      );
  expect(secretsIn("nothing")).toEqual([]);
});

test("a full run leaves no secret anywhere", { timeout: SLOW }, async () => {
  const dataDir = join(temporaryFolder(), "data");
  let provider = { url: "", refusals: [] as number[] };
  const product = await startProduct({
    dataDir,
    env: { ...settings, TEMPORAL_UI: "true" },
    providerBehind: async (url) => (provider = await echoing(url)).url,
  });
  onTestFinished(() => product.stop());
  const client = new Client(product);
  const [tools, refused] = [randomUUID(), randomUUID()];
  for (const id of [tools, refused])
    await client.ask("/api/conversations", { id, cwd: product.cwd, title: id });

  // Each error is kept with its conversation.
  for (let left = provider.refusals.length; left > 0; left--) {
    await client.turn(refused, "go on");
    expect(provider.refusals).toHaveLength(left - 1);
  }

  const held = hold();
  const script = product.model.script(tools, [
    say(
      toolCall("bash", { command: "env; set; cat /proc/self/environ; ps auxeww; cat /proc/[0-9]*/environ" }),
    ),
    say("That is all."),
    say("never ", held),
    say("Done."),
  ]);
  await client.turn(tools, `go ${script}`);
  await client.ask(`/api/conversations/${tools}/messages`, { text: "go on" });
  await held.reached;
  process.kill(product.pidOf("worker"), "SIGKILL");
  await eventually(
    "the end",
    async () => (await client.ask(`/api/conversations/${tools}/messages`)).includes("Done."),
    SLOW,
  );

  const shown = () => {
    for (const pid of familyOf(product.pid))
      for (const file of ["environ", "cmdline", "comm"]) {
        const path = `/proc/${pid}/${file}`;
        try {
          expect(secretsIn(readFileSync(path)), path).toEqual([]);
        } catch (error) {
          // It has ended meanwhile, or this user may not look at it.
          if (!(error instanceof Error && "code" in error)) throw error;
        }
      }
  };
  shown();
  process.kill(product.pid, "SIGKILL");
  await product.startAgain();
  shown();

  for (const path of [
    "/",
    "/docs",
    "/openapi.json",
    "/healthz",
    "/readyz",
    "/metrics",
    "/api/models",
    "/api/hosts",
  ])
    await client.ask(path);
  await client.ask("/api/conversations", undefined, "Bearer wrong");
  await client.ask("/api/conversations", undefined, `Bearer ${token} more`);
  for (const id of [tools, refused])
    for (const path of ["", "/messages", "/cycles", "/children"])
      await client.ask(`/api/conversations/${id}${path}`);
  expect(client.heard.join()).toContain("refused the request");
  for (const text of client.heard) expect(secretsIn(text), text.slice(0, 300)).toEqual([]);

  // Its tables as text, because its files may have compressed them.
  const sql = openClient(product.databaseUrl, "canary");
  const tables = await sql<{ name: string }[]>`
    select format('%I.%I', schemaname, tablename) as name from pg_tables where schemaname not in ('pg_catalog', 'information_schema')`;
  expect(tables.length).toBeGreaterThan(3);
  for (const { name } of tables) {
    const rows = await sql.unsafe<{ text: string }[]>(`select t::text as text from ${name} t`);
    expect(secretsIn(rows.map(({ text }) => text).join("\n")), name).toEqual([]);
  }
  await sql.end();
  await product.stop();

  const files = filesIn(dataDir);
  for (const part of ["temporal/temporal.db", "logs/worker.log", "logs/api.log", "pg18/base"])
    expect(
      files.some((file) => file.startsWith(join(dataDir, part))),
      part,
    ).toBe(true);
  for (const file of files) expect(secretsIn(readFileSync(file)), file).toEqual([]);
  // The search would have found it.
  writeFileSync(join(dataDir, "logs", "worker.log"), settings["ANTHROPIC_API_KEY"] ?? "", { flag: "a" });
  expect(secretsIn(readFileSync(join(dataDir, "logs", "worker.log")))).toEqual(["ANTHROPIC_API_KEY"]);
});
