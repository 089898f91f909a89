// SPDX-License-Identifier: Apache-2.0
// The step source kernel:REGEX:N: which launched functions match. A function's first verdict costs
// a look-up of its name (demangled if the process has a C++ runtime library) and one regexec. Later
// ones cost a load from a hash table, without a lock.
#pragma once

namespace gpuprof {

// Before any other call, and again in a child after fork. `pattern` is a valid POSIX ERE.
void compile_kernel_pattern(const char* pattern);

// Whether the kernel behind a host function pointer or cudaKernel_t matches. Any thread.
bool kernel_matches(const void* function);

// Names were registered, or have gone with their module: verdicts on unknown functions, or all, are
// made anew. Any thread.
void forget_unknown_kernels();
void forget_kernel_verdicts();

}  // namespace gpuprof
