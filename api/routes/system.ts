/** Owns: the routes that are not about one conversation: models, directories, health, readiness, metrics. */
import { createRoute, z } from "@hono/zod-openapi";
import { isMigrated } from "../../db/migrate.ts";
import { needs } from "../access/roles.ts";
import type { Deps } from "../deps.ts";
import { Problem } from "../problem.ts";
import type { DatabaseProbe } from "../database-probe.ts";
import { createRouter } from "../router.ts";
import { sandbox } from "../schemas/conversation.ts";
import { parameter, text } from "../schemas/common.ts";
import { problems, problemsOfProbe } from "../schemas/problem.ts";
import type { Missing } from "../workflow.ts";
import { toolHostOf } from "../tool-hosts.ts";

const rates = {
  input: z.number(),
  output: z.number(),
  cacheRead: z.number(),
  cacheCreation: z.number(),
};
const price = z.object({
  ...rates,
  longPrompt: z
    .object({ ...rates, above: z.int() })
    .optional()
    .openapi({
      description: "Of a request whose prompt has more than `above` tokens.",
    }),
});

const listModels = createRoute({
  method: "get",
  path: "/api/models",
  operationId: "listModels",
  ...needs("read"),
  tags: ["Models"],
  summary: "List models",
  description:
    "Those to choose from: what the provider lists, what is built in as long as that is not known, and those of `MODELS_FILE`. A model that is not listed is accepted, with the smallest known window.",
  responses: {
    200: {
      description: "The models.",
      content: {
        "application/json": {
          schema: z.object({
            models: z.array(
              z.object({
                id: z.string(),
                name: z.string(),
                contextWindow: z.int(),
                maxOutputTokens: z.int(),
                thinking: z.enum(["adaptive", "none"]),
                maxImages: z.int().openapi({ description: "Images in one request; 0: it sees none." }),
                price: price.nullable().openapi({
                  description: "US dollars per million tokens; null: not known.",
                }),
                default: z.boolean(),
                scripted: z.boolean(),
              }),
            ),
          }),
        },
      },
    },
    ...problems(),
  },
});

const listHosts = createRoute({
  method: "get",
  path: "/api/hosts",
  operationId: "listHosts",
  ...needs("read"),
  tags: ["Directories"],
  summary: "List tool hosts",
  description:
    "Those on which a conversation can begin, the default one first. `sandbox` is what was last known of each; null: none of its workers has answered yet.",
  responses: {
    200: {
      description: "The hosts.",
      content: {
        "application/json": {
          schema: z.object({
            hosts: z.array(z.object({ name: z.string(), default: z.boolean(), sandbox: sandbox.nullable() })),
          }),
          example: { hosts: [{ name: "build-1", default: true, sandbox: { kind: "available", abi: 7 } }] },
        },
      },
    },
    ...problems(),
  },
});

const listDirectories = createRoute({
  method: "get",
  path: "/api/directories",
  operationId: "listDirectories",
  ...needs("read"),
  tags: ["Directories"],
  summary: "Complete a path",
  description:
    "Directories on the tool host that begin with `path`. Without a path: the home directory of the tools' user.",
  request: {
    query: z.object({
      path: text.default("").openapi({ example: "/home/me/a" }),
      host: parameter(text.optional()).openapi({ description: "A tool host; the default one unless given." }),
    }),
  },
  responses: {
    200: {
      description: "Absolute paths.",
      content: {
        "application/json": {
          schema: z.object({ directories: z.array(z.string()).readonly() }),
          example: { directories: ["/home/me/app", "/home/me/archive"] },
        },
      },
    },
    ...problems("invalid_request", "payload_too_large"),
  },
});

const plain = { "text/plain": { schema: z.string() } };

const health = createRoute({
  method: "get",
  path: "/healthz",
  operationId: "health",
  tags: ["Operations"],
  summary: "Is the process alive?",
  description:
    "Whatever else is down. `sandbox` is what was last known of the host of new conversations, null where nothing is yet. Needs no token.",
  security: [],
  responses: {
    200: {
      description: "It is.",
      content: {
        "application/json": {
          schema: z.object({ status: z.literal("ok"), sandbox: sandbox.nullable() }),
          example: { status: "ok", sandbox: { kind: "available", abi: 7 } },
        },
      },
    },
    ...problemsOfProbe(),
  },
});

const ready = createRoute({
  method: "get",
  path: "/readyz",
  operationId: "ready",
  tags: ["Operations"],
  summary: "Would a request be answered?",
  description:
    "503 with `missing`: `postgres` or `temporal` cannot be reached, the `migration` of this release was not applied, or no `worker` serves conversations; with Worker Versioning, none of the current version. Needs no token.",
  security: [],
  responses: {
    200: {
      description: "It would.",
      content: { "application/json": { schema: z.object({ ready: z.literal(true) }) } },
    },
    ...problemsOfProbe("unavailable"),
  },
});

const metrics = createRoute({
  method: "get",
  path: "/metrics",
  operationId: "metrics",
  ...needs("admin"),
  tags: ["Operations"],
  summary: "Metrics",
  description: "Of this process, in the Prometheus text format (docs/observability.md).",
  responses: { 200: { description: "Samples.", content: plain }, ...problems() },
});

const POSTGRES_AWAY: Missing = { name: "postgres", why: "postgres cannot be reached" };
const NOT_MIGRATED: Missing = {
  name: "migration",
  why: "the database lacks what this release needs: apply its migrations (docs/operations.md)",
};

export function systemRoutes(deps: Deps, probe: DatabaseProbe) {
  const { db, models, defaultModel, workflows, toolHost, toolHosts } = deps;

  let hasTables = false;
  const databaseMissing = async (): Promise<readonly Missing[]> => {
    if ((await probe.check()) !== "answers") return [POSTGRES_AWAY];
    hasTables ||= await isMigrated(db);
    return hasTables ? [] : [NOT_MIGRATED];
  };

  return createRouter()
    .openapi(listModels, async (c) => {
      const known = await models();
      const isListed = known.list.some(({ id }) => id === defaultModel);
      const offered = isListed ? known.list : [known.of(defaultModel), ...known.list];
      const shown = offered.map((model) => ({ ...model, default: model.id === defaultModel }));
      return c.json({ models: shown }, 200);
    })
    .openapi(listHosts, async (c) => {
      const hosts = toolHosts.map(async (name) => ({
        name,
        default: name === toolHost,
        sandbox: await workflows.lastSandboxOf(name),
      }));
      return c.json({ hosts: await Promise.all(hosts) }, 200);
    })
    .openapi(listDirectories, async (c) => {
      const { host, path } = c.req.valid("query");
      const directories = await workflows.listDirectories(toolHostOf(deps, host), path);
      return c.json({ directories }, 200);
    })
    .openapi(health, async (c) =>
      c.json({ status: "ok" as const, sandbox: await workflows.lastSandboxOf(toolHost) }, 200),
    )
    .openapi(ready, async (c) => {
      const missing = (await Promise.all([databaseMissing(), workflows.missing()])).flat();
      if (missing.length > 0) {
        throw new Problem("unavailable", `Not ready: ${missing.map(({ why }) => why).join("; ")}.`, {
          missing: missing.map(({ name }) => name),
        });
      }
      return c.json({ ready: true as const }, 200);
    })
    .openapi(metrics, async (c) =>
      c.text(await deps.metrics.render(), 200, { "content-type": deps.metrics.contentType }),
    );
}
