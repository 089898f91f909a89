// SPDX-License-Identifier: Apache-2.0
#include "collector/window/prune.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>

#include "collector/base/clock.h"
#include "collector/base/file_systems.h"
#include "collector/base/fork.h"
#include "collector/base/fork_waits.h"
#include "collector/base/log.h"
#include "collector/base/os.h"
#include "collector/base/own_directory.h"
#include "collector/record/session.h"
#include "collector/runs/kept_runs.h"

namespace gpuprof {
namespace {

constexpr size_t kMostRuns = 4096;  // of more, the newest of those that are seen stay
constexpr size_t kListBytes = kMostRuns * sizeof(RunEntry);
constexpr uint32_t kMostFiles = 100000;          // that one process removes
constexpr uint64_t kLongestNs = 10'000'000'000;  // of work for it

enum class Stage { off, list, look, remove };

struct Prune {
  Stage stage;
  RunEntry* runs;  // pages of our own
  size_t count, at, found;
  uint64_t spent_ns;
  uint64_t gone;  // runs
  Removed removed;
};
Prune g_prune{};

uint64_t realtime_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1000000000u + static_cast<uint64_t>(now.tv_nsec);
}

const char* setting_text() { return session().settings->text(Setting::keep); }

// The directory that the run's folder lies in, for a moment.
int open_above(int flags) {
  return ::openat(run_directory().descriptor(), "..", flags | O_DIRECTORY | O_CLOEXEC);
}

void end() {
  Prune& p = g_prune;
  if (p.runs) ::munmap(p.runs, kListBytes);
  if (p.gone > 0) {
    log_line(LogLevel::info, "GPUPROF_KEEP=%s: removed %llu old runs beside %s (%.1f GB)",
             setting_text(), static_cast<unsigned long long>(p.gone), session().directory,
             static_cast<double>(p.removed.bytes) * 1e-9);
  }
  p = Prune{};
}

void give_up(const char* why) {
  log_line(LogLevel::warn, "GPUPROF_KEEP=%s: %s; no run beside %s is removed", setting_text(), why,
           session().directory);
  end();
}

bool add_entry(const char* name, void*) {
  Prune& p = g_prune;
  RunEntry& run = p.runs[p.count];
  const size_t length = std::strlen(name);
  if (name[0] == '.' || length >= sizeof run.name) return false;
  std::memcpy(run.name, name, length + 1);
  return ++p.count == kMostRuns;
}

void list_entries() {
  const ForkWaitsScope forks_wait;
  const int above = open_above(O_RDONLY);
  if (above < 0) return give_up(std::strerror(errno));
  any_entry(above, add_entry, nullptr);
  ::close(above);
  g_prune.stage = Stage::look;
}

// The newest run's name may change while this goes on.
bool is_latest(int above, const char* name) {
  char target[sizeof RunEntry::name];
  const ssize_t length = ::readlinkat(above, "latest", target, sizeof target - 1);
  if (length <= 0) return false;
  target[length] = '\0';
  return std::strcmp(target, name) == 0;
}

// Puts those that are runs to the front.
void look_at_next(int above) {
  Prune& p = g_prune;
  RunEntry run = p.runs[p.at];
  if (look_at_run(above, run)) {
    run.stays = std::strcmp(run.name, session().run) == 0 || is_latest(above, run.name);
    p.runs[p.found++] = run;
  }
  if (++p.at < p.count) return;
  p.count = p.found;
  p.at = 0;
  choose_runs(p.runs, p.count, session().config.keep, realtime_ns());
  p.stage = Stage::remove;
}

void remove_next(int above, uint64_t budget_ns) {
  Prune& p = g_prune;
  const RunEntry& run = p.runs[p.at];
  Removal done = Removal::kept;
  if (run.goes && !is_latest(above, run.name)) {
    done = remove_run(above, run, realtime_ns(), budget_ns, p.removed);
  }
  if (done == Removal::impossible) {
    char why[200];
    std::snprintf(why, sizeof why, "run folders cannot be locked (%s)", std::strerror(errno));
    return give_up(why);
  }
  if (done == Removal::part) return;  // the next time
  if (done == Removal::done) ++p.gone;
  ++p.at;
}

}  // namespace

void prune_begin() {
  const Session& s = session();
  g_prune = Prune{};
  if (s.config.keep.everything() || s.loads_data || !run_directory().was_made()) return;
  if (on_network(s.directory)) {
    return give_up("locks on a network file system may not reach other machines");
  }
  void* const list =
      ::mmap(nullptr, kListBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (list == MAP_FAILED) return give_up(std::strerror(errno));
  g_prune.runs = static_cast<RunEntry*>(list);
  g_prune.stage = Stage::list;
}

bool prune_some(uint64_t budget_ns) {
  Prune& p = g_prune;
  if (p.stage == Stage::off) return false;
  const uint64_t begun = monotonic_ns();
  if (p.stage == Stage::list) list_entries();
  if (p.stage == Stage::off) return false;
  const ForkWaitsScope forks_wait;
  const int above = open_above(O_PATH);
  while (above >= 0 && p.stage != Stage::off && monotonic_ns() - begun < budget_ns) {
    const bool over = p.at >= p.count || p.spent_ns > kLongestNs || p.removed.files >= kMostFiles;
    if (over) {
      end();
    } else if (p.stage == Stage::look) {
      look_at_next(above);
    } else {
      remove_next(above, budget_ns);
    }
  }
  if (above >= 0) ::close(above);
  if (above < 0) end();
  p.spent_ns += monotonic_ns() - begun;
  return p.stage != Stage::off;
}

namespace {
void forget_prune() {
  if (g_prune.runs) ::munmap(g_prune.runs, kListBytes);
  g_prune = Prune{};
}
GPUPROF_FORGET_IN_CHILD(forget_prune);
}  // namespace

}  // namespace gpuprof
