#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Node: workers, children, signals, a trap of WebAssembly; a cluster; an abort; no memory left.
# needs: node
node "$PROGRAMS/faults.js"
echo "exit $?"
node "$PROGRAMS/cluster.js"
echo "exit $?"
node -e 'process.abort()' 2>/dev/null
echo "abort $?"
node --max-old-space-size=20 -e 'const all = []; for (;;) all.push(new Array(1000).fill(1.5))' >/dev/null 2>&1
echo "memory $?"
