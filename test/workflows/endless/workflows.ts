/** Workflows whose code does not end, and one whose code does (time-limit.test.ts). */

/** In its first turn. */
export function loops(): Promise<void> {
  for (;;);
}

/** After its first turn. */
export async function loopsLater(): Promise<void> {
  await Promise.resolve();
  for (;;);
}

export function ends(): Promise<string> {
  return Promise.resolve("ended");
}
