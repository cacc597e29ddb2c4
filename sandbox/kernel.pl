# Owns: what keeper, launcher and supervisor ask of the kernel: to wait without missing a signal, to find the
# descendants of a process and to kill them. The worker passes the numbers of system calls (system-calls.ts).
use strict;
use warnings;

our %syscall;
our $told = 0; # a signal asked this program to end
our ($WNOHANG, $WUNTRACED, $KILL, $TERM, $CHLD, $CONT) = (1, 2, 9, 15, 17, 18);
our $KILLED_MS = 3000; # what is still there so long after a SIGKILL counts as impossible to kill
my ($PR_SET_PDEATHSIG, $PR_SET_CHILD_SUBREAPER, $CLOCK_MONOTONIC, $POLLIN) = (1, 36, 1, 1);
my ($SIG_SETMASK, $CLONE_INTO_CGROUP, $O_WRONLY) = (2, 1 << 33, 1);
my @HEARD = (1, 2, $TERM, $CHLD, $CONT);
my ($STOPS, $STOPS_MS) = (10, 1000);

# Only wait_for receives signals; elsewhere they are blocked. So no signal interrupts anything, and none is missed that
# comes between a look and the wait after it.
sub hear_signals {
  $SIG{CHLD} = $SIG{CONT} = sub { };
  $SIG{TERM} = $SIG{INT} = $SIG{HUP} = sub { $told = 1 };
  my $mask = 0;
  $mask |= 1 << ($_ - 1) for @HEARD;
  signal_mask($mask);
}

# Resets the signals of a process that becomes another program.
sub hear_nothing {
  $SIG{$_} = "DEFAULT" for qw(CHLD CONT TERM INT HUP PIPE);
  signal_mask(0);
}

# Waits until a signal comes, the descriptor can be read, or so many milliseconds (-1: any) are over. Returns whether
# the descriptor can be read.
sub wait_for {
  my ($milliseconds, $descriptor) = @_;
  my $none = pack("Q", 0);
  my $poll = pack("l s s", $descriptor // -1, $POLLIN, 0);
  my $time = pack("q2", int($milliseconds / 1000), $milliseconds % 1000 * 1_000_000);
  my $count = syscall($syscall{ppoll} + 0, $poll, 1, $milliseconds < 0 ? 0 : $time, $none, 8);
  return $count > 0;
}

# Makes this process a subreaper, which adopts descendants that lose their parent. The kernel signals the death of this
# process's own parent by SIGCONT, because that signal also continues a stopped process. The signal also comes when only
# the thread ends that started this process: the receiver checks getppid.
sub take_charge {
  hear_signals();
  prctl($PR_SET_CHILD_SUBREAPER, 1);
  prctl($PR_SET_PDEATHSIG, $CONT);
}

sub die_with_parent { prctl($PR_SET_PDEATHSIG, $KILL) }

# Forks, into a control group of cgroup2 if one is given and can be entered. It uses clone3: to move the process later
# waits for the whole kernel, 10 ms and more on a busy machine.
sub fork_into {
  my ($directory) = @_;
  if (defined $directory && sysopen(my $group, $directory, 0)) {
    my $arguments = pack("Q11", $CLONE_INTO_CGROUP, 0, 0, 0, $CHLD, 0, 0, 0, 0, 0, fileno($group));
    my $pid = syscall($syscall{clone3} + 0, $arguments, length($arguments));
    return $pid if $pid >= 0;
  }
  return fork();
}

# Whether waitpid has just reported a stop, and not an end. Perl's own variable does not distinguish them.
sub has_stopped { return (${^CHILD_ERROR_NATIVE} & 0xff) == 0x7f }

# Counts the stops of a process that is always continued. Returns whether it is stopped so often that it cannot do its
# work.
sub is_held_down {
  my ($record) = @_;
  my $now = now();
  @$record{qw(stops stops_since)} = (0, $now) if $now - ($record->{stops_since} // 0) > $STOPS_MS;
  return ++$record->{stops} > $STOPS;
}

# The children of all threads of a process.
sub children {
  my ($pid) = @_;
  my @found;
  opendir(my $threads, "/proc/$pid/task") or return;
  for my $thread (grep { !/^\./ } readdir($threads)) {
    push @found, split(" ", read_file("/proc/$pid/task/$thread/children"));
  }
  return @found;
}

# Kills these processes and all their descendants, each as it is found, so as to keep up with a tree that grows. A
# process that loses its parent meanwhile becomes a child of this process, and the next round finds it.
sub kill_tree {
  my @todo = @_;
  while (defined(my $pid = shift @todo)) {
    my @children = children($pid);
    kill $KILL, $pid;
    push @todo, @children;
  }
}

# Kills everything in a control group, if one is given, and all descendants of this process, until nothing is left.
# After $KILLED_MS it leaves alone what cannot be killed. Calls $on_end for each child that ends, with its status in $?.
# Returns whether the group was killed.
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
    # Each death wakes this process. A look at a large tree is expensive, and the killed processes are about to die.
    if (now() - $last >= $pause) {
      # Every process that was in the group is dead by the next look.
      if (!$is_empty && !$was_killed && kill_group($group)) { $was_killed = 1 }
      else { kill_tree(children($$)) }
      $last = now();
    }
    wait_for($pause);
  }
}

# Milliseconds between two looks at killed processes: few, and more where something does not die.
sub pause_after { return $_[0] < 100 ? 1 : 20 }

sub read_file {
  my ($path) = @_;
  open(my $file, "<", $path) or return "";
  local $/;
  return <$file> // "";
}

# Never creates the file.
sub write_file {
  my ($path, $text) = @_;
  sysopen(my $file, $path, $O_WRONLY) or return 0;
  return defined syswrite($file, $text);
}

# Milliseconds of the monotonic clock.
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
