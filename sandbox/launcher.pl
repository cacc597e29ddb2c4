# Owns: starting commands, one supervisor a command, and ending them. It decides nothing: launcher.ts says what is run
# and when it ends. No modules: it must start in a few milliseconds, and its forks must stay small.
#
# The worker starts one launcher and keeps it. For each command the launcher forks a supervisor, which forks the
# command, adopts every process that comes of it (whatever it did with sessions, groups and parents), and does not end
# before all of them are dead. When the worker dies, however, the kernel tells the launcher, and so on down.
#
# Arguments: the worker's process id, then by name the numbers of system calls.
# Standard input, a line each:
#   run ID LENGTH UNTIL  when its lease is over, in milliseconds of the monotonic clock (0: never), followed by so many
#                    bytes, each field ended by NUL: the memory that it may take (0: any), the number of steps, the
#                    steps of its confinement (step.ts), the working directory, the number of variables, the variables
#                    as NAME=value, the program and its arguments
#   renew ID UNTIL   its lease is prolonged
#   opened ID        the reading ends of its output are open on the other side
#   kill ID
# Standard output, a line each:
#   ID started R W   /proc/LAUNCHER/fd/R and W are the reading ends of its standard output and error
#   ID error TEXT    it could not be started
#   ID exit N, ID signal N, ID memory    how it ended; nothing of it is left
#   ID gone          its supervisor has ended; always the last
use strict;
use warnings;

my ($worker, %syscall) = @ARGV;
my ($PR_SET_PDEATHSIG, $PR_SET_CHILD_SUBREAPER, $WNOHANG, $WUNTRACED, $TERM, $KILL, $CONT, $EINTR) =
  (1, 36, 1, 2, 15, 9, 18, 4);
my ($ITIMER_REAL, $TICK_US, $CLOCK_MONOTONIC) = (0, 50_000, 1);
my $ROUNDS = 20; # about 20 ms, in which nothing else is heard; then the next tick goes on
my $KILLED_MS = 3000; # what lives longer than that cannot be killed
my $DEATH_ROUNDS = 200; # about as long, of a supervisor that may have been stopped meanwhile

$0 = "bedrock-launcher";
$^F = 2; # what is opened here is closed in a command
$SIG{PIPE} = "IGNORE";

my %supervisors; # by command
my %until;       # by command: when its lease is over, if it has one
my %ends;        # by command: the reading ends of its output
my %gone;        # by command: when its supervisor ended, until nothing is left of it
my %orphans;     # by process: since when it is to be killed, until it has ended
our $starting = 0; # a supervisor is there, or is about to be, that is not among them yet
my $input = "";

# What a supervisor leaves behind that was killed comes to the launcher.
prctl($PR_SET_CHILD_SUBREAPER, 1);
# No milder signal: that one would have to wait in a launcher that somebody has stopped.
prctl($PR_SET_PDEATHSIG, $KILL);
exit 0 if getppid() != $worker; # it died before that was set
$SIG{CHLD} = \&reap;
$SIG{ALRM} = sub { end_overdue(); reap() };

for (;;) {
  my ($verb, $id, @rest) = split(" ", read_line());
  if ($verb eq "run") {
    my ($length, $until) = @rest;
    run($id, $until, read_bytes($length));
    tick($TICK_US);
    reap(); # what was not heard of meanwhile
  }
  elsif ($verb eq "renew" && $until{$id}) { $until{$id} = $rest[0] }
  elsif ($verb eq "opened") { delete $ends{$id} }
  elsif ($verb eq "kill" && $supervisors{$id}) { kill $TERM, $supervisors{$id} }
}

sub run {
  my ($id, $until, $command) = @_;
  # It was read late: who sent it, or this process, was frozen.
  return say_line("$id gone") if $until && now() > $until;
  pipe(my $out_read, my $out_write) && pipe(my $err_read, my $err_write) or return refuse($id);
  my $launcher = $$;
  # Whoever looks for orphans meanwhile would take it for one.
  local $starting = 1;
  say_line("$id started " . fileno($out_read) . " " . fileno($err_read));
  my $pid = fork();
  return refuse($id) if !defined $pid;
  if ($pid == 0) {
    close($_) for $out_read, $err_read, map { @$_ } values %ends;
    supervise($id, $launcher, $command, $out_write, $err_write);
  }
  $supervisors{$id} = $pid;
  $until{$id} = $until if $until;
  $ends{$id} = [$out_read, $err_read];
}

# The worker has not prolonged their leases: it is frozen, or cut off, and somebody else may be in charge.
sub end_overdue {
  local $!;
  my $now = now();
  for my $id (grep { $until{$_} < $now } keys %until) {
    delete $until{$id};
    kill $TERM, $supervisors{$id} if $supervisors{$id};
  }
}

