/**
 * The commands that docs/architecture.md and docs/security.md give to operators, run as they stand on the page, by
 * Temporal's real command line on the product of `npm start`. A command that this test does not know fails it.
 */
import { execFile } from "node:child_process";
import { randomUUID } from "node:crypto";
import { readFileSync, symlinkSync } from "node:fs";
import { delimiter, dirname, join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, inject, onTestFinished, test } from "vitest";
import { freePort } from "../../local/ports.ts";
import { hold } from "../../local/scripted/cues.ts";
import { say, toolCall, type Answer } from "../../local/scripted/script.ts";
import { hostSandbox } from "../support/host-sandbox.ts";
import { startProduct, type Product } from "../support/product.ts";
import { Talk } from "../support/talk.ts";
import { launch, ready, ROOT, SLOW } from "./npm-start.ts";
import { eventually, temporaryFolder } from "./support.ts";

// ---- what the pages say

const pageOf = (name: string): string => readFileSync(join(ROOT, "docs", name), "utf8");

/** The commands in blocks of `sh`, where an indented line goes on with the one before, and those in running text. */
function commandsIn(page: string): string[] {
  const blocks = /^( *)```sh\n(.*?)^ *```$/gms;
  const inBlocks = [...page.matchAll(blocks)].flatMap(([, indent = "", block = ""]) =>
    block
      .replaceAll(new RegExp(`^${indent}`, "gm"), "")
      .split(/\n(?=\S)/)
      .map((command) => command.trimEnd()),
  );
  const inText = [...page.replaceAll(blocks, "").matchAll(/`((?:\w+=\S+ )*temporal [^`]+)`/g)];
  return [...inBlocks, ...inText.map(([, command = ""]) => command)];
}

/** The names of signals and updates with their inputs, from the page's table. */
function ordersIn(page: string): { readonly name: string; readonly input: string }[] {
  const [, table = ""] = /^ *\| name +\| inputs [^\n]*\n(.*?)\n\n/ms.exec(page) ?? [];
  return table.split("\n").flatMap((row) => {
    const [, name = "", inputs = ""] = row.split("|").map((cell) => cell.trim());
    return [...inputs.matchAll(/`(\{.*?\})`/g)].map(([, input = ""]) => ({
      name: name.replaceAll("`", ""),
      input,
    }));
  });
}

const architecture = pageOf("architecture.md");
const commands = commandsIn(architecture);
/** On that page other commands are for whoever starts the product. */
const ofSecurity = commandsIn(pageOf("security.md")).filter((command) => command.includes("temporal "));
const orders = ordersIn(architecture);

/** The one command of a page that begins like this. */
function theCommand(start: string, from: readonly string[] = commands): string {
  const [command, ...more] = from.filter((each) => each.startsWith(start));
  if (command === undefined || more.length > 0) throw new Error(`The page has not one command "${start}".`);
  return command;
}

// ---- running them

let product: Product;
beforeAll(async () => {
  product = await startProduct();
}, SLOW);
afterAll(() => product.stop(), SLOW);

type Settings = {
  readonly TEMPORAL_ADDRESS: string;
  readonly api: string;
  readonly API_TOKEN?: string;
  readonly since?: string;
};

/** Runs a command with what the page says that it needs in the environment. Returns what it prints. */
async function run(command: string, id: string, settings?: Settings): Promise<string> {
  const home = temporaryFolder();
  symlinkSync(inject("temporalBinary"), join(home, "temporal"));
  const PATH = [home, dirname(process.execPath), process.env["PATH"]].join(delimiter);
  const { temporalAddress: TEMPORAL_ADDRESS, url: api } = product;
  const env = { PATH, HOME: home, id, ...(settings ?? { TEMPORAL_ADDRESS, api }) };
  const { stdout } = await promisify(execFile)("bash", ["-c", command], { env });
  return stdout;
}

/** The text of everything that the conversation has. */
const said = async (talk: Talk): Promise<string> => JSON.stringify(await talk.messages());

const saysSoon = (talk: Talk, text: string): Promise<true> =>
  eventually(text, async () => (await said(talk)).includes(text), SLOW);

const waiting = async (talk: Talk): Promise<readonly unknown[]> =>
  (await talk.read())["queue"] as readonly unknown[];

async function opened(mode?: "restricted"): Promise<Talk> {
  const talk = await Talk.open(product, product.cwd, mode);
  onTestFinished(() => talk.close());
  return talk;
}

