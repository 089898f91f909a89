#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Uses an installed gpuprof as a user does: record, report, convert, diff, doctor, page. Run by install.sh as a user without
# rights, in a folder with a blank in its name and with a home that cannot be written to.
# usage: use.sh FOLDER COMMAND...     FOLDER: work there; it holds program.py and stack/libcudart.so.13
set -euo pipefail
cd "$1"
shift
gpuprof=("$@")
say() { echo "use.sh: $*" >&2; exit 1; }
export LD_LIBRARY_PATH=$PWD/stack GPUPROF_STEP=sync:1

"${gpuprof[@]}" --version | grep -q '^gpuprof [0-9]' || say "--version"
code=0
"${gpuprof[@]}" doctor --format json -- python3 >doctor.json || code=$?
[ "$code" -le 1 ] || say "doctor ended with $code"
python3 - <<'PYTHON'
import json
found = json.load(open("doctor.json"))["checks"]
states = {f["subject"]: f for f in found}
assert states["library"]["state"] == "ok", states["library"]
assert "not looked at" not in states["driver"]["text"], states["driver"]
PYTHON
for name in base new; do
  "${gpuprof[@]}" run -o "$name run" -- python3 program.py 4 >out.txt 2>err.txt || say "run: $(cat err.txt)"
  grep -q 'ld.so' err.txt && say "the loader says: $(cat err.txt)"
  grep -q 'Next: ' err.txt || say "no closing line: $(cat err.txt)"
done
"${gpuprof[@]}" report "base run" >report.txt
grep -q '^Steps 12 to 21' report.txt || say "report: $(cat report.txt)"
"${gpuprof[@]}" report "base run" --format html -o page.html
grep -q 'Chart.js v3' page.html || say "the page has no charts"
for format in perfetto chrome kineto tensorboard xplane memory-viz speedscope; do
  "${gpuprof[@]}" convert "base run" --to "$format" -o "trace.$format" >/dev/null 2>&1 || say "convert --to $format"
done
"${gpuprof[@]}" diff "base run" "new run" >diff.txt || say "diff: $(cat diff.txt)"
"${gpuprof[@]}" parse "base run" | grep -q cudaMemset || say "parse"
LD_PRELOAD=$("${gpuprof[@]}" lib) GPUPROF_OUTPUT=$PWD/preloaded python3 program.py 1 2>err.txt
grep -q 'ld.so' err.txt && say "the loader says: $(cat err.txt)"
[ -n "$(find preloaded -name '*.gpuprof')" ] || say "nothing was recorded by LD_PRELOAD"
echo ok
