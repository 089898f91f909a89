#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# nginx: it reloads, and a new binary takes the place of the old one.
# needs: nginx perl
cat >conf <<EOF
worker_processes 3; pid $PWD/pid; error_log $PWD/log; daemon on;
events {}
http {
  access_log off; client_body_temp_path $PWD/1; proxy_temp_path $PWD/2; fastcgi_temp_path $PWD/3;
  uwsgi_temp_path $PWD/4; scgi_temp_path $PWD/5; aio threads;
  server { listen unix:$PWD/socket; location / { return 200 "ok\n"; } }
}
EOF
ask() {
  perl -MIO::Socket::UNIX -e '$s = IO::Socket::UNIX->new($ARGV[0]) or die; print $s "GET / HTTP/1.0\r\n\r\n";
    @lines = <$s>; print $lines[-1]' "$PWD/socket"
}
chmod 755 .
nginx=$(command -v nginx)  # its whole path: it starts itself anew
"$nginx" -c "$PWD/conf" -p "$PWD"
echo "start $?"
until ask 2>/dev/null; do sleep 0.1; done
"$nginx" -c "$PWD/conf" -p "$PWD" -s reload
sleep 1
ask
old=$(cat pid)
kill -USR2 "$old"
until [ -e pid.oldbin ] && [ -e pid ]; do sleep 0.1; done
kill -QUIT "$old"
while kill -0 "$old" 2>/dev/null; do sleep 0.1; done
ask
"$nginx" -c "$PWD/conf" -p "$PWD" -s quit
while [ -e pid ]; do sleep 0.1; done
grep -c -E 'alert|emerg|crit|gpuprof' log
