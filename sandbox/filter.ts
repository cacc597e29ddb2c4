/**
 * Owns: the system calls that are denied to a command of Restricted mode. Landlock does not see some of them (modes,
 * owners and times of files, every kind of socket, other namespaces); others would lead around it.
 */
import { assemble, compile, type Condition, type Rule } from "./bpf.ts";
import { rangesOf } from "./ranges.ts";
import { PARENT, type Syscall } from "./syscall.ts";
import { numberOf, type Architecture, type SystemCall } from "./system-calls.ts";

const EPERM = 1;
const EINVAL = 22;
const ENOSYS = 38;
const AUDIT_ARCH = { x64: 0xc000_003e, arm64: 0xc000_00b7 } as const;
const X32 = 0x4000_0000;

/** The mode, owner, times and attributes of files, and files by their handles. */
const FILES: readonly SystemCall[] = [
  ...(["chmod", "fchmod", "fchmodat", "fchmodat2", "chown", "fchown", "lchown", "fchownat"] as const),
  ...(["utime", "utimes", "futimesat", "utimensat"] as const),
  ...(["setxattr", "lsetxattr", "fsetxattr", "setxattrat", "file_setattr"] as const),
  ...([
    "removexattr",
    "lremovexattr",
    "fremovexattr",
    "removexattrat",
    "fallocate",
    "open_by_handle_at",
  ] as const),
];

const NAMESPACES: readonly SystemCall[] = [
  ...([
    "unshare",
    "setns",
    "mount",
    "umount2",
    "pivot_root",
    "chroot",
    "open_tree",
    "open_tree_attr",
  ] as const),
  ...(["move_mount", "fsopen", "fsconfig", "fsmount", "fspick", "mount_setattr"] as const),
];

/** Ways to other processes' memory and queues, and into the kernel. */
const SHARED: readonly SystemCall[] = [
  ...(["socket", "bind", "connect", "listen", "shmget", "shmat", "shmctl"] as const),
  ...(["semget", "semop", "semtimedop", "semctl", "mq_open", "mq_unlink"] as const),
  ...(["mq_timedsend", "mq_timedreceive", "mq_notify", "mq_getsetattr"] as const),
  ...(["msgget", "msgsnd", "msgrcv", "msgctl", "add_key", "request_key", "keyctl"] as const),
  ...(["bpf", "perf_event_open", "userfaultfd", "pidfd_getfd", "fanotify_init"] as const),
];

/**
 * Larger buffers and filters of sockets, and descriptors on their way, which live on in messages. No process is charged
 * with this memory. What programs write to pairs of sockets with default settings is not charged either, but allowed.
 */
const SOCKETS: readonly SystemCall[] = ["setsockopt", "sendmsg", "sendmmsg"];

/** A page in a pipe keeps the whole huge page that it is part of. Programs go on with read and write. */
const PAGES_IN_PIPES: readonly SystemCall[] = ["vmsplice", "splice", "tee", "sendfile"];

/**
 * They fail with ENOSYS, and programs do without them. Some keep other processes waiting (locks). Others are few for a
 * whole user or machine (watches, asynchronous input and output). Some hold memory that no process is charged with
 * (files in memory, rules of Landlock).
 */
const UNKNOWN: readonly SystemCall[] = [
  ...(["clone3", "io_uring_setup", "io_uring_enter", "io_uring_register"] as const),
  ...(["futex_wake", "futex_wait", "futex_requeue"] as const),
  ...(["flock", "io_setup", "inotify_init", "inotify_init1", "memfd_create", "memfd_secret"] as const),
  ...(["landlock_create_ruleset", "landlock_add_rule", "landlock_restrict_self"] as const),
];

const NEW_NAMESPACES = 0x7e02_0000;
/** A thread without CLONE_FILES has open files of its own, which nothing would count. */
const CLONE_THREAD = 0x1_0000;
const CLONE_FILES = 0x400;
const AF_UNIX = 1;
const SOCK_TYPES = 0xf;
/**
 * Sockets of any other type take datagrams, and could send them to any path. The kernel turns raw ones into such
 * sockets.
 */
