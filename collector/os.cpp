// SPDX-License-Identifier: Apache-2.0
#include "collector/os.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>

#include <climits>
#include <ctime>

namespace gpuprof {

bool read_small_file(const char* path, char* out, size_t size) {
  const int file = ::open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return false;
  size_t used = 0;
  while (used + 1 < size) {
    const ssize_t got = ::read(file, out + used, size - 1 - used);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    used += static_cast<size_t>(got);
  }
  ::close(file);
  out[used] = '\0';
  if (used && out[used - 1] == '\n') out[--used] = '\0';
  return used > 0;
}

void futex_wait(std::atomic<uint32_t>& word, uint32_t expected, uint64_t timeout_ns) {
  timespec timeout{static_cast<time_t>(timeout_ns / 1000000000u),
                   static_cast<long>(timeout_ns % 1000000000u)};
  ::syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), FUTEX_WAIT_PRIVATE, expected, &timeout,
            nullptr, 0);
}

void futex_wake_all(std::atomic<uint32_t>& word) {
  ::syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), FUTEX_WAKE_PRIVATE, INT_MAX, nullptr,
            nullptr, 0);
}

int start_thread(void* (*run)(void*), size_t stack_bytes) {
  sigset_t all, before;
  ::sigfillset(&all);
  ::sigprocmask(SIG_SETMASK, &all, &before);  // of this thread; the new one inherits it
  pthread_attr_t attributes;
  ::pthread_attr_init(&attributes);
  ::pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  ::pthread_attr_setstacksize(&attributes, stack_bytes);
  pthread_t thread;
  const int failed = ::pthread_create(&thread, &attributes, run, nullptr);
  ::pthread_attr_destroy(&attributes);
  ::sigprocmask(SIG_SETMASK, &before, nullptr);
  return failed;
}

}  // namespace gpuprof
