#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Perl: threads, forks, an alarm, pipes, the environment, exec; a crash; a daemon.
# needs: perl
perl "$PROGRAMS/faults.pl"
echo "exit $?"
perl -e 'kill SEGV => $$'
echo "crash $?"
perl -MPOSIX -e 'fork and exit; setsid; print "daemon\n"'
sleep 0.5
