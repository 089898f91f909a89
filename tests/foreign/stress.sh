#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# stress-ng: each of 90 kinds of load for a second, verified.
# needs: stress-ng
for kind in clone fork vfork vforkmany spawn exec zombie daemon env nice affinity get set sigabrt sigchld sigfd sigfpe sigio \
  signal signest sigpending sigpipe sigq sigrt sigsegv sigsuspend sigtrap seccomp ptrace pthread mutex rseq session \
  personality pidfd poll epoll eventfd itimer timer timerfd context switch yield schedpolicy dnotify dynlib fault kill \
  nullptr bad-altstack alarm clock exit-group fcntl futex prctl priv-instr rlimit vdso wait funccall longjmp stack brk \
  mmap mprotect mremap munmap madvise userfaultfd unshare chroot close dup fp-error sockpair pipe pipeherd resources \
  syscall tsc vm-segv zlib aiol io-uring watchdog opcode usersyscall; do
  timeout 60 stress-ng --$kind 1 --timeout 1 --verify >out 2>&1
  echo "$kind $? $(grep -c fail out)"
done
