#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# jemalloc, tcmalloc and mimalloc, before the library and after it.
# needs: perl
script='import os, subprocess, threading
threads = [threading.Thread(target=lambda: [bytearray(1000) for _ in range(10000)]) for _ in range(8)]
[t.start() for t in threads], [t.join() for t in threads]
print(subprocess.run(["sh", "-c", "exit 3"]).returncode)
child = os.fork()
child or os._exit(2)
print(os.waitpid(child, 0)[1])'
for name in libjemalloc.so.2 libtcmalloc_minimal.so.4 libmimalloc.so.2; do
  library=$(ldconfig -p | sed -n "s/.*$name.* => //p" | head -1)
  [ -n "$library" ] || continue
  for order in "$library:${LD_PRELOAD:-}" "${LD_PRELOAD:-}:$library"; do
    LD_PRELOAD=$order python3 -c "$script"
    echo "$name $?"
    LD_PRELOAD=$order perl -e 'print "perl\n"'
  done
done
