/** Owns: the numbers of this process in the Prometheus text format: the process itself, requests, open streams. */

export type Metrics = {
  /** @param route the pattern, never the path: labels must stay few. */
  countRequest(method: string, route: string, status: number, seconds: number): void;
  /** Counts an open stream until `ended`. */
  countStream(ended: Promise<void>): void;
  render(): string;
};

type Requests = { count: number; seconds: number };

export function createMetrics(): Metrics {
  const requests = new Map<string, Requests>();
  let streams = 0;

  return {
    countRequest(method, route, status, seconds) {
      const labels = `method="${method}",route="${route}",status="${status}"`;
      const seen = requests.get(labels) ?? { count: 0, seconds: 0 };
      requests.set(labels, { count: seen.count + 1, seconds: seen.seconds + seconds });
    },
    countStream(ended) {
      streams += 1;
      void ended.then(() => (streams -= 1));
    },
    render() {
      const cpu = process.cpuUsage();
      const memory = process.memoryUsage();
      const started = Date.now() / 1_000 - process.uptime();
      const entries = [...requests];
      return [
        metric("process_cpu_seconds_total", "counter", "CPU time in seconds.", [
          ["", (cpu.user + cpu.system) / 1e6],
        ]),
        metric("process_resident_memory_bytes", "gauge", "Resident memory in bytes.", [["", memory.rss]]),
        metric("process_heap_bytes", "gauge", "JavaScript heap in use, in bytes.", [["", memory.heapUsed]]),
        metric("process_start_time_seconds", "gauge", "Start of the process, Unix time.", [["", started]]),
        metric("bedrock_event_streams", "gauge", "Open event streams.", [["", streams]]),
        metric(
          "bedrock_http_requests_total",
          "counter",
          "Requests answered.",
          entries.map(([labels, { count }]) => [labels, count]),
        ),
        metric(
          "bedrock_http_request_seconds_total",
          "counter",
          "Seconds until requests were answered, summed.",
          entries.map(([labels, { seconds }]) => [labels, seconds]),
        ),
      ].join("");
    },
  };
}

function metric(
  name: string,
  type: "counter" | "gauge",
  help: string,
  samples: readonly (readonly [labels: string, value: number])[],
): string {
  const lines = samples.map(([labels, value]) => `${name}${labels === "" ? "" : `{${labels}}`} ${value}\n`);
  return `# HELP ${name} ${help}\n# TYPE ${name} ${type}\n${lines.join("")}`;
}
