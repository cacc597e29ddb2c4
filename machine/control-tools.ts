/**
 * Owns: checking the inputs of the tools that the machine itself answers. The checks are plain guards, because no
 * schema library may enter a workflow.
 * Not here: the tools' descriptions for the model (tools/control.ts).
 */
import type { GivenTask } from "./conversation.ts";
import type { Json, JsonObject } from "./message.ts";
import { jsonBytes, TASKS_BYTES } from "./size.ts";

export const UPGRADE_TOOL = "request_mode_upgrade";
export const SPAWN_TOOL = "spawn_agents";
export const SUBMIT_TOOL = "submit_result";

/** Tools that write files. In Restricted mode the machine answers them and does not run them (REQ-PATCH-009). */
export const WRITING_TOOLS: readonly string[] = ["write", "edit", "patch"];

export const MAX_SUB_AGENTS_A_CALL = 16;
/** The rest of a call's sub-agents wait until one of these has finished. */
export const MAX_PARALLEL_SUB_AGENTS = 8;

/** A day. */
export const MAX_TIMEOUT_SECONDS = 86_400;

export type Checked<T> =
  { readonly ok: true; readonly value: T } | { readonly ok: false; readonly problem: string };

const good = <T>(value: T): Checked<T> => ({ ok: true, value });
const bad = (problem: string): Checked<never> => ({ ok: false, problem });

export function checkUpgrade(input: Json): Checked<{ readonly reason: string }> {
  const reason = field(input, "reason");
  return isText(reason)
    ? good({ reason })
    : bad('"reason" must be a text that says why write access is needed.');
}

export function checkSubmit(input: Json): Checked<{ readonly result: string; readonly success: boolean }> {
  const result = field(input, "result");
  const success = field(input, "success") ?? true;
  if (typeof result !== "string") return bad('"result" must be a text.');
  if (typeof success !== "boolean") return bad('"success" must be true or false.');
  return good({ result, success });
}

export function checkSpawn(input: Json): Checked<readonly GivenTask[]> {
  const tasks = field(input, "tasks");
  if (!isList(tasks) || tasks.length === 0) return bad('"tasks" must be a list of at least one task.');
  if (tasks.length > MAX_SUB_AGENTS_A_CALL)
    return bad(`"tasks" may hold at most ${MAX_SUB_AGENTS_A_CALL} tasks.`);
  const checked: GivenTask[] = [];
  for (const entry of tasks) {
    const task = field(entry, "task");
    const model = field(entry, "model");
    const timeoutSeconds = field(entry, "timeoutSeconds");
    if (!isText(task)) return bad('each task needs a "task" text.');
    if (model !== undefined && !isModel(model)) return bad('"model" must be the id of a model.');
    if (timeoutSeconds !== undefined && !isSeconds(timeoutSeconds)) {
      return bad(`"timeoutSeconds" must be a positive number of at most ${MAX_TIMEOUT_SECONDS}.`);
    }
    checked.push({
      task,
      ...(model === undefined ? {} : { model }),
      ...(timeoutSeconds === undefined ? {} : { timeoutSeconds }),
    });
  }
  if (jsonBytes(checked) > TASKS_BYTES) {
    return bad(`the tasks may have at most ${TASKS_BYTES} bytes in all; name files instead of quoting them.`);
  }
  return good(checked);
}

function field(input: Json | undefined, name: string): Json | undefined {
  return isObject(input) && Object.hasOwn(input, name) ? input[name] : undefined;
}

const isList = (value: Json | undefined): value is readonly Json[] => Array.isArray(value);
const isObject = (value: Json | undefined): value is JsonObject =>
  typeof value === "object" && value !== null && !isList(value);
const isText = (value: Json | undefined): value is string => typeof value === "string" && value.trim() !== "";
/** The same form as in the API. */
const isModel = (value: Json): value is string =>
  typeof value === "string" && /^[\w.:/@-]{1,200}$/.test(value);
const isSeconds = (value: Json): value is number =>
  typeof value === "number" && value > 0 && value <= MAX_TIMEOUT_SECONDS;