/** A conversation to which the model answers in this order, and its first message, which is sent. */
async function begun(answers: readonly Answer[], mode?: "restricted"): Promise<Talk> {
  const talk = await opened(mode);
  await talk.send(`go ${product.model.script(randomUUID(), answers)}`);
  return talk;
}

/** A conversation that rests after its first answer. */
async function rested(...next: readonly Answer[]): Promise<Talk> {
  const talk = await begun([say("One."), ...next]);
  await talk.untilState("idle");
  return talk;
}

/** A conversation whose model is answering; a message may wait. */
async function working(options: { readonly waits?: string } = {}): Promise<Talk> {
  const held = hold();
  onTestFinished(() => held.release());
  const talk = await begun([say("never ", held), say("Next.")]);
  await held.reached;
  if (options.waits !== undefined) await talk.send("waits", "followUp", { id: options.waits });
  return talk;
}

/** A conversation whose agent asks for Unrestricted mode. */
async function asking(): Promise<Talk> {
  const ask = toolCall("request_mode_upgrade", { reason: "to write" });
  const talk = await begun([say(ask), say("I see.")], "restricted");
  await talk.untilState("awaiting_mode_approval");
  return talk;
}

// ---- the commands

type Check = (command: string) => Promise<void>;

/** What each command does, by its beginning. */
const CHECKS: { readonly [start: string]: Check } = {
  "temporal workflow list --query 'status": async (command) => {
    const talk = await working();
    const other = await rested();
    await eventually("the list", async () => (await run(command, "")).includes(talk.id));
    expect(await run(command, "")).not.toContain(other.id);
  },

  "temporal workflow list --query 'title": async (command) => {
    const talk = await opened();
    const other = await opened();
    const [, start = ""] = /"(.*)"/.exec(command) ?? [];
    await rename(talk.id, `${start} the flaky test`);
    await eventually("the list", async () => (await run(command, "")).includes(talk.id));
    expect(await run(command, "")).not.toContain(other.id);
  },

  'temporal workflow list --query \'status = "idle" AND title': async (command) => {
    const talk = await rested();
    await rename(talk.id, `"Größe" & more`);
    await eventually("the title", async () =>
      (await run(command, "")).split("\n").includes(`${talk.id} "Größe" & more`),
    );
  },

  "temporal workflow metadata": async (command) => {
    const talk = await working();
    await rename(talk.id, "What it is about");
    await eventually("the title", async () => (await run(command, talk.id)).includes("What it is about"));
    expect(await run(command, talk.id)).toMatch(/What it is about\s+\*\*llm_requesting\*\* in `/);
  },

  "temporal workflow describe": async (command) => {
    const talk = await working();
    const described = await run(command, talk.id);
    expect(described).toContain(talk.id);
    expect(described).toMatch(/Pending Activities: 1[^]*requestLlm/);
  },

  "temporal workflow query": async (command) => {
    const talk = await working();
    const view = await run(command, talk.id);
    expect(view).toContain('"kind":"llm_requesting"');
    expect(view).toMatch(/"unconfirmed":\d/);
  },

  "temporal workflow signal": async (command) => {
    const talk = await rested(say("Two."));
    await run(command, talk.id);
    await saysSoon(talk, "Two.");
    expect(await said(talk)).toContain("Go on.");
    // A signal that comes in vain says so to the person.
    await run(command.replace(`'{"text": "Go on."}'`, `'{"text": ""}'`), talk.id);
    await saysSoon(talk, "The signal sendMessage was not taken");
  },

  "temporal workflow update execute": async (command) => {
    const talk = await working();
    expect(await run(command, talk.id)).toContain("kind:cancelling");
    await talk.untilState("idle");
    await expect(run(command.replace("run", "neither"), talk.id)).rejects.toThrow("invalid_request");
  },

  "temporal workflow cancel": async (command) => {
    const talk = await working();
    await run(command, talk.id);
    await talk.untilState("idle");
    await talk.send("go on");
    await saysSoon(talk, "Next.");
  },

  "temporal workflow reset": async (command) => {
    const talk = await working();
    await run(command, talk.id);
    await talk.untilState("idle");
    await saysSoon(talk, "reset or started anew");
    await talk.send("go on");
    await saysSoon(talk, "Next.");
  },

  "temporal workflow terminate": async (command) => {
    const talk = await working();
    await run(command, talk.id);
    const { status } = await product.temporal.workflow.getHandle(talk.id).describe();
    expect(status.name).toBe("TERMINATED");
    await talk.send("go on");
    await saysSoon(talk, "Next.");
  },
};

async function rename(id: string, title: string): Promise<void> {
  const response = await fetch(`${product.url}/api/conversations/${id}`, {
    method: "PATCH",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ title }),
  });
  expect(response.status).toBe(200);
}

/** Starts the product itself, so it has a test of its own. */
const START = "TEMPORAL_UI=true npm start";

/** The longest beginning that a check has. */
const checkOf = (command: string): string | undefined =>
  Object.keys(CHECKS)
    .filter((start) => command.startsWith(start))
    .sort((one, other) => other.length - one.length)[0];

describe("docs/architecture.md", () => {
  test("has each command that is known here, once", () => {
    const known = commands.filter((command) => command !== START).map(checkOf);
    expect([...known].sort()).toEqual(Object.keys(CHECKS).sort());
    expect(commands).toContain(START);
  });

  test.each(commands.filter((command) => command !== START))(
    "%s",
    async (command) => {
      const check = CHECKS[checkOf(command) ?? ""];
      if (check === undefined) throw new Error("Nothing is known of this command.");
      await check(command);
    },
    SLOW,
  );
});

// ---- the table of orders

/** Brings a conversation to where the order means something; returns a check of what came of it. */
type Scene = () => Promise<{ readonly talk: Talk; readonly check: () => Promise<unknown> }>;

const isIdle = (talk: Talk) => talk.untilState("idle");

const ORDERS: { readonly [order: string]: Scene } = {
  'sendMessage {"text": "Go on.", "messageId": "again"}': async () => {
    const talk = await rested(say("Two."));
    const check = async () => {
      await saysSoon(talk, "Two.");
      expect((await talk.messages()).map(({ id }) => id)).toContain("again");
    };
    return { talk, check };
  },
  'sendMessage {"text": "Go on.", "messageId": "again", "delivery": "followUp"}': async () => {
    const talk = await working();
    const check = () => eventually("the queue", async () => (await waiting(talk)).length === 1);
    return { talk, check };
  },
  'withdrawMessage {"messageId": "again"}': async () => {
    const talk = await working({ waits: "again" });
    expect(await waiting(talk)).toHaveLength(1);
    const check = () => eventually("an empty queue", async () => (await waiting(talk)).length === 0);
    return { talk, check };
  },
  'cancel {"queue": "run"}': async () => {
    const talk = await working({ waits: "again" });
    return { talk, check: () => saysSoon(talk, "Next.") };
  },
  'cancel {"queue": "hold"}': async () => {
    const talk = await working({ waits: "again" });
    const check = async () => {
      await isIdle(talk);
      expect(await talk.read()).toMatchObject({
        queue: [{ messageId: "again" }],
        queueHeld: "cancel",
      });
    };
    return { talk, check };
  },
  'cancel {"queue": "clear"}': async () => {
    const talk = await working({ waits: "again" });
    const check = async () => {
      await isIdle(talk);
      expect(await waiting(talk)).toEqual([]);
    };
    return { talk, check };
  },
  'releaseQueue {"releaseQueue": true}': async () => {
    const talk = await working({ waits: "again" });
    await talk.cancel("hold");
    await isIdle(talk);
    return { talk, check: () => saysSoon(talk, "Next.") };
  },
  'decideUpgrade {"decision": "approve"}': async () => {
    const talk = await asking();
    const check = async () => {
      await saysSoon(talk, "I see.");
      expect(await talk.read()).toMatchObject({ mode: "unrestricted" });
    };
    return { talk, check };
  },
  'decideUpgrade {"decision": "deny"}': async () => {
    const talk = await asking();
    const check = async () => {
      await saysSoon(talk, "I see.");
      expect(await talk.read()).toMatchObject({ mode: "restricted" });
    };
    return { talk, check };
  },
  "downgrade {}": async () => {
    const talk = await opened();
    expect(await talk.read()).toMatchObject({ mode: "unrestricted" });
    const isRestricted = async () => (await talk.read())["mode"] === "restricted";
    const check = () => eventually("Restricted mode", isRestricted);
    return { talk, check };
  },
  'triggerContinuation {"triggerContinuation": true}': async () => {
    const talk = await rested(say("A summary."));
    return { talk, check: () => talk.untilState("context_exhausted") };
  },
  "archive {}": async () => {
    const talk = await working();
    const check = async () => {
      await eventually("the archive", async () => (await talk.read())["archived"] === true);
      await isIdle(talk);
    };
    return { talk, check };
  },
  'remove {"remove": true}': async () => {
    const talk = await rested();
    const path = `${product.url}/api/conversations/${talk.id}`;
    return { talk, check: () => eventually("its end", async () => (await fetch(path)).status === 404) };
  },
};

describe.each(["signal", "update execute"])("by `temporal workflow %s`", (how) => {
  test("the table has each order that is known here, once", () => {
    expect(orders.map(({ name, input }) => `${name} ${input}`).sort()).toEqual(Object.keys(ORDERS).sort());
  });

  test.for(orders)("$name $input", { timeout: SLOW }, async ({ name, input }, { skip }) => {
    skip(name === "downgrade" && !(await hostSandbox()).available, "There is no Restricted mode.");
    const scene = ORDERS[`${name} ${input}`];
    if (scene === undefined) throw new Error("Nothing is known of this order.");
    // The page's own command with another name and input.
    const command = theCommand(`temporal workflow ${how} `)
      .replace(/--name \w+/, `--name ${name}`)
      .replace(/--input '.*?'/, `--input '${input}'`);
    const { talk, check } = await scene();
    await run(command, talk.id);
    await check();
  });
});

// ---- the whole product by a command of the page

test(
  `${START}, with a token: the Web UI's list has titles, and the command line gives the token`,
  async () => {
    const token = randomUUID();
    const shell = ["bash", "-c", theCommand("TEMPORAL_UI=")] as const;
    const env = { API_TOKEN: token };
    const launched = launch(join(temporaryFolder(), "data"), await freePort(), env, shell);
    const api = await ready(launched);
    const printed = (name: string): string =>
      new RegExp(`^${name} +(\\S+)$`, "m").exec(launched.output())?.[1] ?? "";
    const settings = { TEMPORAL_ADDRESS: printed("Temporal"), api };
    const ask = async (path: string, init: RequestInit = {}) => {
      const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
      const response = await fetch(api + path, { ...init, headers });
      return (await response.json()) as { readonly [name: string]: unknown };
    };
    const body = JSON.stringify({ cwd: temporaryFolder(), title: "Fix the flaky test" });
    const id = String((await ask("/api/conversations", { method: "POST", body }))["id"]);

    // What the page of the UI asks for when it shows its list.
    const authorization = `Basic ${Buffer.from(`anybody:${token}`).toString("base64")}`;
    const list = `${printed("Temporal Web UI")}/api/v1/namespaces/default/workflows?query=`;
    const listed = await eventually("the list", async () => {
      const answer = await fetch(list, { headers: { authorization, "sec-fetch-site": "same-origin" } });
      expect(answer.status).toBe(200);
      const text = await answer.text();
      return text.includes(id) && text;
    });
    expect(listed).toContain(Buffer.from('"Fix the flaky test"').toString("base64"));
    expect(
      await run(theCommand("temporal workflow describe"), id, { ...settings, API_TOKEN: token }),
    ).toMatch(/StaticSummary +"Fix the flaky test"/);

    const signal = theCommand("temporal workflow signal");
    await expect(run(signal, id, settings)).rejects.toThrow("401");
    await run(signal, id, { ...settings, API_TOKEN: token });
    const messages = `/api/conversations/${id}/messages`;
    await eventually("the message", async () => JSON.stringify(await ask(messages)).includes("Go on."));
  },
  SLOW,
);

// Last, because they end the workflows of all conversations.
describe("docs/security.md", () => {
  test("has two commands for Temporal", () => expect(ofSecurity).toHaveLength(2));

  test(
    "counts the runs that began before a key was made the first, and ends them",
    async () => {
      const [count = "", end = ""] = ofSecurity;
      expect(end).toMatch(/^temporal workflow terminate --query/);
      const talk = await working();
      const { temporalAddress: TEMPORAL_ADDRESS, url: api } = product;
      const settings = (since: Date) => ({ TEMPORAL_ADDRESS, api, since: since.toISOString() });
      const counted = async (since: Date) =>
        Number(/Total: (\d+)/.exec(await run(count, "", settings(since)))?.[1]);
      expect(await counted(new Date(0))).toBe(0);
      const since = new Date();
      await eventually("the count", async () => (await counted(since)) > 0, SLOW);
      await run(end, "", settings(since));
      const handle = product.temporal.workflow.getHandle(talk.id);
      await eventually("its end", async () => (await handle.describe()).status.name === "TERMINATED", SLOW);
      await eventually("no run of before", async () => (await counted(since)) === 0, SLOW);
      await talk.send("go on");
      await saysSoon(talk, "Next.");
    },
    SLOW,
  );
});
