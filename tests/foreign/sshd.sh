#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# sshd and its sessions, with a terminal and without.
# needs: ssh ssh-keygen
ssh-keygen -q -t ed25519 -N '' -f key
mkdir -p /run/sshd
# One connection on standard input: no port is taken.
cat >conf <<EOF
HostKey $PWD/key
AuthorizedKeysFile $PWD/key.pub
StrictModes no
UsePAM no
PermitRootLogin yes
EOF
session() {
  ssh -q -i key -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null \
    -o ProxyCommand="/usr/sbin/sshd -i -f $PWD/conf" localhost "$@"
}
session 'echo in; exit 5'
echo "exit $?"
echo data | session 'cat; kill -9 $$'
echo "killed $?"
session -tt 'tty | tr -d 0-9' </dev/null
