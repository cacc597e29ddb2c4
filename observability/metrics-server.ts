/** Owns: the port on which a worker shows its metrics, those of Temporal's SDK beside its own. It answers GET /metrics. */
import { createServer, type ServerResponse } from "node:http";
import { createServer as createSocketServer, type AddressInfo } from "node:net";
import type { WorkerMetrics } from "./metrics.ts";

export type Address = { readonly host: string; readonly port: number };
export type MetricsServer = { readonly url: string; readonly close: () => Promise<void> };

/** Milliseconds that a scrape waits for the SDK. */
const SDK_MS = 1_000;

/**
 * @param sdk where the SDK shows its metrics, on loopback; null: nowhere
 */
export async function serveMetrics(
  { host, port }: Address,
  own: Pick<WorkerMetrics, "contentType" | "render">,
  sdk: Address | null,
): Promise<MetricsServer> {
  const server = createServer((request, response) => {
    if (request.method !== "GET" || request.url?.split("?")[0] !== "/metrics") {
      response.writeHead(404).end();
      return;
    }
    void answer(response).catch(() => response.destroy());
  });
  const answer = async (response: ServerResponse): Promise<void> => {
    const [ours, ofSdk] = await Promise.all([own.render(), sdk === null ? "" : ofTheSdk(sdk)]);
    response.writeHead(200, { "content-type": own.contentType, "x-content-type-options": "nosniff" });
    response.end(`${ours}${ofSdk}`);
  };
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen({ host, port }, resolve);
  });
  const { port: bound } = server.address() as AddressInfo;
  return {
    url: `http://${host.includes(":") && !host.startsWith("[") ? `[${host}]` : host}:${bound}/metrics`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

/** The SDK's metrics are left out where they cannot be had: ours say more. */
async function ofTheSdk({ host, port }: Address): Promise<string> {
  try {
    const response = await fetch(`http://${host}:${port}/metrics`, { signal: AbortSignal.timeout(SDK_MS) });
    const text = await response.text();
    return response.ok ? text : "";
  } catch {
    return "";
  }
}

/** A port of loopback that is free now: the SDK cannot say which one it has taken. */
export function freeLoopbackPort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createSocketServer();
    server.once("error", reject);
    server.listen({ host: "127.0.0.1", port: 0 }, () => {
      const { port } = server.address() as AddressInfo;
      server.close(() => resolve(port));
    });
  });
}
