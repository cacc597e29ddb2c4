/**
 * Owns: which role a route needs: declared beside its definition, shown in /openapi.json as `x-role`, and asked for
 * before a byte of the body is read.
 */
import type { OpenAPIHono } from "@hono/zod-openapi";
import type { Context } from "hono";
import { matchedRoutes } from "hono/route";
import { isAtLeast, type Role } from "../../protocol/access.ts";
import { Problem } from "../problem.ts";
import type { ApiEnv } from "../router.ts";
import type { Caller } from "./access.ts";

/** A part of a route's definition: `createRoute({ …, ...needs("talk") })`. */
export const needs = (role: Role) => ({ "x-role": role }) as const;

/**
 * Finds the role that a request's route needs; null: it has no route, or one without a token.
 *
 * @throws Error if a route does not say which role it needs
 */
export function neededRoles(app: OpenAPIHono<ApiEnv>): (c: Context) => Role | null {
  const roles = new Map<string, Role>();
  for (const definition of app.openAPIRegistry.definitions) {
    if (definition.type !== "route") continue;
    const {
      method,
      path,
      security,
      "x-role": role,
    } = definition.route as typeof definition.route & Partial<ReturnType<typeof needs>>;
    const isOpen = security?.length === 0;
    if (isOpen) continue;
    if (role === undefined) throw new Error(`${method} ${path} does not say which role it needs.`);
    roles.set(`${method.toUpperCase()} ${path.replaceAll(/\{(\w+)\}/g, ":$1")}`, role);
  }
  return (c) => {
    for (const { method, path } of matchedRoutes(c)) {
      const role = roles.get(`${method} ${path}`);
      if (role !== undefined) return role;
    }
    return null;
  };
}

/**
 * An approval gives rights, so it needs more than the route. A denial gives none, and who may talk may stop the run as
 * well.
 *
 * @throws Problem `forbidden_role`
 */
export function requireRoleToDecide(caller: Caller, decision: "approve" | "deny"): void {
  requireRole(caller, decision === "approve" ? "approve" : "talk");
}

/** @throws Problem `forbidden_role` */
export function requireRole({ name, role }: Caller, needed: Role): void {
  if (isAtLeast(role, needed)) return;
  const who = name === null ? "Without a token you have" : `The token ${name} has`;
  const owner =
    "`npm start` shows the owner's token in its terminal; with API_TOKEN or API_TOKENS_FILE, ask the owner.";
  throw new Problem(
    "forbidden_role",
    `This needs the role ${needed}. ${who} the role ${role}. Send a token that has it. ${owner}`,
    { needed, role },
  );
}
