#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Uses what packaging/release.sh made for aarch64, under qemu-user. Its command must write the same bytes as this machine's:
# every format, of made jobs and of the inputs named. Then wheel, tarball and .deb are installed in the arm64 root of
# tests/aarch64.sh and used (use.sh), as a user without rights, in a path with blanks, with a home that cannot be written to.
# Prints a line for each. Exit 77 where this machine cannot. It needs no rights.
# usage: packaging/tests/aarch64.sh RELEASE BUILD [INPUT...]     BUILD: this machine's, of the same sources, with tests
# GPUPROF_SIMCUDA: the simulated CUDA stack for aarch64 (build-aarch64/simcuda/lib); without it a stub of a CUDA runtime.
set -euo pipefail
usage="usage: packaging/tests/aarch64.sh RELEASE BUILD [INPUT...]"
release=$(realpath "${1:?$usage}") build=$(realpath "${2:?$usage}")
shift 2
inputs=()
for input in "$@"; do inputs+=("$(realpath "$input")"); done
cd "$(dirname "$0")/../.."
folder=$PWD/.deps/aarch64
skip() { echo "aarch64.sh: skipped: $*" >&2; exit 77; }
[ "$(uname -m)" = x86_64 ] || skip "this machine is $(uname -m)"
[ -x "$folder/qemu-aarch64-static" ] || skip "no arm64 root: tools/aarch64_sysroot.sh .deps/aarch64 makes it"
scratch=$(mktemp -d -p "$PWD/.deps")  # which the root sees, too
trap 'rm -rf "$scratch"' EXIT
failed=0
outcome() {
  local code=$1 what=$2 log=$3
  if [ "$code" -eq 0 ]; then echo "passed  $what"; else echo "FAILED  $what: $(tail -3 "$log" | tr '\n' ' ')"; failed=1; fi
}

mkdir -p "$scratch"/{tree,here/work,there/work}
tar -xf "$release"/gpuprof-*-linux-aarch64.tar.gz -C "$scratch/tree"
# Runs one command line on both, in folders of their own. What it prints, writes and ends with is compared by `compare`.
both() {
  local side code command
  for side in here there; do
    command=("$build/tools/gpuprof") code=0
    [ "$side" = here ] || command=("$folder/qemu-aarch64-static" -L "$folder" "$scratch"/tree/gpuprof-*/bin/gpuprof)
    (cd "$scratch/$side/work" && "${command[@]}" "${@:2}") >"$scratch/$side/$1.out" 2>"$scratch/$side/$1.err" </dev/null || code=$?
    echo "$code" >"$scratch/$side/$1.code"
  done
}
compare() {
  local what=$1 code=0
  diff -rq "$scratch/here" "$scratch/there" >"$scratch/log" || code=$?
  # Two that fail are alike, too.
  { grep -L '^0$' "$scratch"/here/*.code || true; } | sed 's/^/ended with an error: /' >>"$scratch/log"
  [ ! -s "$scratch/log" ] || code=1
  outcome "$code" "same bytes: $what: $(find "$scratch/here" -type f | wc -l) files, $(du -sk "$scratch/here" | cut -f1) kB" "$scratch/log"
  if [ "$code" -ne 0 ] && [ -n "${KEEP:-}" ]; then cp -r "$scratch/here" "$scratch/there" "$KEEP/"; fi
  rm -rf "$scratch"/{here,there}
  mkdir -p "$scratch"/{here,there}/work
}

look_at() {
  local input=$1 format
  both info info "$input"
  both text report "$input" --top 0 --by stack
  both json report "$input" --format json
  both html report "$input" --format html -o page.html
  for format in perfetto chrome kineto tensorboard memory-viz speedscope xplane; do
    both "$format" convert "$input" --to "$format" -o "trace.$format"
  done
  both gz convert "$input" --to chrome -o trace.json.gz
  both otlp export "$input" --to otlp -o otlp
  compare "$(basename "$input")"
}

"$build/tests/bench/make_job" "$scratch/base" ranks=4 ranks-per-host=2 layers=4 forward=2 backward=3 steps=5 split=2 offset-ms=20 drift-ppm=37 leaving-us=13 seed=1 >/dev/null
"$build/tests/bench/make_job" "$scratch/new" ranks=4 ranks-per-host=2 layers=4 forward=2 backward=3 steps=5 split=2 drift-ppm=37 seed=2 slow-rank=2 slow-factor=1.3 >/dev/null
for input in "$scratch/base" "$scratch/new" ${inputs[@]+"${inputs[@]}"}; do look_at "$input"; done
dump=$(find "$scratch/base" -name '*_r0_*.gpuprof')
both version --version
both man completion man
both parse parse "$dump"
both dump report "$dump" --format json
for format in text json html; do both "diff_$format" diff "$scratch/base" "$scratch/new" --format "$format" -o "diff.$format"; done
both sql sql "$scratch/base" kernels --print duckdb
compare "diff, one rank, every record"

inside=(unshare --user --map-root-user --mount --pid --fork --mount-proc --kill-child tests/aarch64.sh --inside plain)
if ! "${inside[@]}" true 2>/dev/null; then
  [ "$failed" -ne 0 ] || skip "installing: no namespaces with a binfmt_misc of their own (Linux 6.7 or later has them)"
  exit 1
fi
mkdir "$scratch/release" "$scratch/stack"
cp "$release"/*_aarch64.whl "$release"/gpuprof-*-linux-aarch64.tar.gz "$release"/gpuprof_*_arm64.deb "$scratch/release/"
[ -z "${GPUPROF_SIMCUDA:-}" ] || cp -a "$GPUPROF_SIMCUDA"/. "$scratch/stack/"
"${inside[@]}" env GPUPROF_SIMCUDA="${GPUPROF_SIMCUDA:+$scratch/stack}" packaging/tests/install.sh "$scratch/release" </dev/null || failed=1
exit "$failed"
