# Owns: the control groups of commands, as control-groups.ts wants them: making, killing, finding them empty, removing.
# All groups of one command hold the same processes, so the first shows for all of them whether there are any. The group
# of cgroup2, the only one that can be killed, comes first.
use strict;
use warnings;

my $EBUSY = 16;
my %free; # the names of groups that can be taken again, by their use
my $slots = 0;
my %survives; # by parent: whether a process survives that is forked into a group below it

# Gives the groups of a command their directories. Returns the use for which they can be taken again, or undef. Groups
# with limits are taken again: to make and remove one that counts memory costs more than all else here, and no process
# in it could change it.
sub place_groups {
  my ($id, $groups) = @_;
  my $has_limits = grep { @{ $_->{settings} } } @$groups;
  my $use = $has_limits ? join("\n", map { $_->{parent}, @{ $_->{settings} } } @$groups) : undef;
  my $kept = $has_limits ? pop @{ $free{$use} } : undef;
  my $name = $kept // ($has_limits ? "slot" . ++$slots : $id);
  @$_{qw(directory is_new)} = ("$_->{parent}/$name", !defined $kept) for @$groups;
  return $use;
}

# Up to Linux 6.18, the kernel compares how often two groups were killed: that of the forking process, and the one that
# it forks into. If the numbers differ, the new process dies, as if it had been there when the group was killed. This
# happens in a container that was killed and started again.
sub survives_fork_into {
  my ($parent) = @_;
  return $survives{$parent} if defined $survives{$parent};
  mkdir("$parent/trial");
  my $pid = fork_into("$parent/trial") // return 0;
  exit 0 if $pid == 0;
  waitpid($pid, 0);
  $survives{$parent} = $? == 0 ? 1 : 0;
  rmdir("$parent/trial");
  return $survives{$parent};
}

# Releases the groups of a command of which nothing is left. Groups that were never made cannot be taken again.
sub release_groups {
  my ($use, @directories) = @_;
  if (defined $use && -d $directories[0]) { push @{ $free{$use} }, $directories[0] =~ s/.*\///r }
  else { remove_group($_) for @directories }
}

# Makes a group with its limits. Returns whether that succeeded.
sub make_group {
  my ($group) = @_;
  mkdir($group->{directory}) or return 0;
  for (@{ $group->{settings} }) {
    my ($optional, $name, $value) = /^(\??)([^=]+)=(.*)$/;
    next if write_file("$group->{directory}/$name", $value) || $optional;
    remove_group($group->{directory});
    return 0;
  }
  return 1;
}

# Kills everything in the group and below it at once, whatever it does. Only cgroup2 can do that. A killed group cannot
# be used again: see survives_fork_into.
sub kill_group { write_file("$_[0]/cgroup.kill", 1) }

sub is_empty {
  my $events = read_file("$_[0]/cgroup.events");
  return $events eq "" ? read_file("$_[0]/cgroup.procs") eq "" : $events =~ /^populated 0$/m;
}

# Removes a group with those below it. Returns true when there is no such group any more.
sub remove_group {
  my ($directory) = @_;
  return 1 if rmdir($directory) || $! != $EBUSY;
  opendir(my $entries, $directory) or return 1;
  remove_group($_) for grep { -d } map { "$directory/$_" } grep { !/^\./ } readdir($entries);
  return rmdir($directory) || $! != $EBUSY;
}

# How many processes of the group the kernel has killed for lack of memory.
sub memory_deaths {
  my ($group) = @_;
  return 0 if $group->{events} eq "";
  return read_file("$group->{directory}/$group->{events}") =~ /^oom_kill (\d+)/m ? $1 : 0;
}

1;
