/** Owns: how much a command of Restricted mode may take of the machine. */
import type { Step } from "./step.ts";

export type Limits = {
  /** Processor seconds of one process. */
  readonly cpuSeconds: number;
  /** Private memory of one process. */
  readonly dataBytes: number;
  /** Memory of all its processes together, watched by the supervisor. */
  readonly memoryBytes: number;
  /** Open files of one process: what is on its way through sockets is memory that nobody is charged with. */
  readonly files: number;
  /** Processes and threads of the user that it runs as. */
  readonly processes: number;
};

const GIB = 1024 ** 3;
export const LIMITS: Limits = {
  cpuSeconds: 600,
  dataBytes: 2 * GIB,
  memoryBytes: 2 * GIB,
  files: 1024,
  processes: 256,
};

const RLIMIT = { cpu: 0, fileSize: 1, data: 2, core: 4, processes: 6, files: 7, messageQueues: 12 } as const;
/** For a process that catches the signal of the first limit. */
const CPU_GRACE_SECONDS = 1;

export function limitSteps({ cpuSeconds, dataBytes, files, processes }: Limits): readonly Step[] {
  return [
    // Not the address space: Node reserves gigabytes of it that it never touches.
    limit(RLIMIT.data, dataBytes),
    // Files in memory, which have no path that could be denied, too.
    limit(RLIMIT.fileSize, 0),
    limit(RLIMIT.core, 0),
    limit(RLIMIT.messageQueues, 0),
    limit(RLIMIT.processes, processes),
    limit(RLIMIT.files, files),
    limit(RLIMIT.cpu, cpuSeconds, cpuSeconds + CPU_GRACE_SECONDS),
  ];
}

function limit(resource: number, soft: number, hard = soft): Step {
  const bytes = Buffer.alloc(16);
  bytes.writeBigUInt64LE(BigInt(soft), 0);
  bytes.writeBigUInt64LE(BigInt(hard), 8);
  return { call: "prlimit64", args: [0, resource, { bytes }, 0] };
}
