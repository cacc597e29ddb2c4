/**
 * The policy of Restricted mode as data: the rights that each version of Landlock is asked for, and the answers of the
 * filter on both architectures, from a BPF interpreter in this file. Not here: that the kernel does so too
 * (attacks.test.ts).
 */
import fc from "fast-check";
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { filterRules, filterStep } from "../../sandbox/filter.ts";
import { attributes, landlockSteps } from "../../sandbox/landlock.ts";
import { LIMITS, limitSteps } from "../../sandbox/limits.ts";
import { readablePaths } from "../../sandbox/readable.ts";
import { rangesOf } from "../../sandbox/ranges.ts";
import { encodeSyscall, PARENT } from "../../sandbox/syscall.ts";
import { numberOf, type Architecture, type SystemCall } from "../../sandbox/system-calls.ts";

const EPERM = 1;
const EINVAL = 22;
const ENOSYS = 38;
const ALLOWED = 0;
const AUDIT = { x64: 0xc000_003e, arm64: 0xc000_00b7 } as const;

/** The words of `struct landlock_ruleset_attr`: files, network, scope; as many as the version knows. */
test.each([
  [1, [0x1ff6n]],
  [2, [0x3ff6n]],
  [3, [0x7ff6n]],
  [4, [0x7ff6n, 3n]],
  [5, [0xfff6n, 3n]],
  [6, [0xfff6n, 3n, 3n]],
  [7, [0xfff6n, 3n, 3n]],
])("Landlock's attributes are those that version %i knows", (abi, words) => {
  const bytes = Buffer.from(attributes(abi));
  expect(words.map((_, n) => bytes.readBigUInt64LE(8 * n))).toEqual(words);
  expect(bytes).toHaveLength(8 * words.length);
});

test("only harmless devices may be written to, and no terminal; /dev/zero and the named paths may be read, too", () => {
  const rules = landlockSteps(7, [Buffer.from("/home")]).flatMap(({ args }) =>
    args.flatMap((argument) => {
      if (typeof argument !== "object" || !("paths" in argument)) return [];
      const paths = argument.paths.map((path) => Buffer.from(path).toString());
      return [[Buffer.from(argument.bytes).readBigUInt64LE(), paths]];
    }),
  );
  expect(rules).toEqual([
    [0xc006n, ["/dev/null\0", "/dev/full\0", "/dev/random\0", "/dev/urandom\0"]],
    [0x4n, ["/dev/zero\0", "/home\0"]],
  ]);
});

describe("the readable paths", () => {
  test("are all but the hidden ones: the other entries of each folder on the way, whatever their names", () => {
    const above = realpathSync(mkdtempSync(join(tmpdir(), "bedrock-readable-")));
    onTestFinished(() => rmSync(above, { recursive: true }));
    const [own, other] = [join(above, "päth", "own"), join(above, "päth", "own.old")];
    for (const folder of [own, other, join(above, "second")]) mkdirSync(folder, { recursive: true });
    writeFileSync(join(above, "päth", "file"), "");
    const odd = Buffer.from(`${above}/\xff \n=`, "latin1");
    writeFileSync(odd, "");
    const paths = readablePaths([own, join(above, "second", "deep"), "/nowhere/at/all"]);
    const below = paths.filter((path) => path.toString("latin1").startsWith(above));
    const expected = [odd, ...[other, join(above, "päth", "file")].map((path) => Buffer.from(path))];
    const bytes = (list: readonly Buffer[]) => list.map((path) => path.toString("latin1")).sort();
    expect(bytes(below)).toEqual(bytes(expected));
    // Their parent folders are not listed, because a listed folder is allowed with all below it.
    const ancestors = paths.filter(
      (path) => own.startsWith(`${path.toString()}/`) || path.toString() === "/",
    );
    expect(ancestors.map(String)).toEqual([]);
    expect(paths.map(String)).toContain("/proc");
  });

  test("contain no device", () => {
    const paths = readablePaths([]).map(String);
    expect(paths.filter((path) => /^\/dev(?!\/shm\/)/.test(path))).toEqual([]);
  });
});

test("each limit has a soft and a hard value; only the one on CPU time warns before it kills", () => {
  const steps = limitSteps(LIMITS).filter(({ call }) => call === "prlimit64");
  const limits = steps.map(({ args }) => {
    const [, resource, values] = args;
    if (typeof values !== "object" || !("bytes" in values)) throw new Error("no values");
    const bytes = Buffer.from(values.bytes);
    return [resource, Number(bytes.readBigUInt64LE(0)), Number(bytes.readBigUInt64LE(8))];
  });
  const GIB = 1024 ** 3;
  expect(limits).toEqual([
    [2, 2 * GIB, 2 * GIB],
    [1, 0, 0],
    [4, 1, 1],
    [12, 0, 0],
    [6, 256, 256],
    [7, 1024, 1024],
    [11, 256, 256],
    [13, 0, 0],
    [14, 0, 0],
    [0, 600, 601],
  ]);
});

