# Owns: what keeper, launcher and supervisor ask of the kernel: waiting without missing a signal, and the processes that
# come of a process, and their death. Numbers of system calls are the worker's to know (system-calls.ts).
use strict;
use warnings;

our %syscall;
our $told = 0; # somebody asked this program to end
our ($WNOHANG, $WUNTRACED, $KILL, $TERM, $CHLD, $CONT) = (1, 2, 9, 15, 17, 18);
our $KILLED_MS = 3000; # what is still there so long after a SIGKILL cannot be killed
my ($PR_SET_PDEATHSIG, $PR_SET_CHILD_SUBREAPER, $CLOCK_MONOTONIC, $POLLIN) = (1, 36, 1, 1);
my ($SIG_SETMASK, $CLONE_INTO_CGROUP, $O_WRONLY) = (2, 1 << 33, 1);
my @HEARD = (1, 2, $TERM, $CHLD, $CONT);
my ($STOPS, $STOPS_MS) = (10, 1000);

# Signals are heard in wait_for alone. Elsewhere they are blocked: none interrupts anything, and none that comes between
# a look and the wait after it is missed.
sub hear_signals {
  $SIG{CHLD} = $SIG{CONT} = sub { };
  $SIG{TERM} = $SIG{INT} = $SIG{HUP} = sub { $told = 1 };
  my $mask = 0;
  $mask |= 1 << ($_ - 1) for @HEARD;
  signal_mask($mask);
}

# For what becomes another program.
sub hear_nothing {
  $SIG{$_} = "DEFAULT" for qw(CHLD CONT TERM INT HUP PIPE);
  signal_mask(0);
}

# Until a signal comes, the descriptor can be read, or so many milliseconds (-1: any) are over. Says whether it can be.
sub wait_for {
  my ($milliseconds, $descriptor) = @_;
  my $none = pack("Q", 0);
  my $poll = pack("l s s", $descriptor // -1, $POLLIN, 0);
  my $time = pack("q2", int($milliseconds / 1000), $milliseconds % 1000 * 1_000_000);
  my $count = syscall($syscall{ppoll} + 0, $poll, 1, $milliseconds < 0 ? 0 : $time, $none, 8);
  return $count > 0;
}

# Adopts what loses its parents below, and is told when its own parent dies, by the one signal that continues who is
# stopped. It comes, too, when only the thread ends that started this: who hears it asks getppid.
sub take_charge {
  hear_signals();
  prctl($PR_SET_CHILD_SUBREAPER, 1);
  prctl($PR_SET_PDEATHSIG, $CONT);
}

sub die_with_parent { prctl($PR_SET_PDEATHSIG, $KILL) }

# As fork, in a control group of cgroup2 if one is given and can be entered. By clone3, for a process that is moved
# later waits for the whole kernel: 10 ms and more on a busy machine.
sub fork_into {
  my ($directory) = @_;
  if (defined $directory && sysopen(my $group, $directory, 0)) {
    my $arguments = pack("Q11", $CLONE_INTO_CGROUP, 0, 0, 0, $CHLD, 0, 0, 0, 0, 0, fileno($group));
    my $pid = syscall($syscall{clone3} + 0, $arguments, length($arguments));
    return $pid if $pid >= 0;
  }
  return fork();
}

# What waitpid has just told of was a stop, and not an end. Perl's own variable does not tell them apart.
sub has_stopped { return (${^CHILD_ERROR_NATIVE} & 0xff) == 0x7f }

# Of a process that is continued whenever it is stopped: whether that is of no use, because somebody stops it again and
# again, and it cannot do its work.
sub is_held_down {
  my ($record) = @_;
  my $now = now();
  @$record{qw(stops stops_since)} = (0, $now) if $now - ($record->{stops_since} // 0) > $STOPS_MS;
  return ++$record->{stops} > $STOPS;
}

# Of all threads of a process.
sub children {
  my ($pid) = @_;
  my @found;
  opendir(my $threads, "/proc/$pid/task") or return;
  for my $thread (grep { !/^\./ } readdir($threads)) {
    push @found, split(" ", read_file("/proc/$pid/task/$thread/children"));
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

# Kills what is in a control group, if there is one, and what comes of this process, until nothing is left of it. What
# cannot be killed is left alone after a while. Each child that ends is told, with its status in $?. Says whether the
# group was killed.
sub end_all {
  my ($group, $on_end) = @_;
  my $began = now();
  my ($was_killed, $last) = (0, 0);
  for (;;) {
    my $pid;
    while (($pid = waitpid(-1, $WNOHANG)) > 0) { $on_end->($pid) if $on_end }
    my $is_empty = !defined $group || is_empty($group);
    my $elapsed = now() - $began;
    return $was_killed if $pid < 0 && $is_empty || $elapsed > $KILLED_MS;
    my $pause = pause_after($elapsed);
    # Each that dies wakes this; a look at a large tree is dear, and they are on their way.
    if (now() - $last >= $pause) {
      # Whoever was in it is dead by the next look.
      if (!$is_empty && !$was_killed && kill_group($group)) { $was_killed = 1 }
      else { kill_tree(children($$)) }
      $last = now();
    }
    wait_for($pause);
  }
}

# Between two looks at what has been killed: short, and longer where something does not die.
sub pause_after { return $_[0] < 100 ? 1 : 20 }

sub read_file {
  my ($path) = @_;
  open(my $file, "<", $path) or return "";
  local $/;
  return <$file> // "";
}

# Never makes one.
sub write_file {
  my ($path, $text) = @_;
  sysopen(my $file, $path, $O_WRONLY) or return 0;
  return defined syswrite($file, $text);
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

sub setsid { syscall($syscall{setsid} + 0) }

sub signal_mask {
  my $mask = pack("Q", $_[0]);
  syscall($syscall{rt_sigprocmask} + 0, $SIG_SETMASK, $mask, 0, 8);
}

1;
