/** Owns: a line of the log (log.ts) as a person reads it. */

type Line = {
  readonly time?: string;
  readonly level?: string;
  readonly msg?: string;
  readonly service?: string;
  readonly err?: { readonly stack?: string; readonly message?: string };
};

/** A line of the log for a person; a line that is not of the log stays as it is. */
export function readable(line: string): string {
  let parsed: unknown;
  try {
    parsed = JSON.parse(line);
  } catch {
    return line;
  }
  if (typeof parsed !== "object" || parsed === null || !("msg" in parsed)) return line;
  const { time = "", level = "info", msg = "", service: _, err, ...fields } = parsed as Line;
  const shown = Object.entries(fields).map(([name, value]) => ` ${name}=${JSON.stringify(value)}`);
  const heading = level === "info" ? "" : `${level.toUpperCase()} `;
  const trouble = err === undefined ? "" : `\n${err.stack ?? err.message ?? ""}`;
  return `${time.slice(11, 23)} ${heading}${msg}${shown.join("")}${trouble}\n`;
}
