/**
 * Owns: the views and states of the page that everybody must be able to see and use, each made once and then looked at
 * in several ways: themes, widths, contrast, screenshots.
 * Not here: what must hold of them (accessibility.test.ts, sizes.test.ts).
 */
import { mkdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { BrowserContextOptions, Page } from "playwright-core";
import sharp from "sharp";
import { expect } from "vitest";
import { hold } from "../../local/scripted/cues.ts";
import {
  answer,
  fail,
  rateLimited,
  say,
  text,
  thinking,
  toolCall,
  type Answer,
} from "../../local/scripted/script.ts";
import type { Visitor } from "./browser.ts";
import { chooseDirectory, Conversations, on, untilState } from "./conversations.ts";
import type { Stack } from "./stack.ts";

type Stage = {
  readonly stack: Stack;
  readonly conversations: Conversations;
  /** Opens a tab of the person. */
  readonly open: (url: string) => Promise<Page>;
  readonly tolerate: Visitor["tolerate"];
  /** Runs when the scene is over, last first. */
  readonly defer: (end: () => Promise<unknown>) => void;
};

export type Scene = {
  readonly name: string;
  /** The page in this state. It stays in it until the scene is over. */
  readonly show: (stage: Stage) => Promise<Page>;
};

/**
 * Shows a scene, and ends it after the look at it.
 *
 * @param options of the person's browser
 */
export async function show(
  { show }: Scene,
  { visitor, stack }: { readonly visitor: Visitor; readonly stack: Stack },
  lookAt: (page: Page) => Promise<void>,
  options: BrowserContextOptions = {},
): Promise<void> {
  const profile = await visitor.another(options);
  const ends: (() => Promise<unknown>)[] = [];
  const stage: Stage = {
    stack,
    conversations: new Conversations(stack),
    open: (url) => visitor.open(url, profile),
    tolerate: visitor.tolerate,
    defer: (end) => void ends.unshift(end),
  };
  try {
    await lookAt(await show(stage));
  } finally {
    for (const end of ends) await end();
  }
}

/** Tokens; the window of the conversations' model. */
const WINDOW = 1_000_000;
const used = (share: number) => ({
  usage: {
    ...{ input_tokens: 12_840, output_tokens: 640 },
    ...{ cache_read_input_tokens: Math.round(WINDOW * share) - 13_480, cache_creation_input_tokens: 0 },
  },
});

const CART = `export type Line = { price: number; count: number };

/** The sum of all lines, with tax. */
export function total(lines: Line[], tax: number): number {
  let sum = 0;
  for (const { price, count } of lines) {
    sum += Math.round(price * count * (1 + tax));
  }
  return sum;
}
`;
const ROUNDED = {
  oldText: "    sum += Math.round(price * count * (1 + tax));\n  }\n  return sum;",
  newText:
    "    sum += price * count;\n  }\n  // Rounded once, as on the invoice.\n  return Math.round(sum * (1 + tax));",
};
const FILES: Readonly<Record<string, string>> = {
  "README.md": "# Shop\n\nPrices, cart and invoices.\n",
  "src/cart.ts": CART,
  "src/invoice.ts": 'import { total } from "./cart.ts";\n\nexport const due = total;\n',
  "src/prices.ts": "export const TAX = 0.19;\n",
  "test/cart.test.ts": 'test("three lines", () => {\n  expect(total(lines, 0.19)).toBe(1189);\n});\n',
};

/** A small project, in the directory of the conversations. */
async function writeProject(stack: Stack): Promise<void> {
  for (const [name, content] of Object.entries(FILES)) {
    const path = join(stack.system.cwd, name);
    await mkdir(dirname(path), { recursive: true });
    await writeFile(path, content);
  }
}

/** A word that no line can hold. */
const LONG = "supercalifragilistic".repeat(12);

const readsFour = () =>
  Object.keys(FILES)
    .slice(0, 4)
    .map((path) => toolCall("read", { path }));
const asks = (reason: string) => toolCall("request_mode_upgrade", { reason });

const EXPLANATION = `The total is rounded **once for each line**, the invoice rounds the sum. With three lines that makes a difference of a cent.

## What each does

| where | rounds | three lines |
|---|---|--:|
| \`src/cart.ts\` | each line | 11.90 |
| \`src/invoice.ts\` | the sum | 11.89 |

1. Take the rounding out of the loop.
2. Round the sum, as the invoice does.

\`\`\`ts
return Math.round(sum * (1 + tax)); // once
\`\`\`

> The invoice is what the customer pays, so the cart has to follow it.
`;

const picture = (width: number, height: number): Promise<Buffer> =>
  sharp({ create: { width, height, channels: 3, background: "#3f7f6f" } })
    .png()
    .toBuffer();

/** The person's decision, as soon as the agent asks. */
async function allow({ person }: Conversations, id: string): Promise<void> {
  await person.untilState(id, "awaiting_mode_approval");
  const { state } = (await person.conversation(id)) as { state: { toolCall: { id: string } } };
  await person.order("POST", `/api/conversations/${id}/approval`, {
    decision: "approve",
    toolCallId: state.toolCall.id,
  });
}

/** Opens a conversation whose first message gets these answers. It is stopped when the scene is over. */
async function begin(stage: Stage, title: string, ...answers: readonly Answer[]) {
  const { conversations, open, defer } = stage;
  await writeProject(stage.stack);
  const { id, url } = await conversations.start(title, ...answers);
  defer(async () => {
    if ((await conversations.person.stateOf(id)) !== "context_exhausted")
      await conversations.person.order("POST", `/api/conversations/${id}/cancel`, { queue: "hold" });
  });
  return { id, page: () => open(url) };
}

/** The page cannot reach the server until the scene is over. */
async function cutNetwork({ stack, tolerate, defer }: Stage): Promise<void> {
  tolerate(/ERR_|Failed to load/);
  defer(() => stack.network.mend());
  await stack.network.cut();
}

const scene = (name: string, show: Scene["show"]): Scene => ({ name, show });

/** In an order: the first one needs a server without any conversation, and the later ones have those before in the list. */
export const SCENES: readonly Scene[] = [
  scene("no conversation yet", async ({ stack, open }) => {
    const page = await open(stack.url);
    await page.getByText("Three things to try:").waitFor();
    await page.getByRole("combobox", { name: "Model" }).waitFor();
    return page;
  }),

  scene("a conversation at rest", async (stage) => {
    const { id, page } = await begin(
      stage,
      "The total is off by a cent",
      say(
        thinking("The cart and the invoice may round at different places."),
        text("I read the cart, the invoice and the test."),
        ...readsFour(),
      ),
      say(toolCall("bash", { command: "grep -rn 'Math.round' src" })),
      answer([text(EXPLANATION)], used(0.18)),
      answer([text("The picture shows the same difference.")], used(0.19)),
    );
    await stage.conversations.person.untilState(id, "idle");
    await stage.conversations.person.say(id, {
      text: "This is what the customer sees.",
      images: [{ mediaType: "image/png", data: (await picture(240, 120)).toString("base64") }],
    });
    const shown = await page();
    await on(shown).transcript.getByText("The picture shows the same difference.").waitFor();
    await untilState(shown, "ready");
    await on(shown).transcript.getByRole("img", { name: "Image, 240 by 120 pixels" }).waitFor();
    return shown;
  }),

  scene("a new conversation, with directories to choose from", async ({ stack, open }) => {
    const page = await open(stack.url);
    await chooseDirectory(page, `${stack.system.cwd}/`);
    await page.keyboard.press("ArrowDown");
    return page;
  }),

  scene("text that streams", async (stage) => {
    const { page } = await begin(
      stage,
      "Explain the cart",
      say(text("The cart adds its lines in `total`. Each line has a price and a count, and so", hold())),
    );
    const shown = await page();
    await untilState(shown, "writes");
    await on(shown).transcript.getByText("a price and a count").waitFor();
    return shown;
  }),

  scene("thinking, opened", async (stage) => {
    const { page } = await begin(
      stage,
      "Why is the start slow?",
      say(thinking(["The start reads every price. ", "A cache would help, but then", hold()])),
    );
    const shown = await page();
    await shown.getByRole("button", { name: /^Thinks/ }).click();
    await on(shown).transcript.getByText("A cache would help").waitFor();
    return shown;
  }),

  scene("a group of calls opened, a change of a file below it", async (stage) => {
    const { id, page } = await begin(
      stage,
      "Round the sum, not the lines",
      say(text("I look first."), ...readsFour(), toolCall("grep", { pattern: "Math.round", path: "src" })),
      say(asks("I want to change src/cart.ts.")),
      say(toolCall("edit", { path: "src/cart.ts", ...ROUNDED }), toolCall("read", { path: "src/tax.ts" })),
      answer([text("The sum is rounded once now.")], used(0.21)),
    );
    await allow(stage.conversations, id);
    const shown = await page();
    await on(shown).transcript.getByText("The sum is rounded once now.").waitFor();
    await untilState(shown, "ready");
    await shown.getByRole("region", { name: "Change of src/cart.ts" }).waitFor();
    // On a phone it is far above.
    await on(shown).transcript.press("Home");
    await shown.getByRole("button", { name: /Looked at 5 places/ }).click();
    return shown;
  }),

  scene("a command that runs, with what it has printed", async (stage) => {
    const command =
      "for i in 1 2 3; do printf '\\033[32m✓\\033[0m cart.test.ts (%s)\\n' $i; done; echo 'slow disk' >&2; sleep 120";
    const { page } = await begin(
      stage,
      "Run the tests until they fail",
      say(text("I run them."), toolCall("bash", { command })),
    );
    const shown = await page();
    const running = shown.getByRole("region", { name: "Runs 1 command" });
    await running.getByText("cart.test.ts (3)").waitFor();
    await running.getByText("slow disk").last().waitFor();
    return shown;
  }),

  scene("an approval that waits, with a message for afterwards", async (stage) => {
    const { id, page } = await begin(
      stage,
      "Fix the flaky test",
      say(
        text("The test in `test/cart.test.ts` fails where two lines are rounded. I would change the sum."),
        ...readsFour(),
      ),
      answer(
        [
          text("It is the loop in `src/cart.ts`. I ask before I change it."),
          asks("I want to change src/cart.ts (3 lines) and run the tests, which write to coverage/."),
        ],
        used(0.62),
      ),
    );
    await stage.conversations.person.say(id, {
      text: "Then write the entry in the changelog.",
      delivery: "followUp",
    });
    const shown = await page();
    await expect.poll(() => on(shown).allow.isEnabled()).toBe(true);
    await on(shown).waiting.waitFor();
    return shown;
  }),

  scene("a Stop that is under way", async (stage) => {
    const { page } = await begin(stage, "Count the invoices", say(text("I count them: one, two,", hold())));
    const shown = await page();
    await untilState(shown, "writes");
    // The server does not hear of it yet.
    stage.defer(() => stage.stack.network.mend());
    await stage.stack.network.hang();
    await shown.keyboard.press("Escape");
    await untilState(shown, "stopping");
    return shown;
  }),

  scene("messages that a Stop holds", async (stage) => {
    const { id, page } = await begin(stage, "Sort the prices", say(text("I begin", hold())));
    const { person } = stage.conversations;
    await person.untilState(id, "llm_requesting");
    await person.say(id, { text: "Then run the tests.", delivery: "followUp" });
    await person.order("POST", `/api/conversations/${id}/cancel`, { queue: "hold" });
    const shown = await page();
    await on(shown).waiting.getByText("Held since you stopped the agent.").waitFor();
    return shown;
  }),

  scene("a retry that is counted down", async (stage) => {
    const { page } = await begin(stage, "Translate the invoices", rateLimited(60), say("Done."));
    const shown = await page();
    await untilState(shown, "will ask again in");
    return shown;
  }),

  scene("an error", async (stage) => {
    const { page } = await begin(stage, "Port the scripts", fail("authentication_error"));
    const shown = await page();
    await untilState(shown, "key refused");
    await on(shown).transcript.getByText("ANTHROPIC_API_KEY").waitFor();
    return shown;
  }),

  scene("a context that is nearly full", async (stage) => {
    const { page } = await begin(
      stage,
      "Move the shop to Postgres",
      answer(["All tables but the invoices are moved."], used(0.83)),
    );
    const shown = await page();
    await untilState(shown, "ready");
    await shown.getByRole("button", { name: "Wrap up now" }).waitFor();
    return shown;
  }),

  scene("a context that is used up, with its summary", async (stage) => {
    const { page } = await begin(
      stage,
      "Release notes 0.4",
      answer(["I have read all commits."], used(0.93)),
      say(
        "## Where it stands\n\nThe notes of `0.4` are written up to the cart.\n\n- **Done:** prices, cart\n- **Open:** invoices\n\nNext: read `src/invoice.ts`.",
      ),
    );
    const shown = await page();
    await untilState(shown, "context used up");
    await shown.getByRole("button", { name: "Go on with the summary" }).waitFor();
    return shown;
  }),

  scene("sub-agents at work", async (stage) => (await delegate(stage)).page),

  scene("a sub-agent, opened from its card", async (stage) => {
    const { page } = await delegate(stage);
    await page.getByRole("link", { name: /^Who else rounds/ }).click();
    await page.getByText("A sub-agent takes no messages.").waitFor();
    await on(page).transcript.getByText("No other file rounds.").first().waitFor();
    return page;
  }),

  scene("the requests of a conversation, one opened", async (stage) => {
    const { page } = await begin(
      stage,
      "Which files round?",
      say(text("I search."), toolCall("grep", { pattern: "Math.round", path: "src" })),
      answer([text("Only `src/cart.ts`.")], used(0.02)),
    );
    const shown = await page();
    await untilState(shown, "ready");
    await shown.getByRole("link", { name: "Requests" }).click();
    await shown.getByRole("table").getByRole("button", { name: "1", exact: true }).click();
    await shown.getByRole("heading", { name: "What it answered" }).waitFor();
    return shown;
  }),

  scene("an Unrestricted conversation, with images to be sent", async (stage) => {
    const { id, page } = await begin(
      stage,
      "Draw the cart",
      say(asks("I want to write cart.svg.")),
      say(toolCall("write", { path: "cart.svg", content: "<svg/>\n" })),
      answer([text("It is drawn.")], used(0.05)),
    );
    await allow(stage.conversations, id);
    const shown = await page();
    await shown.getByRole("button", { name: "Restrict again" }).waitFor();
    await untilState(shown, "ready");
    const png = await picture(60, 40);
    await shown.locator("input[type=file]").setInputFiles([
      { name: "before.png", mimeType: "image/png", buffer: png },
      { name: "after.png", mimeType: "image/png", buffer: png },
      { name: "notes.txt", mimeType: "text/plain", buffer: Buffer.from("no image") },
    ]);
    await on(shown).message.fill("Like this?");
    await shown.getByRole("img", { name: "after.png" }).waitFor();
    return shown;
  }),

  scene("the list with a menu open", async (stage) => {
    const { page } = await begin(stage, "Explain the prices", say("They are in `src/prices.ts`."));
    const shown = await page();
    await untilState(shown, "ready");
    await openList(shown);
    await shown.getByRole("button", { name: "More about Explain the prices" }).click();
    await shown.getByRole("menuitem", { name: "Delete" }).waitFor();
    return shown;
  }),

  scene("the list with a title that is being changed", async (stage) => {
    const { page } = await begin(stage, "Explain the invoices", say("They follow the cart."));
    const shown = await page();
    await untilState(shown, "ready");
    await openList(shown);
    await shown.getByRole("button", { name: "More about Explain the invoices" }).click();
    await shown.getByRole("menuitem", { name: "Rename" }).click();
    await shown.getByRole("textbox", { name: "Title" }).waitFor();
    return shown;
  }),

  scene("the list searched, with archived conversations", async (stage) => {
    const { id, page } = await begin(stage, "Explain the taxes", say("They are in `src/prices.ts`."));
    const { person } = stage.conversations;
    await person.untilState(id, "idle");
    await person.order("PATCH", `/api/conversations/${id}`, { archived: true }, 200);
    const shown = await page();
    await openList(shown);
    await on(shown).list.getByRole("searchbox").fill("explain");
    await shown.getByRole("checkbox", { name: "Show archived" }).check();
    await on(shown).list.getByRole("heading", { name: "Archived" }).waitFor();
    return shown;
  }),

  scene("the list searched in vain", async (stage) => {
    const shown = await stage.open(stage.stack.url);
    await openList(shown);
    await on(shown).list.getByRole("searchbox").fill("nowhere");
    await shown.getByText("No conversation has this").waitFor();
    return shown;
  }),

  scene("messages that come and go", async (stage) => {
    const titles = ["Old notes", "A first try"];
    const { person } = stage.conversations;
    for (const title of titles) await person.create({ title });
    const shown = await stage.open(stage.stack.url);
    await openList(shown);
    for (const [n, title] of titles.entries()) {
      await shown.getByRole("button", { name: `More about ${title}` }).click();
      await shown.getByRole("menuitem", { name: n === 0 ? "Archive" : "Delete" }).click();
      await shown.getByRole("button", { name: "Undo" }).nth(n).waitFor();
    }
    return shown;
  }),

  scene("words and paths without end", async (stage) => {
    const { conversations, stack } = stage;
    const cwd = join(stack.system.cwd, LONG.slice(0, 100), LONG.slice(0, 100));
    await mkdir(cwd, { recursive: true });
    const tag = conversations.script(
      say(
        thinking(LONG),
        text(
          `# ${LONG}\n\n${LONG} \`${LONG}\`\n\n- ${LONG}\n\n> ${LONG}\n\n| ${LONG} | b |\n|---|---|\n| ${LONG} | \`${LONG}\` |\n\n\`\`\`ts\nconst ${LONG} = 1;\n\`\`\`\n`,
        ),
        toolCall("read", { path: `${LONG.slice(0, 200)}.ts` }),
        toolCall("bash", { command: `echo ${LONG}` }),
      ),
      say(toolCall("request_mode_upgrade", { reason: LONG })),
      say(toolCall("write", { path: `${LONG.slice(0, 200)}.ts`, content: `${LONG}\n` }), asks(LONG)),
      say(toolCall("spawn_agents", { tasks: [{ task: LONG }] }), toolCall("submit_result", { [LONG]: LONG })),
      say(text(LONG, hold())),
    );
    const id = await conversations.person.create({ cwd, title: LONG, message: { text: `${LONG} ${tag}` } });
    stage.defer(() =>
      conversations.person.order("POST", `/api/conversations/${id}/cancel`, { queue: "hold" }),
    );
    await allow(conversations, id);
    const shown = await stage.open(`${stack.url}/c/${id}`);
    await untilState(shown, "writes");
    await conversations.person.say(id, { text: LONG, delivery: "followUp" });
    await on(shown).waiting.waitFor();
    return shown;
  }),

  scene("a conversation that is not there", async ({ stack, open, tolerate }) => {
    tolerate(/status of 404/);
    const shown = await open(`${stack.url}/c/nowhere`);
    await shown.getByRole("link", { name: "Start a new one" }).waitFor();
    return shown;
  }),

  scene("a connection that is lost, with a Stop that waits for it", async (stage) => {
    const { page } = await begin(stage, "Find the slow query", say(text("I look at the", hold())));
    const shown = await page();
    await untilState(shown, "writes");
    await cutNetwork(stage);
    await untilState(shown, "connection lost");
    await shown.keyboard.press("Escape");
    await shown.getByText("Stop is sent as soon as it can.").waitFor();
    return shown;
  }),
];

/** @throws where there is none of this name */
export function sceneOf(name: string): Scene {
  const found = SCENES.find((scene) => scene.name === name);
  if (found === undefined) throw new Error(`There is no scene "${name}".`);
  return found;
}

/** With the scripted model, as `npm start` without a key. */
export const SCRIPTED_SCENES: readonly Scene[] = [
  scene("no conversation yet, and no key", async ({ stack, open }) => {
    const page = await open(stack.url);
    await page.getByRole("button", { name: "Look around" }).waitFor();
    return page;
  }),
  scene("what the scripted model does", async ({ stack, open }) => {
    await writeFile(join(stack.system.cwd, "cart.ts"), CART);
    const page = await open(stack.url);
    await chooseDirectory(page, stack.system.cwd);
    await page.getByRole("button", { name: "Look around" }).click();
    await untilState(page, "ready");
    await on(page).transcript.getByText("done").waitFor();
    return page;
  }),
];

/** Where the API asks for a token. */
export const TOKEN_SCENES: readonly Scene[] = [
  scene("the prompt for a token", async ({ stack, open, tolerate }) => {
    tolerate(/status of 401/);
    const page = await open(stack.url);
    await page.getByRole("heading", { name: "This server asks for a token" }).waitFor();
    return page;
  }),
  scene("a token that was refused", async ({ stack, open, tolerate }) => {
    tolerate(/status of 401/);
    const page = await open(stack.url);
    await page.getByLabel("Token").fill("wrong");
    await page.keyboard.press("Enter");
    await page.getByText("did not accept the token").waitFor();
    return page;
  }),
];

/** One sub-agent has ended, another one is at work. */
async function delegate(stage: Stage): Promise<{ readonly page: Page }> {
  const { conversations } = stage;
  const fast = conversations.script(
    say(text("I search for roundings."), toolCall("grep", { pattern: "Math.round", path: "src" })),
    say(text("No other file rounds."), toolCall("submit_result", { result: "No other file rounds." })),
  );
  const slow = conversations.script(say(text("I run it", hold())));
  const { page } = await begin(
    stage,
    "Ask two sub-agents",
    say(
      text("Both questions can be answered at the same time."),
      toolCall("spawn_agents", {
        tasks: [{ task: `Who else rounds? ${fast}` }, { task: `Run the suite 100 times ${slow}` }],
      }),
    ),
  );
  const shown = await page();
  await untilState(shown, "sub-agents: 1 of 2 done");
  await shown.getByRole("region", { name: "Sub-agents" }).getByText("No other file rounds.").waitFor();
  return { page: shown };
}

/** On a phone the list is behind a button. */
async function openList(page: Page): Promise<void> {
  const button = page.getByRole("button", { name: "Show the list of conversations" });
  await button.or(on(page).list).first().waitFor();
  if (await button.isVisible()) await button.click();
  await on(page).list.waitFor();
}
