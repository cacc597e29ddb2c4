/**
 * Owns: the attacks of a Restricted command on files and on processes outside. Each attack succeeds in Unrestricted
 * mode. An attack that does not is broken and shows nothing.
 */
import { nr, perl, type Groups } from "./attack.ts";

export const ATTACKS: Groups = {
  "1. writing": {
    changesFiles: true,
    attacks: [
      { name: "a new file", script: "touch new" },
      { name: "over a file", script: "echo x > one" },
      { name: "at the end of a file", script: "echo x >> one" },
      { name: "removing", script: "rm -f one" },
      { name: "removing a directory", script: "rmdir folder" },
      { name: "moving", script: "mv one four" },
      { name: "moving elsewhere", script: "mv one folder/" },
      { name: "a directory", script: "mkdir new" },
      { name: "a link", script: "ln one four" },
      { name: "a symbolic link", script: "ln -s one four" },
      { name: "a named pipe", script: "mkfifo four" },
      { name: "through a descriptor of /proc", script: "exec 3< one; echo x > /proc/self/fd/3" },
      { name: "in place", script: "sed -i s/the/a/ one" },
      { name: "shared memory", script: "f=/dev/shm/bedrock-$VICTIM; echo x > $f && rm $f && echo SUCCESS" },
      { name: "a temporary file", script: "f=$(mktemp) && rm $f && echo SUCCESS" },
    ],
  },
  "2. attributes": {
    changesFiles: true,
    attacks: [
      { name: "mode", script: "chmod 600 one" },
      { name: "times", script: "touch -d 2001-01-01 one" },
      { name: "times, of now", script: "sleep 0.02; touch one" },
      { name: "owner", script: "chown 12345 one", onlyRoot: true },
      { name: "extended attributes", script: "setfattr -n user.a -v b one", needs: "setfattr" },
      {
        name: "extended attributes, by the call",
        script: perl(
          `my ($f, $n, $v) = ("one", "user.a", "b"); syscall(${nr("setxattr")}, $f, $n, $v, 1, 0) == 0 or die $!`,
        ),
      },
      {
        name: "flags of the file system",
        script: perl(
          `sysopen(F, "one", 0) or die $!; my $n = pack("L!", 0); ioctl(F, 0x80086601, $n) or die $!; vec($n, 7, 1) ^= 1; ioctl(F, 0x40086602, $n) or die $!`,
        ),
        // Some file systems have none.
        onlyIf: 'perl -e \'sysopen(F, "one", 0); my $n = pack("L!", 0); exit !ioctl(F, 0x80086601, $n)\'',
      },
      {
        name: "the generation of an inode",
        script: perl(
          'sysopen(F, "one", 0) or die $!; my $v = pack("L", 777); ioctl(F, 0x40086604, $v) or ioctl(F, 0x40087602, $v) or die $!',
        ),
        onlyIf: `perl -e 'sysopen(F, "one", 0); my $n = pack("L", 0); exit !ioctl(F, 0x80087601, $n)'`,
      },
      { name: "cutting off by path", script: perl('truncate("one", 0) or die $!') },
      { name: "cutting off by opening", script: perl('sysopen(F, "one", 01000) or die $!') },
      { name: "cutting off by opening for both", script: perl('sysopen(F, "one", 01002) or die $!') },
    ],
  },
  "3. network and sockets": {
    changesFiles: false,
    attacks: [
      { name: "TCP", script: "exec 3<>/dev/tcp/127.0.0.1/$TCP && echo SUCCESS" },
      { name: "UDP", script: "echo x > /dev/udp/127.0.0.1/$UDP && echo SUCCESS" },
      {
        name: "UDP, sent to an address",
        script: perl(
          'socket(S, AF_INET, SOCK_DGRAM, 0) && send(S, "x", 0, sockaddr_in($ENV{UDP}, inet_aton("127.0.0.1"))) or die $!',
        ),
      },
      {
        name: "TCP Fast Open",
        script: perl(
          'socket(S, AF_INET, SOCK_STREAM, 0) && send(S, "x", 0x20000000, sockaddr_in($ENV{TCP}, inet_aton("127.0.0.1"))) or die $!',
        ),
        mayBeMissing: true,
      },
      { name: "listening", script: perl("socket(S, AF_INET, SOCK_STREAM, 0) && listen(S, 1) or die $!") },
      {
        name: "binding",
        script: perl(
          "socket(S, AF_INET, SOCK_STREAM, 0) && bind(S, sockaddr_in(0, INADDR_LOOPBACK)) or die $!",
        ),
      },
      {
        name: "multipath TCP",
        script: perl("socket(S, AF_INET, SOCK_STREAM, 262) or die $!"),
        mayBeMissing: true,
      },
      { name: "raw packets", script: perl("socket(S, 17, SOCK_RAW, 0) or die $!"), onlyRoot: true },
      {
        name: "a virtual machine's socket",
        script: perl("socket(S, 40, SOCK_STREAM, 0) or die $!"),
        mayBeMissing: true,
      },
      {
        name: "io_uring",
        script: perl(`my $p = "\\0" x 120; syscall(${nr("io_uring_setup")}, 1, $p) >= 0 or die $!`),
        mayBeMissing: true,
      },
      { name: "netlink", script: perl("socket(S, 16, SOCK_RAW, 0) or die $!") },
      {
        name: "a socket with a path",
        script: perl("socket(S, AF_UNIX, SOCK_STREAM, 0) && connect(S, sockaddr_un($ENV{UNIX})) or die $!"),
      },
      {
        name: "an abstract socket",
        // Node 20 fills the name up with NULs, later ones do not.
        script: perl(
          'socket(S, AF_UNIX, SOCK_STREAM, 0) or die $!; grep { connect(S, pack("S $_", AF_UNIX, "\\0$ENV{ABSTRACT}")) } "a108", "a*" or die $!',
        ),
      },
      {
        name: "a pair of raw sockets, to a path",
        script: perl(
          'socketpair(A, B, AF_UNIX, SOCK_RAW, 0) or die $!; send(A, "x", 0, sockaddr_un($ENV{DATAGRAMS})) or die $!',
        ),
      },
      {
        name: "taking an abstract name",
        script: perl(
          'socketpair(A, B, AF_UNIX, SOCK_STREAM, 0) or die $!; bind(A, pack("S a20", AF_UNIX, "\\0$ENV{ABSTRACT}x")) or die $!',
        ),
      },
      {
        name: "a pair of datagram sockets",
        script: perl("socketpair(A, B, AF_UNIX, SOCK_DGRAM, 0) or die $!"),
      },
    ],
  },
  "4. other processes": {
    changesFiles: false,
    attacks: [
      { name: "an environment", script: "grep -q 'the key' /proc/$VICTIM/environ && echo SUCCESS" },
      { name: "memory", script: "head -c 0 /proc/$VICTIM/mem && echo SUCCESS" },
      { name: "open files", script: "ls -l /proc/$VICTIM/fd/0 && echo SUCCESS" },
      {
        name: "tracing",
        script: perl(`syscall(${nr("ptrace")}, 0x4206, $ENV{VICTIM} + 0, 0, 0) == 0 or die $!`),
      },
      {
        name: "reading its memory",
        script: perl(
          `open(M, "<", "/proc/$ENV{VICTIM}/maps") or die $!; my ($at) = <M> =~ /^([0-9a-f]+)/; my $to = "x" x 8; my $l = pack("PQ", $to, 8); my $r = pack("QQ", hex $at, 8); syscall(${nr("process_vm_readv")}, $ENV{VICTIM} + 0, $l, 1, $r, 1, 0) == 8 or die $!`,
        ),
      },
      {
        name: "a signal by descriptor",
        script: perl(
          `my $p = syscall(${nr("pidfd_open")}, $ENV{VICTIM} + 0, 0); $p >= 0 or die $!; syscall(${nr("pidfd_send_signal")}, $p, 18, 0, 0) == 0 or die $!`,
        ),
      },
      { name: "its own supervisor", script: "kill -CONT $PPID && echo SUCCESS" },
      { name: "its supervisor's memory", script: "head -c 0 /proc/$PPID/mem && echo SUCCESS" },
      { name: "processors", script: "taskset -p 1 $VICTIM && echo SUCCESS", needs: "taskset" },
      { name: "input and output", script: "ionice -c 3 -p $VICTIM && echo SUCCESS", needs: "ionice" },
      { name: "limits", script: "prlimit --pid $VICTIM --nofile=100:100 && echo SUCCESS", needs: "prlimit" },
      { name: "priority", script: "renice 19 -p $VICTIM && echo SUCCESS", needs: "renice" },
      { name: "a stop", script: "kill -STOP $VICTIM && kill -CONT $VICTIM && echo SUCCESS" },
      { name: "a kill", script: "kill -9 $VICTIM; sleep 0.2", succeeded: (arena) => !arena.victimIsAlive },
    ],
  },
  "5. other namespaces": {
    changesFiles: false,
    attacks: [
      {
        name: "a user namespace",
        script: "unshare -Ur true && echo SUCCESS",
        needs: "unshare",
        mayBeMissing: true,
      },
      {
        name: "a mount",
        script: "unshare -m mount -t tmpfs none folder && echo SUCCESS",
        needs: "unshare",
        onlyRoot: true,
      },
      {
        name: "a clone into one",
        script: perl(
          `my $pid = syscall(${nr("clone")}, 0x10000011, 0, 0, 0, 0); die $! if $pid < 0; exit 0 if $pid == 0`,
        ),
        mayBeMissing: true,
      },
      {
        name: "a key ring",
        script: perl(`syscall(${nr("keyctl")}, 0, -3, 1) > 0 or die $!`),
        mayBeMissing: true,
      },
      {
        name: "shared memory of System V",
        script: perl(`syscall(${nr("shmget")}, 0, 4096, 01600) >= 0 or die $!`),
        mayBeMissing: true,
      },
      {
        name: "a semaphore of System V",
        script: perl(
          `my $id = syscall(${nr("semget")}, 0, 1, 01666); my $op = pack("SsS", 0, 3, 0); syscall(${nr("semtimedop")}, $id < 0 ? 0 : $id, $op, 1, 0) == 0 or die $!; syscall(${nr("semctl")}, $id, 0, 0)`,
        ),
        mayBeMissing: true,
      },
      {
        name: "a lease on a file",
        script: perl('open(F, "<", "one") or die $!; fcntl(F, 1024, 0) or die $!'),
      },
      { name: "another root", script: "chroot / true && echo SUCCESS", onlyRoot: true },
      { name: "root by sudo", script: "sudo -n true && echo SUCCESS", needs: "sudo" },
      { name: "root by su", script: "su -c true && echo SUCCESS", onlyRoot: true },
    ],
  },
};
