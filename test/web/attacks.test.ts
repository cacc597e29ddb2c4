/**
 * Texts of models and tools that attack the page, in every field of the whole page that they can fill: nothing runs,
 * nothing is loaded from elsewhere, and the page's policy has nothing to stop.
 * Not here: each text by itself, and what becomes of it (text/xss.test.ts).
 */
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { expect } from "vitest";
import { answer, fail, say, text, thinking, toolCall } from "../../local/scripted/script.ts";
import { at as pathOf } from "../api/person.ts";
import type { Visitor } from "./browser.ts";
import { chooseDirectory, Conversations, decide, on, untilState } from "./conversations.ts";
import { testWithStack, type Stack } from "./stack.ts";
import { used } from "./states.ts";
import { FOREIGN, XSS_CORPUS } from "./xss-corpus.ts";

const test = testWithStack();

const ATTACKS = XSS_CORPUS.map(([, attack]) => attack);
const ALL = ATTACKS.join("\n\n");
/** As it can be in a text file, and in thinking that the provider has signed. */
const CLEAN = ALL.replaceAll("\0", "").toWellFormed();
/** Those that can be the name of a file. */
const NAMES = [...new Set(ATTACKS.map((attack) => attack.replaceAll(/[/\0]/g, "∕").toWellFormed()))].filter(
  (name) => Buffer.byteLength(name) < 250 && name.trim() !== "",
);

/** In as many parts, each with whole attacks. */
const inParts = (count: number): readonly string[] =>
  Array.from({ length: count }, (_, part) => ATTACKS.filter((_, n) => n % count === part).join("\n\n"));

type Watched = { readonly violations: string[] };

/** In the browser, before anything else: what the page's policy has to stop. */
function watchPolicy(): void {
  const violations: string[] = [];
  Object.assign(globalThis, { violations });
  document.addEventListener("securitypolicyviolation", ({ violatedDirective, blockedURI }) => {
    violations.push(`the policy stopped ${violatedDirective} ${blockedURI}`);
  });
}

/** In the browser: what no text may have made. */
function findInPage(): readonly string[] {
  const found = [...(globalThis as unknown as Watched).violations];
  const never = "script,iframe,frame,object,embed,base,meta,link,style,svg,math,video,audio,marquee,template";
  for (const element of document.body.querySelectorAll(never))
    // The page's own entry.
    if (!(element instanceof HTMLScriptElement && element.src.startsWith(`${location.origin}/assets/`)))
      found.push(`element ${element.outerHTML.slice(0, 120)}`);
  const given = "[srcdoc],[action],[formaction],[background],[poster],[ping],[autofocus]";
  for (const element of document.querySelectorAll(`nav ${given}, main ${given}`))
    found.push(`attribute of ${element.outerHTML.slice(0, 120)}`);
  for (const element of document.body.querySelectorAll("*"))
    for (const { name } of element.attributes)
      if (name.startsWith("on")) found.push(`handler ${element.outerHTML.slice(0, 120)}`);
  for (const image of document.images)
    if (!image.src.startsWith("blob:")) found.push(`image ${image.outerHTML.slice(0, 120)}`);
  for (const link of document.body.querySelectorAll("a")) {
    if (link.origin === location.origin) {
      if (!/^\/(c\/[\w-]+(\/requests)?|docs)?$/.test(link.pathname)) found.push(`link to ${link.href}`);
    } else if (!["http:", "https:", "mailto:"].includes(link.protocol)) found.push(`link to ${link.href}`);
    else if (link.target !== "_blank" || !link.rel.includes("noopener"))
      found.push(`link without protection: ${link.outerHTML.slice(0, 120)}`);
  }
  return found;
}

async function watched(visitor: Visitor, stack: Stack): Promise<Page> {
  await visitor.context.addInitScript(watchPolicy);
  const page = await visitor.open(stack.url);
  // High, so that there is much to see at once.
  await page.setViewportSize({ width: 1_200, height: 4_000 });
  return page;
}

/** All texts of the page have been formatted, as far as they will be. */
const untilFormatted = (page: Page): Promise<void> =>
  expect.poll(() => page.locator(".md-unformatted").count()).toBe(0);

/** In the browser: opens what is folded, and has come into view. Resolves with how much that was. */
async function unfold(element: Element): Promise<number> {
  for (let frame = 0; frame < 3; frame++) await new Promise(requestAnimationFrame);
  const folded = [
    // A row that leaves the view is folded again. A trace is so long that it drives others out, and they drive it out.
    ...element.querySelectorAll<HTMLElement>(
      "button[aria-expanded=false]:not(.trace > button), details:not([open]) > summary",
    ),
    ...[...element.querySelectorAll("button")].filter(({ textContent }) => textContent.startsWith("Show ")),
  ];
  for (const each of folded) each.click();
  return folded.length;
}

