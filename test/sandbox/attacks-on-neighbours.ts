/**
 * Owns: the attacks of a Restricted command on others on its machine, by reading alone: to keep them waiting by locks,
 * to read the server's own files, to open devices, and to use up scarce resources.
 */
import { nr, perl, type Attack, type Groups } from "./attack.ts";

/** A `struct flock` for the whole file, for reading (0) or writing (1). */
const lockOf = (type: number): string => `pack("s s x4 q q l x4", ${type}, 0, 0, 0, 0)`;
const F_GETLK = 5;
/** Another process asks whether it could lock the file for writing, and finds the lock. */
const IS_HELD = `my $pid = fork; if (!$pid) { my $l = ${lockOf(1)}; fcntl(F, ${F_GETLK}, $l) or die; exit(unpack("s", $l) == 2) } waitpid $pid, 0; $? == 0 or die`;
const lock = (name: string, command: number): Attack => ({
  name,
  script: perl(
    `open(F, "<", "one") or die $!; my $l = ${lockOf(0)}; fcntl(F, ${command}, $l) or die $!; ${IS_HELD}`,
  ),
});

/** Only opens the device for reading. Some devices do something as soon as they are opened. */
const openDevice = (path: string): string => perl(`sysopen(F, "${path}", 0) or die $!`);
const ONE_DISK = `for d in /dev/*; do if [ -b "$d" ] && dd if="$d" of=/dev/null count=0; then echo SUCCESS; exit 0; fi; done; exit 1`;

export const ATTACKS_ON_NEIGHBOURS: Groups = {
  "11. locks": {
    changesFiles: false,
    attacks: [
      lock("of a file", 6),
      lock("of a file, waiting for it", 7),
      lock("of an open file", 37),
      lock("of an open file, waiting for it", 38),
      {
        name: "of a whole file",
        script: perl(
          `open(F, "<", "one") or die $!; flock(F, 1) or die $!; open(G, "<", "one"); !flock(G, 6) && $!{EAGAIN} or die "not held"`,
        ),
      },
    ],
  },
  "12. the server's own files": {
    changesFiles: false,
    attacks: [
      { name: "by their path", script: "grep -q 'the secret' $OWN/file && echo SUCCESS" },
      {
        name: "by a path that is not straight",
        script: "grep -q 'the secret' folder/../own/file && echo SUCCESS",
      },
      { name: "by a link", script: "grep -q 'the secret' link/file && echo SUCCESS" },
      { name: "from above", script: "grep -rqs 'the secret' . && echo SUCCESS" },
      { name: "from inside", script: "cd $OWN && grep -q 'the secret' file && echo SUCCESS" },
      {
        name: "by a process's root",
        script: "grep -q 'the secret' /proc/self/root$OWN/file && echo SUCCESS",
      },
      {
        name: "by another's root",
        script: "grep -q 'the secret' /proc/$VICTIM/root$OWN/file && echo SUCCESS",
      },
      {
        name: "by their folder's descriptor",
        script: "exec 3< $OWN && grep -q 'the secret' /proc/self/fd/3/file && echo SUCCESS",
      },
      {
        name: "by a descriptor that only names them",
        script: perl(
          'sysopen(F, "$ENV{OWN}/file", 010000000) or die $!; open(G, "<", "/proc/self/fd/" . fileno(F)) or die $!; <G> =~ /the secret/ or die',
        ),
      },
      { name: "running a program among them", script: "$OWN/program" },
      { name: "reading a script among them", script: ". $OWN/program" },
    ],
  },
  "13. devices": {
    changesFiles: false,
    attacks: [
      { name: "a new terminal", script: openDevice("/dev/ptmx"), mayBeMissing: true },
      { name: "the kernel's log", script: openDevice("/dev/kmsg"), mayBeMissing: true },
      { name: "a terminal of the machine", script: openDevice("/dev/tty1"), mayBeMissing: true },
      { name: "a disk", script: ONE_DISK, mayBeMissing: true },
    ],
  },
  "14. scarce resources": {
    changesFiles: false,
    attacks: [
      { name: "a watcher of files", script: perl(`syscall(${nr("inotify_init1")}, 0) >= 0 or die $!`) },
      {
        name: "news of a folder",
        script: perl("sysopen(F, q(.), 0) or die $!; fcntl(F, 1026, 1) or die $!"),
        mayBeMissing: true,
      },
      {
        name: "asynchronous input and output",
        script: perl(`my $c = pack("Q", 0); syscall(${nr("io_setup")}, 1, $c) == 0 or die $!`),
      },
      {
        name: "timers",
        script: perl(
          `for (1 .. 300) { my $t = pack("Q", 0); syscall(${nr("timer_create")}, 0, 0, $t) == 0 or die $! }`,
        ),
      },
      {
        name: "both halves of a core",
        script: perl(`syscall(${nr("prctl")}, 62, 1, 0, 0, 0) == 0 or die $!`),
        mayBeMissing: true,
      },
    ],
  },
};
