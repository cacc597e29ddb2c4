# Owns: becoming a program that the kernel sends a signal when the process that started it has ended, in whatever way.
# The kernel forgets that when a process changes its user or forks, so this is the last step before the program. No
# modules: it must start in a few milliseconds.
#
# Arguments: the number of the system call prctl, the number of the signal, the process id of the parent; then the
# program and its arguments.
use strict;
use warnings;

my ($prctl, $signal, $parent, @command) = @ARGV;
my $PR_SET_PDEATHSIG = 1;

# If the kernel refuses, the program runs all the same: the next start finds and ends it.
syscall($prctl + 0, $PR_SET_PDEATHSIG, $signal + 0, 0, 0, 0);
# The parent may have ended before the kernel knew.
exit 1 if getppid() != $parent;
exec { $command[0] } @command or die "$command[0]: $!\n";
