/** Owns: how durations, moments, sizes, counts and paths are written for a person. Pure. */

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

const twoDigits = (value: number): string => String(value).padStart(2, "0");

/**
 * A duration: "0 s", "40 ms", "0.1 s", "41 s", "2 m 14 s", "1 h 02 m", "3 d 4 h".
 *
 * @param ms milliseconds; a negative or unknown duration counts as 0
 */
export function duration(ms: number): string {
  if (!(ms > 0)) return "0 s";
  if (ms < 100) return `${Math.ceil(ms)} ms`;
  const tenths = Math.floor(ms / 100);
  if (tenths < 100) return `${Math.floor(tenths / 10)}.${tenths % 10} s`;
  const seconds = Math.floor(ms / SECOND);
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} m ${twoDigits(seconds % 60)} s`;
  const hours = Math.floor(minutes / 60);
  if (hours < 24) return `${hours} h ${twoDigits(minutes % 60)} m`;
  return `${Math.floor(hours / 24)} d ${hours % 24} h`;
}

/**
 * How long ago a moment was, as short as a list needs it: "now", "5 m", "3 h", then the weekday, then the date.
 *
 * @param at RFC 3339
 * @param now milliseconds since 1970
 * @param zone an IANA time zone; the person's own unless given
 */
export function relativeTime(at: string, now: number, zone?: string): string {
  const then = Date.parse(at);
  if (Number.isNaN(then)) return "";
  const age = now - then;
  if (age < MINUTE) return "now";
  if (age < HOUR) return `${Math.floor(age / MINUTE)} m`;
  if (age < DAY) return `${Math.floor(age / HOUR)} h`;
  if (age < 6 * DAY) return dateText(then, { weekday: "short" }, zone);
  const isSameYear = dateText(then, { year: "numeric" }, zone) === dateText(now, { year: "numeric" }, zone);
  return dateText(then, { day: "numeric", month: "short", ...(isSameYear ? {} : { year: "numeric" }) }, zone);
}

const dateText = (at: number, parts: Intl.DateTimeFormatOptions, zone: string | undefined): string =>
  new Intl.DateTimeFormat("en-GB", zone === undefined ? parts : { ...parts, timeZone: zone }).format(at);

// Not by `toLocaleTimeString`: the first use in a page takes the browser some ten milliseconds.
/** A moment where the person is, to the second: "2026-11-24 14:05:09". */
export function localMoment(at: Date): string {
  const date = [at.getFullYear(), twoDigits(at.getMonth() + 1), twoDigits(at.getDate())].join("-");
  return `${date} ${localTime(at)}:${twoDigits(at.getSeconds())}`;
}

/** The time of day where the person is: "14:05". */
export const localTime = (at: Date): string => `${twoDigits(at.getHours())}:${twoDigits(at.getMinutes())}`;

const UNITS = ["kB", "MB", "GB", "TB"] as const;

/** A size in bytes: "312 B", "1.5 kB", "24 MB"; a kB has 1,000 bytes. */
export function byteSize(bytes: number): string {
  if (!(bytes >= 1)) return "0 B";
  if (bytes < 1000) return `${Math.floor(bytes)} B`;
  let value = bytes / 1000;
  let unit = 0;
  // 999.5 and more would be written as 1000.
  while (value >= 999.5 && unit < UNITS.length - 1) {
    value /= 1000;
    unit++;
  }
  return `${value < 9.95 ? value.toFixed(1) : value.toFixed(0)} ${UNITS[unit] ?? "TB"}`;
}

/** A whole number with its unit: "1 line", "1,234 lines". */
export const counted = (count: number, one: string, many = `${one}s`): string =>
  `${count.toLocaleString("en-US")} ${count === 1 ? one : many}`;

/**
 * A path for a narrow place. It begins with "~" in the home directory, and loses folders in its middle until it fits;
 * the name of the file always stays.
 *
 * @param path absolute
 * @param options.base a directory whose files are named relative to it
 * @param options.limit UTF-16 code units that fit
 */
export function shortPath(
  path: string,
  {
    base,
    home,
    limit = 60,
  }: { readonly base?: string; readonly home?: string; readonly limit?: number } = {},
): string {
  const whole = belowOf(path, base, "") ?? belowOf(path, home, "~/") ?? path;
  if (whole.length <= limit) return whole;
  const parts = whole.split("/");
  const [first = ""] = parts;
  for (let from = 2; from < parts.length; from++) {
    const shorter = `${first}/…/${parts.slice(from).join("/")}`;
    if (shorter.length <= limit || from === parts.length - 1) return shorter;
  }
  return whole;
}

/** null: the path is not below the directory. */
function belowOf(path: string, directory: string | undefined, prefix: string): string | null {
  if (directory === undefined || directory === "") return null;
  const folder = directory.endsWith("/") ? directory : `${directory}/`;
  return path.startsWith(folder) && path.length > folder.length ? prefix + path.slice(folder.length) : null;
}
