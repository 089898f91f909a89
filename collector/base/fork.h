// SPDX-License-Identifier: Apache-2.0
// What a module does in the child after fork. The child is a process of its own: it has no session,
// no thread of ours, and nobody who would release a lock.
#pragma once

namespace gpuprof {

using ForgetInChild = void (*)();

// Has `function` called in the child of a process whose session had begun, by
// forget_session_in_child(): on the child's only thread, in no particular order. It gives the
// module's state the values that it had at load, opens its locks, and neither allocates nor waits.
// tests/check_fork.py fails on a variable that no such function mentions.
#define GPUPROF_FORGET_IN_CHILD(function)                                                         \
  [[gnu::used, gnu::section("gpuprof_forget")]] static const ForgetInChild g_at_fork_##function = \
      function

// All of them: the linker names the ends of a section.
extern const ForgetInChild g_forget_begin[] __asm__("__start_gpuprof_forget")
    __attribute__((visibility("hidden")));
extern const ForgetInChild g_forget_end[] __asm__("__stop_gpuprof_forget")
    __attribute__((visibility("hidden")));

}  // namespace gpuprof
