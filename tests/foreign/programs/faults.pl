# SPDX-License-Identifier: Apache-2.0
# Threads, forks, an alarm, pipes, an environment that changes, and exec at the end.
use strict;
use threads;
use POSIX;
use Socket;
$| = 1;

sub work { my $sum = shift; $sum += $_ for 1 .. 20000; return $sum }
my @threads = map { threads->create(\&work, $_) } 1 .. 16;
my $sum = 0;
$sum += $_->join for @threads;
print "$sum\n";
for my $code (1 .. 5) {
    my $child = fork;
    POSIX::_exit($code) if !$child;
    waitpid $child, 0;
    print $? >> 8, "\n";
}
$SIG{ALRM} = sub { die "alarm\n" };
eval { alarm 1; select undef, undef, undef, 10 };
print $@;
$ENV{WORD} = "set";
print `echo \$WORD; exit 2`, $? >> 8, "\n";
delete $ENV{WORD};
print `echo [\$WORD]`;
socketpair(my $one, my $other, AF_UNIX, SOCK_STREAM, 0) or die;
syswrite $one, "abc";
sysread $other, my $read, 3;
print "$read\n";
exec {"sh"} "sh", "-c", "exit 9";
