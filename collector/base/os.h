// SPDX-License-Identifier: Apache-2.0
// Small wrappers over libc and the kernel for code inside the traced process: no allocation, no
// errno left changed for the host where it matters, nothing newer than glibc 2.28.
#pragma once

#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>

namespace gpuprof {

// A scope in which errno may change without the host seeing it.
class ErrnoGuard {
 public:
  ErrnoGuard() : saved_(errno) {}
  ~ErrnoGuard() { errno = saved_; }
  ErrnoGuard(const ErrnoGuard&) = delete;
  ErrnoGuard& operator=(const ErrnoGuard&) = delete;

 private:
  int saved_;
};

// As files have it: where fakeroot answers geteuid with 0 they do not.
inline uid_t effective_user() { return static_cast<uid_t>(::syscall(SYS_geteuid)); }
inline uint32_t current_tid() { return static_cast<uint32_t>(::syscall(SYS_gettid)); }
inline uint32_t current_pid() { return static_cast<uint32_t>(::syscall(SYS_getpid)); }

// "/proc/self/NAME", for `name` of up to 32 characters. Once the main thread has ended
// (pthread_exit) there is no program, command line, memory or file by that: then the calling
// thread's. QEMU's user mode answers as the program's own machine would for /proc/self alone.
class OwnProcPath {
 public:
  explicit OwnProcPath(const char* name);
  const char* c_str() const { return path_; }

 private:
  char path_[64];
};

// Reads at most size-1 bytes, ends them with NUL, strips a last newline. False if nothing was read.
bool read_small_file(const char* path, char* out, size_t size);

// A number of /proc/<pid>/stat; fields as proc(5) counts them, from the fourth on. 0: not to be
// read.
uint64_t stat_field(uint32_t pid, int field);

// When a process started: seconds of CLOCK_REALTIME, by what that clock says now. The
// boot's, if that cannot be read.
double start_of_process(uint32_t pid);

// What the process may still map, in bytes; ~0: it is not limited (RLIMIT_AS).
uint64_t address_space_left();

// Whether the process may have as many mappings more as CUPTI and CUDA may come to need on our
// thread (vm.max_map_count). At that limit mmap, malloc and thread stacks fail, the program's, too.
// Reads the list of its mappings: microseconds for each.
inline constexpr uint64_t kMappingsOfVendorCode = 512;
bool vendor_code_may_map();

// Whether `match` is true for the name of an entry of this directory. It is asked until it is.
bool any_entry(const char* directory, bool (*match)(const char* name, void* context),
               void* context);
// The same of one that is open, from where it has been read to.
bool any_entry(int directory, bool (*match)(const char* name, void* context), void* context);

// Waits while `*word == expected`, at most `timeout_ns`. Wakes may be spurious.
void futex_wait(std::atomic<uint32_t>& word, uint32_t expected, uint64_t timeout_ns);
void futex_wake_all(std::atomic<uint32_t>& word);

// Starts a detached thread that takes no signal of the program's. 0, or an errno.
int start_thread(void* (*run)(void*), size_t stack_bytes);

// A lock for paths that run a few times a second at most. Who waits for it sleeps: it may be held
// for seconds, while a window opens. Never taken on the hot path, never while vendor code or the
// host runs. Reset by the child after fork.
class Mutex {
 public:
  void lock() {
    for (int spins = 0; spins < 100; ++spins) {
      if (try_lock()) return;
    }
    (void)wait(~uint64_t{0});
  }
  // The same for `timeout_ns` at most: false, it is not to be had.
  bool lock_within(uint64_t timeout_ns) { return try_lock() || wait(timeout_ns); }
  bool try_lock() {
    uint32_t free = kFree;
    return word_.compare_exchange_strong(free, kTaken, std::memory_order_acquire,
                                         std::memory_order_relaxed);
  }
  void unlock() {
    if (word_.exchange(kFree, std::memory_order_release) == kAwaited) wake();
  }

 private:
  static constexpr uint32_t kFree = 0, kTaken = 1, kAwaited = 2;
  bool wait(uint64_t timeout_ns);
  void wake();

  std::atomic<uint32_t> word_{kFree};
};

class LockGuard {
 public:
  explicit LockGuard(Mutex& lock) : lock_(lock) { lock_.lock(); }
  ~LockGuard() { lock_.unlock(); }
  LockGuard(const LockGuard&) = delete;
  LockGuard& operator=(const LockGuard&) = delete;

 private:
  Mutex& lock_;
};

// An object in static storage that is neither constructed nor destroyed: hooks run
// before constructors and after destructors. The type's empty state is all zero
// bytes.
template <typename T>
class Immortal {
 public:
  T& operator*() { return *reinterpret_cast<T*>(bytes_); }
  T* operator->() { return reinterpret_cast<T*>(bytes_); }

 private:
  alignas(T) unsigned char bytes_[sizeof(T)] = {};
};

}  // namespace gpuprof
