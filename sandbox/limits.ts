/** Owns: how much of the machine a command of Restricted mode may use. */
import { totalmem } from "node:os";
import type { Syscall } from "./syscall.ts";

export type Limits = {
  /** Processor seconds of one process. */
  readonly cpuSeconds: number;
  /** Private memory of one process. */
  readonly dataBytes: number;
  /**
   * Memory of all its processes together. Their control group counts it; the supervisor watches it where there is none.
   */
  readonly memoryBytes: number;
  /** Open files of one process: no process is charged with the memory of data on its way through sockets. */
  readonly files: number;
  /** Its processes and threads. */
  readonly processes: number;
  /**
   * Further ones, where it has no user of its own: the limit counts what the user's other programs begin meanwhile, too,
   * and those should not make its own fail.
   */
  readonly neighbours: number;
  /** What its supervisor watches where no control group counts its memory. */
  readonly watch: Watch;
};

type Watch = {
  /** Open files, of all its processes together, that are not counted as memory. */
  readonly files: number;
  /** What each further open file counts for: data on its way through a socket is in no process. */
  readonly bytesPerFile: number;
  /** What the whole machine must have left; with less, the command is killed. */
  readonly availableBytes: number;
};

const KIB = 1024;
const MIB = 1024 ** 2;
const GIB = 1024 ** 3;
export const LIMITS: Limits = {
  cpuSeconds: 600,
  dataBytes: 2 * GIB,
  memoryBytes: 2 * GIB,
  files: 1024,
  processes: 256,
  neighbours: 1024,
  watch: {
    // Enough for programs that do not use sockets. If all these files were sockets, they would hold a quarter of a GiB.
    files: 1024,
    // A full socket buffer of the system's default size.
    bytesPerFile: 256 * KIB,
    availableBytes: Math.min(totalmem() / 16, 512 * MIB),
  },
};

const RLIMIT = {
  ...{ cpu: 0, fileSize: 1, data: 2, core: 4, processes: 6, files: 7 },
  ...{ signals: 11, messageQueues: 12, nice: 13, realtime: 14 },
} as const;
/** Bytes of a core dump: less than any has, so that a crash writes none. */
const NO_IMAGE_OF_MEMORY = 1;
/** Pending signals and timers. All processes of a user share a hundred times as many. */
const SIGNALS = 256;
/** Between the soft and the hard limit, for a process that catches the signal of the soft one. */
const CPU_GRACE_SECONDS = 1;
const PR_SET_THP_DISABLE = 41;

export function limitSteps({ cpuSeconds, dataBytes, files, processes }: Limits): readonly Syscall[] {
  return [
    // The limit is not on address space: Node reserves gigabytes of it that it never touches.
    limit(RLIMIT.data, dataBytes),
    // This also limits files in memory, which have no path that could be denied.
    limit(RLIMIT.fileSize, 0),
    // Not 0: with 0 the kernel would still run the program that collects the system's core dumps.
    limit(RLIMIT.core, NO_IMAGE_OF_MEMORY),
    limit(RLIMIT.messageQueues, 0),
    limit(RLIMIT.processes, processes),
    limit(RLIMIT.files, files),
    limit(RLIMIT.signals, SIGNALS),
    // No priority above other processes, even if the worker may have one.
    limit(RLIMIT.nice, 0),
    limit(RLIMIT.realtime, 0),
    limit(RLIMIT.cpu, cpuSeconds, cpuSeconds + CPU_GRACE_SECONDS),
    // A process that gives back all but a few bytes of a huge page is charged with those few only.
    { call: "prctl", args: [PR_SET_THP_DISABLE, 1, 0, 0, 0] },
  ];
}

const AT_FDCWD = -100;
const O_WRONLY_CLOEXEC = 0o2000001;
const FIRST_TO_DIE = "1000";

/** If the machine runs out of memory, the kernel kills confined processes before anything else. */
export function firstToDieSteps(): readonly Syscall[] {
  const file = { bytes: Buffer.from("/proc/self/oom_score_adj\0") };
  return [
    { call: "openat", args: [AT_FDCWD, file, O_WRONLY_CLOEXEC, 0], keep: "score", optional: true },
    {
      call: "write",
      args: [{ result: "score" }, { bytes: Buffer.from(FIRST_TO_DIE) }, FIRST_TO_DIE.length],
      optional: true,
    },
  ];
}

function limit(resource: number, soft: number, hard = soft): Syscall {
  const bytes = Buffer.alloc(16);
  bytes.writeBigUInt64LE(BigInt(soft), 0);
  bytes.writeBigUInt64LE(BigInt(hard), 8);
  return { call: "prlimit64", args: [0, resource, { bytes }, 0] };
}
