// SPDX-License-Identifier: Apache-2.0
#include "collector/base/own_memory.h"

#include <fcntl.h>

#include <atomic>

#include "collector/base/fork_waits.h"
#include "collector/base/os.h"

namespace gpuprof {
namespace {

enum class Way : uint8_t { call, file };
constinit std::atomic<Way> g_way{Way::call};
constinit std::atomic<uint32_t> g_pid{0};  // asked for once: a sample takes a dozen reads

bool copy_by_call(const iovec* to, const iovec* from, size_t count, size_t bytes) {
  const long got = ::syscall(SYS_process_vm_readv, g_pid.load(std::memory_order_relaxed), to, count,
                             from, count, 0);
  return got >= 0 && static_cast<size_t>(got) == bytes;
}

// Opened each time: a file that is kept would show another process's memory after fork, and the
// program may close it. By system calls, since open(2) and pread(2) are where a thread is
// cancelled.
bool copy_by_file(const iovec* to, const iovec* from, size_t count) {
  const ForkWaitsScope forks_wait;
  const auto file = static_cast<int>(
      ::syscall(SYS_openat, AT_FDCWD, "/proc/thread-self/mem", O_RDONLY | O_CLOEXEC));
  if (file < 0) return false;
  bool whole = true;
  for (size_t i = 0; i < count && whole; ++i) {
    const long got = ::syscall(SYS_pread64, file, to[i].iov_base, to[i].iov_len, from[i].iov_base);
    whole = got >= 0 && static_cast<size_t>(got) == to[i].iov_len;
  }
  ::syscall(SYS_close, file);
  return whole;
}

}  // namespace

bool can_copy_own_memory() {
  g_pid.store(current_pid(), std::memory_order_relaxed);
  const uint64_t probe = 0x5eed;
  for (const Way way : {Way::call, Way::file}) {
    g_way.store(way, std::memory_order_relaxed);
    uint64_t seen = 0;
    if (copy_own_memory(reinterpret_cast<uint64_t>(&probe), &seen, sizeof seen) && seen == probe) {
      return true;
    }
  }
  return false;
}

bool copy_own_memory(const iovec* to, const iovec* from, size_t count, size_t bytes) {
  if (g_way.load(std::memory_order_relaxed) == Way::file) return copy_by_file(to, from, count);
  return copy_by_call(to, from, count, bytes);
}

bool copy_own_memory(uint64_t address, void* out, size_t bytes) {
  const iovec to{out, bytes}, from{reinterpret_cast<void*>(address), bytes};
  return copy_own_memory(&to, &from, 1, bytes);
}

}  // namespace gpuprof
