/**
 * Owns: which request gets which file of the page, and what a browser may do with it (docs/http.md, The page;
 * docs/security.md, The page).
 */
import type { Context, MiddlewareHandler } from "hono";
import type { PageFile, PageFiles } from "./page-files.ts";

const INDEX = "index.html";
const DOCS = "docs.html";

/** Paths of the API that a browser may be sent to as well. */
const API = /^\/(api|healthz|readyz|metrics)(\/|$)/;

/**
 * Everything comes from this origin, and there is no inline code. An image of another origin would carry away what a
 * model writes into its address. A page may show what it holds in memory (`blob:`), such as an image of a message.
 */
const PAGE_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' blob:",
  "connect-src 'self'",
  "worker-src 'self'",
  "manifest-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join("; ");

/** Swagger UI has its icons in its styles. */
const DOCS_POLICY = PAGE_POLICY.replace("blob:", "data:");

/** What the page has no use for, no script on it shall have either. */
const PERMISSIONS = [
  "accelerometer",
  "camera",
  "display-capture",
  "geolocation",
  "gyroscope",
  "hid",
  "magnetometer",
  "microphone",
  "midi",
  "payment",
  "serial",
  "usb",
]
  .map((feature) => `${feature}=()`)
  .join(", ");

const UNBUILT = "The page is not built: `npm start` builds it. The API works without it.\n";

/**
 * Answers requests for the page and its files; the others go on. Files have no secrets: they need no token.
 *
 * @param files null: the page is not built
 */
export function page(files: PageFiles | null): MiddlewareHandler {
  return async (c, next) => {
    const isRead = c.req.method === "GET" || c.req.method === "HEAD";
    const name = isRead ? nameOf(c.req.path, c.req.header("accept") ?? "") : null;
    if (name === null) return next();
    const file = files?.get(name);
    if (file !== undefined) return answer(c, name, file);
    return files === null && isPage(name) ? c.text(UNBUILT, 503) : next();
  };
}

/** The name of the file that would answer; null: none would. */
function nameOf(path: string, accept: string): string | null {
  if (path === "/") return INDEX;
  if (path === "/docs" || path === "/docs/") return DOCS;
  // The page's own paths have no dots. A client of the API that has mistaken a path gets a problem, not a page.
  if (path.includes(".")) return path.endsWith(".html") ? null : path.slice(1);
  return accept.includes("text/html") && !API.test(path) ? INDEX : null;
}

const isPage = (name: string): boolean => name === INDEX || name === DOCS;

function answer(c: Context, name: string, file: PageFile): Response {
  // The names of assets contain a digest of their content.
  const keep = name.startsWith("assets/") ? "public, max-age=31536000, immutable" : "no-cache";
  const headers = new Headers({
    "cache-control": keep,
    etag: file.etag,
    vary: isPage(name) ? "accept, accept-encoding" : "accept-encoding",
    "content-security-policy": name === DOCS ? DOCS_POLICY : PAGE_POLICY,
    "cross-origin-opener-policy": "same-origin",
    "permissions-policy": PERMISSIONS,
    "referrer-policy": "no-referrer",
  });
  if (matches(c.req.header("if-none-match") ?? "", file.etag)) {
    return new Response(null, { status: 304, headers });
  }
  const accepted = encodingsOf(c.req.header("accept-encoding") ?? "");
  const smaller = file.compressed.find(({ encoding }) => accepted.has(encoding));
  const { content } = smaller ?? file;
  headers.set("content-type", file.type);
  headers.set("content-length", String(content.byteLength));
  if (smaller !== undefined) headers.set("content-encoding", smaller.encoding);
  return new Response(content, { headers });
}

const listed = (header: string): string[] => header.split(",").map((part) => part.trim().toLowerCase());

/** The comparison for reads is the weak one. */
const matches = (ifNoneMatch: string, etag: string): boolean =>
  listed(ifNoneMatch).some((given) => given === "*" || given.replace(/^w\//, "") === etag.slice(2));

const encodingsOf = (acceptEncoding: string): ReadonlySet<string> =>
  new Set(
    listed(acceptEncoding).flatMap((part) => {
      const [encoding = "", ...parameters] = part.split(/\s*;\s*/);
      return parameters.some((parameter) => /^q=0(\.0*)?$/.test(parameter)) ? [] : [encoding];
    }),
  );
