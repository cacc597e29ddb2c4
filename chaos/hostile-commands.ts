/**
 * Owns: the commands of attacking neighbours. Each ends by itself within a minute, and prints how far it has come. If
 * it prints too much, nothing has prevented the attack.
 */

const X64 = { mmap: 9, madvise: 28 };
const ARM64 = { mmap: 222, madvise: 233 };
const NUMBERS = process.arch === "arm64" ? ARM64 : X64;

/** Megabytes that a Restricted command tries to take: more than its limit (2 GiB), but not too much for the machine. */
const TAKEN_MB = 2_560;
/** Megabytes that it may report at most: its limit, and what it may get beyond the limit before that is noticed. */
const HELD_AT_MOST_MB = 2_304;

const perl = (script: string): string => `perl -e '${script}'`;

/** Holds locks on the files of Temporal's database and of Postgres; prints "locked N". */
export const holdLocks = (dataDir: string): string =>
  perl(`
use Fcntl qw(:DEFAULT :flock);
$| = 1;
my @files = map { glob("${dataDir}/$_") } qw(temporal/temporal.db* pg18/postmaster.pid pg18/global/* pg18/pg_wal/*);
my @open = map { my $file; open($file, "<", $_) ? $file : () } @files;
my $locked = 0;
for (my $end = time + 15; time < $end; select(undef, undef, undef, 0.02)) {
  my $now = 0;
  for my $file (@open) {
    my $lock = pack("s s x4 q q l x4", F_RDLCK, 0, 0, 0, 0);
    $now++ if fcntl($file, F_SETLK, $lock);
    $now++ if flock($file, LOCK_EX | LOCK_NB);
  }
  print "locked $now\\n" if $now > $locked;
  $locked = $now if $now > $locked;
}
`);

/** Writes shared pages and gives them back, so that they are charged to no process; prints "held N", in megabytes. */
export const holdPages = (): string =>
  perl(`
$| = 1;
open(my $zero, "<", "/dev/zero") or die;
my ($held, $step) = (0, 64);
while ($held < ${TAKEN_MB}) {
  my $at = syscall(${NUMBERS.mmap}, 0, $step << 20, 3, 0x21, -1, 0);
  last if $at == -1;
  last if syscall(${process.arch === "arm64" ? 63 : 0}, fileno($zero), $at, $step << 20) < $step << 20;
  syscall(${NUMBERS.madvise}, $at, $step << 20, 4);
  $held += $step;
  print "held $held\\n";
  select(undef, undef, undef, 0.02);
}
sleep 3;
`);

/** Fills the buffers of sockets; prints "part N", in megabytes, for each of its processes. */
export const holdSockets = (): string =>
  perl(`
use Socket; use IO::Handle; use Fcntl;
$| = 1;
my ($piece, $processes) = ("x" x 65536, 6);
for (1 .. $processes) {
  next if fork();
  my ($held, @sockets) = (0);
  SOCKET: for (1 .. 450) {
    socketpair(my $one, my $other, AF_UNIX, SOCK_STREAM, 0) or last;
    push @sockets, $one, $other;
    for my $socket ($one, $other) {
      setsockopt($socket, SOL_SOCKET, SO_SNDBUF, pack("l", 4 << 20));
      $socket->blocking(0);
      while (my $sent = syswrite($socket, $piece)) {
        $held += $sent;
        last SOCKET if $held > ${TAKEN_MB} / $processes << 20;
      }
    }
  }
  printf "part %d\\n", $held >> 20;
  sleep 5;
  exit;
}
1 while wait() > 0;
`);

/** Its children send SIGSTOP to its supervisor without end, or for a minute. */
export const stopSupervisor = (): string =>
  "end=$((SECONDS + 60)); for n in 1 2 3 4; do (while [ $SECONDS -lt $end ]; do kill -STOP $PPID; done) & done; sleep 60";

/** The forbidden gain of an attack, read from its output; null: none. */
export function gainOf(output: string): string | null {
  const numbers = (word: string): number[] =>
    [...output.matchAll(new RegExp(`${word} (\\d+)`, "g"))].map(([, n]) => Number(n));
  const locked = Math.max(0, ...numbers("locked"));
  const held = Math.max(0, ...numbers("held"));
  const inSockets = numbers("part").reduce((sum, part) => sum + part, 0);
  if (locked > 0) return `holds ${locked} locks on files of the data folder`;
  if (held > HELD_AT_MOST_MB) return `held ${held} MB of shared pages`;
  if (inSockets > HELD_AT_MOST_MB) return `held ${inSockets} MB in sockets`;
  return null;
}
