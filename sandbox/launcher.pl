# Owns: starting commands, one supervisor a command, and ending them. It decides nothing: launcher.ts says what is run
# and when it ends. No modules: it must start in a few milliseconds, and its forks must stay small.
#
#   worker (Node) ── keeper ── launcher ── supervisor, one a command ── the command and whatever it starts
#
# The worker starts this program and keeps it. It becomes the keeper, which forks the launcher and waits. For each command
# the launcher forks a supervisor (supervisor.pl), which forks the command (confine.pl), adopts every process that comes
# of it, and does not end before all of them are dead. Launcher and keeper do the same for what is below them: whoever is
# killed, stopped or held up by a command has somebody above who kills in its place. States: docs/sandbox.md.
#
# Arguments: the worker's process id; the control groups of this launcher, and those that others have left behind, as
# lines; then by name the numbers of system calls.
# Standard input, a line each:
#   run ID LENGTH UNTIL  when its lease is over, in milliseconds of the monotonic clock (0: never), followed by so many
#                    bytes, each field ended by NUL (read_order has them)
#   renew ID UNTIL   its lease is prolonged
#   opened ID        the reading ends of its output are open on the other side
#   kill ID
# Standard output, a line each:
#   ID started OUT ERR   the paths of the reading ends of its standard output and error
#   ID error TEXT    it could not be started
#   ID exit N, ID signal N, ID memory    how it ended; nothing of it is left
#   ID gone          its supervisor has ended; always the last
#   lost             launcher and keeper are ending; what ran is being killed, and when that is done this output ends
use strict;
use warnings;

our ($told, %syscall, $WNOHANG, $WUNTRACED, $KILL, $TERM, $CONT, $KILLED_MS);
(my ($worker, $own_groups, $left_groups), %syscall) = @ARGV;
my $TICK_MS = 50;
# An honest supervisor has killed 256 processes by then; what it has not is killed by the launcher.
my $ENDING_MS = 100;

$^F = 2; # what is opened here is closed in a command
$SIG{PIPE} = "IGNORE";
# close_range: what the worker itself had inherited is not for commands. Before Linux 5.9 the worker alone sees to that.
syscall(436, 3, 0x7fffffff, 0);
for my $part (qw(kernel control-groups supervisor confine)) {
  do(__FILE__ =~ s/[^\/]*$/$part.pl/r) or die "$part: ", $@ || $!;
}

my %commands; # by id; a record has the state and since when, the supervisor, the lease, control groups, pipes
my %orphans; # by process id: since when it is to be killed
my $input = "";

take_charge();
my $keeper = $$;
my $launcher = fork();
if (!defined $launcher) { exit 1 }
elsif ($launcher == 0) { launch() }
else { keep() }

# Launcher and keeper end like this, each for what is below it, and neither waits for the other. The worker hears of it
# before it hears of any command that ends with them: it must not send another one.
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
  # Not with the keeper: who signals its group reaches nobody else.
  setpgrp(0, 0);
  my $open = 1;
  while ($open && !$told && getppid() == $keeper) {
    if (wait_for(patience(), fileno(STDIN))) { $open = read_input() }
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
  # It has to look whether it has lost the worker, too.
  kill $CONT, $keeper if getppid() == $keeper;
  end_all_and_groups();
}

sub patience {
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
  # It was read late: who sent it, or this process, was frozen.
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

# At once where that can be had; by its supervisor, which may have been stopped.
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

# Supervisors that have ended, and those that were stopped.
sub reap {
  while ((my $pid = waitpid(-1, $WNOHANG | $WUNTRACED)) > 0) {
    my ($command) = grep { $_->{pid} == $pid } in_state("running", "ending") or next;
    if (!has_stopped()) {
      $command->{use} = undef if $?; # supervise says what that means
      enter($command, "orphaned");
    }
    elsif ($command->{state} eq "ending") { take_over($command) }
    elsif (is_held_down($command)) { end($command) }
    else { kill $CONT, $pid }
  }
}

# Those whose lease nobody prolongs: the worker is frozen, or cut off, and somebody else may be in charge. And those that
# were told to end long enough ago: whatever keeps a supervisor from its work, nothing keeps it from dying.
sub end_overdue {
  my $now = now();
  for my $command (in_state("running")) { end($command) if $command->{until} && $now > $command->{until} }
  for my $command (in_state("ending")) { take_over($command) if $now - $command->{since} > $ENDING_MS }
}

# Not only when its death is heard of: its command may be tracing it, and hears first.
sub take_over {
  my ($command) = @_;
  kill $KILL, $command->{pid};
  $command->{use} = undef;
  enter($command, "orphaned");
}

# However a supervisor has ended, its command is gone when nothing of it is left. What does not die is left alone after a
# while, and nobody waits for it. The record is kept while the worker may still have to open the pipes.
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

# ---- what the worker says

# False: it has gone.
sub read_input { return sysread(STDIN, $input, 65536, length($input)) }

# The next one that has arrived as a whole; what is run with its fields.
sub next_message {
  my ($line) = $input =~ /^([^\n]*\n)/ or return;
  my @words = split(" ", $line);
  my $length = $words[0] eq "run" ? $words[2] : 0;
  return if length($input) < length($line) + $length;
  push @words, substr($input, length($line), $length) if $length;
  $input = substr($input, length($line) + $length);
  return @words;
}

# What is run. A list is told with its length.
sub read_order {
  my ($fields) = @_;
  my @fields = split(/\0/, substr($fields, 0, -1), -1);
  my %order;
  # The bytes that it may take (0: any), the descriptors that are not counted, what each of the others counts for, the
  # bytes that the machine has to have left.
  @{ $order{watch} }{qw(bytes descriptors descriptor_bytes available)} = splice(@fields, 0, 4);
  # Of each control group the directory that it is made in, the file of those who are in it, the file that counts the
  # deaths for want of memory (or nothing), its limits as NAME=value.
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
