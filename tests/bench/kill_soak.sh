#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# SIGKILL at random moments, many times: every committed record must be read back. Exit 1 if one was not.
# usage: tests/bench/kill_soak.sh [KILLS] [BUILD]
set -euo pipefail
cd "$(dirname "$0")/../.."
GPUPROF_TEST_BUILD=$(realpath "${2:-build}") PYTHONPATH=tests/e2e exec python3 -m support.kill "${1:-1000}"