const STREAM_AND_SEQPACKET = [1, 5];
const O_TRUNC = 0x200;
const O_ACCMODE = 3;
/**
 * Requests that programs make of files, pipes and terminals, and that change none of them: TCGETS, TIOCGPGRP,
 * TIOCGWINSZ, FIONREAD, FIONBIO, TIOCGSID, FIONCLEX, FIOCLEX, TCGETS2, FS_IOC_GETFLAGS, FS_IOC_FSGETXATTR,
 * FS_IOC_FIEMAP. File systems and drivers have hundreds of others, and many of them need no right to write.
 */
const HARMLESS_IOCTLS = [
  ...[0x5401, 0x540f, 0x5413, 0x541b, 0x5421, 0x5429, 0x5450, 0x5451],
  ...[0x802c_542a, 0x8008_6601, 0x801c_581f, 0xc020_660b],
];
/**
 * REQUEUE, CMP_REQUEUE and CMP_REQUEUE_PI, on memory that other processes share: those that wait there would wait for
 * ever.
 */
const FUTEX_REQUEUES = [3, 4, 12];
const FUTEX_OPERATION = 0xff;
const F_SETOWN = 8;
const F_SETOWN_EX = 15;
/**
 * Commands about descriptors, their flags and signals, and queries. Not among them: leases of files, larger pipes,
 * notifications about folders, and locks. A process that may read a file may lock it, and keep those waiting that want
 * to write.
 */
const HARMLESS_FCNTLS = [
  ...[0, 1, 2, 3, 4, 5, F_SETOWN, 9, 10, 11, F_SETOWN_EX, 16, 17, 36],
  ...[1025, 1027, 1028, 1030, 1032, 1033, 1034, 1035],
];
const PRIO_USER = 2;
const IOPRIO_WHO_USER = 3;
/** MAP_SHARED, MAP_SHARED_VALIDATE and MAP_ANONYMOUS. */
const MAP_KIND = 0x2f;
const SHARED_ANONYMOUS = [0x21, 0x23];
const MAP_HUGETLB = 0x4_0000;
/**
 * PR_SET_DUMPABLE: a process that nobody may look into cannot be counted. PR_SET_THP_DISABLE: see limits.ts.
 * PR_SCHED_CORE: it keeps all other processes off the other half of a core.
 */
const PRCTLS = [4, 41, 62];

/** The argument names another process than the caller. */
const another = (arg: number): Condition => ({ arg, isNoneOf: [0] });

const CONDITIONAL: readonly (readonly [SystemCall, Condition])[] = [
  ["clone", { arg: 0, mask: NEW_NAMESPACES, isNoneOf: [0] }],
  ["clone", { arg: 0, mask: CLONE_THREAD | CLONE_FILES, isOneOf: [CLONE_THREAD] }],
  ["mmap", { arg: 3, mask: MAP_KIND, isOneOf: SHARED_ANONYMOUS }],
  ["mmap", { arg: 3, mask: MAP_HUGETLB, isNoneOf: [0] }],
  ["prctl", { arg: 0, isOneOf: PRCTLS }],
  ["socketpair", { arg: 0, isNoneOf: [AF_UNIX] }],
  ["socketpair", { arg: 1, mask: SOCK_TYPES, isNoneOf: STREAM_AND_SEQPACKET }],
  ["ioctl", { arg: 1, isNoneOf: HARMLESS_IOCTLS }],
  ["futex", { arg: 1, mask: FUTEX_OPERATION, isOneOf: FUTEX_REQUEUES }],
  ["fcntl", { arg: 1, isNoneOf: HARMLESS_FCNTLS }],
  ["prlimit64", another(0)],
  ["setpriority", another(1)],
  ["setpriority", { arg: 0, isOneOf: [PRIO_USER] }],
  ["ioprio_set", another(1)],
  ["ioprio_set", { arg: 0, isOneOf: [IOPRIO_WHO_USER] }],
  ["sched_setparam", another(0)],
  ["sched_setscheduler", another(0)],
  ["sched_setaffinity", another(0)],
  ["sched_setattr", another(0)],
];

