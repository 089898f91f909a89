// SPDX-License-Identifier: Apache-2.0
// Reads this process's memory through the kernel, so that an address that is not mapped is an error
// and not a fault. By process_vm_readv; where that is refused, by /proc/thread-self/mem, which
// takes a call for each piece. containers-common's seccomp profile (Podman, CRI-O) refuses the
// former without CAP_SYS_PTRACE, and qemu-user lacks it.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>

namespace gpuprof {

// Finds the way; false: there is none. Before the first copy of a process, and after fork; not
// beside a copy.
bool can_copy_own_memory();

// Copies pieces of `bytes` in all: all of them or nothing that counts. What it costs is the pieces,
// each of which the kernel looks up anew, far more than the bytes. Any thread.
bool copy_own_memory(const iovec* to, const iovec* from, size_t count, size_t bytes);
bool copy_own_memory(uint64_t address, void* out, size_t bytes);

}  // namespace gpuprof