/**
 * Only what is near the view is there: unfolds and looks at one view after the other, from the end to the beginning.
 *
 * @returns all texts that were there
 */
async function lookThrough(page: Page): Promise<string> {
  const region = on(page).transcript;
  await region.evaluate((element) => (element.scrollTop = element.scrollHeight));
  let seen = "";
  for (;;) {
    while ((await region.evaluate(unfold)) > 0) await untilFormatted(page);
    await untilFormatted(page);
    expect(await page.evaluate(findInPage)).toEqual([]);
    seen += await region.innerText();
    const top = await region.evaluate((element) => {
      const before = element.scrollTop;
      element.scrollTop -= element.clientHeight * 0.8;
      return before;
    });
    if (top === 0) return seen;
  }
}

/** It is still this page, alone. */
function checkSurvived(page: Page, url: string, visitor: Visitor): void {
  expect(page.url()).toBe(url);
  expect(visitor.context.pages()).toHaveLength(1);
  expect(visitor.problems().filter((problem) => problem.includes(FOREIGN))).toEqual([]);
  expect(visitor.problems()).toEqual([]);
}

test("in answers while they are written and after, in thinking, in calls, outputs, diffs, and the reason of an approval", async ({
  visitor,
  stack,
}) => {
  const conversations = new Conversations(stack);
  const { cwd } = stack.system;
  const folder = join(cwd, "names");
  await mkdir(folder, { recursive: true });
  await Promise.all(NAMES.map((name) => writeFile(join(folder, name), name)));
  await writeFile(join(cwd, "attacks.txt"), `In a file ${CLEAN}`);
  const page = await watched(visitor, stack);
  const id = await conversations.person.create({ title: "Everything" });
  const url = `${stack.url}/c/${id}`;
  await page.goto(url);
  await untilState(page, "ready");

  const keys = Object.fromEntries(ATTACKS.map((attack) => [attack, [attack, { [attack]: null }]]));
  const [first = "", ...others] = inParts(4);
  const tag = conversations.script(
    answer(
      [
        thinking(`In thinking ${CLEAN}`),
        ...ATTACKS.filter((attack) => attack.trim() !== "").map((attack) => text(attack)),
        text(`In an answer ${ALL}`),
        toolCall("bash", { command: "cat attacks.txt; cat attacks.txt >&2" }),
        toolCall("bash", { command: `: 'In a command ${first.replaceAll("'", " ")}'` }),
        toolCall("ls", { path: folder }),
        toolCall("read", { path: "attacks.txt" }),
        toolCall("grep", { pattern: "script", path: "attacks.txt" }),
        toolCall("find", { pattern: `*${NAMES[0] ?? ""}*` }),
        toolCall("think", { thought: `In a thought ${ALL}` }),
        toolCall("no_such_tool", { "In an input": keys }),
      ],
      { pace: { characters: 100, delayMs: 0 } },
    ),
    say(toolCall("request_mode_upgrade", { reason: `In a reason ${ALL}` })),
    say(
      toolCall("write", { path: join(folder, `${NAMES[22] ?? ""}.txt`), content: `In a new file ${CLEAN}` }),
      toolCall("edit", {
        path: "attacks.txt",
        edits: [{ oldText: first.slice(0, 30), newText: `In a change ${others.join()}` }],
      }),
    ),
    say(text("That was all.")),
  );
  await conversations.person.say(id, { text: `Attack. ${tag}` });
  const findings = new Set<string>();
  await expect
    .poll(
      async () => {
        for (const finding of await page.evaluate(findInPage)) findings.add(finding);
        return on(page).allow.count();
      },
      { timeout: 60_000 },
    )
    .toBe(1);
  expect(await lookThrough(page)).toContain("In a reason");
  await decide(page, "allow");
  await on(page).transcript.getByText("That was all.").waitFor();
  await untilState(page, "ready");
  const fields = [
    ...["In thinking", "In an answer", "In a file", "In a command", "In an input", "In a thought"],
    ...["In a reason", "In a new file", "In a change"],
  ];
  const unseen = (seen: string) => fields.filter((field) => !seen.includes(field));
  expect(unseen(await lookThrough(page))).toEqual([]);
  expect([...findings]).toEqual([]);

  // As it is stored, in a view for debugging, too.
  await page.reload();
  await untilState(page, "ready");
  expect(unseen(await lookThrough(page))).toEqual([]);
  await page.getByRole("link", { name: "Requests" }).click();
  for (const each of await page.getByRole("table").getByRole("button").all()) await each.click();
  await untilFormatted(page);
  expect(await page.evaluate(findInPage)).toEqual([]);
  await page.getByRole("button", { name: "Where the time went" }).first().click();
  await page.getByRole("region", { name: "Spans of the turn" }).waitFor();
  expect(await page.evaluate(findInPage)).toEqual([]);
  checkSurvived(page, `${url}/requests`, visitor);
}, 120_000);

