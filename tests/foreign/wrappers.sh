#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What runs other programs: tracers, debuggers, sandboxes, terminals, sshd.
# needs: faketime eatmydata fakeroot strace ltrace gdb bwrap proot screen tmux busybox script sshd
# shellcheck disable=SC2016  # the inner shell's variables
faketime '2020-01-02 03:04:05' date -u +%F
eatmydata sh -c 'echo eatmydata >file; sync; cat file'
fakeroot sh -c 'id -u; touch other; chown 5:6 other; stat -c %u:%g other'
strace -f -o trace sh -c '(exit 3)'
echo "strace $?"
ltrace -o trace /bin/echo ltrace
gdb -q -batch -ex run -ex 'info inferiors' --args /bin/false 2>/dev/null | grep -c 'exited with code 01'
bwrap --dev-bind / / --unshare-pid sh -c 'exit 3'
echo "bwrap $?"
proot -r / sh -c 'exit 4'
echo "proot $?"
timeout 0.3 sleep 5
echo "timeout $?"
env -i /bin/sh -c 'echo [$LD_PRELOAD]'
echo 1 2 3 4 5 | xargs -P4 -n1 sh -c 'exit 0'
echo "xargs $?"
script -qec 'sh -c "tty | tr -d 0-9; exit 5"' /dev/null
echo "script $?"
screen -dmS gpuprof-$$ sh -c "echo screen >$PWD/screen"
tmux -S "$PWD/socket" new-session -d "echo tmux >$PWD/tmux"
until [ -s screen ] && [ -s tmux ]; do sleep 0.1; done
cat screen tmux
busybox sh -c 'echo busybox | busybox md5sum'
