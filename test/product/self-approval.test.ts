/**
 * REQ-BED-015, REQ-BASH-008: only the person approves. A command of a Restricted conversation tries to give the
 * decision that another conversation waits for, or to get at the processes that could. It uses real clients at the real
 * addresses of the running product. The same command succeeds in an Unrestricted conversation.
 */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { say, toolCall } from "../../local/scripted/script.ts";
import { hostSandbox } from "../support/host-sandbox.ts";
import { startProduct, type Product } from "../support/product.ts";
import { Talk } from "../support/talk.ts";

const SLOW = 120_000;
const { available, reason } = await hostSandbox();
if (!available) console.warn(`SKIPPED, the agent approving itself: ${reason ?? ""}`);

const MODULES = join(import.meta.dirname, "..", "..", "node_modules");

type Way = (product: Product, asking: { readonly id: string; readonly toolCallId: string }) => string;

/** The command of a program that prints SUCCESS when it has done its work. */
const node = (product: Product, program: string): string => {
  const file = join(product.cwd, `${String(Math.random()).slice(2)}.mjs`);
  writeFileSync(file, `${program}\nconsole.log("SUCCESS"); process.exit(0);`);
  return `node ${file}`;
};

const decision = (toolCallId: string): string => JSON.stringify({ decision: "approve", toolCallId });

const approvalUrl = (product: Product, id: string): string =>
  `${product.url}/api/conversations/${id}/approval`;

const WAYS: Readonly<Record<string, Way>> = {
  "the API, by curl": (product, { id, toolCallId }) =>
    `curl -sf -m 5 -H 'content-type: application/json' -d '${decision(toolCallId)}' ${approvalUrl(product, id)} && echo SUCCESS`,
  "the API, by fetch": (product, { id, toolCallId }) =>
    node(
      product,
      `const response = await fetch("${approvalUrl(product, id)}", { method: "POST",
         headers: { "content-type": "application/json" }, body: ${JSON.stringify(decision(toolCallId))} });
       if (response.status !== 202) throw new Error(await response.text());`,
    ),
  "Temporal, by a signal": (product, { id, toolCallId }) =>
    node(
      product,
      `import { Client, Connection } from "${MODULES}/@temporalio/client/lib/index.js";
       const connection = await Connection.connect({ address: "${product.temporalAddress}", connectTimeout: 3000 });
       await new Client({ connection }).workflow.getHandle("${id}").signal("decideUpgrade", ${decision(toolCallId)});`,
    ),
  // Postgres has no port.
  "Postgres, by its socket": (product) =>
    node(
      product,
      `import postgres from "${MODULES}/postgres/src/index.js";
       const url = new URL(${JSON.stringify(product.databaseUrl)});
       const options = { host: url.searchParams.get("host"), connect_timeout: 3 };
       const sql = postgres({ ...options, user: url.username, database: url.pathname.slice(1) });
       await sql\`update conversations set mode = mode\`;`,
    ),
  // The worker closes these to every program of its user; Temporal's server does not.
  "the server's environment": (product) =>
    `tr '\\0' '\\n' < /proc/${product.pidOf("temporal")}/environ | grep -q GOGC && echo SUCCESS`,
  "the server's memory": (product) => `head -c 0 /proc/${product.pidOf("temporal")}/mem && echo SUCCESS`,
  "the server's files": (product) => `ls -l /proc/${product.pidOf("temporal")}/fd/0 && echo SUCCESS`,
  ...Object.fromEntries(
    (["worker", "api", "postgres", "temporal"] as const).map((name): [string, Way] => [
      `a signal to ${name}`,
      (product) => `kill -CONT ${product.pidOf(name)} && echo SUCCESS`,
    ]),
  ),
};

describe.skipIf(!available)("the agent cannot approve itself", () => {
  let product: Product;
  beforeAll(async () => {
    product = await startProduct();
  }, SLOW);
  afterAll(() => product.stop(), SLOW);

  /** A Restricted conversation that waits for the person. */
  async function asking() {
    const talk = await Talk.create(product);
    const toolCallId = `toolu_${talk.id.replaceAll("-", "")}`;
    const asks = talk.nextState("awaiting_mode_approval");
    const call = toolCall("request_mode_upgrade", { reason: "to be let out" }, toolCallId);
    await talk.send(`go ${product.model.script(talk.id, [say(call), say("Out.")])}`);
    await asks;
    return { talk, id: talk.id, toolCallId };
  }

  /** Runs a command in a conversation; resolves with its result. */
  async function run(talk: Talk, command: string): Promise<string> {
    const idle = talk.nextState("idle");
    const name = `${talk.id}-${talk.heard.length}`;
    await talk.send(`go ${product.model.script(name, [say(toolCall("bash", { command })), say("Done.")])}`);
    await idle;
    const result = (await talk.messages()).findLast(({ type }) => type === "tool");
    return JSON.stringify(result?.content);
  }

  test.each(Object.entries(WAYS))("through %s", { timeout: SLOW }, async (_name, way) => {
    const [person, restricted, unrestricted] = await Promise.all([
      asking(),
      Talk.create(product),
      Talk.open(product),
    ]);
    const command = way(product, person);
    expect(await run(restricted, command)).not.toContain("SUCCESS");
    expect(await person.talk.state()).toMatchObject({ kind: "awaiting_mode_approval" });
    expect(await run(unrestricted, command)).toContain("SUCCESS");
    for (const talk of [person.talk, restricted, unrestricted]) talk.close();
  });
});
