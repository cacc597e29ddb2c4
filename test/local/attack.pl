# What a command with the user's rights can try to get at a secret in other processes of the user. It says what it could
# open or find, and of which process. Arguments: a file with the secrets, written backwards so that the file is not found
# itself; then the processes to trace and to signal.
use strict;
use warnings;
use Socket;
$| = 1;

my ($file, @targets) = @ARGV;
open(my $in, "<:raw", $file) or die "$file: $!";
chomp(my @secrets = <$in>);
@secrets = map { scalar reverse $_ } @secrets;

sub has_secret { my ($text) = @_; return grep { index($$text, $_) >= 0 } @secrets }

sub report { print join(" ", @_), "\n" }

for my $pid (grep { /^\d+$/ && $_ != $$ } map { s{^/proc/}{}r } glob("/proc/*")) {
  my $status = do { local (@ARGV, $/) = ("/proc/$pid/status"); no warnings; <> } // next;
  next unless $status =~ /^Uid:\s+$<\s/m;
  for my $what ("environ", "cmdline") {
    open(my $shown, "<:raw", "/proc/$pid/$what") or next;
    local $/;
    my $text = <$shown> // "";
    report("opened", $what, $pid) if $what eq "environ";
    report("found", $what, $pid) if has_secret(\$text);
  }
  report("opened", "fd", $pid) if opendir(my $fds, "/proc/$pid/fd");
  next unless open(my $maps, "<", "/proc/$pid/maps");
  next unless open(my $memory, "<:raw", "/proc/$pid/mem");
  report("opened", "mem", $pid);
  while (my $line = <$maps>) {
    my ($from, $to) = $line =~ /^([0-9a-f]+)-([0-9a-f]+) rw/ or next;
    no warnings "portable";
    my ($at, $end, $before) = (hex($from), hex($to), "");
    while ($at < $end) {
      sysseek($memory, $at, 0) or last;
      my $read = sysread($memory, my $piece, $end - $at < 1 << 22 ? $end - $at : 1 << 22) or last;
      my $seen = $before . $piece;
      if (has_secret(\$seen)) { report("found", "mem", $pid); $at = $end; last }
      $before = substr($piece, -200);
      $at += $read;
    }
  }
}

my $ptrace = `uname -m` =~ /x86_64/ ? 101 : 117;
my ($ATTACH, $DETACH, $WALL, $PIDFD_OPEN, $PIDFD_GETFD) = (16, 17, 0x40000000, 434, 438);
for my $pid (@targets) {
  if (syscall($ptrace, $ATTACH, 0 + $pid, 0, 0) == 0) {
    waitpid($pid, $WALL);
    syscall($ptrace, $DETACH, 0 + $pid, 0, 0);
    report("opened", "trace", $pid);
  }
  my $pidfd = syscall($PIDFD_OPEN, 0 + $pid, 0);
  report("opened", "pidfd", $pid) if $pidfd >= 0 && syscall($PIDFD_GETFD, $pidfd, 0, 0) >= 0;
  kill("USR1", $pid);
  for (1 .. 20) {
    select(undef, undef, undef, 0.05);
    socket(my $debugger, PF_INET, SOCK_STREAM, 0);
    next unless connect($debugger, sockaddr_in(9229, inet_aton("127.0.0.1")));
    syswrite($debugger, "GET /json/list HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    my $answer = "";
    while ($answer !~ /webSocketDebuggerUrl.*\]/s) { sysread($debugger, $answer, 4096, length $answer) or last }
    next unless $answer =~ /webSocketDebuggerUrl/ && $answer =~ /\[$pid\]/;
    report("opened", "debugger", $pid);
    last;
  }
}
report("done");
