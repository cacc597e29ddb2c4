/** Owns: the way of spans to a collector: OTLP over HTTP, as JSON. */
import type { SpanExporter } from "@opentelemetry/sdk-trace-base";

export type Collector = {
  /** Without the path of traces. */
  readonly endpoint: string;
  /** Of each request, as for a token. */
  readonly headers: Readonly<Record<string, string>>;
};

/** Milliseconds until a request is given up. */
const TIMEOUT_MS = 3_000;

/** Loads the exporter only where there is a collector: a start without one does not wait for it. */
export async function otlpExporter({ endpoint, headers }: Collector): Promise<SpanExporter> {
  const { OTLPTraceExporter } = await import("@opentelemetry/exporter-trace-otlp-http");
  const url = `${endpoint.replace(/\/+$/, "")}/v1/traces`;
  return new OTLPTraceExporter({ url, headers: { ...headers }, timeoutMillis: TIMEOUT_MS });
}
