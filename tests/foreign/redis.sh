#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Redis: load, a snapshot by fork, a log that is written anew.
# needs: redis-server redis-cli redis-benchmark
ask() { redis-cli -s "$PWD/socket" "$@"; }
redis-server --port 0 --unixsocket "$PWD/socket" --dir "$PWD" --appendonly yes --save '' >log 2>&1 &
until ask ping 2>/dev/null | grep -q PONG; do sleep 0.1; done
redis-benchmark -s "$PWD/socket" -n 5000 -c 20 -q -t set,get,lpush >/dev/null 2>&1
echo "load $?"
ask set a 1
ask eval 'local sum = 0 for i = 1, 100000 do sum = sum + i end return sum' 0
ask bgsave >/dev/null
until [ -e dump.rdb ]; do sleep 0.1; done
ask bgrewriteaof >/dev/null
until ask info persistence | grep -q 'aof_rewrite_in_progress:0'; do sleep 0.1; done
ask shutdown nosave
wait $!
echo "exit $?"
