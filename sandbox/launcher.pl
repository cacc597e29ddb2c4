# Owns: starting commands, each under a supervisor of its own, and ending them. It decides nothing: launcher.ts decides
# what is run and when it ends. No modules: it must start in a few milliseconds, and its forks must stay small.
#
#   worker (Node) ── keeper ── launcher ── supervisor, one a command ── the command and whatever it starts
#
# The worker starts this program and keeps it. It becomes the keeper, which forks the launcher and waits. For each
# command the launcher forks a supervisor (supervisor.pl), which forks the command (confine.pl). The supervisor adopts
# every descendant of the command, and does not end before all of them are dead. Launcher and keeper do the same for
# what is below them. If a command kills, stops or holds up one of these processes, the one above it kills in its
# place. States: docs/sandbox.md.
#
# Arguments: the worker's process id; the control groups of this launcher, one a line; those that others have left
# behind, one a line; then names and numbers of system calls.
# Standard input, a line each:
#   run ID LENGTH UNTIL  followed by LENGTH bytes: fields, each ended by NUL (see read_order). UNTIL is when its lease
#                    expires, in milliseconds of the monotonic clock (0: never)
#   renew ID UNTIL   its lease is renewed
#   opened ID        the worker has opened the reading ends of its output
#   kill ID
# Standard output, a line each:
#   ID started OUT ERR   the paths of the reading ends of its standard output and error
#   ID error TEXT    it could not be started
#   ID exit N, ID signal N, ID memory    how it ended; nothing of it is left
#   ID gone          its supervisor has ended; always the last line about a command
#   lost             launcher and keeper are ending; they kill what runs, and when that is done this output ends
use strict;
use warnings;

our ($told, %syscall, $WNOHANG, $WUNTRACED, $KILL, $TERM, $CONT, $KILLED_MS);
(my ($worker, $own_groups, $left_groups), %syscall) = @ARGV;
my $TICK_MS = 50;
# Milliseconds. A supervisor that works has killed 256 processes by then. The launcher kills what is left.
my $ENDING_MS = 100;

$^F = 2; # descriptors that are opened here are closed in a command
$SIG{PIPE} = "IGNORE";
# close_range: commands must not get what the worker itself had inherited. Before Linux 5.9 only the worker prevents
# that.
syscall(436, 3, 0x7fffffff, 0);
for my $part (qw(kernel control-groups supervisor confine)) {
  do(__FILE__ =~ s/[^\/]*$/$part.pl/r) or die "$part: ", $@ || $!;
}

my %commands; # by id; a record has the state and since when, the supervisor, the lease, control groups, pipes
my %orphans; # by process id: when its killing began
my $input = "";

take_charge();
my $keeper = $$;
my $launcher = fork();
if (!defined $launcher) { exit 1 }
elsif ($launcher == 0) { launch() }
else { keep() }

# Ends the launcher or the keeper: each kills what is below it, and neither waits for the other. The worker reads "lost"
# before the end of any command that dies with them, because it must not send them another command.
sub end_all_and_groups {
  say_line("lost");
  my @groups = split(/\n/, $own_groups);
  end_all($groups[0]);
  remove_group($_) for @groups;
  exit 0;
}

# ---- the keeper

sub keep {
  $0 = "bedrock-keeper";
  close(STDIN);
  my %self;
  my $began = now();
  my @left = split(/\n/, $left_groups);
  LOOK: until ($told || getppid() != $worker) {
    kill_group($_) for @left;
    @left = grep { !remove_group($_) } @left;
    wait_for(@left && now() - $began < $KILLED_MS ? 20 : -1);
    while ((my $pid = waitpid(-1, $WNOHANG | $WUNTRACED)) > 0) {
      last LOOK if $pid == $launcher && (!has_stopped() || is_held_down(\%self));
      kill $CONT, $pid if has_stopped();
    }
  }
  end_all_and_groups();
}

# ---- the launcher

sub launch {
  $0 = "bedrock-launcher";
  take_charge();
  # Not in the keeper's process group: a signal to the group of one reaches nobody else.
  setpgrp(0, 0);
  my $open = 1;
  while ($open && !$told && getppid() == $keeper) {
    if (wait_for(poll_timeout(), fileno(STDIN))) { $open = read_input() }
    while (my ($verb, $id, @rest) = next_message()) {
      if ($verb eq "run") { run($id, @rest) }
      my $command = $commands{$id} // next;
      if ($verb eq "renew" && $command->{until}) { $command->{until} = $rest[0] }
      elsif ($verb eq "opened") { $command->{ends} = [] }
      elsif ($verb eq "kill" && $command->{state} eq "running") { end($command) }
    }
    reap();
    end_overdue();
    clean_up();
  }
  # The keeper has to check whether it has lost the worker, too.
  kill $CONT, $keeper if getppid() == $keeper;
  end_all_and_groups();
}

# Milliseconds; -1 waits for ever.
sub poll_timeout {
  my ($latest) = sort { $b <=> $a } map { $_->{since} } in_state("orphaned");
  return pause_after(now() - $latest) if defined $latest;
  return in_state("running", "ending") ? $TICK_MS : -1;
}

sub in_state {
  my %states = map { $_ => 1 } @_;
  return grep { $states{ $_->{state} } } values %commands;
}

