/** Owns: which server the command line talks to, and which conversation a person means. */
import { readFileSync } from "node:fs";
import { allConversations } from "../client/all-conversations.ts";
import type { Calls, Conversation, Server } from "../client/index.ts";
import { UsageError } from "./exit-codes.ts";

export type Env = Readonly<{ [name: string]: string | undefined }>;

/** The one that is named, or the one that `bedrock start` starts with the same settings. @throws UsageError */
export function serverOf(env: Env): Server {
  const given = settingOf(env, "BEDROCK_URL");
  if (given === null) return { url: urlHere(env), token: tokenOf(env) ?? settingOf(env, "API_TOKEN") };
  if (!/^https?:\/\/[^/]+/.test(given) || !URL.canParse(given))
    throw new UsageError(
      `BEDROCK_URL is no address of a server: ${given}. It looks like http://127.0.0.1:3000.`,
    );
  // The token of a server here is not for one elsewhere.
  return { url: given.replace(/\/+$/, ""), token: tokenOf(env) };
}

/** By HOST and PORT, as config.ts reads them. An address that nobody can connect to stands for all of this machine. */
function urlHere(env: Env): string {
  const host = settingOf(env, "HOST") ?? "127.0.0.1";
  const port = settingOf(env, "PORT") ?? "0";
  const name = /^(0\.0\.0\.0|\[?::\]?)$/.test(host) ? "127.0.0.1" : host;
  const url = `http://${name.includes(":") && !name.startsWith("[") ? `[${name}]` : name}:${port === "0" ? "3000" : port}`;
  if (!URL.canParse(url)) throw new UsageError(`HOST and PORT are no address: ${url}.`);
  return url;
}

/** Null: it is not set, or empty. */
function settingOf(env: Env, name: string): string | null {
  const value = env[name] ?? "";
  return value === "" ? null : value;
}

function tokenOf(env: Env): string | null {
  const file = settingOf(env, "BEDROCK_TOKEN_FILE");
  if (file === null) return settingOf(env, "BEDROCK_TOKEN");
  try {
    return readFileSync(file, "utf8").trim();
  } catch (error) {
    throw new UsageError(`BEDROCK_TOKEN_FILE can not be read: ${(error as Error).message}.`);
  }
}

/** An id that a server or a client has made. */
const WHOLE_ID = /^[0-9a-f]{8}(-?[0-9a-f]{4}){3}-?[0-9a-f]{12}$/;

/**
 * The conversation with this id, or the only one whose id begins with it.
 *
 * @throws UsageError if there is none, or several
 */
export async function conversationOf({ call }: Calls, id: string): Promise<Conversation> {
  const given = id.toLowerCase();
  const whole = WHOLE_ID.test(given) ? given : await wholeId({ call }, given);
  // The same type: hono only writes "any JSON value" in another way.
  return (await call((routes) => routes.conversations[":id"].$get({ param: { id: whole } }))) as Conversation;
}

async function wholeId({ call }: Pick<Calls, "call">, beginning: string): Promise<string> {
  if (!/^[0-9a-f-]{4,}$/.test(beginning))
    throw new UsageError(
      `"${beginning}" is no id. \`bedrock list\` shows the ids; their first 4 characters do.`,
    );
  const all = await allConversations(call, "all");
  const found = all.map(({ id }) => id).filter((id) => id.startsWith(beginning));
  const [first] = found;
  if (first === undefined) throw new UsageError(`No conversation has an id that begins with "${beginning}".`);
  if (found.length > 1)
    throw new UsageError(`Several ids begin with "${beginning}": ${found.slice(0, 5).join(", ")}.`);
  return first;
}
