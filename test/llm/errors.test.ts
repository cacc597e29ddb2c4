import { APIError } from "@anthropic-ai/sdk";
import { describe, expect, test } from "vitest";
import { classify } from "../../llm/errors.ts";

type Facts = { readonly type?: string; readonly message?: string; readonly headers?: Record<string, string> };

/** The error that the SDK makes of such an answer. */
function answered(status: number, { type = "some_error", message = "Something.", headers = {} }: Facts = {}) {
  const body = { type: "error", error: { type, message } };
  return APIError.generate(status, body, undefined, new Headers(headers));
}

describe("REQ-BED-006: the kind of an error and whether a retry can help", () => {
  test.each([
    [401, "authentication_error", "auth", false],
    [403, "permission_error", "auth", false],
    [400, "invalid_request_error", "invalid_request", false],
    [404, "not_found_error", "invalid_request", false],
    [413, "request_too_large", "context_exhausted", false],
    [422, "some_error", "invalid_request", false],
    [402, "billing_error", "rate_limit", false],
    [429, "rate_limit_error", "rate_limit", true],
    [529, "overloaded_error", "overloaded", true],
    [503, "overloaded_error", "overloaded", true],
    [500, "api_error", "unknown", true],
    [501, "some_error", "unknown", true],
    [409, "some_error", "unknown", true],
    [408, "some_error", "network", true],
    [502, "some_error", "network", true],
    [503, "some_error", "network", true],
    [504, "timeout_error", "network", true],
  ])("%i %s is %s, retryable: %s", (status, type, errorKind, retryable) => {
    expect(classify(answered(status, { type }))).toMatchObject({ errorKind, retryable });
  });

  test.each([`key"\\of-a-gateway`, "sk-ant-of-the-provider"])("an error never repeats the key %s", (key) => {
    const message = `Not with ${key}, that is ${JSON.stringify({ key })}.`;
    for (const status of [400, 403, 404]) {
      const shown = classify(answered(status, { message }), key).message;
      expect(shown).toContain("Not with");
      expect(shown).not.toMatch(/of-a-gateway|of-the-provider/);
    }
  });

  test.each([
    "prompt is too long: 210000 tokens > 200000 maximum",
    "input length and `max_tokens` exceed context limit: 190000 + 64000 > 200000",
    "Your request exceeds the model's maximum context length",
  ])("a full context is recognized: %s", (message) => {
    expect(classify(answered(400, { type: "invalid_request_error", message }))).toMatchObject({
      errorKind: "context_exhausted",
      retryable: false,
    });
  });

  test.each([
    [429, "You have exceeded your monthly quota."],
    [429, "You have reached your specified API usage limits."],
    [400, "Your credit balance is too low to access the Anthropic API."],
  ])("%i is not retryable when waiting does not help: %s", (status, message) => {
    expect(classify(answered(status, { message }))).toMatchObject({
      errorKind: "rate_limit",
      retryable: false,
    });
  });

  test("a rate limit that mentions usage is still retryable", () => {
    const message =
      "This would exceed the limit of 40,000 tokens per minute. See your usage limits in the console.";
    expect(classify(answered(429, { message }))).toMatchObject({ retryable: true });
  });

  test("the provider may forbid a retry", () => {
    expect(classify(answered(529, { headers: { "x-should-retry": "false" } }))).toMatchObject({
      errorKind: "overloaded",
      retryable: false,
    });
  });

  test("Retry-After is read in seconds or as a date, and nonsense is ignored", () => {
    const after = (value: string) =>
      classify(answered(429, { headers: { "retry-after": value } })).retryAfterMs;
    expect(after("1.5")).toBe(1_500);
    expect(after("-3")).toBe(0);
    expect(after("soon")).toBeNull();
    const inAMinute = after(new Date(Date.now() + 60_000).toUTCString()) ?? 0;
    expect(inAMinute).toBeGreaterThan(57_000);
    expect(inAMinute).toBeLessThanOrEqual(60_000);
    expect(classify(answered(429)).retryAfterMs).toBeNull();
  });

  test("any other error is not retryable", () => {
    expect(classify(new Error("boom at secret.ts:1"))).toMatchObject({
      errorKind: "unknown",
      retryable: false,
    });
    expect(classify("x").message).toMatch(/Send a message/);
  });
});

describe("the sentence for the person", () => {
  test("says what to do, and what the provider said of the request", () => {
    expect(classify(answered(401)).message).toMatch(/ANTHROPIC_API_KEY/);
    expect(classify(answered(400, { message: "tools.0: bad name" })).message).toContain("tools.0: bad name.");
  });

  const waiting = (retryAfter: string, status = 429) =>
    classify(answered(status, { headers: { "retry-after": retryAfter } })).message;

  test.for([429, 529, 502, 500])("says when to try again if %i asks for much patience", (status) => {
    const before = Date.now();
    const [, day, time] = /Try again after (\S+) (\S+) UTC\.$/.exec(waiting("720", status)) ?? [];
    const at = Date.parse(`${day}T${time}Z`);
    // Rounded up: at the named minute it is not too early.
    expect(at).toBeGreaterThanOrEqual(before + 720_000);
    expect(at).toBeLessThan(Date.now() + 720_000 + 60_000);
  });

  test("names no time where the machine asks again by itself, or the provider names none", () => {
    for (const retryAfter of ["60", "0", "soon"])
      expect(waiting(retryAfter)).toMatch(/Try again in a moment\.$/);
    expect(classify(answered(429)).message).toMatch(/Try again in a moment\.$/);
    expect(waiting("61")).toMatch(/Try again after \d{4}-\d\d-\d\d \d\d:\d\d UTC\.$/);
    expect(waiting("1e300")).toMatch(/Try again after /);
  });

  test("contains no key and no markup, and is bounded", () => {
    const leaky = classify(
      answered(400, { message: `key sk-ant-api03-abc_DEF is bad ${"x".repeat(5_000)}` }),
    );
    expect(leaky.message).not.toContain("api03");
    expect(leaky.message.length).toBeLessThan(400);
    const page = APIError.generate(502, undefined, "<html><h1>Bad gateway</h1></html>", new Headers());
    expect(classify(page).message).not.toContain("<");
    expect(classify(answered(400, { message: "<p>nginx</p>" })).message).toBe(
      "The provider refused the request.",
    );
  });
});
