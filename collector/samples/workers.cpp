// SPDX-License-Identifier: Apache-2.0
#include "collector/samples/workers.h"

#include <sched.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "collector/base/fork.h"
#include "collector/base/os.h"
#include "collector/record/recorder.h"
#include "collector/record/session.h"
#include "collector/samples/differences.h"
#include "collector/torch/record_function.h"
#include "formats/core/wire.h"

namespace gpuprof {
namespace {

constexpr double kSamplePeriodNs = 5e7;
// Children of the main thread are listed by one file, those of all threads by one for each of them.
constexpr double kLookPeriodNs = 1e8, kLookEverywherePeriodNs = 2e9;
constexpr size_t kMaxWorkers = 256;
// PyTorch's name for its workers from 2.5 on. A worker has it some milliseconds after fork.
constexpr const char* kWorkerName = "pt_data_worker";
constexpr double kNamelessNs = 2e9;  // older than that it gets none

struct WorkerSample {
  uint64_t ticks, cpu_ns, queue_ns, read_bytes;
  uint32_t pid;
  uint32_t state;  // letter in /proc/<pid>/stat
};
struct KnownWorker {
  uint32_t pid;
  uint64_t born;  // ticks
  bool ended;
  bool named;
  bool left_out;  // a fork that is no worker
};

bool g_on = false;
KnownWorker g_workers[kMaxWorkers];
size_t g_count = 0;
bool g_cpus_written = false;
uint64_t g_next_sample = 0, g_next_look = 0, g_next_look_everywhere = 0;
constinit Immortal<PodVector<WorkerSample>> g_samples;

uint64_t ticks_of(double nanoseconds) {
  return static_cast<uint64_t>(nanoseconds * session().clock.ticks_per_ns);
}

bool read_file(uint32_t pid, const char* name, char* out, size_t size) {
  char path[64];
  std::snprintf(path, sizeof path, "/proc/%u/%s", pid, name);
  return read_small_file(path, out, size);
}

// Fields of /proc/<pid>/stat as proc(5) counts them, from the third on.
struct Stat {
  char state;
  uint64_t cpu_ns;
  double age_ns;
  uint64_t stack;  // where it begins: random in each program, the same after fork
};
bool read_stat(uint32_t pid, Stat& out) {
  char text[1024];
  if (!read_file(pid, "stat", text, sizeof text)) return false;
  const char* at = std::strrchr(text, ')');
  if (!at || at[1] != ' ') return false;
  at += 2;
  out.state = *at;
  uint64_t fields[29] = {};
  for (int field = 3; *at && field < 29; ++field) {
    if (field > 3) fields[field] = std::strtoull(at, nullptr, 10);
    while (*at && *at != ' ') ++at;
    if (*at) ++at;
  }
  const double tick_ns = 1e9 / static_cast<double>(::sysconf(_SC_CLK_TCK));
  out.cpu_ns = static_cast<uint64_t>(static_cast<double>(fields[14] + fields[15]) * tick_ns);
  timespec now{};
  ::clock_gettime(CLOCK_BOOTTIME, &now);
  out.age_ns = static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec) -
               static_cast<double>(fields[22]) * tick_ns;
  out.stack = fields[28];
  return true;
}

bool has_name(uint32_t pid) {
  char name[32];
  if (!read_file(pid, "comm", name, sizeof name) || std::strcmp(name, kWorkerName) != 0)
    return false;
  session().names_workers.store(true, std::memory_order_relaxed);
  return true;
}

// A fork of this process that has not become another program.
bool is_fork(const Stat& stat) {
  Stat own{};
  return read_stat(current_pid(), own) && own.stack && own.stack == stat.stack;
}

// False: it is none, or nobody knows yet.
bool is_worker(const KnownWorker& worker) {
  return !worker.left_out &&
         (worker.named || !session().names_workers.load(std::memory_order_relaxed));
}

// By its name; a fork also where workers have none, or before it has got one. False: it is none.
bool know(uint32_t pid) {
  for (size_t i = 0; i < g_count; ++i) {
    if (g_workers[i].pid == pid) return true;
  }
  Stat stat{};
  if (g_count == kMaxWorkers || !read_stat(pid, stat)) return false;
  KnownWorker worker{pid, now_ticks() - ticks_of(stat.age_ns), false, has_name(pid), false};
  if (!worker.named && !is_fork(stat)) return false;
  if (!is_worker(worker) && stat.age_ns > kNamelessNs) return false;
  g_workers[g_count++] = worker;
  return true;
}

// Which of the forks are workers. `last`: none gets a name any more.
void look_at_names(uint64_t ticks, bool last) {
  for (size_t i = 0; i < g_count; ++i) {
    KnownWorker& worker = g_workers[i];
    if (worker.named || worker.left_out) continue;
    worker.named = !worker.ended && has_name(worker.pid);
    const bool old = worker.ended || last || ticks - worker.born > ticks_of(kNamelessNs);
    worker.left_out = !is_worker(worker) && old;
  }
}

// The kernel lists children by the thread that made them. `deeper`: those of children that are no
// workers, too (a fork server).
void look_at_children(const char* process, uint32_t task, bool deeper) {
  char path[64], children[4096];
  std::snprintf(path, sizeof path, "/proc/%s/task/%u/children", process, task);
  if (!read_small_file(path, children, sizeof children)) return;
  for (char* at = children; *at;) {
    char* end = at;
    const auto pid = static_cast<uint32_t>(std::strtoul(at, &end, 10));
    if (end == at) break;
    at = end;
    while (*at == ' ') ++at;
    if (!know(pid) && deeper) {
      char name[16];
      std::snprintf(name, sizeof name, "%u", pid);
      look_at_children(name, pid, false);
    }
  }
}

bool look_at_thread(const char* name, void*) {
  const auto task = static_cast<uint32_t>(std::strtoul(name, nullptr, 10));
  if (task) look_at_children("self", task, true);
  return false;
}

void look_at_all_threads() { any_entry("/proc/self/task", look_at_thread, nullptr); }

// False: it has ended.
bool sample(const KnownWorker& worker) {
  Stat stat{};
  if (!read_stat(worker.pid, stat) || stat.state == 'Z' || stat.state == 'X') return false;
  WorkerSample out{now_ticks(), stat.cpu_ns, 0, 0, worker.pid, static_cast<uint32_t>(stat.state)};
  char text[512];
  if (read_file(worker.pid, "schedstat", text, sizeof text)) {
    char* after = nullptr;
    // Of its main thread, but to the nanosecond.
    const uint64_t cpu_ns = std::strtoull(text, &after, 10);
    if (cpu_ns > out.cpu_ns) out.cpu_ns = cpu_ns;
    out.queue_ns = std::strtoull(after, nullptr, 10);
  }
  if (read_file(worker.pid, "io", text, sizeof text)) {
    const char* const at = std::strstr(text, "\nread_bytes: ");
    if (at) out.read_bytes = std::strtoull(at + 13, nullptr, 10);
  }
  return g_samples->push_back(out);
}

void encode_worker(WireWriter& wire, const KnownWorker& worker, uint32_t clock_shift) {
  Differences times, cpu, queue, read;
  ByteBuffer states;
  for (const WorkerSample& each : *g_samples) {
    if (each.pid != worker.pid) continue;
    times.add(each.ticks >> clock_shift);
    cpu.add(each.cpu_ns);
    queue.add(each.queue_ns);
    read.add(each.read_bytes);
    const auto letter = static_cast<uint8_t>(each.state);
    (void)states.append(&letter, 1);
  }
  if (states.empty()) return;
  const size_t mark = wire.open(1);
  wire.uint(1, worker.pid);
  wire.uint(2, worker.born >> clock_shift);
  times.write(wire, 3);
  cpu.write(wire, 4);
  queue.write(wire, 5);
  read.write(wire, 6);
  wire.bytes(7, states.data(), states.size());
  wire.close(mark);
}

void keep_samples_of_undecided() {
  PodVector<WorkerSample>& samples = *g_samples;
  size_t kept = 0;
  for (const WorkerSample& sample : samples) {
    const bool undecided = std::any_of(g_workers, g_workers + g_count, [&](const auto& worker) {
      return worker.pid == sample.pid && !worker.left_out && !is_worker(worker);
    });
    if (undecided) samples[kept++] = sample;
  }
  (void)samples.resize(kept);  // never more
}

// CPUs that the control group lets this process have at once (cgroup v2, cpu.max), rounded up; 0:
// no limit is known. The groups around it may have less.
uint32_t cpus_of_group() {
  char groups[1024], path[1200], text[64];
  if (!read_small_file(OwnProcPath("cgroup").c_str(), groups, sizeof groups)) return 0;
  char* const own = std::strncmp(groups, "0::", 3) == 0 ? groups + 3 : std::strstr(groups, "\n0::");
  if (!own) return 0;
  char* const begin = std::strchr(own, '/');
  if (!begin) return 0;
  begin[std::strcspn(begin, "\n")] = '\0';
  uint32_t least = 0;
  for (char* end = begin + std::strlen(begin); end > begin; end = std::strrchr(begin, '/')) {
    *end = '\0';
    std::snprintf(path, sizeof path, "/sys/fs/cgroup%s/cpu.max", begin);
    char* after = nullptr;
    const uint64_t quota =
        read_small_file(path, text, sizeof text) ? std::strtoull(text, &after, 10) : 0;
    const uint64_t period = quota ? std::strtoull(after, nullptr, 10) : 0;  // "max": no limit
    if (period == 0) continue;
    const auto cpus = static_cast<uint32_t>((quota + period - 1) / period);
    if (least == 0 || cpus < least) least = cpus;
  }
  return least;
}

uint32_t usable_cpus() {
  cpu_set_t set;
  if (::sched_getaffinity(0, sizeof set, &set) != 0) return 0;
  const auto own = static_cast<uint32_t>(CPU_COUNT(&set));
  const uint32_t of_group = cpus_of_group();
  return of_group && of_group < own ? of_group : own;
}

}  // namespace

