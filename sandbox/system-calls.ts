/** Owns: the numbers of the system calls that the supervisor makes, by architecture. */

const NUMBERS = {
  x64: { prctl: 157, setsid: 112 },
  arm64: { prctl: 167, setsid: 157 },
} as const satisfies Record<string, Readonly<Record<string, number>>>;

/** null: this architecture is not supported. */
export function systemCalls(arch: string = process.arch): Readonly<Record<string, number>> | null {
  return arch === "x64" || arch === "arm64" ? NUMBERS[arch] : null;
}