/** Truncating a file without opening it for writing. Landlock sees this from its third ABI on. */
const cuts = (arg: number): Condition => ({
  arg,
  mask: O_TRUNC | O_ACCMODE,
  isOneOf: [O_TRUNC, O_TRUNC | O_ACCMODE],
});
const BEFORE_TRUNCATE: readonly (readonly [SystemCall, Condition | null])[] = [
  ["truncate", null],
  ["ftruncate", null],
  ["open", cuts(1)],
  ["openat", cuts(2)],
];

/** Calls that send signals. Landlock keeps signals inside the domain from its sixth ABI on. */
const SIGNALLING: readonly SystemCall[] = [
  ...(["kill", "tkill", "tgkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo", "pidfd_open"] as const),
];

/** The parent is denied as a process group, too. */
const EVERYBODY_AND_PARENT = [-1, PARENT, -PARENT].map((id) => id >>> 0);
/**
 * The limit on ranges: each takes six instructions, and a program may have 4096. With more processes, close ones share
 * a range. Then the ids between them cannot be signalled either; no process of the user has these ids now.
 */
const OUTSIDE_RANGES = 500;

export type FilterOptions = {
  readonly arch: Architecture;
  /** Landlock's ABI. What it does not see is denied here. */
  readonly abi: number;
  /** Processes and threads that must not be signalled, where Landlock does not prevent it. */
  readonly outside: readonly number[];
};

/** The rules. Only the order among the rules of one call matters. */
export function filterRules({ arch, abi, outside }: FilterOptions): readonly Rule[] {
  const rule = (call: SystemCall, errno: number, when: Condition | null = null): Rule[] => {
    const number = numberOf(arch, call);
    return number === undefined ? [] : [{ number, errno, ...(when === null ? {} : { when }) }];
  };
  const ranges = rangesOf(outside, OUTSIDE_RANGES);
  const groups = ranges.map(([first, last]) => [-last >>> 0, -first >>> 0] as const);
  const targets: readonly Condition[] = [
    { arg: 0, isOneOf: EVERYBODY_AND_PARENT },
    { arg: 0, isWithin: [...ranges, ...groups] },
  ];
  return [
    ...[...FILES, ...NAMESPACES, ...SHARED, ...SOCKETS].flatMap((call) => rule(call, EPERM)),
    ...UNKNOWN.flatMap((call) => rule(call, ENOSYS)),
    ...PAGES_IN_PIPES.flatMap((call) => rule(call, EINVAL)),
    ...CONDITIONAL.flatMap(([call, when]) => rule(call, EPERM, when)),
    ...(abi >= 3
      ? []
      : [...BEFORE_TRUNCATE.flatMap(([call, when]) => rule(call, EPERM, when)), ...rule("openat2", ENOSYS)]),
    ...(abi >= 6
      ? []
      : [
          ...SIGNALLING.flatMap((call) => targets.flatMap((when) => rule(call, EPERM, when))),
          // Denied as a whole: it also signals through a folder of /proc, which is no process id.
          ...rule("pidfd_send_signal", EPERM),
          ...rule("fcntl", EPERM, { arg: 1, isOneOf: [F_SETOWN, F_SETOWN_EX] }),
        ]),
  ];
}

const SECCOMP_SET_MODE_FILTER = 1;

/**
 * The last step: the filter holds for everything after it. The process must not be able to gain privileges any more.
 */
export function filterStep(arch: Architecture, rules: readonly Rule[]): Syscall {
  const preamble = {
    architecture: AUDIT_ARCH[arch],
    errno: EPERM,
    ...(arch === "x64" ? { below: { number: X32, errno: ENOSYS } } : {}),
  };
  const program = assemble(compile(preamble, rules));
  return { call: "seccomp", args: [SECCOMP_SET_MODE_FILTER, 0, { program }] };
}
