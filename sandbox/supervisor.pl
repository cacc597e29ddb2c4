# Owns: one command, from its fork until nothing of it is left: the supervisor, and what it watches.
use strict;
use warnings;

our ($told, $WNOHANG, $KILL);
my $TICK_MS = 50;

# Runs in a process that the launcher has just forked, and ends it: with status 0 if the control groups can be used
# again.
sub supervise {
  my ($id, $launcher, $order, $out, $err) = @_;
  $0 = "bedrock-supervisor";
  take_charge();
  # Not in the launcher's process group: a signal to the supervisor's group reaches nobody else.
  setpgrp(0, 0);
  my @groups = grep { !$_->{is_new} || make_group($_) } @{ $order->{groups} };
  $_->{deaths_before} = $_->{is_new} ? 0 : memory_deaths($_) for @groups;
  my ($unified) = map { $_->{directory} } grep { $_->{entry} eq "cgroup.procs" } @groups;
  my $self = $$;
  my $leader = fork_into($unified);
  if (defined $leader && $leader == 0) { become_command($self, $id, $order, $out, $err) }
  close($_) for $out, $err, *STDIN;
  my $outcome = defined $leader ? undef : "error $!";
  my $note_leader = sub { $outcome //= outcome($?) if $_[0] == ($leader // 0) };
  my $next_look = now() + $TICK_MS;
  until (defined $outcome || $told || getppid() != $launcher) {
    my $rest = $next_look - now();
    if ($rest > 0) { wait_for(1 + int($rest)) }
    else {
      $outcome = "memory" if takes_too_much($order->{watch}, \@groups);
      $next_look = now() + $TICK_MS;
    }
    while ((my $pid = waitpid(-1, $WNOHANG)) > 0) { $note_leader->($pid) }
  }
  $outcome = "memory" if grep { has_run_out($_) } @groups;
  my ($group) = map { $_->{directory} } @groups;
  my $was_killed = end_all($group, $note_leader);
  # Without the launcher the command is lost, and the keeper reports that.
  say_line("$id $outcome") if defined $outcome && getppid() == $launcher;
  exit($was_killed ? 1 : 0);
}

sub outcome {
  my ($status) = @_;
  my $signal = $status & 127;
  return $signal ? "signal $signal" : "exit " . ($status >> 8);
}

# ---- memory

# In a control group the kernel limits memory. Where there is none, this adds up the memory that it can see. For the
# rest it watches what the whole machine has left.
sub takes_too_much {
  my ($watch, $groups) = @_;
  return 0 if !$watch->{bytes};
  for my $group (grep { $_->{events} ne "" } @$groups) {
    # The command has entered by now, unless it could not.
    $group->{entered} ||= read_file("$group->{directory}/$group->{entry}") ne "";
    return has_run_out($group) if $group->{entered};
  }
  return usage($watch, children($$)) > $watch->{bytes} || available() < $watch->{available};
}

# Whether the kernel has killed one of the group's processes for lack of memory; the others may still be there.
sub has_run_out { return memory_deaths($_[0]) > $_[0]{deaths_before} }

# The memory of these processes and all their descendants, in bytes. Open files beyond the usual number count for what a
# socket can hold, because no process is charged with that. Linux reports the number of open files from 6.2 on.
sub usage {
  my ($watch, @todo) = @_;
  my ($kilobytes, $descriptors) = (0, 0);
  while (defined(my $pid = shift @todo)) {
    push @todo, children($pid);
    my ($thread, $status) = thread_with_memory($pid);
    $kilobytes += $1 while $status =~ /^Vm(?:RSS|PTE|Swap):\s+(\d+)/mg;
    $descriptors += -s "$thread/fd" || 0;
  }
  my $beyond = $descriptors - $watch->{descriptors};
  return 1024 * $kilobytes + ($beyond > 0 ? $beyond * $watch->{descriptor_bytes} : 0);
}

# The thread whose files show the memory of a process. The first thread shows nothing once it has ended, even if others
# live.
sub thread_with_memory {
  my ($pid) = @_;
  my $status = read_file("/proc/$pid/status");
  return ("/proc/$pid", $status) if $status =~ /^VmRSS/m || !opendir(my $threads, "/proc/$pid/task");
  for my $thread (map { "/proc/$pid/task/$_" } readdir($threads)) {
    my $other = read_file("$thread/status");
    return ($thread, $other) if $other =~ /^VmRSS/m;
  }
  return ("/proc/$pid", $status);
}

# What the machine has left, in bytes.
sub available { return read_file("/proc/meminfo") =~ /^MemAvailable:\s+(\d+)/m ? 1024 * $1 : 9**99 }

1;
