# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Sourced by the run.sh of tests that need Python packages of pinned versions.

# python_environment FOLDER VERSIONS OLDEST NEWEST INSTALL
# FOLDER/venv is a virtual environment with what the function INSTALL puts there by pip_install. It is made where it is missing
# or was made for other VERSIONS (any text), by a CPython of 3.OLDEST to 3.NEWEST. Others that want it wait meanwhile.
python_environment() {
  local folder=$1 versions=$2 oldest=$3 newest=$4 install=$5 python
  mkdir -p "$folder"
  (
    flock 9
    [ "$(cat "$folder/made_for" 2>/dev/null || true)" != "$versions" ] || exit 0
    for python in python3 /usr/bin/python3; do
      "$python" -c "import sys; sys.exit(not (3, $oldest) <= sys.version_info[:2] <= (3, $newest))" 2>/dev/null || continue
      rm -rf "$folder/venv"
      "$python" -m venv "$folder/venv" >&2 || continue
      "$install" "$folder/venv"
      echo "$versions" >"$folder/made_for"
      exit 0
    done
    echo "$0: no python3 of 3.$oldest to 3.$newest here can make a virtual environment (Debian: python3-venv)" >&2
    exit 1
  ) 9>"$folder/lock"
}

# pip_install VENV ARGUMENT...
pip_install() {
  local venv=$1
  shift
  "$venv/bin/python" -m pip install -q --disable-pip-version-check "$@" >&2
}
