/**
 * Owns: the ports of the embedded servers. A port that was chosen once is kept as long as no other program takes it.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";

/** A port on which no program listens now. */
export async function freePort(host = "127.0.0.1"): Promise<number> {
  const port = await tryPort(0, host);
  if (port === null) throw new Error(`No free port on ${host}.`);
  return port;
}

/** Whether `port` could be listened on. */
export async function isFree(port: number, host: string): Promise<boolean> {
  return (await tryPort(port, host)) !== null;
}

/**
 * A port for each name: the one that `file` remembers if it is free, else a new one, which is remembered.
 * Links to the Web UI and clients' settings stay valid across restarts.
 */
export async function rememberedPorts<Name extends string>(
  file: string,
  names: readonly Name[],
): Promise<Record<Name, number>> {
  const remembered = readPorts(file);
  const chosen: Partial<Record<Name, number>> = {};
  const taken = new Set<number>();
  for (const name of names) {
    let port = remembered[name] ?? 0;
    if (port === 0 || taken.has(port) || !(await isFree(port, "127.0.0.1"))) {
      do port = await freePort();
      while (taken.has(port));
    }
    taken.add(port);
    chosen[name] = port;
  }
  writeFileSync(file, JSON.stringify({ ...remembered, ...chosen }));
  return chosen as Record<Name, number>;
}

function readPorts(file: string): Partial<Record<string, number>> {
  try {
    const value: unknown = JSON.parse(readFileSync(file, "utf8"));
    if (typeof value !== "object" || value === null) return {};
    return Object.fromEntries(
      Object.entries(value).filter(([, port]) => Number.isInteger(port) && port > 1023 && port < 65_536),
    );
  } catch {
    return {};
  }
}

function tryPort(port: number, host: string): Promise<number | null> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once("error", () => resolve(null));
    server.listen({ port, host, exclusive: true }, () => {
      const address = server.address();
      server.close(() => resolve(typeof address === "object" && address !== null ? address.port : null));
    });
  });
}
