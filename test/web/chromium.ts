/** Owns: where the browser for tests of the page is. */
import { existsSync } from "node:fs";

const PLACES = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];

/** Path of the program; null: there is none, and tests of the page are skipped. */
export function findChromium(): string | null {
  const named = process.env["CHROMIUM"];
  if (named !== undefined && named !== "") return named;
  return PLACES.find((place) => existsSync(place)) ?? null;
}

/** Switches for a browser that does nothing of its own accord. */
export const QUIET: readonly string[] = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

export const NO_CHROMIUM =
  "No Chromium was found: the tests of the page are skipped. Install the package chromium, or set CHROMIUM to its path.";