describe.each(["x64", "arm64"] as const)("the filter on %s", (arch) => {
  const programOf = (abi: number, outside: readonly number[] = [1, 4711]): Uint8Array => {
    const { args } = filterStep(arch, filterRules({ arch, abi, outside }));
    const program = args.find((arg) => typeof arg === "object" && "program" in arg);
    if (program === undefined) throw new Error("no program");
    return program.program;
  };
  const answer = (call: SystemCall, args: readonly number[] = [], abi = 7): number =>
    run(programOf(abi), arch, numberOf(arch, call) ?? 100_000, args);
  /** Calls that this architecture has. */
  const known = (calls: readonly SystemCall[]) => calls.filter((call) => numberOf(arch, call) !== undefined);

  test("another architecture, or another ABI of this one, is denied every call", () => {
    const other = arch === "x64" ? "arm64" : "x64";
    expect(run(programOf(7), other, 0, [])).toBe(EPERM);
    if (arch === "x64") expect(run(programOf(7), arch, 0x4000_0001, [])).toBe(ENOSYS);
  });

  test.each(
    known([
      "chmod",
      "fchmodat",
      "fchmodat2",
      "chown",
      "fchownat",
      "utimensat",
      "utimes",
      "setxattr",
      "removexattrat",
    ]),
  )("files keep their attributes: %s", (call) => expect(answer(call)).toBe(EPERM));

  test.each(
    known([
      "socket",
      "connect",
      "bind",
      "listen",
      "shmget",
      "semtimedop",
      "msgsnd",
      "mq_timedreceive",
      "keyctl",
      "sendmsg",
      "sendmmsg",
    ]),
  )("no process outside can be reached: %s", (call) => expect(answer(call)).toBe(EPERM));

  test.each(
    known(["unshare", "setns", "mount", "chroot", "open_tree", "fsmount", "bpf", "open_by_handle_at"]),
  )("no namespace, mount or root can be entered: %s", (call) => expect(answer(call)).toBe(EPERM));

  test.each(
    known([
      ...(["clone3", "io_uring_setup", "io_uring_enter", "futex_requeue", "flock", "io_setup"] as const),
      ...(["inotify_init", "inotify_init1", "memfd_create", "landlock_create_ruleset"] as const),
    ]),
  )("the call does not exist: %s", (call) => expect(answer(call)).toBe(ENOSYS));

  test.each(known(["vmsplice", "splice", "tee", "sendfile"]))("no page is put into a pipe: %s", (call) =>
    expect(answer(call)).toBe(EINVAL),
  );

  test.each<[SystemCall, number[], number]>([
    ["clone", [0x11], ALLOWED],
    ["clone", [0x1000_0011], EPERM],
    // The flags of the C library's threads, and the same with open files of their own.
    ["clone", [0x3d_0f00], ALLOWED],
    ["clone", [0x3d_0b00], EPERM],
    ["mmap", [0, 4096, 3, 0x22], ALLOWED],
    ["mmap", [0, 4096, 3, 0x01], ALLOWED],
    ["mmap", [0, 4096, 3, 0x21], EPERM],
    ["mmap", [0, 4096, 3, 0x4023], EPERM],
    ["mmap", [0, 4096, 3, 0x4_0022], EPERM],
    ["prctl", [38, 1], ALLOWED],
    ["prctl", [4, 0], EPERM],
    ["prctl", [41, 0], EPERM],
    ["prctl", [62, 1], EPERM],
    ["socketpair", [1, 1], ALLOWED],
    ["socketpair", [1, 5 | 0o2000000], ALLOWED],
    ["socketpair", [1, 2], EPERM],
    ["socketpair", [1, 3 | 0o4000], EPERM],
    ["socketpair", [2, 1], EPERM],
    ["ioctl", [0, 0x5401], ALLOWED],
    ["ioctl", [0, 0x5412], EPERM],
    ["ioctl", [0, 0x4008_6602], EPERM],
    ["futex", [0, 0], ALLOWED],
    ["futex", [0, 128 | 3], ALLOWED],
    ["futex", [0, 3], EPERM],
    ["futex", [0, 256 | 12], EPERM],
    ...[6, 7, 37, 38, 1024, 1026, 1031].map((command): [SystemCall, number[], number] => [
      "fcntl",
      [3, command],
      EPERM,
    ]),
    ...[2, 3, 4, 5, 36, 1030].map((command): [SystemCall, number[], number] => [
      "fcntl",
      [3, command],
      ALLOWED,
    ]),
    ["prlimit64", [0, 7], ALLOWED],
    ["prlimit64", [4711, 7], EPERM],
    ["setpriority", [0, 0], ALLOWED],
    ["setpriority", [2, 0], EPERM],
    ["openat", [0, 0, 0o1000], ALLOWED],
    ["kill", [4711, 9], ALLOWED],
  ])("the arguments decide: %s %j", (call, args, expected) => expect(answer(call, args)).toBe(expected));

  test("the filter denies what an older Landlock does not see", () => {
    expect(answer("openat", [0, 0, 0o1000], 2)).toBe(EPERM);
    expect(answer("openat", [0, 0, 0o1001], 2)).toBe(ALLOWED);
    expect(answer("truncate", [], 2)).toBe(EPERM);
    expect(answer("openat2", [], 2)).toBe(ENOSYS);
    expect(answer("truncate", [], 3)).toBe(ALLOWED);
    for (const target of [4711, -4711, -1, PARENT, -PARENT]) {
      for (const call of ["kill", "tkill", "pidfd_open"] as const)
        expect([call, target, answer(call, [target], 5)]).toEqual([call, target, EPERM]);
    }
    for (const other of [2, 4710, 4712, -4710, -4712]) expect(answer("kill", [other], 5)).toBe(ALLOWED);
    expect(answer("kill", [-1], 5)).toBe(EPERM);
    expect(answer("pidfd_send_signal", [4712], 5)).toBe(EPERM);
    expect(answer("fcntl", [3, 8], 5)).toBe(EPERM);
  });

  test("with any number of processes outside, the kernel takes the program, and it leaves none of them out", () => {
    const outside = Array.from({ length: 3_000 }, (_, n) => 1 + 7 * n + (n % 3));
    const program = programOf(1, outside);
    expect(program.length / 8).toBeLessThanOrEqual(4096);
    const kill = numberOf(arch, "kill") ?? 0;
    for (const id of outside) {
      expect(run(program, arch, kill, [id])).toBe(EPERM);
      expect(run(program, arch, kill, [-id])).toBe(EPERM);
    }
    expect(run(program, arch, kill, [100_000])).toBe(ALLOWED);
  });
});

