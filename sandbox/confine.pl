# Owns: how a process that has just been forked becomes the command: its directory, its output, its confinement.
use strict;
use warnings;

our ($KILL, %syscall);
my $AT_FDCWD = -100;

sub become_command {
  my ($supervisor, $id, $order, $out, $err) = @_;
  hear_nothing();
  setsid();
  open(my $say, ">&", \*STDOUT);
  chdir($order->{cwd}) or fail($say, "$id error The directory $order->{cwd}: $!");
  open(STDIN, "<", "/dev/null");
  open(STDOUT, ">&", $out);
  open(STDERR, ">&", $err);
  # Enters the groups that it was not forked into. Zero stands for the process that writes it; only a process that moves
  # itself need not wait for all others.
  write_file("$_->{directory}/$_->{entry}", 0) for grep { $_->{entry} eq "tasks" } @{ $order->{groups} };
  confine($say, $id, @{ $order->{steps} });
  # After the confinement, because a change of the user undoes it.
  die_with_parent();
  kill $KILL, $$ if getppid() != $supervisor;
  my ($program, @arguments) = @{ $order->{argv} };
  %ENV = map { split(/=/, $_, 2) } @{ $order->{variables} };
  { no warnings; exec { $program } $program, @arguments }
  my $reason = $!;
  $reason = "No such file or directory" unless $program =~ m{/} || is_on_path($program);
  fail($say, "$id error $program: $reason");
}

# The kernel's reason is the last one that a folder of PATH gave: of a folder that may not be entered, "Permission
# denied", even if the program is nowhere.
sub is_on_path {
  my ($program) = @_;
  return scalar(grep { -e "$_/$program" } split(/:/, $ENV{PATH} // ""));
}

# Makes the system calls of the steps, in order; the first that fails keeps the command from running.
sub confine {
  my ($say, $id, @steps) = @_;
  my (%kept, @alive);
  STEP: for my $step (@steps) {
    my ($name, $number, $keep, @arguments) = split(" ", $step);
    my $optional = $name =~ s/^\?//;
    my (@values, @each);
    for (@arguments) {
      my ($kind, $rest) = unpack("a a*", $_);
      if ($kind eq "p") {
        my ($bytes, $flags, @paths) = split(/=/, $rest);
        @each = (scalar(@values), pack("H*", $bytes), $flags + 0, @paths);
        push @values, undef;
        next;
      }
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
    my $value = @each ? call_for_each($number, \@values, @each) : syscall($number + 0, @values);
    if ($value == -1) {
      next STEP if $optional;
      fail($say, "$id error The sandbox cannot be applied ($name: $!), so nothing was run");
    }
    $kept{$keep} = $value if $keep ne "-";
  }
}

# Makes the call once for each path: one step in place of thousands. A path that cannot be opened is skipped: it is
# gone, or nobody may open it.
sub call_for_each {
  my ($number, $values, $index, $bytes, $flags, @paths) = @_;
  for (@paths) {
    my $path = pack("H*", $_);
    my $file = syscall($syscall{openat} + 0, $AT_FDCWD, $path, $flags, 0);
    next if $file == -1;
    $values->[$index] = $bytes . pack("l", $file);
    return -1 if syscall($number + 0, @$values) == -1;
    syscall($syscall{close_range} + 0, $file, $file, 0);
  }
  return 0;
}

# Writes the id of the parent into a filter program: it is not known when the filter is compiled (PARENT in syscall.ts).
sub with_parent {
  my ($program) = @_;
  my %value = (0x7ffffffe, getppid(), 0x80000002, -getppid());
  for (my $at = 4; $at < length($program); $at += 8) {
    my $k = unpack("L", substr($program, $at, 4));
    substr($program, $at, 4) = pack("l", $value{$k}) if exists $value{$k};
  }
  return $program;
}

# Only for a process that is to become a command. It ends by a signal, so that it runs no code of its parent.
sub fail {
  my ($say, $line) = @_;
  $line =~ tr/\n/ /; # a newline in a name must not start another message
  syswrite($say, "$line\n");
  kill $KILL, $$;
}

1;
