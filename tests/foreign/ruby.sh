#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Ruby: threads, forks, fibers, compaction, exec; a crash; its compiler.
# needs: ruby
ruby -W0 "$PROGRAMS/faults.rb"
echo "exit $?"
ruby -W0 -e 'Process.kill(:SEGV, $$); sleep 1' >/dev/null 2>&1
echo "crash $?"
ruby -W0 --jit -e 'def double(x) = x * 2; sum = 0; 200000.times { |i| sum += double(i) }; p sum'
echo "compiled $?"
