#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Go's own tests of processes, signals, system calls, cgo and plugins.
# needs: go gcc
export GOCACHE=$PWD/cache GOPATH=$PWD/path
cd "$(go env GOROOT)/src" || exit 9
go test -count=1 -timeout 300s os/exec os/signal syscall runtime/cgo os/user plugin 2>&1 | sed -E 's/[[:space:]]+[0-9.]+s$//'
