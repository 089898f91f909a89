#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# SIGKILL at random moments, many times: every committed record must be read back. Exit 1 if one was not.
# usage: tests/bench/kill_soak.sh [KILLS] [BUILD]
set -euo pipefail
cd "$(dirname "$0")/../.."
GPUPROF_TEST_BUILD=$(realpath "${2:-build}") exec python3 tests/e2e/kill.py "${1:-1000}"