sub refuse {
  say_line("$_[0] error $!");
  say_line("$_[0] gone");
}

# A supervisor is gone when nothing of its command is left, however it ended itself. What does not die is left alone
# after a while, and nobody waits for it: meanwhile other commands begin, and leases are renewed.
sub reap {
  return if $starting;
  local ($!, $?); # what it interrupts may be about to look at them
  for my $round (1 .. $ROUNDS) {
    my %ids = reverse %supervisors;
    while ((my $pid = waitpid(-1, $WNOHANG | $WUNTRACED)) > 0) {
      # Its command has stopped it. Perl does not tell that from its end, but it is there.
      next if kill $CONT, $pid;
      delete $orphans{$pid};
      my $id = $ids{$pid} // next;
      delete $supervisors{$id};
      delete $until{$id};
      $gone{$id} = now();
    }
    my $now = now();
    my %known = reverse %supervisors;
    my @orphans = grep { !$known{$_} && $now - ($orphans{$_} //= $now) < $KILLED_MS } children($$);
    for my $id (keys %gone) {
      # Another signal may have been heard meanwhile, and have said it.
      next if @orphans && $now - ($gone{$id} // $now) < $KILLED_MS;
      say_line("$id gone") if delete $gone{$id};
    }
    if (!@orphans) {
      tick(0) if !%supervisors;
      return;
    }
    end_overdue();
    kill_tree(@orphans);
    rest($round);
  }
}

sub read_line {
  my $end;
  while (($end = index($input, "\n")) < 0) { fill() }
  my $line = substr($input, 0, $end);
  $input = substr($input, $end + 1);
  return $line;
}

sub read_bytes {
  my ($length) = @_;
  while (length($input) < $length) { fill() }
  my $bytes = substr($input, 0, $length);
  $input = substr($input, $length);
  return $bytes;
}

sub fill {
  for (;;) {
    my $count = sysread(STDIN, $input, 65536, length($input));
    return if $count;
    exit 0 if defined $count; # the worker has gone
    exit 1 if $! != $EINTR;
  }
}

# ---- the supervisor of one command

sub supervise {
  my ($id, $launcher, $command, $out, $err) = @_;
  my ($memory, $count, @rest) = split(/\0/, substr($command, 0, -1), -1);
  my @steps = splice(@rest, 0, $count);
  my ($leader, $outcome, $ending) = (0, undef, 0);
  my $end_all = sub {
    return if $ending++;
    for (my $round = 1; ; $round++) {
      kill_tree(children($$));
      my $pid;
      while (($pid = waitpid(-1, $WNOHANG)) > 0) { $outcome //= outcome($?) if $pid == $leader }
      # What does not die is left to the launcher, which gives it up as well.
      last if $pid < 0 || $round > $DEATH_ROUNDS;
      # One that was forked meanwhile is found in the next round: its parents are dead by then.
      rest($round);
    }
    say_line("$id $outcome") if defined $outcome;
    exit 0;
  };
  # Ends everything inside of the handler, because waitpid goes on waiting after it.
  $SIG{TERM} = $SIG{INT} = $SIG{HUP} = $end_all;
  $SIG{CHLD} = "DEFAULT";
  $0 = "bedrock-supervisor";
  prctl($PR_SET_CHILD_SUBREAPER, 1);
  prctl($PR_SET_PDEATHSIG, $TERM);
  # Should the launcher die while this is stopped, the kernel lets it go on: to it this is a job that lost its shell.
  setpgrp(0, 0);
  exit 0 if getppid() != $launcher;

  my $self = $$;
  $leader = fork();
  if (!defined $leader) { say_line("$id error $!"); exit 0 }
  become_command($self, $id, \@steps, \@rest, $out, $err) if $leader == 0;
  close($_) for $out, $err, *STDIN;
  $SIG{ALRM} = sub {
    local ($!, $?);
    return if $memory == 0 || resident(children($$)) <= $memory;
    $outcome = "memory";
    $end_all->();
  };
  tick($TICK_US);
  while (!defined $outcome) {
    my $pid = waitpid(-1, 0);
    $outcome = outcome($?) if $pid == $leader;
  }
  $end_all->();
}

sub outcome {
  my ($status) = @_;
  my $signal = $status & 127;
  return $signal ? "signal $signal" : "exit " . ($status >> 8);
}

# Of all threads of a process.
sub children {
  my ($pid) = @_;
  my @found;
  opendir(my $threads, "/proc/$pid/task") or return;
  for my $thread (grep { !/^\./ } readdir($threads)) {
    open(my $file, "<", "/proc/$pid/task/$thread/children") or next;
    push @found, split(" ", <$file> // "");
  }
  return @found;
}

# Kills these and all that comes of them, each as it is found: a tree that grows is not outrun. Who loses its parent
# meanwhile becomes a child of this process, and is found in the next round.
sub kill_tree {
  my @todo = @_;
  while (defined(my $pid = shift @todo)) {
    my @children = children($pid);
    kill $KILL, $pid;
    push @todo, @children;
  }
}

# Between two rounds: shortly, and longer where something does not die.
sub rest {
  my ($round) = @_;
  select(undef, undef, undef, $round < 50 ? 0.001 : 0.02);
}

# Of all that comes of these processes, and themselves, in bytes.
sub resident {
  my @todo = @_;
  my $kilobytes = 0;
  while (defined(my $pid = shift @todo)) {
    push @todo, children($pid);
    open(my $file, "<", "/proc/$pid/status") or next;
    while (<$file>) { $kilobytes += $1 if /^Vm(?:RSS|PTE|Swap):\s+(\d+)/ }
  }
  return 1024 * $kilobytes;
}

sub become_command {
  my ($supervisor, $id, $steps, $fields, $out, $err) = @_;
  $SIG{$_} = "DEFAULT" for qw(TERM INT HUP PIPE);
  my ($cwd, $count, @rest) = @$fields;
  my %variables = map { split(/=/, $_, 2) } splice(@rest, 0, $count);
  syscall($syscall{setsid} + 0);
  open(my $say, ">&", \*STDOUT);
  chdir($cwd) or fail($say, "$id error The directory $cwd: $!");
  open(STDIN, "<", "/dev/null");
  open(STDOUT, ">&", $out);
  open(STDERR, ">&", $err);
  confine($say, $id, @$steps);
  # After the confinement, for a change of the user undoes it.
  prctl($PR_SET_PDEATHSIG, $KILL);
  kill $KILL, $$ if getppid() != $supervisor;
  %ENV = %variables;
  { no warnings; exec { $rest[0] } @rest }
  fail($say, "$id error $rest[0]: $!");
}

# Makes the system calls of the steps, in order; the first that fails keeps the command from running.
sub confine {
  my ($say, $id, @steps) = @_;
  my (%kept, @alive);
  STEP: for my $step (@steps) {
    my ($name, $number, $keep, @arguments) = split(" ", $step);
    my $optional = $name =~ s/^\?//;
    my @values;
    for (@arguments) {
      my ($kind, $rest) = unpack("a a*", $_);
      my ($hex, $result) = split(/=/, $rest, 2);
      next STEP if defined $result && !defined $kept{$result};
      if ($kind eq "i") { push @values, $rest + 0 }
      elsif ($kind eq "x") { push @values, pack("H*", $hex) . (defined $result ? pack("l", $kept{$result}) : "") }
      elsif ($kind eq "=") { defined $kept{$rest} or next STEP; push @values, $kept{$rest} + 0 }
      elsif ($kind eq "f") {
        push @alive, with_parent(pack("H*", $rest));
        push @values, pack("S x6 P", length($alive[-1]) / 8, $alive[-1]);
      }
      else { fail($say, "$id error The sandbox has an argument that is not understood: $_") }
    }
    my $value = syscall($number + 0, @values);
    if ($value == -1) {
      next STEP if $optional;
      fail($say, "$id error The sandbox cannot be applied ($name: $!), so nothing was run");
    }
    $kept{$keep} = $value if $keep ne "-";
  }
}

# A filter cannot be told beforehand who will be the parent of what it filters.
sub with_parent {
  my ($program) = @_;
  my %value = (0x7ffffffe, getppid(), 0x80000002, -getppid());
  for (my $at = 4; $at < length($program); $at += 8) {
    my $k = unpack("L", substr($program, $at, 4));
    substr($program, $at, 4) = pack("l", $value{$k}) if exists $value{$k};
  }
  return $program;
}

# Only in a command: nothing of its parent's is run.
sub fail {
  my ($say, $line) = @_;
  $line =~ tr/\n/ /; # a name may hold one, and must not speak for others
  syswrite($say, "$line\n");
  kill $KILL, $$;
}

# A signal that comes between Perl's last look for one and a call that waits is heard when that call is interrupted.
sub tick {
  my ($every) = @_;
  syscall($syscall{setitimer} + 0, $ITIMER_REAL, pack("q4", 0, $every, 0, $every), 0);
}

# In milliseconds.
sub now {
  my $time = pack("q2", 0, 0);
  syscall($syscall{clock_gettime} + 0, $CLOCK_MONOTONIC, $time);
  my ($seconds, $nanoseconds) = unpack("q2", $time);
  return $seconds * 1000 + $nanoseconds / 1e6;
}

sub say_line { syswrite(STDOUT, "$_[0]\n") }

sub prctl {
  my ($option, $value) = @_;
  return syscall($syscall{prctl} + 0, $option + 0, $value + 0, 0, 0, 0);
}
