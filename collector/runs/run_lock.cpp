// SPDX-License-Identifier: Apache-2.0
#include "collector/runs/run_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "collector/base/clock.h"
#include "collector/base/fork.h"
#include "collector/base/fork_waits.h"
#include "collector/base/os.h"
#include "collector/base/own_directory.h"
#include "collector/base/own_file.h"

namespace gpuprof {
namespace {

constexpr int kMostFolders = 100;  // that are removed while they are opened
constexpr uint64_t kLongestWaitNs = 2000000000;
constexpr unsigned kLookAgainUs = 2000;

enum class Locking { done, busy, gone, failed, impossible };

struct RunLock {
  bool wanted = false;  // in a session, where the file system has locks
  int file = -1;
  uint64_t device = 0, inode = 0;
};
RunLock g_lock;

bool holds_lock() {
  struct stat info {};
  return g_lock.file >= 0 && ::syscall(SYS_fstat, g_lock.file, &info) == 0 &&
         info.st_dev == g_lock.device && info.st_ino == g_lock.inode;
}

// The folder's own descriptor is only a path (O_PATH), which has no locks.
Locking try_lock() {
  const ForkWaitsScope forks_wait;
  const int file = ::openat(run_directory().descriptor(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (file < 0) return errno == ENOENT ? Locking::gone : Locking::failed;
  struct stat info {};
  if (::syscall(SYS_fstat, file, &info) == 0 && ::flock(file, LOCK_SH | LOCK_NB) == 0) {
    g_lock = {true, move_up(file), info.st_dev, info.st_ino};
    return Locking::done;
  }
  const bool busy = errno == EWOULDBLOCK;
  ::close(file);
  return busy ? Locking::busy : Locking::impossible;
}

// In a child: the parent has its own descriptor of it.
void unlock() {
  if (holds_lock()) ::close(g_lock.file);
  g_lock = RunLock{};
}

// Whether the folder that is open now stays, as far as can be told.
bool lock_folder() {
  const uint64_t begun = monotonic_ns();
  for (;;) {
    const Locking locking = try_lock();
    if (locking == Locking::gone) return false;
    g_lock.wanted = locking != Locking::impossible;
    if (locking == Locking::failed || !g_lock.wanted) return true;
    // It may have been removed between its opening and the lock.
    if (locking == Locking::done && run_directory().is_at_its_path()) return true;
    if (locking == Locking::done) return unlock(), false;
    if (monotonic_ns() - begun > kLongestWaitNs) return true;
    ::usleep(kLookAgainUs);
  }
}

GPUPROF_FORGET_IN_CHILD(unlock);

}  // namespace

bool open_run_directory(const char* path, char* why, size_t why_size) {
  for (int i = 0; i < kMostFolders; ++i) {
    run_directory().forget();
    const bool opened = run_directory().open(path, OwnDirectory::Kind::run, why, why_size);
    if (opened && lock_folder()) return true;
    if (!opened && errno != ENOENT) return false;
  }
  std::snprintf(why, why_size, "directory %s is removed again and again", path);
  return false;
}

void keep_run_locked() {
  if (g_lock.wanted && !holds_lock()) (void)try_lock();
}

}  // namespace gpuprof
