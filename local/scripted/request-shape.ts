/**
 * Owns: the fields of a request to the Messages API, and the type of each. Unknown fields are refused, as the API does
 * in version 2026-10-21; fields of beta versions count as unknown.
 * Not here: rules between fields or messages (rules.ts), images (images.ts).
 */
import { SERVER_TOOL_RESULTS } from "./messages.ts";
import {
  anything,
  arrayOf,
  boolean,
  dictionary,
  integer,
  isObject,
  matching,
  name,
  nullable,
  object,
  oneOf,
  string,
  stringOr,
  tagged,
  type Shape,
} from "./shape.ts";

const toolId = matching(/^[a-zA-Z0-9_-]+$/);
const toolName = matching(/^[a-zA-Z0-9_-]{1,128}$/);

const cacheControl = nullable(tagged({ ephemeral: object({ type: string }, { ttl: oneOf("5m", "1h") }) }));
const cacheable = { cache_control: cacheControl };

const text = object(
  { type: string, text: string },
  { ...cacheable, citations: nullable(arrayOf(dictionary)) },
);

const image = object(
  {
    type: string,
    source: tagged({
      base64: object({
        type: string,
        media_type: oneOf("image/jpeg", "image/png", "image/gif", "image/webp"),
        data: string,
      }),
      url: object({ type: string, url: string }),
    }),
  },
  { ...cacheable, transformations: nullable(object({}, { oversized_image: oneOf("downsize", "error") })) },
);

const document = object(
  { type: string, source: dictionary },
  { ...cacheable, title: nullable(string), context: nullable(string), citations: nullable(dictionary) },
);

const serverToolResult = object(
  { type: string, tool_use_id: toolId, content: anything },
  { ...cacheable, caller: dictionary },
);

const block = tagged({
  text,
  image,
  document,
  thinking: object({ type: string, thinking: string, signature: string }),
  redacted_thinking: object({ type: string, data: string }),
  tool_use: object(
    { type: string, id: toolId, name: name(200), input: dictionary },
    { ...cacheable, caller: dictionary, toolset_name: nullable(string) },
  ),
  tool_result: object(
    { type: string, tool_use_id: toolId },
    {
      ...cacheable,
      content: stringOr(arrayOf(tagged({ text, image, document }))),
      is_error: boolean,
      toolset_name: nullable(string),
    },
  ),
  server_tool_use: object(
    { type: string, id: toolId, name: string, input: dictionary },
    { ...cacheable, caller: dictionary },
  ),
  ...Object.fromEntries(SERVER_TOOL_RESULTS.map((type) => [type, serverToolResult])),
});

const messageFields = object({
  role: oneOf("user", "assistant"),
  content: stringOr(arrayOf(block)),
});

const message: Shape = (value, path) =>
  isObject(value) && value["role"] === "system"
    ? 'messages: Unexpected role "system". The Messages API accepts a top-level `system` parameter, not "system" as an input message role.'
    : messageFields(value, path);

const inputSchema: Shape = (value, path) => {
  if (!isObject(value)) return dictionary(value, path);
  const { type } = value;
  if (type === undefined) return `${path}.type: Field required`;
  if (type !== "object") return `${path}.type: Input should be 'object'`;
  return ["oneOf", "allOf", "anyOf"].some((keyword) => Object.hasOwn(value, keyword))
    ? `${path}: input_schema does not support oneOf, allOf, or anyOf at the top level`
    : null;
};

const customTool = object(
  { name: toolName, input_schema: inputSchema },
  {
    ...cacheable,
    type: nullable(oneOf("custom")),
    description: string,
    strict: boolean,
    defer_loading: boolean,
    eager_input_streaming: nullable(boolean),
    allowed_callers: arrayOf(string),
    input_examples: arrayOf(dictionary),
  },
);
/** Client tools only; the provider's own tools are not part of this server. */
const tool: Shape = (value, path) => customTool(value, `${path}.custom`);

const parallel = { disable_parallel_tool_use: boolean };
const toolChoice = tagged({
  auto: object({ type: string }, parallel),
  any: object({ type: string }, parallel),
  tool: object({ type: string, name: string }, parallel),
  none: object({ type: string }),
});

const display = { display: nullable(oneOf("summarized", "omitted")) };
const thinking = tagged({
  enabled: object({ type: string, budget_tokens: integer(1024) }, display),
  adaptive: object({ type: string }, display),
  between_tools: object({ type: string }),
  disabled: object({ type: string }),
});

const outputConfig = object(
  {},
  {
    effort: nullable(oneOf("low", "medium", "high", "xhigh", "max")),
    format: nullable(object({ type: oneOf("json_schema"), schema: dictionary })),
  },
);

const prompt = { model: name(256), messages: arrayOf(message) };
const promptOptions = {
  cache_control: cacheControl,
  output_config: outputConfig,
  speed: nullable(oneOf("standard", "fast")),
  system: stringOr(arrayOf(tagged({ text }))),
  thinking,
  tool_choice: toolChoice,
  tools: arrayOf(tool),
};

export const messagesShape: Shape = object(
  { ...prompt, max_tokens: integer(1) },
  {
    ...promptOptions,
    container: nullable(anything),
    diagnostics: nullable(dictionary),
    inference_geo: nullable(string),
    metadata: object({}, { user_id: nullable(string) }),
    service_tier: oneOf("auto", "standard_only"),
    stop_sequences: arrayOf(string),
    stream: boolean,
  },
);

export const countTokensShape: Shape = object(prompt, promptOptions);