test("in the tasks and results of sub-agents, in the provider's errors, and in the name of a tool", async ({
  visitor,
  stack,
}) => {
  const conversations = new Conversations(stack);
  const page = await watched(visitor, stack);
  const tasks = inParts(3).map((part) => ({
    task: `In a task ${part} ${conversations.script(say(toolCall("submit_result", { result: `In a result ${part}` })))}`,
  }));
  // Words with markup are not passed on at all, and of the others 300 characters.
  const words = ATTACKS.filter((attack) => !attack.includes("<")).join(" ");
  const errors = [ALL, words, words.slice(250), words.slice(500)].map((part) =>
    fail("invalid_request_error", { message: `In an error ${part}` }),
  );
  const { id, url } = await conversations.start(
    "Delegate.",
    say(toolCall("spawn_agents", { tasks })),
    ...errors,
    say(toolCall(ATTACKS[22] ?? "", { command: "ls" })),
  );
  await page.goto(url);
  for (const { message } of errors) {
    expect(message).not.toBe("");
    await untilState(page, "request refused");
    await on(page).message.fill("Go on.");
    await on(page).send.click();
    await expect.poll(() => on(page).message.inputValue()).toBe("");
    await conversations.person.untilState(id, "error");
  }
  const seen = await lookThrough(page);
  for (const field of ["In a task", "In a result", "In an error"]) expect(seen).toContain(field);
  await page.getByRole("region", { name: "Sub-agents" }).getByRole("link").first().click();
  await page.getByText("A sub-agent takes no messages.").waitFor();
  await lookThrough(page);
  checkSurvived(page, page.url(), visitor);
});

test("in a summary, and in the conversation that begins with it", async ({ visitor, stack }) => {
  const conversations = new Conversations(stack);
  const page = await watched(visitor, stack);
  const { url } = await conversations.start(
    "Full.",
    answer(["Much."], used(0.95)),
    say(`In a summary ${ALL}`),
  );
  await page.goto(url);
  await untilState(page, "context used up");
  expect(await lookThrough(page)).toContain("In a summary");
  await page.getByRole("button", { name: "Go on with the summary" }).click();
  await page.getByText("Begins with the summary of the conversation before").waitFor();
  expect(await lookThrough(page)).toContain("In a summary");
  checkSurvived(page, page.url(), visitor);
});

test("in titles and the names of directories", async ({ visitor, stack }) => {
  const conversations = new Conversations(stack);
  const { person } = conversations;
  const page = await watched(visitor, stack);
  const name = NAMES.find((each) => each.startsWith("<img src=x")) ?? "";
  const folder = join(stack.system.cwd, "places");
  const cwd = join(folder, name);
  await mkdir(cwd, { recursive: true });
  await Promise.all(NAMES.slice(0, 60).map((each) => mkdir(join(folder, each), { recursive: true })));
  const id = await person.create({ title: "Before", cwd });
  await page.goto(`${stack.url}/c/${id}`);
  await page.getByRole("main").getByText(name).waitFor();
  for (const attack of ATTACKS) {
    const title = attack.slice(0, 500).trim();
    if (title === "") continue;
    await person.order("PATCH", pathOf(id), { title }, 200);
    const shown = String((await person.conversation(id))["title"]);
    await expect.poll(() => page.getByRole("heading", { level: 1 }).textContent()).toBe(shown);
    expect(await page.evaluate(findInPage)).toEqual([]);
  }
  checkSurvived(page, `${stack.url}/c/${id}`, visitor);

  await on(page).list.getByRole("link", { name: "New", exact: true }).click();
  await chooseDirectory(page, `${folder}/`);
  const offered = () =>
    page
      .getByLabel("Directory")
      .evaluate((input) => [...((input as HTMLInputElement).list?.options ?? [])].map(({ value }) => value));
  await expect.poll(offered).toContain(cwd);
  expect(await page.evaluate(findInPage)).toEqual([]);
  checkSurvived(page, `${stack.url}/`, visitor);
});
