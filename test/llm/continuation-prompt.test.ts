/** REQ-BED-020: the prompt of the request for a summary, word for word as in the design. */
import { expect, test } from "vitest";
import { buildContinuationRequest } from "../../llm/continuation.ts";
import { Models } from "../../llm/models.ts";
import * as m from "./messages.ts";

const PROMPT = `The conversation context is nearly full. Please provide a brief continuation summary that could seed a new conversation.

Include:
1. Current task status (if any)
2. Key files or concepts discussed
3. Suggested next steps

Keep your response concise.`;
const NOTE = `

Note: The following tool calls were requested but not executed due to context limits:
`;

/** What the model reads last. */
function promptFor(rejectedTools: readonly string[]): unknown {
  const [turn] = buildContinuationRequest({
    messages: m.stored(m.user("go")),
    model: new Models().of("claude-opus-5-5"),
    rejectedTools,
  }).messages;
  return turn?.content.at(-1);
}

test("the prompt asks for the summary; after calls that did not run, it lists their names", () => {
  expect(promptFor([])).toEqual(m.text(PROMPT));
  expect(promptFor(["bash", "write"])).toEqual(m.text(`${PROMPT}${NOTE}- bash\n- write`));
});

test("of many calls the first twenty are named, and the others are counted", () => {
  const names = Array.from({ length: 23 }, (_, n) => `tool${n}`);
  const listed = names.slice(0, 20).map((name) => `- ${name}`);
  expect(promptFor(names)).toEqual(m.text(`${PROMPT}${NOTE}${listed.join("\n")}\n- … and 3 more`));
});
