#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs pytest with what requirements.txt names, in an environment of its own outside the checkout; makes that first where
# it is missing or made for other versions. Without arguments it makes it alone: cmake then finds pyarrow in it.
# usage: tests/fleet/run.sh [PYTEST_ARGUMENT...]     GPUPROF_FLEET: where the environment lies
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
folder=${GPUPROF_FLEET:-${XDG_CACHE_HOME:-$HOME/.cache}/gpuprof/fleet}
mkdir -p "$folder"
wanted=$(sha256sum <"$here/requirements.txt" | cut -c1-16)

make_environment() {
  local python
  for python in python3 /usr/bin/python3; do
    "$python" -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null || continue
    rm -rf "$folder/venv"
    "$python" -m venv "$folder/venv" >&2 || continue
    "$folder/venv/bin/python" -m pip install -q --disable-pip-version-check --no-deps setuptools==75.8.0 wheel==0.45.1 >&2
    "$folder/venv/bin/python" -m pip install -q --disable-pip-version-check --no-deps -r "$here/requirements.txt" >&2
    echo "$wanted" >"$folder/made_for"
    return
  done
  echo "tests/fleet/run.sh: no python3 from 3.10 on here can make a virtual environment (Debian: python3-venv)" >&2
  return 1
}

(
  flock 9
  [ "$(cat "$folder/made_for" 2>/dev/null || true)" = "$wanted" ] || make_environment
) 9>"$folder/lock"
[ $# -gt 0 ] || exit 0
exec "$folder/venv/bin/python" -m pytest -q -rs -p no:cacheprovider "$@"
