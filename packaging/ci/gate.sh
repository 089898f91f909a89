#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A CI job's gate: records a program, compares the run with a baseline of good ones, says what became slower in a
# comment as Markdown, and fails when steps did. docs/CI.md has the GitHub and GitLab jobs that call it. It needs no token,
# and should have none: the program could read it of this script's own environment.
#
# usage: gate.sh [COMMAND...]     Without COMMAND, GPUPROF_GATE_RUN is a run that was recorded before
#
# GPUPROF_GATE_BASELINE   folder of good runs, which the job keeps from run to run; made by the first
# GPUPROF_GATE_FAIL_OVER  per cent that steps may become slower (default 5)
# GPUPROF_GATE_UPDATE     yes: a run that passes joins the baseline (set it on the main branch alone); default no
# GPUPROF_GATE_REQUIRE_BASELINE  yes: without a good run the gate ends with 2, before the program starts; default no
# GPUPROF_GATE_OUT        folder for comment.md, report.html and the run (default gpuprof-ci)
# GPUPROF_GATE_OPTIONS    options of `gpuprof run`, with blanks or line breaks between
# GPUPROF_GATE_PAGE       address where the job shows report.html, for the comment
# GPUPROF_BIN             the command (default gpuprof)
#
# Exits 0: no slower, or there is no baseline yet. 1: slower. 2: nothing can be compared, a required baseline is missing, recording
# may be the change, or a setting is wrong. 3: COMMAND failed; its own code is said.
set -euo pipefail
# Every way out says its code to the job that called.
kept=
trap 'code=$?; rm -rf ${kept:+"$kept"}; [ -z "${GITHUB_OUTPUT:-}" ] || echo "exit-code=$code" >>"$GITHUB_OUTPUT"' EXIT
trap 'exit 2' ERR  # 1 is for slower steps alone

# The program's environment has none of these: gpuprof would warn of them, and the tokens are not for it.
export -n "${!GPUPROF_GATE_@}" GPUPROF_BIN GPUPROF_GITLAB_TOKEN GH_TOKEN GITHUB_TOKEN
gpuprof=${GPUPROF_BIN:-gpuprof}
baseline=${GPUPROF_GATE_BASELINE:-}
[ -n "$baseline" ] || { echo "gate.sh: set GPUPROF_GATE_BASELINE to the folder of good runs" >&2; exit 2; }
command -v "$gpuprof" >/dev/null || { echo "gate.sh: $gpuprof: no such command; install gpuprof, or set GPUPROF_BIN to it" >&2; exit 2; }
fail_over=${GPUPROF_GATE_FAIL_OVER:-5}
update=${GPUPROF_GATE_UPDATE:-no}
required=${GPUPROF_GATE_REQUIRE_BASELINE:-no}
for setting in "GPUPROF_GATE_UPDATE=$update" "GPUPROF_GATE_REQUIRE_BASELINE=$required"; do
  case ${setting#*=} in
    yes | no) ;;
    *) echo "gate.sh: $setting: allowed are yes and no" >&2; exit 2 ;;
  esac
done
out=${GPUPROF_GATE_OUT:-gpuprof-ci}
run=${GPUPROF_GATE_RUN:-}
comment=$out/comment.md
mkdir -p "$out"
rm -f "$comment" "$out/report.html"  # of the last call

# The newest good run, as gpuprof counts them: folders whose names are numbers. Others keep a folder (.gitkeep) or say what it
# is for (README).
newest_good_run() {
  local folder name newest=0 found=
  for folder in "$baseline"/*/; do
    name=${folder%/}
    name=${name##*/}
    if [[ $name =~ ^[0-9]{1,9}$ ]] && ((10#$name > newest)); then newest=$((10#$name)) found=$folder; fi
  done
  echo "$found"
}
good_run=$(newest_good_run)
if [ -z "$good_run" ] && [ "$required" = yes ]; then
  echo "gate.sh: $baseline holds no good run; restore it, or let a run with GPUPROF_GATE_REQUIRE_BASELINE=no and GPUPROF_GATE_UPDATE=yes make one" >&2
  exit 2
fi
# What a request's program does to the baseline does not count.
if [ $# -gt 0 ] && [ "$update" = no ] && [ -n "$good_run" ]; then
  kept=$(mktemp -d)
  cp -rL -- "$good_run" "$kept/"
  baseline=$kept
fi

if [ $# -gt 0 ]; then
  read -rd '' -a options <<<"${GPUPROF_GATE_OPTIONS:-}" || true  # no NUL ends it
  code=0
  name=ci-$(date +%Y%m%d_%H%M%S)_$$  # all ranks share it, and no other call
  GPUPROF_RUN=$name "$gpuprof" run -o "$out/runs" ${options[@]+"${options[@]}"} -- "$@" || code=$?
  if [ "$code" -ne 0 ]; then
    if ! "$gpuprof" run -o "$out/runs" ${options[@]+"${options[@]}"} -- true >/dev/null 2>&1; then
      echo "gate.sh: GPUPROF_GATE_OPTIONS=${options[*]-}: gpuprof run starts no program with them; set options that it takes" >&2
      exit 2
    fi
    echo "gate.sh: the program ended with $code; nothing is compared" >&2
    exit 3
  fi
  run=$out/runs/$name
fi
[ -n "$run" ] || { echo "gate.sh: give a command, or set GPUPROF_GATE_RUN to a run's folder" >&2; exit 2; }

"$gpuprof" report "$run" --format html -o "$out/report.html" || exit 2
compare=("$gpuprof" diff --baseline "$baseline" "$run")
code=0
if [ -z "$good_run" ]; then
  if [ "$update" = yes ]; then
    if "${compare[@]}" --update --fail-over "$fail_over"; then
      echo "The first run of the baseline: there is nothing to compare with yet." >"$comment"
    else
      code=2
      echo "The run cannot be the first of the baseline; the job's log says why." >"$comment"
    fi
  else
    echo "There is no baseline yet: a run on the main branch makes it." >"$comment"
  fi
else
  [ "$update" != yes ] || compare+=(--update)
  "${compare[@]}" --fail-over "$fail_over" --format markdown -o "$comment" || code=$?
  [ "$code" -le 1 ] || code=2
  [ -s "$comment" ] || echo "The runs cannot be compared; the job's log says why." >"$comment"
fi
if [ -n "${GPUPROF_GATE_PAGE:-}" ]; then
  printf '\n[The whole report](%s)\n' "$GPUPROF_GATE_PAGE" >>"$comment"
fi

# Where the job runs: its summary and its outputs. comment.sh writes the comment at the request.
if [ -n "${GITHUB_STEP_SUMMARY:-}" ]; then cat "$comment" >>"$GITHUB_STEP_SUMMARY"; fi
if [ -n "${GITHUB_OUTPUT:-}" ]; then
  printf 'comment=%s\nreport=%s\n' "$comment" "$out/report.html" >>"$GITHUB_OUTPUT"
fi
cat "$comment"
exit "$code"
