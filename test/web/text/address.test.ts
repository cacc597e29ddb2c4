/** Which addresses become links, and what a person sees of them. */
import { describe, expect, test } from "vitest";
import { isAddress, shownAddress, targetOf } from "../../../web/text/address.ts";

test.each([
  ["https://example.com/a?b#c", "https://example.com/a?b#c", "example.com"],
  ["HTTP://Example.com:8080", "http://example.com:8080/", "example.com:8080"],
  ["https://user@evil.example", "https://user@evil.example/", "evil.example"],
  ["http://ex\u0430mple.com", "http://xn--exmple-4nf.com/", "xn--exmple-4nf.com"],
  ["mailto:a@b.cc?subject=x", "mailto:a@b.cc?subject=x", "a@b.cc"],
  [" https://example.com", "https://example.com/", "example.com"],
])("%j is a link, and shows %s as its place", (address, href, place) => {
  expect(targetOf(address)).toEqual({ href, place });
});

test.each([
  ...[
    "",
    "x",
    "/x",
    "//example.com",
    "#x",
    "?x",
    "javascript:alert(1)",
    "java\tscript:alert(1)",
    "\u0001javascript:x",
  ],
  ...[
    "data:text/html,x",
    "vbscript:x",
    "file:///x",
    "blob:http://x/1",
    "about:blank",
    "ftp://x/",
    "chrome://x",
    "http://",
  ],
  ...["view-source:http://x", "filesystem:http://x/", "ws://x", "tel:1", "src/queue.ts:10"],
])("%j is no link", (address) => expect(targetOf(address)).toBeNull());

describe("a text is the address", () => {
  const isShown = (text: string, address: string): boolean => {
    const target = targetOf(address);
    return target !== null && isAddress(text, target);
  };

  test("if it is written like it, perhaps without its beginning or its last slash", () => {
    expect(isShown("https://example.com", "https://example.com/")).toBe(true);
    expect(isShown("www.example.com", "http://www.example.com")).toBe(true);
    expect(isShown("a@b.cc", "mailto:a@b.cc")).toBe(true);
  });

  test("but not if it is another one, or only looks like it", () => {
    expect(isShown("https://example.com", "https://example.org")).toBe(false);
    expect(isShown("http://ex\u0430mple.com", "http://ex\u0430mple.com")).toBe(false);
    expect(isShown("https://example.com\u200b", "https://example.com\u200b")).toBe(false);
    expect(isShown("docs", "https://example.com")).toBe(false);
  });
});

test("an address that is no link is shown, but not without end", () => {
  expect(shownAddress("src/a.ts")).toBe("src/a.ts");
  expect(shownAddress(`data:${"x".repeat(1000)}`)).toHaveLength(301);
});
