// SPDX-License-Identifier: Apache-2.0
#include "collector/base/os.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>

#include <climits>
#include <cstdio>
#include <ctime>

#include "collector/base/clock.h"
#include "collector/base/fork_waits.h"
#include "formats/core/text.h"

namespace gpuprof {

OwnProcPath::OwnProcPath(const char* name) {
  char first;
  if (::readlink("/proc/self/exe", &first, sizeof first) > 0) {
    std::snprintf(path_, sizeof path_, "/proc/self/%.32s", name);
  } else {
    std::snprintf(path_, sizeof path_, "/proc/self/task/%u/%.32s", current_tid(), name);
  }
}

bool read_small_file(const char* path, char* out, size_t size) {
  const ForkWaitsScope forks_wait;
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

uint64_t stat_field(uint32_t pid, int field) {
  char path[64], text[1024];
  std::snprintf(path, sizeof path, "/proc/%u/stat", pid);
  if (!read_small_file(path, text, sizeof text)) return 0;
  std::string_view rest(text);
  for (size_t i = rest.size(); i-- > 0;) {
    if (rest[i] != ')') continue;  // the command name may hold blanks and brackets
    rest = slice(rest, i + 2);
    break;
  }
  for (int at = 3; at < field; ++at) take_until(rest, ' ');
  uint64_t value = 0;
  parse_whole(take_until(rest, ' '), value);
  return value;
}

double start_of_process(uint32_t pid) {
  const uint64_t ticks = stat_field(pid, 22);
  timespec since_boot{}, now{};
  ::clock_gettime(CLOCK_BOOTTIME, &since_boot);
  ::clock_gettime(CLOCK_REALTIME, &now);
  const double boot = static_cast<double>(now.tv_sec - since_boot.tv_sec) +
                      static_cast<double>(now.tv_nsec - since_boot.tv_nsec) * 1e-9;
  return boot + static_cast<double>(ticks) / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

uint64_t address_space_left() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return ~uint64_t{0};
  char text[128];
  uint64_t pages = 0;
  if (!read_small_file(OwnProcPath("statm").c_str(), text, sizeof text)) return ~uint64_t{0};
  std::string_view rest(text);
  parse_whole(take_until(rest, ' '), pages);
  const uint64_t used = pages * static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  return limit.rlim_cur > used ? limit.rlim_cur - used : 0;
}

// Counted and not tried: a try takes the last ones from the program's other threads.
// Where the limit or the list cannot be read, nothing is known to be short.
bool vendor_code_may_map() {
  char text[4096];
  uint64_t most = 0, count = 0;
  if (!read_small_file("/proc/sys/vm/max_map_count", text, sizeof text)) return true;
  if (!parse_whole(text, most)) return true;
  const ForkWaitsScope forks_wait;
  const int file = ::open(OwnProcPath("maps").c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return true;
  for (ssize_t size; (size = ::read(file, text, sizeof text)) > 0;) {
    for (ssize_t i = 0; i < size; ++i) count += text[i] == '\n';
  }
  ::close(file);
  return count + kMappingsOfVendorCode <= most;
}

namespace {
struct DirectoryEntry {  // struct linux_dirent64
  uint64_t inode;
  int64_t offset;
  uint16_t bytes;
  uint8_t type;
  char name[1];
};
}  // namespace

bool any_entry(const char* directory, bool (*match)(const char* name, void* context),
               void* context) {
  const ForkWaitsScope forks_wait;
  const int file = ::open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (file < 0) return false;
  const bool found = any_entry(file, match, context);
  ::close(file);
  return found;
}

bool any_entry(int directory, bool (*match)(const char* name, void* context), void* context) {
  alignas(8) char entries[4096];
  bool found = false;
  for (long bytes;
       !found && (bytes = ::syscall(SYS_getdents64, directory, entries, sizeof entries)) > 0;) {
    for (long at = 0; !found && at < bytes;) {
      const auto* const entry = reinterpret_cast<const DirectoryEntry*>(entries + at);
      at += entry->bytes;
      found = match(entry->name, context);
    }
  }
  return found;
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

bool Mutex::wait(uint64_t timeout_ns) {
  constexpr uint64_t kLookAgainNs = 50'000'000;
  const ErrnoGuard keep;
  const uint64_t begun = monotonic_ns();
  while (word_.exchange(kAwaited, std::memory_order_acquire) != kFree) {
    if (monotonic_ns() - begun >= timeout_ns) return false;
    futex_wait(word_, kAwaited, kLookAgainNs);
  }
  return true;
}

void Mutex::wake() {
  const ErrnoGuard keep;
  ::syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word_), FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr,
            0);
}

namespace {
// What a real-time thread starts is one, too. It would hold up threads of the program's that have a
// lower priority, and a limit on the time of such threads (RLIMIT_RTTIME) would end the program.
void leave_real_time(pthread_attr_t& attributes) {
  const int policy = ::sched_getscheduler(0) & ~SCHED_RESET_ON_FORK;
  if (policy != SCHED_FIFO && policy != SCHED_RR) return;
  const sched_param none{};
  ::pthread_attr_setinheritsched(&attributes, PTHREAD_EXPLICIT_SCHED);
  ::pthread_attr_setschedpolicy(&attributes, SCHED_OTHER);
  ::pthread_attr_setschedparam(&attributes, &none);
}
}  // namespace

int start_thread(void* (*run)(void*), size_t stack_bytes) {
  sigset_t all, before;
  ::sigfillset(&all);
  ::sigprocmask(SIG_SETMASK, &all, &before);  // of this thread; the new one inherits it
  pthread_attr_t attributes;
  ::pthread_attr_init(&attributes);
  ::pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  ::pthread_attr_setstacksize(&attributes, stack_bytes);
  leave_real_time(attributes);
  pthread_t thread;
  const int failed = ::pthread_create(&thread, &attributes, run, nullptr);
  ::pthread_attr_destroy(&attributes);
  ::sigprocmask(SIG_SETMASK, &before, nullptr);
  return failed;
}

}  // namespace gpuprof
