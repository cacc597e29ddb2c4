/** Tokens at the command line: making one, and being asked for one that may approve. */
import { randomUUID } from "node:crypto";
import { setTimeout as pause } from "node:timers/promises";
import { expect, test } from "vitest";
import { say, text, toolCall } from "../../local/scripted/script.ts";
import { digestOfToken } from "../../protocol/access.ts";
import { Person } from "../api/person.ts";
import { serveApi, startApiOn } from "../api/support.ts";
import { startSystem } from "../support/system.ts";
import { bedrock, idIn, run } from "./support.ts";

const TOKEN = "the-token-of-the-owner";
const system = await startSystem();
const api = startApiOn(system, { apiToken: TOKEN, anonymousRole: "talk" });
const { url } = await serveApi(api);
const person = new Person(api, system.cwd);
const here = { url, cwd: system.cwd };

const asks = (): string =>
  system.model.script(randomUUID(), [
    say(text("I ask."), toolCall("request_mode_upgrade", { reason: "To write." })),
    say(text("Thanks.")),
  ]);
/** What is typed in the first half second decides nothing. */
const untilItCounts = () => pause(700);

test("token prints a new token on standard output, and an entry with its digest", async () => {
  const made = await run(["token", "ada", "--role", "approve", "--expires", "2027-01-31", "--json"], here);
  const { token, entry } = JSON.parse(made.stdout) as { token: string; entry: object };
  expect(entry).toEqual({
    ...{ name: "ada", role: "approve", sha256: digestOfToken(token) },
    expires: "2027-01-31T00:00:00.000Z",
  });
  const shown = await run(["token", "ada", "--role", "read"], here);
  expect(shown.stdout).toMatch(/^[\w-]{43}\n$/);
  expect(shown.stderr).toContain(digestOfToken(shown.stdout.trim()));
  expect((await run(["token", "no name", "--role", "read"], here)).code).toBe(64);
  expect((await run(["token", "ada"], here)).code).toBe(64);
});

test("after a yes, run asks for a token where its own may not approve, does not show it, and the printed name is the token's", async () => {
  const running = bedrock(["run", "Go.", asks()], { ...here, isTerminal: true });
  await running.shows("Allow it? [y/N]");
  const id = idIn(running.stdout());
  await untilItCounts();
  running.type("y\r");
  await running.shows("Token (not shown)");
  running.type("a-wrong-one\r");
  await running.shows("Send the API token");
  expect(await person.stateOf(id)).toBe("awaiting_mode_approval");
  running.type(`${TOKEN}\r`);
  const { code, stdout } = await running.ended;
  expect(code).toBe(0);
  expect(stdout).toMatch(/✓ Allowed by owner[^]*Thanks\./);
  expect(stdout).not.toContain(TOKEN);
  expect(stdout).not.toContain("a-wrong-one");
});

test("without a terminal nobody is asked: approve ends with 77 and says what is missing", async () => {
  const id = idIn((await run(["run", "Go.", asks()], here)).stderr);
  const refused = await run(["approve", id], here);
  expect(refused.code).toBe(77);
  expect(refused.stderr).toContain("needs the role approve");
  const env = { BEDROCK_TOKEN: TOKEN };
  expect((await run(["approve", id], { ...here, env })).code).toBe(0);
});
