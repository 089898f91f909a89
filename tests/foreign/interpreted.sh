#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Interpreters with collectors, compilers and stacks of their own.
# needs: php luajit mono mcs guile erl swipl Rscript emacs
# shellcheck disable=SC2016  # variables of other languages
php -r '$p = pcntl_fork(); if (!$p) exit(3); pcntl_wait($s); echo pcntl_wexitstatus($s), shell_exec("echo sh"); exit(8);'
echo "php $?"
luajit -e 'local ffi = require "ffi" ffi.cdef "int fork(void); int waitpid(int, int*, int); void _exit(int);"
  local p = ffi.C.fork() if p == 0 then ffi.C._exit(5) end
  local s = ffi.new "int[1]" ffi.C.waitpid(p, s, 0) print(s[0])'
echo "lua $?"
mcs "$PROGRAMS/Faults.cs" -out:faults.exe 2>/dev/null
mono faults.exe 2>/dev/null
echo "mono $?"
guile -c '(use-modules (ice-9 threads))
  (display (apply + (par-map (lambda (i) (let loop ((n 0)) (if (= n 10000) i (loop (+ n 1))))) (iota 20)))) (gc)
  (let ((p (primitive-fork))) (if (= p 0) (primitive-_exit 3) (display (cdr (waitpid p))))) (exit 5)' 2>/dev/null
echo "guile $?"
erl -noshell -eval 'Self = self(), [spawn(fun() -> Self ! lists:sum(lists:seq(1, 1000 * I)) end) || I <- lists:seq(1, 200)],
  io:format("~p~s", [lists:sum([receive X -> X end || _ <- lists:seq(1, 200)]), os:cmd("echo sh")]), erlang:halt(7).'
echo "erlang $?"
swipl -g 'findall(T, (between(1, 8, I), thread_create((numlist(1, 1000, L), sum_list(L, _)), T)), Ts),
  maplist(thread_join, Ts), shell("exit 3", C), writeln(C),
  catch(call_with_time_limit(0.3, (repeat, fail)), E, (print(E), nl)), halt(4)' </dev/null 2>/dev/null
echo "prolog $?"
Rscript -e 'library(parallel); print(sum(unlist(mclapply(1:20, function(i) i^2, mc.cores = 4)))); print(system("exit 3"))
  descend <- function(n) descend(n + 1); print(tryCatch(descend(1), error = function(e) "overflow")); quit(status = 4)' 2>/dev/null
echo "R $?"
emacs -Q --batch --eval '(progn (princ (shell-command-to-string "echo sh")) (make-thread (lambda () (princ "thread")))
  (sleep-for 0.2) (garbage-collect) (kill-emacs 4))' 2>/dev/null
echo "emacs $?"
