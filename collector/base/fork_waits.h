// SPDX-License-Identifier: Apache-2.0
// A fork copies the descriptors of all threads, and what they are changing. A file that a thread of
// ours has open for a moment would stay in the child, which knows nothing of it; a table that is
// half changed would stay so.
#pragma once

namespace gpuprof {

// A fork on another thread waits while one lives, and one begins only once a running fork is done.
// Neither waits longer than 0.1 s, and no further fork does then until that scope ends: a file
// system that hangs must not hang the program. They nest. Not around vendor code, nor around locks
// that somebody holds for longer than a moment.
// Any thread.
class ForkWaitsScope {
 public:
  ForkWaitsScope();
  ~ForkWaitsScope();
  ForkWaitsScope(const ForkWaitsScope&) = delete;
  ForkWaitsScope& operator=(const ForkWaitsScope&) = delete;
};

// For the program's threads, which are not to wait for a fork: whether a scope would. Any thread.
bool a_fork_runs();

// Once, where is_glibc(), before whatever else runs in the child.
void let_forks_wait();

}  // namespace gpuprof
