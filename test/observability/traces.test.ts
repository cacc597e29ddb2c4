/** Spans on their way to a collector, and that they leave no mark in a history (docs/observability.md, Traces). */
import { createHash, randomUUID } from "node:crypto";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { json } from "node:stream/consumers";
import { Worker, type InjectedSinks } from "@temporalio/worker";
import { expect, inject, onTestFinished, test } from "vitest";
import { say, toolCall } from "../../local/scripted/script.ts";
import { otlpExporter } from "../../observability/otlp.ts";
import { createSpans, type SpanRecord } from "../../observability/spans.ts";
import { rootSpanIdOf, traceIdOf } from "../../observability/trace-id.ts";
import type { WorkflowSinks } from "../../protocol/sinks.ts";
import { startApiOn } from "../api/support.ts";
import { TestConversation } from "../support/conversation.ts";
import { startSystem, type System } from "../support/system.ts";
import { until } from "../support/waiting.ts";

/** A value of OTLP's JSON. */
type Value = { readonly stringValue?: string; readonly intValue?: number; readonly boolValue?: boolean };
type Attribute = { readonly key: string; readonly value: Value };
type Sent = {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly name: string;
  readonly startTimeUnixNano: string;
  readonly endTimeUnixNano: string;
  readonly attributes: readonly Attribute[];
  readonly events: readonly { readonly name: string; readonly timeUnixNano: string }[];
  readonly status: { readonly code: number };
};
type Export = {
  readonly resourceSpans: readonly {
    readonly resource: { readonly attributes: readonly Attribute[] };
    readonly scopeSpans: readonly {
      readonly scope: { readonly name: string };
      readonly spans: readonly Sent[];
    }[];
  }[];
};

/** A collector: what it was sent, by service, and what it was asked with. */
async function startCollector() {
  const spans: (Sent & { readonly service: string })[] = [];
  const requests: {
    readonly method: string;
    readonly path: string;
    readonly type: string;
    readonly token: string;
  }[] = [];
  const server = createServer((request, response) => {
    void (async () => {
      const { "content-type": type = "", authorization: token = "" } = request.headers;
      requests.push({ method: request.method ?? "", path: request.url ?? "", type, token });
      const body = (await json(request)) as Export;
      for (const { resource, scopeSpans } of body.resourceSpans) {
        const service =
          resource.attributes.find(({ key }) => key === "service.name")?.value.stringValue ?? "";
        spans.push(...scopeSpans.flatMap((scope) => scope.spans.map((span) => ({ ...span, service }))));
      }
      response.writeHead(200, { "content-type": "application/json" }).end("{}");
    })();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const close = async (): Promise<void> => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  };
  return { endpoint: `http://127.0.0.1:${port}`, spans, requests, close };
}

const attribute = ({ attributes }: Sent, name: string): unknown => {
  const value = attributes.find(({ key }) => key === name)?.value;
  return value?.stringValue ?? value?.intValue ?? value?.boolValue;
};

async function turnOn(system: System, api: ReturnType<typeof startApiOn> | null) {
  const conversation = await TestConversation.open(system, "unrestricted");
  const id = randomUUID();
  const answers = [say(toolCall("bash", { command: "true" })), say("Done.")];
  const text = `go ${system.model.script(randomUUID(), answers)}`;
  if (api === null) await conversation.send(text, { id });
  else await api.send("POST", `/api/conversations/${conversation.id}/messages`, { id, text });
  await conversation.untilState("idle");
  return { conversation, cycleId: id };
}

test("a collector gets a turn as one trace: the turn, and below it what the API and the worker did", async () => {
  const collector = await startCollector();
  const system = await startSystem({
    env: {
      OTEL_EXPORTER_OTLP_ENDPOINT: collector.endpoint,
      OTEL_EXPORTER_OTLP_HEADERS: "authorization=Bearer%20canary-of-the-collector",
    },
  });
  system.defer(collector.close);
  const exporter = await otlpExporter({ endpoint: `${collector.endpoint}/`, headers: {} });
  const spans = createSpans({ service: "bedrock-api", store: null, exporter });
  system.defer(() => spans.close());
  const { conversation, cycleId } = await turnOn(system, startApiOn(system, { spans }));
  await until(() => collector.spans.some(({ name }) => name === "turn"));

  const traceId = cycleId.replaceAll("-", "");
  const trace = collector.spans.filter((span) => span.traceId === traceId);
  const names = trace.map(({ service, name }) => `${service} ${name}`);
  expect(names).toEqual(
    expect.arrayContaining(["bedrock-api message", "bedrock-worker tool", "bedrock-worker turn"]),
  );
  expect(names.filter((name) => name === "bedrock-worker request")).toHaveLength(2);
  const turn = trace.find(({ name }) => name === "turn");
  expect(turn?.parentSpanId ?? "").toBe("");
  for (const span of trace) {
    expect(span.spanId).toMatch(/^[\da-f]{16}$/);
    expect(attribute(span, "bedrock.conversation")).toBe(conversation.id);
    if (span !== turn) expect(span.parentSpanId).toBe(turn?.spanId);
    expect(Number(span.endTimeUnixNano)).toBeGreaterThanOrEqual(Number(span.startTimeUnixNano));
    if (span !== turn && span.name !== "end of the turn")
      expect(Number(span.startTimeUnixNano)).toBeGreaterThanOrEqual(Number(turn?.startTimeUnixNano) - 1e9);
  }
  const [request] = trace.filter(({ name }) => name === "request");
  expect(request?.events.map(({ name }) => name)).toEqual(["committed", "sent", "first_token"]);
  expect(attribute(request ?? fail(), "gen_ai.request.model")).toBe(system.config.model);
  const tool = trace.find(({ name }) => name === "tool") ?? fail();
  expect([attribute(tool, "gen_ai.tool.name"), attribute(tool, "bedrock.outcome")]).toEqual([
    "bash",
    "completed",
  ]);
  for (const { method, path, type } of collector.requests)
    expect([method, path, type]).toEqual(["POST", "/v1/traces", "application/json"]);
  expect(collector.requests.map(({ token }) => token)).toContain("Bearer canary-of-the-collector");
});

function fail(): never {
  throw new Error("There is no such span.");
}

/** What the workflow asked for, in its order. Whether a commit goes along or by itself depends on what is faster. */
async function commandsOf({ handle }: TestConversation): Promise<readonly object[]> {
  const { events } = await handle.fetchHistory();
  const commands: object[] = [];
  for (const event of events ?? []) {
    const { activityTaskScheduledEventAttributes: activity, timerStartedEventAttributes: timer } = event;
    if (timer != null) commands.push({ timer: Number(timer.startToFireTimeout?.seconds ?? 0) });
    const name = activity?.activityType?.name;
    if (activity == null || name === "commit") continue;
    const header = Object.keys(activity.header?.fields ?? {});
    commands.push({ name, header, heartbeat: Number(activity.heartbeatTimeout?.seconds ?? 0) });
  }
  return commands;
}

test("whether spans are recorded leaves no mark in a history, and either history replays", async () => {
  const collector = await startCollector();
  const [traced, untraced] = await Promise.all([
    startSystem({ env: { OTEL_EXPORTER_OTLP_ENDPOINT: collector.endpoint } }),
    startSystem({ env: { TRACE_DAYS: "0" } }),
  ]);
  traced.defer(collector.close);
  const [a, b] = [await turnOn(traced, null), await turnOn(untraced, null)];
  await until(() => collector.spans.some(({ name }) => name === "turn"));
  const stored = await untraced.db.sql`select from spans`;
  expect(stored).toHaveLength(0);
  const commands = await commandsOf(a.conversation);
  const activities = commands.filter((command) => "name" in command);
  expect(activities).toMatchObject(
    ["load", "requestLlm", "executeTool", "requestLlm"].map((name) => ({ name, header: [] })),
  );
  expect(commands).toEqual(await commandsOf(b.conversation));
  const sinks: InjectedSinks<WorkflowSinks> = { runs: { began: { fn: () => undefined } } };
  for (const { conversation } of [a, b])
    await Worker.runReplayHistory(
      { workflowBundle: { codePath: inject("bundlePath") }, sinks },
      await conversation.handle.fetchHistory(),
    );
});

test("a collector that hangs costs nothing: spans are dropped, memory is bounded, and the end does not wait", async () => {
  const hanging = createServer(() => undefined);
  await new Promise<void>((resolve) => hanging.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    hanging.closeAllConnections();
    hanging.close();
  });
  const { port } = hanging.address() as AddressInfo;
  const stored: SpanRecord[] = [];
  const spans = createSpans({
    service: "test",
    store: (records) => Promise.resolve(void stored.push(...records)),
    exporter: await otlpExporter({ endpoint: `http://127.0.0.1:${port}`, headers: {} }),
  });
  const subject = { conversationId: "c", cycleId: randomUUID(), operationId: "o" };
  for (let n = 0; n < 20_000; n++) {
    spans.open("request", subject).end("response");
    if (n % 2_000 === 0) await new Promise((resolve) => setTimeout(resolve, 50));
  }
  await until(() => stored.length >= 4_096);
  const before = performance.now();
  await spans.close();
  expect(performance.now() - before).toBeLessThan(2_000);
});

