#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Writes what gate.sh said at the pull request (GitHub, by `gh`) or the merge request (GitLab, by `curl`). It runs after
# gate.sh, in a step or a job of its own, which alone has the token: the program that gate.sh records could read it.
#
# usage: comment.sh [FILE]     FILE: of gate.sh (default gpuprof-ci/comment.md)
#
# GH_TOKEN              GitHub: a token that may write at pull requests, also of a GitHub Enterprise Server (GITHUB_SERVER_URL)
# GPUPROF_GITLAB_TOKEN  GitLab: a token with the scope api
#
# Exits 0: written, or this is no pipeline of a request. 1: it could not be written.
set -euo pipefail
die() { echo "comment.sh: $*" >&2; exit 1; }
failed() { die "the comment could not be written; it is in $file"; }
file=${1:-gpuprof-ci/comment.md}
[ -s "$file" ] || die "$file: no comment; gate.sh writes it unless the program failed"
if [[ ${GITHUB_REF:-} =~ ^refs/pull/([0-9]+)/ ]]; then
  [ -n "${GH_TOKEN:-}" ] || die "set GH_TOKEN to a token that may write at pull requests"
  host=${GITHUB_SERVER_URL:-https://github.com}
  host=${host#*://}
  # gh takes GH_TOKEN for github.com and ghe.com alone (cli.github.com/manual/gh_help_environment).
  GH_HOST=$host GH_ENTERPRISE_TOKEN=$GH_TOKEN \
    gh pr comment "${BASH_REMATCH[1]}" --repo "$host/$GITHUB_REPOSITORY" --body-file "$file" >/dev/null || failed
elif [ -n "${CI_MERGE_REQUEST_IID:-}" ]; then
  [ -n "${GPUPROF_GITLAB_TOKEN:-}" ] || die "set GPUPROF_GITLAB_TOKEN to a token with the scope api"
  # The token goes by standard input: arguments can be read by others on the machine.
  printf 'header = "PRIVATE-TOKEN: %s"\n' "$GPUPROF_GITLAB_TOKEN" |
    curl -sSf --config - -o /dev/null --data-urlencode "body@$file" \
      "$CI_API_V4_URL/projects/$CI_PROJECT_ID/merge_requests/$CI_MERGE_REQUEST_IID/notes" || failed
fi
