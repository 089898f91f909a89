#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# PostgreSQL: a new cluster, parallel and compiled queries, pgbench; a backend that is killed.
# needs: psql pgbench setpriv
# As another user, who may not be root, with the library in all that it starts.
bin=$(dirname "$(find /usr/lib/postgresql -name initdb | head -1)")
mkdir data socket
chown postgres . data socket
as_postgres() {
  env -u LD_PRELOAD -u LD_LIBRARY_PATH setpriv --reuid=postgres --regid=postgres --clear-groups \
    env ${LD_PRELOAD:+LD_PRELOAD="$LD_PRELOAD"} ${LD_LIBRARY_PATH:+LD_LIBRARY_PATH="$LD_LIBRARY_PATH"} "$@"
}
ask() { as_postgres psql -h "$PWD/socket" -d postgres -At -c "$1"; }
as_postgres "$bin/initdb" -D data -A trust >/dev/null 2>&1
echo "initdb $?"
cat >>data/postgresql.conf <<EOF
unix_socket_directories = '$PWD/socket'
listen_addresses = ''
jit_above_cost = 0
parallel_setup_cost = 0
parallel_tuple_cost = 0
min_parallel_table_scan_size = 0
EOF
as_postgres "$bin/pg_ctl" -D data -w -l data/log start >/dev/null 2>&1
echo "start $?"
ask 'create table t as select g a, g * 2 b from generate_series(1, 200000) g'
ask 'select count(*), sum(b) from t where a % 3 = 0'
as_postgres pgbench -h "$PWD/socket" -i -q postgres >/dev/null 2>&1
as_postgres pgbench -h "$PWD/socket" -c 8 -j 4 -t 200 postgres 2>/dev/null | grep -E 'processed|failed'
ask 'select pg_sleep(60)' >/dev/null 2>&1 &
until pgrep -u postgres -f pg_sleep >/dev/null; do sleep 0.1; done
sleep 1
pkill -9 -u postgres -f '^postgres: .* SELECT'  # the server ends all others, and recovers
wait $!
echo "client $?"
until ask 'select count(*) from pgbench_accounts' 2>/dev/null; do sleep 0.2; done
as_postgres "$bin/pg_ctl" -D data -m fast -w stop >/dev/null 2>&1
echo "stop $?"
grep -c gpuprof data/log