test("a store that fails is counted, and holds nothing up", async () => {
  let lost = 0;
  const spans = createSpans({
    service: "test",
    store: () => Promise.reject(new Error("The database is away.")),
    exporter: null,
    dropped: (target, count) => (lost += target === "store" ? count : 0),
  });
  const subject = { conversationId: "c", cycleId: "m", operationId: null };
  for (let n = 0; n < 10; n++) spans.open("commit", subject).end("ended");
  await until(() => lost === 10);
  await spans.close();
});

test("the id of a trace is the message's, if it is a UUID; else a digest with the conversation's", () => {
  const cycleId = "018F6A3E-5f2a-7000-8a1b-3c4d5e6f7a8b";
  const traceId = traceIdOf({ conversationId: "c", cycleId });
  expect(traceId).toBe("018f6a3e5f2a70008a1b3c4d5e6f7a8b");
  expect(rootSpanIdOf(traceId)).toBe("8a1b3c4d5e6f7a8b");
  const other = traceIdOf({ conversationId: "c", cycleId: "m-1" });
  expect(other).toBe(createHash("sha256").update("c/m-1").digest("hex").slice(0, 32));
  expect(traceIdOf({ conversationId: "d", cycleId: "m-1" })).not.toBe(other);
});

test("a span costs the hot path some microseconds", () => {
  const spans = createSpans({ service: "test", store: () => Promise.resolve(), exporter: null });
  const subject = { conversationId: randomUUID(), cycleId: randomUUID(), operationId: randomUUID() };
  const once = (): void => {
    const span = spans.open("request", subject);
    for (const mark of ["committed", "sent", "first_token"] as const) span.mark(mark);
    span.set({ "gen_ai.request.model": "m" });
    span.end("response");
  };
  const rounds = Array.from({ length: 20 }, () => {
    const started = performance.now();
    for (let n = 0; n < 200; n++) once();
    return ((performance.now() - started) * 1_000) / 200;
  });
  const typical = rounds.sort((x, y) => x - y)[10] ?? Infinity;
  console.log(`a span with three marks: ${typical.toFixed(1)} µs`);
  expect(typical).toBeLessThan(200);
});
