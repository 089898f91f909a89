#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs pytest with the viewers of requirements.txt, in an environment of their own outside the checkout; makes
# that first where it is missing or made for other versions.
# usage: tests/viewers/run.sh PYTEST_ARGUMENT...     GPUPROF_VIEWERS: where the environment lies
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
folder=${GPUPROF_VIEWERS:-${XDG_CACHE_HOME:-$HOME/.cache}/gpuprof/viewers}
mkdir -p "$folder"
wanted=$(cat "$here/requirements.txt" "$here/requirements_deps.txt" | sha256sum | cut -c1-16)

make_environment() {
  local python
  for python in python3 /usr/bin/python3; do
    "$python" -c 'import sys; sys.exit(sys.version_info < (3, 9))' 2>/dev/null || continue
    rm -rf "$folder/venv"
    "$python" -m venv "$folder/venv" >&2 || continue
    "$folder/venv/bin/python" -m pip install -q --disable-pip-version-check -r "$here/requirements_deps.txt" >&2
    "$folder/venv/bin/python" -m pip install -q --disable-pip-version-check --no-deps -r "$here/requirements.txt" >&2
    echo "$wanted" >"$folder/made_for"
    return
  done
  echo "tests/viewers/run.sh: no python3 here can make a virtual environment (Debian: python3-venv)" >&2
  return 1
}

(
  flock 9
  [ "$(cat "$folder/made_for" 2>/dev/null || true)" = "$wanted" ] || make_environment
) 9>"$folder/lock"
exec "$folder/venv/bin/python" -m pytest -q -rs -p no:cacheprovider "$@"
