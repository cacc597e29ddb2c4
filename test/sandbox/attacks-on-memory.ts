/**
 * Owns: the attacks that hold memory which is charged to no process, so that no sum over processes sees it. Each attack
 * is made once and small. If the small one is possible, a large one is too.
 */
import { nr, perl, type Attack, type Groups } from "./attack.ts";

const SHARED = 0x01;
const PRIVATE = 0x02;
const ANONYMOUS = 0x20;
const HUGETLB = 0x4_0000;
const MADV_DONTNEED = 4;
const MADV_HUGEPAGE = 14;
const MIB = 1024 ** 2;

const map = (bytes: number, flags: number, file = "-1"): string =>
  `my $at = syscall(${nr("mmap")}, 0, ${bytes}, 3, ${flags}, ${file}, 0); $at != -1 or die $!`;
const giveBack = (at: string, bytes: string): string =>
  `syscall(${nr("madvise")}, ${at}, ${bytes}, ${MADV_DONTNEED}) == 0 or die $!`;
/** Shows that the page is held: written, given back by the process, and still there. */
const IS_HELD = `pipe(R, W); syswrite(W, "held"); syscall(${nr("read")}, fileno(R), $at, 4) == 4 or die $!; ${giveBack("$at", "4096")}; syscall(${nr("write")}, fileno(W), $at, 4) == 4 or die $!; sysread(R, my $x, 4); $x eq "held" or die "gone"`;
const hugeMapping = perl(`${map(2 * MIB, PRIVATE | ANONYMOUS | HUGETLB)}; ${IS_HELD.replace("4096", "0")}`);

/** 64 MiB in huge pages. A process could give back all but 4 KiB of each; the kernel keeps them whole. */
const HUGE_PAGES = perl(
  `${map(66 * MIB, PRIVATE | ANONYMOUS)}; my $l = ${64 * MIB}; $at = ($at + ${2 * MIB - 1}) & ~${2 * MIB - 1}; syscall(${nr("madvise")}, $at, $l, ${MADV_HUGEPAGE}) == 0 or die $!; open(Z, "<", "/dev/zero"); syscall(${nr("read")}, fileno(Z), $at, $l) == $l or die $!; open(S, "<", "/proc/self/smaps"); my $huge = 0; while (<S>) { $huge += $1 if /^AnonHugePages: +([0-9]+)/ } $huge > 0 or die "no huge page"`,
);

const INTO_PIPE = 'open(F, "<", "one") or die $!; pipe(R, W); ';
const fill = (socket: string): string =>
  `{ my $f = fcntl(${socket}, 3, 0); fcntl(${socket}, 4, $f | 2048); 1 while $n += syswrite(${socket}, "x" x 4096) // last }`;
/** Enlarges the buffer of one socket of a pair, which then takes more than a socket of an untouched pair. */
const largerBuffer = (name: string, option: number, more: Partial<Attack> = {}): Attack => ({
  name,
  script: perl(
    `socketpair(A, B, AF_UNIX, SOCK_STREAM, 0); socketpair(C, D, AF_UNIX, SOCK_STREAM, 0); setsockopt(A, SOL_SOCKET, ${option}, 4 << 20) or die $!; my $n = 0; ${fill("A")} my $large = $n; $n = 0; ${fill("C")} $large > 1.5 * $n or die "$large, $n"`,
  ),
  ...more,
});

export const ATTACKS_ON_MEMORY: Groups = {
  "15. memory that no process owns": {
    changesFiles: false,
    attacks: [
      { name: "shared with nobody", script: perl(`${map(4096, SHARED | ANONYMOUS)}; ${IS_HELD}`) },
      {
        name: "shared by a device",
        script: perl(`open(Z, "+<", "/dev/zero") or die $!; ${map(4096, SHARED, "fileno(Z)")}; ${IS_HELD}`),
      },
      {
        name: "a file in memory",
        script: perl(
          `my $n = "x"; my $f = syscall(${nr("memfd_create")}, $n, 0); $f >= 0 or die $!; open(F, "+<&=", $f); truncate(F, 4096) or die $!; ${map(4096, SHARED, "$f")}; ${IS_HELD}`,
        ),
      },
      { name: "a page from the machine's store of huge pages", script: hugeMapping, mayBeMissing: true },
      { name: "the rest of huge pages", script: HUGE_PAGES, mayBeMissing: true },
      largerBuffer("larger buffers of a socket", 7),
      largerBuffer("buffers of a socket beyond the limit", 32, { onlyRoot: true }),
      {
        name: "a filter of a socket",
        script: perl(
          'socketpair(A, B, AF_UNIX, SOCK_STREAM, 0); my $p = pack("S C C L", 6, 0, 0, 65535); my $f = pack("S x6 P", 1, $p); setsockopt(A, SOL_SOCKET, 26, $f) or die $!',
        ),
      },
      {
        name: "open files in transit over a socket",
        script: perl(
          `socketpair(A, B, AF_UNIX, SOCK_STREAM, 0); pipe(R, W); my $c = pack("Q i i i x4", 20, 1, 1, fileno(R)); my $d = "y"; my $v = pack("P Q", $d, 1); my $m = pack("Q L x4 P Q P Q i x4", 0, 0, $v, 1, $c, length $c, 0); syscall(${nr("sendmsg")}, fileno(A), $m, 0) == 1 or die $!`,
        ),
      },
      { name: "a larger pipe", script: perl("pipe(R, W); fcntl(W, 1031, 1 << 20) >= 1 << 20 or die $!") },
      {
        name: "pages of its own in a pipe",
        script: perl(
          `pipe(R, W); ${map(4096, PRIVATE | ANONYMOUS)}; my $v = pack("Q Q", $at, 4096); syscall(${nr("vmsplice")}, fileno(W), $v, 1, 0) > 0 or die $!`,
        ),
      },
      {
        name: "pages of a file in a pipe",
        script: perl(
          `${INTO_PIPE} my $o = pack("Q", 0); syscall(${nr("splice")}, fileno(F), $o, fileno(W), 0, 10, 0) > 0 or die $!`,
        ),
      },
      {
        name: "pages of a file, sent to a pipe",
        script: perl(
          `${INTO_PIPE} my $o = pack("Q", 0); syscall(${nr("sendfile")}, fileno(W), fileno(F), $o, 10) > 0 or die $!`,
        ),
      },
      {
        name: "pages of a pipe in another",
        script: perl(
          `pipe(R, W); pipe(S, X); syswrite(W, "x"); syscall(${nr("tee")}, fileno(R), fileno(X), 1, 0) == 1 or die $!`,
        ),
      },
      {
        name: "rules of Landlock",
        script: perl(
          `my $a = pack("Q", 2); syscall(${nr("landlock_create_ruleset")}, $a, 8, 0) >= 0 or die $!`,
        ),
      },
    ],
  },
};
