# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# with_progress WHAT LOG COMMAND...: runs a command whose output goes to LOG, and says every 10 s on standard error how
# far it is: the last "[n/m]" or percentage in LOG. Its exit code is the command's.
with_progress() {
  local what=$1 log=$2 code=0 teller
  shift 2
  : >"$log"
  (
    # Its own sleep goes with it.
    trap 'kill "$nap" 2>/dev/null; exit 0' TERM
    while sleep 10 & nap=$!; wait "$nap"; do
      kill -0 $$ 2>/dev/null || exit 0  # it was killed
      done_so_far=$(tr '\r' '\n' <"$log" | grep -oE '^\[[0-9]+/[0-9]+\]|[0-9]+ ?%' | tail -1 || true)
      echo "$what: $SECONDS s ${done_so_far:-}" >&2
    done
  ) &
  teller=$!
  "$@" >>"$log" 2>&1 </dev/null || code=$?
  kill "$teller" 2>/dev/null || true
  wait "$teller" 2>/dev/null || true
  return "$code"
}

# tell_of_silence WHAT LOG: until it is ended by TERM, says on standard error that WHAT goes on, and the last "n/m Test" in
# LOG, whenever LOG has not grown for 8 s.
tell_of_silence() {
  local what=$1 log=$2 size='' now nap=
  trap 'kill "$nap" 2>/dev/null; exit 0' TERM
  while sleep 8 & nap=$!; wait "$nap"; do
    kill -0 $$ 2>/dev/null || exit 0  # it was killed
    now=$(stat -c %s "$log")
    if [ "$now" = "$size" ]; then
      echo "$what: $SECONDS s $(grep -oE '^ *[0-9]+/[0-9]+ Test' "$log" | tail -1 | grep -oE '[0-9]+/[0-9]+' || true)" >&2
    fi
    size=$now
  done
}
