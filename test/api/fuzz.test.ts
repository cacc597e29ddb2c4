/**
 * Every route of /openapi.json, fuzzed by Schemathesis: valid requests, broken ones, and sequences that use each other's
 * answers. No answer is a 5xx, and each has a status, a type and a body that the contract describes.
 */
import { execFile } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import fc from "fast-check";
import { expect, test } from "vitest";
import { toolCall, say } from "../../local/scripted/script.ts";
import { pythonTool } from "../support/python-tools.ts";
import { startSystem } from "../support/system.ts";
import { Person } from "./person.ts";
import { problemOf, requestsBy, serveApi, startApi, startApiOn } from "./support.ts";

const run = promisify(execFile);
const LIMIT_MS = 15 * 60_000;
/** A run finds something new each time, and says its seed; the same seed makes the same requests. */
const SEED = process.env["FUZZ_SEED"] ?? String(Math.floor(Math.random() * 2 ** 31));
const EXAMPLES = process.env["FUZZ_EXAMPLES"] ?? "15";

/** Their answers do not end, or only with a run: the second test is about them. */
const STREAMS = ["streamConversation", "streamList", "streamMany", "followChat", "chat"];

test(
  "no request of any route is answered by a 5xx or by something that the contract does not describe",
  async ({ skip }) => {
    const schemathesis = await pythonTool("schemathesis==4.32.5", "schemathesis");
    skip(schemathesis === null, "it needs Python 3 with venv");
    const system = await startSystem();
    const api = startApiOn(system, { apiToken: "fuzz" });
    const { url } = await serveApi(api);
    const person = new Person(
      requestsBy((path, init) =>
        fetch(url + path, {
          ...init,
          headers: { authorization: "Bearer fuzz", ...(init?.headers as object) },
        }),
      ),
      system.cwd,
    );
    const [resting, bystander] = [await person.create(), await person.create()];
    const waiting = await person.create();
    const upgrade = toolCall("request_mode_upgrade", { reason: "To work." });
    await person.say(waiting, { text: `go ${system.model.script(waiting, [say(upgrade), say("Done.")])}` });
    await person.untilState(waiting, "awaiting_mode_approval");
    const dir = await mkdtemp(join(tmpdir(), "bedrock-fuzz-"));
    system.defer(() => rm(dir, { recursive: true, force: true }));
    for (const id of [resting, waiting]) {
      const config = join(dir, `${id}.toml`);
      await writeFile(config, `[parameters]\n"path.id" = "${id}"\n`);
      const { output, failed } = await run(
        schemathesis ?? "",
        [
          ...[`--config-file=${config}`, "run", `${url}/openapi.json`, "--header=Authorization: Bearer fuzz"],
          ...[
            "--checks=not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance",
          ],
          ...[`--seed=${SEED}`, `--max-examples=${EXAMPLES}`, "--continue-on-failure", "--no-color"],
          ...["--request-timeout=30", "--suppress-health-check=all", "--warnings=off"],
          ...STREAMS.map((name) => `--exclude-operation-id=${name}`),
        ],
        { cwd: dir, env: { PATH: process.env["PATH"], HOME: dir }, maxBuffer: 2 ** 26, timeout: LIMIT_MS },
      ).then(
        ({ stdout }) => ({ output: stdout, failed: false }),
        (error: unknown) => ({
          output: String((error as { readonly stdout?: string }).stdout),
          failed: true,
        }),
      );
      if (failed) console.log(output);
      expect(failed, `seed ${SEED}`).toBe(false);
    }
    expect(api.reports).toEqual([]);
    // What was not asked about has come to no harm.
    await person.say(bystander, { text: "Still there?" });
    await person.untilState(bystander, "idle");
  },
  LIMIT_MS,
);

test("a stream with any parameters opens or is refused with a problem", async () => {
  const { get, send, reports } = await startApi();
  const text = fc.oneof(
    fc.string({ unit: "binary" }),
    fc.constantFrom("0", "-1", "1e99", "x:y", "a:1", "%00"),
  );
  const header = fc.string({
    unit: fc.integer({ min: 0x20, max: 0xff }).map((code) => String.fromCharCode(code)),
  });
  const path = fc.constantFrom(
    "/api/events",
    "/api/stream",
    "/api/conversations/ID/events",
    "/api/ai/chat/ID/stream",
  );
  const query = fc.dictionary(fc.constantFrom("after", "list", "conversation", "startIndex"), text);
  const body = fc.oneof(
    fc.json(),
    fc.record({ id: text, trigger: text, message: fc.jsonValue() }).map((it) => JSON.stringify(it)),
  );
  const expectSound = async (response: Response): Promise<void> => {
    expect(response.status).toBeLessThan(500);
    if (response.status >= 400) await problemOf(response);
    else await response.body?.cancel();
  };
  await fc.assert(
    fc.asyncProperty(path, text, query, header, async (pattern, id, parameters, cursor) => {
      const address = pattern.replace("ID", encodeURIComponent(id));
      const headers = { "last-event-id": cursor };
      await expectSound(await get(`${address}?${new URLSearchParams(parameters).toString()}`, { headers }));
    }),
    { numRuns: 300 },
  );
  await fc.assert(
    fc.asyncProperty(body, async (json) => expectSound(await send("POST", "/api/ai/chat", json))),
    { numRuns: 200 },
  );
  expect(reports).toEqual([]);
}, 120_000);
