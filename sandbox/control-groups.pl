# Owns: the control groups of commands, as control-groups.ts wants them: making, killing, finding them empty, removing.
# All of one command hold the same processes. So the first tells for the others whether there are any; that of cgroup2,
# the only one that can be killed, comes first.
use strict;
use warnings;

my $EBUSY = 16;
my %free; # the names of those that can be taken again, by what they are for
my $slots = 0;
my %survives; # by parent: whether who is forked into one below it lives

# Gives the groups of a command their directories, and says what for they can be taken again. Those with limits are: to
# make and remove one that counts memory costs more than all else here, and nobody who was in one could change it.
sub place_groups {
  my ($id, $groups) = @_;
  my $has_limits = grep { @{ $_->{settings} } } @$groups;
  my $use = $has_limits ? join("\n", map { $_->{parent}, @{ $_->{settings} } } @$groups) : undef;
  my $kept = $has_limits ? pop @{ $free{$use} } : undef;
  my $name = $kept // ($has_limits ? "slot" . ++$slots : $id);
  @$_{qw(directory is_new)} = ("$_->{parent}/$name", !defined $kept) for @$groups;
  return $use;
}

# To Linux 6.18 a process that is forked into a group was there when the group was killed, unless its own group and that
# one were killed equally often. Where that is so, as in a container that was killed and started again, it dies.
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

# Of a command of which nothing is left. Those that were never made cannot be taken again.
sub release_groups {
  my ($use, @directories) = @_;
  if (defined $use && -d $directories[0]) { push @{ $free{$use} }, $directories[0] =~ s/.*\///r }
  else { remove_group($_) for @directories }
}

# Whether it is there, with its limits.
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

# All that is in it and below it dies at once, whatever it does. Only cgroup2 can do that. It cannot be used again: see
# survives_fork_into.
sub kill_group { write_file("$_[0]/cgroup.kill", 1) }

sub is_empty {
  my $events = read_file("$_[0]/cgroup.events");
  return $events eq "" ? read_file("$_[0]/cgroup.procs") eq "" : $events =~ /^populated 0$/m;
}

# With those below it. True when there is no such group any more.
sub remove_group {
  my ($directory) = @_;
  return 1 if rmdir($directory) || $! != $EBUSY;
  opendir(my $entries, $directory) or return 1;
  remove_group($_) for grep { -d } map { "$directory/$_" } grep { !/^\./ } readdir($entries);
  return rmdir($directory) || $! != $EBUSY;
}

# How many of those in it the kernel has killed for want of memory.
sub memory_deaths {
  my ($group) = @_;
  return 0 if $group->{events} eq "";
  return read_file("$group->{directory}/$group->{events}") =~ /^oom_kill (\d+)/m ? $1 : 0;
}

1;
