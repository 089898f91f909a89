// SPDX-License-Identifier: Apache-2.0
#include "collector/runs/kept_runs.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>

#include "collector/base/clock.h"
#include "collector/base/fork_waits.h"
#include "collector/base/os.h"
#include "collector/base/own_directory.h"
#include "formats/core/runs/run_files.h"

namespace gpuprof {
namespace {

constexpr uint64_t kSecond = 1000000000;
// By so much a process may seem to have started after its session, if the clock was set since.
constexpr double kClockSlackSeconds = 60;

bool stat_at(int directory, const char* name, struct stat& info) {
  return ::syscall(SYS_newfstatat, directory, name, &info, AT_SYMLINK_NOFOLLOW) == 0;
}

uint64_t changed_ns(const struct stat& info) {
  return static_cast<uint64_t>(info.st_mtim.tv_sec) * kSecond +
         static_cast<uint64_t>(info.st_mtim.tv_nsec);
}

// A descriptor of the folder; -1: it is none that is this user's alone.
int open_run(int above, const char* name) {
  struct stat outside {
  }, info{};
  const int folder =
      ::openat(above, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (folder < 0) return -1;
  if (::syscall(SYS_fstat, folder, &info) == 0 && ::syscall(SYS_fstat, above, &outside) == 0 &&
      info.st_uid == effective_user() && (info.st_mode & 0022) == 0 &&
      info.st_dev == outside.st_dev) {
    return folder;
  }
  ::close(folder);
  return -1;
}

// The process that began this session. One of the same number started later.
bool is_alive(const RunFile& file) {
  if (file.pid == 0 || file.pid == current_pid()) return false;
  if (::kill(static_cast<pid_t>(file.pid), 0) != 0 && errno == ESRCH) return false;
  return start_of_process(file.pid) <=
         static_cast<double>(file.begun_ns) / kSecond + kClockSlackSeconds;
}

// One look at a run's folder, or one walk that removes.
struct Walk {
  int folder;
  uint64_t before_ns;        // what changed later is recent
  uint64_t deadline_ns = 0;  // of a walk that removes: CLOCK_MONOTONIC
  bool made = false;         // it removes what is made of dumps; else these
  uint32_t entries = 0, ours = 0;
  uint64_t changed = 0, bytes = 0;
  bool in_use = false, late = false;
  Removed removed{};
};

// A file of ours, which its name and its owner say.
bool is_of_ours(int folder, const char* name, RunFile& file, struct stat& info) {
  return parse_run_file(name, file) && stat_at(folder, name, info) &&
         info.st_uid == effective_user() &&
         (S_ISREG(info.st_mode) || (file.kind == RunFileKind::ring && S_ISLNK(info.st_mode)));
}

uint64_t bytes_on_disk(const struct stat& info) {
  return static_cast<uint64_t>(info.st_blocks) * 512;
}

// A report or a trace in a run's folder, as gpuprof names it.
bool is_made_of_ours(int folder, const char* name, struct stat& info) {
  return is_made_of_run(name) && stat_at(folder, name, info) && info.st_uid == effective_user() &&
         S_ISREG(info.st_mode);
}

bool look_at_entry(const char* name, void* context) {
  Walk& walk = *static_cast<Walk*>(context);
  RunFile file{};
  struct stat info {};
  if (++walk.entries > kMostRunFiles) return true;
  const bool ours = is_of_ours(walk.folder, name, file, info);
  if (!ours && !is_made_of_ours(walk.folder, name, info)) return false;
  walk.ours += ours;  // what is made of them makes no run
  walk.bytes += bytes_on_disk(info);
  walk.changed = std::max(walk.changed, changed_ns(info));
  // Not asked of each folder of the output: only of one that is about to go.
  if (walk.before_ns) walk.in_use = walk.in_use || is_alive(file) || walk.changed > walk.before_ns;
  return walk.in_use;
}

// A ring that a killed process left on GPUPROF_SCRATCH, which no reader finds without its link.
void remove_linked_ring(const char* name, Removed& removed) {
  struct stat info {};
  const int scratch = scratch_directory().is_open() ? scratch_directory().descriptor() : -1;
  if (scratch < 0 || !stat_at(scratch, name, info)) return;
  if (!S_ISREG(info.st_mode) || info.st_uid != effective_user()) return;
  if (::unlinkat(scratch, name, 0) == 0) removed.bytes += bytes_on_disk(info);
}

// Each file is asked again: one that has come since the look is not removed.
bool remove_entry(const char* name, void* context) {
  Walk& walk = *static_cast<Walk*>(context);
  RunFile file;
  struct stat info {};
  // Also where this process was stopped meanwhile, and others have stopped waiting for the lock.
  walk.late = monotonic_ns() > walk.deadline_ns;
  if (walk.late || ++walk.entries > kMostRunFiles) return true;
  const bool goes = walk.made ? is_made_of_ours(walk.folder, name, info)
                              : is_of_ours(walk.folder, name, file, info) && !is_alive(file);
  if (!goes || changed_ns(info) > walk.before_ns) return false;
  if (S_ISLNK(info.st_mode)) remove_linked_ring(name, walk.removed);
  if (::unlinkat(walk.folder, name, 0) != 0) return false;
  ++walk.removed.files;
  walk.removed.bytes += bytes_on_disk(info);
  return false;
}

// With the folder's lock. Entries that a file system leaves out while others go come the next time.
Removal remove_files(int folder, uint64_t before_ns, uint64_t budget_ns, Removed& removed) {
  Walk look{folder, before_ns};
  any_entry(folder, look_at_entry, &look);
  if (look.in_use || look.entries > kMostRunFiles) return Removal::kept;
  const uint64_t deadline_ns = monotonic_ns() + budget_ns;
  // What is made of dumps goes first: without these nobody would know the folder for a run.
  for (const bool made : {true, false}) {
    for (bool any = look.ours > 0; any;) {
      Walk walk{folder, before_ns, deadline_ns, made};
      ::lseek(folder, 0, SEEK_SET);
      any_entry(folder, remove_entry, &walk);
      removed.files += walk.removed.files;
      removed.bytes += walk.removed.bytes;
      if (walk.late) return Removal::part;
      any = walk.removed.files > 0;
    }
  }
  return monotonic_ns() > deadline_ns ? Removal::part : Removal::done;
}

bool is_newer(const RunEntry& a, const RunEntry& b) { return a.changed_ns > b.changed_ns; }

}  // namespace

void choose_runs(RunEntry* runs, size_t count, const KeepSpec& keep, uint64_t now_ns) {
  std::sort(runs, runs + count, is_newer);
  uint64_t bytes = 0;
  for (size_t i = 0; i < count; ++i) {
    RunEntry& run = runs[i];
    bytes += run.bytes;
    const uint64_t age = now_ns > run.changed_ns ? now_ns - run.changed_ns : 0;
    const bool beyond = (keep.runs && i >= keep.runs) || (keep.bytes && bytes > keep.bytes) ||
                        (keep.age_s && age / kSecond >= keep.age_s);
    run.goes = beyond && !run.stays && age >= kRecentNs;
  }
}

bool look_at_run(int above, RunEntry& run) {
  const ForkWaitsScope forks_wait;
  const int folder = open_run(above, run.name);
  if (folder < 0) return false;
  Walk look{folder, 0};
  any_entry(folder, look_at_entry, &look);
  ::close(folder);
  run.changed_ns = look.changed;
  run.bytes = look.bytes;
  return look.ours > 0 && look.entries <= kMostRunFiles;
}

Removal remove_run(int above, const RunEntry& run, uint64_t now_ns, uint64_t budget_ns,
                   Removed& removed) {
  const ForkWaitsScope forks_wait;
  const int folder = open_run(above, run.name);
  if (folder < 0) return Removal::kept;
  if (::flock(folder, LOCK_EX | LOCK_NB) != 0) {
    const int error = errno;
    ::close(folder);
    errno = error;
    return error == EWOULDBLOCK ? Removal::kept : Removal::impossible;
  }
  struct stat locked {
  }, named{};
  Removal done = Removal::kept;
  // Another process may have removed it before, and a third made it again.
  if (::syscall(SYS_fstat, folder, &locked) == 0 && stat_at(above, run.name, named) &&
      locked.st_ino == named.st_ino && locked.st_dev == named.st_dev) {
    done = remove_files(folder, now_ns - kRecentNs, budget_ns, removed);
  }
  // A folder that is not empty stays. So does one of a process that has its lock from now on.
  if (done == Removal::done) ::unlinkat(above, run.name, AT_REMOVEDIR);
  // In a child of a fork that did not wait the descriptor lives on: the lock must not.
  ::flock(folder, LOCK_UN);
  ::close(folder);
  return done;
}

}  // namespace gpuprof
