#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The routine of a cluster: records a few reference jobs, compares each with its own good runs by gate.sh, and says in one
# table which became slower. docs/CI.md has it as a cron job and as a Slurm job.
#
# usage: weekly.sh JOBS FOLDER     JOBS: a file with one job a line: a name (letters, digits, - and _), then its command
# bash runs a command with -eo pipefail: it fails if any part of it does.
#
# FOLDER/NAME/baseline holds the good runs of a job, FOLDER/NAME/DATE its comment.md, report.html, log and run. A job that is no slower
# joins its baseline. Settings of gate.sh hold for all jobs (GPUPROF_GATE_FAIL_OVER, GPUPROF_GATE_OPTIONS, GPUPROF_BIN).
#
# Exits 0: none is slower. 1: at least one is. 2: at least one failed, or cannot be compared. A job that failed has its own
# exit code in its log.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
if [ $# -ne 2 ]; then
  echo "usage: weekly.sh JOBS FOLDER     JOBS: a file with one job a line: a name, then its command" >&2
  exit 2
fi
jobs=$1
folder=$2
[ -r "$jobs" ] || { echo "weekly.sh: $jobs: no such file, or not readable; name a file with one job a line" >&2; exit 2; }
day=$(date +%Y-%m-%d_%H%M%S)_$$

outcome() {  # of a gate's exit code
  case $1 in
    0) echo "no slower" ;;
    1) echo SLOWER ;;
    2) echo "NOT COMPARED" ;;
    *) echo FAILED ;;
  esac
}

worst=0
count=0
seen=' '
printf '%-24s %-14s %s\n' job outcome details
while read -r name command <&3 || [ -n "$name" ]; do  # the last line may have no newline
  case $name in '' | \#*) continue ;; esac
  if [[ ! $name =~ ^[A-Za-z0-9_-]+$ || -z $command ]]; then
    echo "weekly.sh: $jobs: '$name $command': a line is a name (letters, digits, - and _), then a command" >&2
    worst=2
    continue
  fi
  if [[ $seen == *" $name "* ]]; then
    echo "weekly.sh: $jobs: '$name' is there twice; name each job differently, its runs lie in a folder of that name" >&2
    worst=2
    continue
  fi
  seen+="$name "
  count=$((count + 1))
  out=$folder/$name/$day
  mkdir -p "$out" || exit 2
  code=0
  GPUPROF_GATE_BASELINE=$folder/$name/baseline GPUPROF_GATE_OUT=$out GPUPROF_GATE_UPDATE=yes \
    "$here/gate.sh" bash --noprofile --norc -eo pipefail -c "$command" >"$out/log" 2>&1 </dev/null || code=$?
  printf '%-24s %-14s %s\n' "$name" "$(outcome "$code")" "$out"
  if [ "$code" -eq 1 ]; then
    [ "$worst" -eq 2 ] || worst=1
  elif [ "$code" -ne 0 ]; then
    worst=2
  fi
done 3<"$jobs"
[ "$count" -gt 0 ] || { echo "weekly.sh: $jobs: no job in it; a line is a name, then a command" >&2; exit 2; }
exit "$worst"