test("numbers are held by at most the wanted number of ranges", () => {
  const list = fc.uniqueArray(fc.integer({ min: 1, max: 200 }), { maxLength: 100 });
  fc.assert(
    fc.property(list, fc.integer({ min: 1, max: 50 }), (numbers, count) => {
      const ranges = rangesOf(numbers, count);
      expect(ranges.length).toBeLessThanOrEqual(count);
      const isIn = (number: number): boolean =>
        ranges.some(([first, last]) => first <= number && number <= last);
      expect(numbers.every(isIn)).toBe(true);
      // The ranges hold nothing else, unless there are too many.
      const held = ranges.reduce((sum, [first, last]) => sum + last - first + 1, 0);
      const enough = rangesOf(numbers, numbers.length).length;
      if (enough <= count) expect(held).toBe(numbers.length);
    }),
  );
});

test("a step is encoded for the launcher by name, number, result and arguments", () => {
  const step = {
    call: "prctl",
    args: [38, { bytes: Buffer.from([1, 255]) }, { result: "x" }],
    keep: "y",
    optional: true,
  } as const;
  expect(encodeSyscall(step, "x64")).toBe("?prctl 157 y i38 x01ff =x");
  const paths = { bytes: Buffer.from([1]), paths: [Buffer.from("/a"), Buffer.from("/\0")], flags: 5 };
  expect(encodeSyscall({ call: "prctl", args: [paths] }, "x64")).toBe("prctl 157 - p01=5=2f61=2f00");
  expect(() => encodeSyscall({ call: "chmod", args: [] }, "arm64")).toThrow("There is no chmod on arm64");
});

/** Runs a filter on a call, as seccomp does. @returns the error that the call ends with; 0 if it is allowed */
function run(program: Uint8Array, arch: Architecture, number: number, args: readonly number[]): number {
  const data = Buffer.alloc(64);
  data.writeUInt32LE(number, 0);
  data.writeUInt32LE(AUDIT[arch], 4);
  args.forEach((arg, n) => data.writeBigInt64LE(BigInt(arg), 16 + 8 * n));
  const bytes = Buffer.from(program);
  let accumulator = 0;
  for (let at = 0; at < bytes.length / 8; at++) {
    const [code, ifTrue, ifFalse, k] = [
      bytes.readUInt16LE(8 * at),
      bytes.readUInt8(8 * at + 2),
      bytes.readUInt8(8 * at + 3),
      bytes.readUInt32LE(8 * at + 4),
    ];
    switch (code) {
      case 0x20:
        accumulator = data.readUInt32LE(k);
        break;
      case 0x54:
        accumulator = (accumulator & k) >>> 0;
        break;
      case 0x05:
        at += k;
        break;
      case 0x15:
        at += accumulator === k ? ifTrue : ifFalse;
        break;
      case 0x25:
        at += accumulator > k ? ifTrue : ifFalse;
        break;
      case 0x35:
        at += accumulator >= k ? ifTrue : ifFalse;
        break;
      case 0x06:
        return k === 0x7fff_0000 ? ALLOWED : k & 0xffff;
      default:
        throw new Error(`instruction ${code}`);
    }
  }
  throw new Error("the program has no end");
}
