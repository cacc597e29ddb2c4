/** Owns: asking a `temporal` program which server it contains. */
import { execFile } from "node:child_process";

/** For example `1.32.0`. */
export type ServerVersion = { readonly text: string; readonly major: number; readonly minor: number };

/** The server inside the program at `path`; null when it does not run or does not say so within five seconds. */
export function serverVersion(path: string): Promise<ServerVersion | null> {
  return new Promise((resolve) => {
    execFile(path, ["--version"], { timeout: 5000, killSignal: "SIGKILL" }, (error, stdout) => {
      resolve(error === null ? parseServerVersion(stdout) : null);
    });
  });
}

/** Reads `temporal version 1.9.1 (Server 1.32.0, UI 2.54.1)`. */
export function parseServerVersion(output: string): ServerVersion | null {
  const match = /\(Server (\d+)\.(\d+)\.(\S+?)[,)]/.exec(output);
  if (match === null) return null;
  const [, major = "", minor = "", patch = ""] = match;
  return { text: `${major}.${minor}.${patch}`, major: Number(major), minor: Number(minor) };
}
