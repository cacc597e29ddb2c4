/** docs/operations.md and docs/observability.md, "Why is this conversation slow?": their commands, as they stand there. */
import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test, vi } from "vitest";
import { say, text } from "../../local/scripted/script.ts";
import { Person } from "../api/person.ts";
import { serveApi, startApiOn } from "../api/support.ts";
import { run } from "../cli/support.ts";
import { startSystem } from "../support/system.ts";

const DOCS = join(import.meta.dirname, "..", "..", "docs");

test.each(["operations.md", "observability.md"])("%s", async (page) => {
  const [, section = ""] = readFileSync(join(DOCS, page), "utf8").split(
    "## Why is this conversation slow?\n",
  );
  const [, command = ""] = /```sh\nbedrock (.*)\n```/.exec(section) ?? [];
  const system = await startSystem();
  const api = startApiOn(system);
  const { url } = await serveApi(api);
  const person = new Person(api, system.cwd);
  const tag = system.model.script(randomUUID(), [say(text("Done."))]);
  const id = await person.create({ message: { text: `Go. ${tag}` } });
  await vi.waitFor(async () => expect(await person.stateOf(id)).toBe("idle"), 20_000);
  const { stdout, code } = await run(command.replace("$id", id).split(" "), { url, cwd: system.cwd });
  expect(code).toBe(0);
  expect(stdout).toMatch(/^\d+ % of \S.* went to .*\.\n/);
});
