#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs pytest with what requirements.txt names, in an environment of its own outside the checkout; makes that first where
# it is missing or made for other versions. Without arguments it makes it alone: cmake then finds pyarrow in it.
# usage: tests/fleet/run.sh [PYTEST_ARGUMENT...]     GPUPROF_FLEET: where the environment lies
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source-path=SCRIPTDIR source=../python_environment.sh
. "$here/../python_environment.sh"
folder=${GPUPROF_FLEET:-${XDG_CACHE_HOME:-$HOME/.cache}/gpuprof/fleet}
install() {
  pip_install "$1" --no-deps setuptools==75.8.0 wheel==0.45.1
  pip_install "$1" --no-deps -r "$here/requirements.txt"
}
python_environment "$folder" "$(sha256sum <"$here/requirements.txt" | cut -c1-16)" 10 14 install
[ $# -gt 0 ] || exit 0
exec "$folder/venv/bin/python" -m pytest -q -rs -p no:cacheprovider "$@"