void workers_begin() {
  g_on = activity_on(Activity::op) && torch_library() != nullptr;
  g_count = 0;
  g_cpus_written = false;
  g_next_sample = g_next_look = g_next_look_everywhere = 0;
}

void workers_sample(uint64_t ticks, bool last) {
  if (!g_on || (ticks < g_next_sample && !last)) return;
  if (ticks >= g_next_look) {
    g_next_look = ticks + ticks_of(kLookPeriodNs);
    look_at_children("self", current_pid(), true);
  }
  if (ticks >= g_next_look_everywhere) {
    g_next_look_everywhere = ticks + ticks_of(kLookEverywherePeriodNs);
    look_at_all_threads();
  }
  look_at_names(ticks, last);
  g_next_sample = ticks + ticks_of(kSamplePeriodNs);
  for (size_t i = 0; i < g_count; ++i) {
    KnownWorker& worker = g_workers[i];
    if (!worker.ended && !worker.left_out) worker.ended = !sample(worker);
  }
}

bool encode_workers(ByteBuffer& out, uint32_t clock_shift) {
  PodVector<WorkerSample>& samples = *g_samples;
  // How many CPUs there are matters most where there are no workers.
  if (samples.empty() && (!g_on || g_cpus_written)) return false;
  g_cpus_written = true;
  WireWriter wire(out);
  wire.uint(2, usable_cpus());
  for (size_t i = 0; i < g_count; ++i) {
    if (is_worker(g_workers[i])) encode_worker(wire, g_workers[i], clock_shift);
  }
  keep_samples_of_undecided();
  size_t left = 0;
  for (size_t i = 0; i < g_count; ++i) {
    const KnownWorker& worker = g_workers[i];
    if (!worker.ended && !worker.left_out) g_workers[left++] = worker;
  }
  g_count = left;
  return wire.ok();
}

namespace {
void forget_workers() {
  g_on = false;
  g_count = 0;
  g_cpus_written = false;
  g_samples->clear();
}
GPUPROF_FORGET_IN_CHILD(forget_workers);
}  // namespace

}  // namespace gpuprof