sub run {
  my ($id, undef, $until, $fields) = @_;
  # The order was read late: its sender, or this process, was frozen.
  return say_line("$id gone") if $until && now() > $until;
  pipe(my $out_read, my $out_write) && pipe(my $err_read, my $err_write) or return refuse($id);
  my @ends = ($out_read, $err_read);
  say_line(join(" ", $id, "started", map { "/proc/$$/fd/" . fileno($_) } @ends));
  my $order = read_order($fields);
  my $use = place_groups($id, $order->{groups});
  my $self = $$;
  my @groups = map { $_->{directory} } @{ $order->{groups} };
  my $pid = fork();
  if (!defined $pid) {
    refuse($id);
    return release_groups($use, @groups);
  }
  if ($pid == 0) {
    close($_) for @ends, map { @{ $_->{ends} } } values %commands;
    supervise($id, $self, $order, $out_write, $err_write);
  }
  $commands{$id} =
    { id => $id, pid => $pid, until => $until, groups => \@groups, use => $use, ends => \@ends };
  enter($commands{$id}, "running");
}

sub refuse {
  say_line("$_[0] error $!");
  say_line("$_[0] gone");
}

sub enter {
  my ($command, $state) = @_;
  @$command{qw(state since)} = ($state, now());
}

# Kills the control group at once where there is one. Tells the supervisor to end, and continues it, because it may have
# been stopped.
sub end {
  my ($command) = @_;
  enter($command, "ending");
  kill_group_of($command);
  kill $TERM, $command->{pid};
  kill $CONT, $command->{pid};
}

sub kill_group_of {
  my ($command) = @_;
  my ($group) = @{ $command->{groups} } or return;
  $command->{use} = undef if kill_group($group);
}

# Handles supervisors that have ended, and those that were stopped.
sub reap {
  while ((my $pid = waitpid(-1, $WNOHANG | $WUNTRACED)) > 0) {
    my ($command) = grep { $_->{pid} == $pid } in_state("running", "ending") or next;
    if (!has_stopped()) {
      $command->{use} = undef if $?; # see supervise for its meaning
      enter($command, "orphaned");
    }
    elsif ($command->{state} eq "ending") { take_over($command) }
    elsif (is_held_down($command)) { end($command) }
    else { kill $CONT, $pid }
  }
}

# Ends commands whose lease has expired: the worker is frozen or cut off, and a successor may be in charge. Takes over
# from supervisors that should have ended by now: whatever keeps one from its work, nothing keeps it from dying.
sub end_overdue {
  my $now = now();
  for my $command (in_state("running")) { end($command) if $command->{until} && $now > $command->{until} }
  for my $command (in_state("ending")) { take_over($command) if $now - $command->{since} > $ENDING_MS }
}

# This does not wait for the report of the supervisor's death: a command that traces the supervisor gets it first.
sub take_over {
  my ($command) = @_;
  kill $KILL, $command->{pid};
  $command->{use} = undef;
  enter($command, "orphaned");
}

# However a supervisor has ended, its command is gone when nothing of it is left. After $KILLED_MS the launcher leaves
# alone what does not die, so that nobody waits for it. The record is kept while the worker may still have to open the
# pipes.
sub clean_up {
  my $now = now();
  if (my @orphaned = in_state("orphaned")) {
    my %known = map { $_->{pid} => 1 } in_state("running", "ending");
    %orphans = map { $_ => $orphans{$_} // $now } grep { !$known{$_} } children($$);
    my @orphans = grep { $now - $orphans{$_} < $KILLED_MS } keys %orphans;
    kill_tree(@orphans);
    for my $command (@orphaned) {
      my @groups = @{ $command->{groups} };
      my $is_empty = !@groups || is_empty($groups[0]);
      kill_group_of($command) if !$is_empty;
      next if (@orphans || !$is_empty) && $now - $command->{since} < $KILLED_MS;
      release_groups($is_empty ? $command->{use} : undef, @groups);
      say_line("$command->{id} gone");
      enter($command, "gone");
    }
  }
  for my $command (in_state("gone")) { delete $commands{ $command->{id} } if !@{ $command->{ends} } }
}

# ---- messages of the worker

# False: the worker has gone.
sub read_input { return sysread(STDIN, $input, 65536, length($input)) }

# The next message that has arrived as a whole; "run" with its fields.
sub next_message {
  my ($line) = $input =~ /^([^\n]*\n)/ or return;
  my @words = split(" ", $line);
  my $length = $words[0] eq "run" ? $words[2] : 0;
  return if length($input) < length($line) + $length;
  push @words, substr($input, length($line), $length) if $length;
  $input = substr($input, length($line) + $length);
  return @words;
}

# Decodes the fields of "run". The length of a list precedes its items.
sub read_order {
  my ($fields) = @_;
  my @fields = split(/\0/, substr($fields, 0, -1), -1);
  my %order;
  # The bytes of memory that the command may use (0: any), the descriptors that are not counted, the bytes that each
  # further descriptor counts for, the bytes that the machine must have left.
  @{ $order{watch} }{qw(bytes descriptors descriptor_bytes available)} = splice(@fields, 0, 4);
  # For each control group: the directory that it is made in, the file that lists its processes, the file that counts
  # kills for lack of memory (or nothing), its limits as NAME=value.
  $order{groups} = [];
  for (1 .. shift @fields) {
    my %group;
    @group{qw(parent entry events)} = splice(@fields, 0, 3);
    $group{settings} = [splice(@fields, 0, shift @fields)];
    push @{ $order{groups} }, \%group if $group{entry} ne "cgroup.procs" || survives_fork_into($group{parent});
  }
  $order{steps} = [splice(@fields, 0, shift @fields)]; # as syscall.ts writes them
  $order{cwd} = shift @fields;
  $order{variables} = [splice(@fields, 0, shift @fields)]; # NAME=value
  $order{argv} = \@fields;
  return \%order;
}
