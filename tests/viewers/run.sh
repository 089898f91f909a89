#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs pytest with the viewers of requirements.txt, in an environment of their own outside the checkout; makes
# that first where it is missing or made for other versions.
# usage: tests/viewers/run.sh PYTEST_ARGUMENT...     GPUPROF_VIEWERS: where the environment lies
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source-path=SCRIPTDIR source=../python_environment.sh
. "$here/../python_environment.sh"
folder=${GPUPROF_VIEWERS:-${XDG_CACHE_HOME:-$HOME/.cache}/gpuprof/viewers}
wanted=$(cat "$here/requirements.txt" "$here/requirements_deps.txt" | sha256sum | cut -c1-16)
install() {
  pip_install "$1" -r "$here/requirements_deps.txt"
  pip_install "$1" --no-deps -r "$here/requirements.txt"
}
python_environment "$folder" "$wanted" 9 14 install
exec "$folder/venv/bin/python" -m pytest -q -rs -p no:cacheprovider "$@"
