// SPDX-License-Identifier: Apache-2.0
#include "collector/window/metrics/metrics.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "collector/base/environment.h"
#include "collector/base/fork.h"
#include "collector/base/fork_waits.h"
#include "collector/base/log.h"
#include "collector/base/os.h"
#include "collector/base/own_directory.h"
#include "collector/base/redact.h"
#include "collector/record/ring.h"
#include "collector/record/session.h"
#include "collector/window/metrics/metrics_text.h"
#include "formats/core/early_window.h"
#include "formats/core/text.h"
#include "gpuprof_version.h"

namespace gpuprof {
namespace {

constexpr uint64_t kMostSteps = 1024;  // that quantiles are of
constexpr int64_t kLeftoverSeconds = 3600;
constexpr std::string_view kSuffix = ".prom";

struct State {
  OwnDirectory directory;
  bool on;
  bool ended;                       // or about to
  bool fails;                       // the newest writing did
  char path[1100];                  // of the directory
  char name[600], unfinished[620];  // of the file in it
  uint64_t last_written;
  uint64_t boundaries;   // at the last writing
  uint64_t first_ticks;  // of step 0's begin
  Metrics window;        // its fields of the newest window alone
  uint64_t complete, cut, lost;
  uint64_t windows_ns, hooks_ns, cupti_ns, events;
};
State g_metrics{};

double seconds(uint64_t ticks) {
  return static_cast<double>(ticks) / (session().clock.ticks_per_ns * 1e9);
}

// The moment of `ticks`, in seconds since 1970.
double at(uint64_t ticks, const ClockAnchor& now) {
  const double age = now.ticks > ticks ? seconds(now.ticks - ticks) : 0;
  return static_cast<double>(now.realtime_ns) / 1e9 - age;
}

// Of a process of this host that has ended. "gpuprof_HOST_rRANK_PID_STARTED.prom"
bool is_left_over(const char* name) {
  const Session& s = session();
  char begin[300];
  const int length = std::snprintf(begin, sizeof begin, "gpuprof_%s_r", s.host);
  if (length < 0 || std::strncmp(name, begin, static_cast<size_t>(length)) != 0) return false;
  if (!ends_with(name, kSuffix)) return false;
  unsigned rank = 0, pid = 0;
  if (std::sscanf(name + length, "%u_%u_", &rank, &pid) != 2 || pid == 0) return false;
  struct stat info {};
  if (::syscall(SYS_newfstatat, g_metrics.directory.descriptor(), name, &info,
                AT_SYMLINK_NOFOLLOW) != 0) {
    return false;
  }
  const auto now = static_cast<int64_t>(read_anchor().realtime_ns / 1'000'000'000);
  return S_ISREG(info.st_mode) && info.st_uid == effective_user() &&
         now - info.st_mtime > kLeftoverSeconds && ::kill(static_cast<pid_t>(pid), 0) != 0 &&
         errno == ESRCH;
}

void remove_leftovers() {
  const ErrnoGuard keep;
  any_entry(
      g_metrics.path,
      [](const char* name, void*) {
        if (is_left_over(name)) ::unlinkat(g_metrics.directory.descriptor(), name, 0);
        return false;
      },
      nullptr);
}

const char* mode_name() {
  return ring()->header->recording_off.load()   ? "off"
         : session().config.mode == Mode::armed ? "armed"
                                                : "on";
}

// Boundaries are in the ring; of the oldest only those that it still has.
void take_steps(Metrics& out, const ClockAnchor& now) {
  const RingHeader& header = *ring()->header;
  const uint64_t capacity = header.steps.bytes / sizeof(uint64_t);
  const uint64_t boundaries = header.steps.used.load(std::memory_order_acquire) / sizeof(uint64_t);
  if (boundaries == 0 || capacity == 0) return;
  const auto* const slots = reinterpret_cast<const uint64_t*>(
      reinterpret_cast<const uint8_t*>(&header) + header.steps.offset);
  const auto boundary = [&](uint64_t n) { return slots[n % capacity]; };
  // The steps that were counted turned out to be none: others are counted from 0.
  if (boundaries < g_metrics.boundaries) g_metrics.boundaries = g_metrics.first_ticks = 0;
  if (g_metrics.first_ticks == 0 && boundaries <= capacity) g_metrics.first_ticks = boundary(0);
  const uint64_t newest = boundary(boundaries - 1);
  out.steps = boundaries - 1;
  if (newest > g_metrics.first_ticks) out.steps_seconds = seconds(newest - g_metrics.first_ticks);
  if (out.steps > 0) out.last_step_at = at(newest, now);
  uint64_t fresh = boundaries - std::max<uint64_t>(g_metrics.boundaries, 1);
  fresh = std::min({fresh, kMostSteps, capacity - 1});
  g_metrics.boundaries = boundaries;
  if (fresh == 0) return;
  uint64_t lengths[kMostSteps];
  for (uint64_t i = 0; i < fresh; ++i) {
    const uint64_t end = boundary(boundaries - 1 - i), begin = boundary(boundaries - 2 - i);
    lengths[i] = end > begin ? end - begin : 0;
  }
  std::sort(lengths, lengths + fresh);
  constexpr uint64_t kPercent[Metrics::kQuantiles] = {50, 90, 99};
  for (size_t i = 0; i < Metrics::kQuantiles; ++i) {
    out.step_quantiles[i] = seconds(lengths[(fresh - 1) * kPercent[i] / 100]);
  }
  out.quantiles_known = true;
}

Metrics take_metrics(char* source, size_t source_size, char* run, size_t run_size) {
  const Session& s = session();
  Metrics out = g_metrics.window;
  describe_step_source(source, source_size);
  out.run = shown_name("run", s.run, run, run_size);
  out.job = is_redacted(Redact::environment) ? std::string_view() : s.place.job;
  out.version = GPUPROF_VERSION;
  out.mode = mode_name();
  out.step_source = source;
  out.rank = s.place.rank;
  out.pid = s.pid;
  const ClockAnchor now = read_anchor();
  out.started_at = at(s.start_ticks, now);
  out.written_at = at(now.ticks, now);
  take_steps(out, now);
  out.windows_complete = g_metrics.complete;
  out.windows_cut = g_metrics.cut;
  out.windows_lost = g_metrics.lost;
  const auto of_ns = [](uint64_t ns) { return static_cast<double>(ns) / 1e9; };
  out.windows_seconds = of_ns(g_metrics.windows_ns);
  out.hooks_seconds = of_ns(g_metrics.hooks_ns);
  out.cupti_seconds = of_ns(g_metrics.cupti_ns);
  out.writer_cpu_seconds = of_ns(thread_cpu_ns());
  out.events = g_metrics.events;
  out.losses = all_losses();
  return out;
}

// Readable for all, as the collector runs as another user.
bool replace_file(const ByteBuffer& text) {
  const ForkWaitsScope forks_wait;
  const int folder = g_metrics.directory.descriptor();
  if (folder < 0) return false;
  ::unlinkat(folder, g_metrics.unfinished, 0);
  const int file = ::openat(folder, g_metrics.unfinished,
                            O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
  if (file < 0) return false;
  ::fchmod(file, 0644);  // whatever the program's umask
  const bool whole = ::write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  ::close(file);
  if (whole && ::renameat(folder, g_metrics.unfinished, folder, g_metrics.name) == 0) return true;
  ::unlinkat(folder, g_metrics.unfinished, 0);
  return false;
}

void note_left_out(const Budget& budget, uint64_t begin, uint64_t end, Metrics& out) {
  for (uint32_t i = 0; i < budget.shed_count; ++i) {
    const uint64_t since = std::max(begin, budget.shed[i].since_ticks);
    if (since >= end) continue;
    out.left_out[static_cast<size_t>(budget.shed[i].kind)] =
        static_cast<double>(end - since) / static_cast<double>(end - begin);
  }
}

void write_now(uint64_t now_ns) {
  g_metrics.last_written = now_ns;
  char source[160], run[32];
  const Metrics metrics = take_metrics(source, sizeof source, run, sizeof run);
  ByteBuffer text;
  if (!format_metrics(metrics, text)) return;
  if (replace_file(text)) {
    if (g_metrics.fails) log_line(LogLevel::warn, "metrics are written again");
    g_metrics.fails = false;
    return;
  }
  if (!g_metrics.fails) {
    log_line(LogLevel::warn, "cannot write metrics into %s: %s; tried again every %llu s",
             g_metrics.path, std::strerror(errno),
             static_cast<unsigned long long>(kMetricsPeriodNs / 1'000'000'000));
  }
  g_metrics.fails = true;
}

}  // namespace

bool metrics_wanted() { return session().config.metrics[0] && !session().loads_data; }

void metrics_begin() {
  const Session& s = session();
  if (!metrics_wanted()) return;
  SettingError error;
  if (!expand_output(s.config.metrics, s.place, s.host, static_cast<int>(s.pid), kept_environment(),
                     g_metrics.path, sizeof g_metrics.path, error)) {
    log_line(LogLevel::warn, "GPUPROF_METRICS=%s; there are no metrics", error.text);
    return;
  }
  char why[1800];
  if (!g_metrics.directory.open(g_metrics.path, OwnDirectory::Kind::scratch, why, sizeof why)) {
    log_line(LogLevel::warn, "GPUPROF_METRICS: %s; there are no metrics", why);
    return;
  }
  std::snprintf(g_metrics.name, sizeof g_metrics.name, "gpuprof_%s.prom",
                name_in_directory(s.stem));
  std::snprintf(g_metrics.unfinished, sizeof g_metrics.unfinished, "%s.part", g_metrics.name);
  g_metrics.on = true;
  remove_leftovers();
}

void metrics_tick(uint64_t now_ns) {
  if (!g_metrics.on || g_metrics.ended) return;
  if (g_metrics.last_written && now_ns - g_metrics.last_written < kMetricsPeriodNs) return;
  write_now(now_ns);
}

void metrics_note_window(const Window& window, const WindowTotals& totals, const LossCounts& losses,
                         DumpOutcome outcome, const Budget& budget, WindowUse& use) {
  if (!g_metrics.on) return;
  uint64_t& result = outcome == DumpOutcome::complete ? g_metrics.complete
                     : outcome == DumpOutcome::cut    ? g_metrics.cut
                                                      : g_metrics.lost;
  ++result;
  const double length = seconds(window.end_ticks - window.begin_ticks);
  g_metrics.windows_ns += static_cast<uint64_t>(length * 1e9);
  g_metrics.hooks_ns += totals.hook_cost_ns;
  g_metrics.cupti_ns += totals.cupti_overhead_ns;
  if (outcome == DumpOutcome::complete) g_metrics.events += totals.events;
  Metrics& last = g_metrics.window;
  last = Metrics{};
  last.has_window = true;
  last.window_seconds = length;
  last.window_ended_at = at(window.end_ticks, read_anchor());
  const uint64_t end = window.end_ticks;
  note_left_out(budget, window.begin_ticks, end, last);
  // The thread whose step opened it waited until CUPTI was on.
  const uint64_t begin = std::max(window.begin_ticks, window.ready_ticks);
  if (begin >= end) return;
  const double whole = static_cast<double>(end - begin);
  // What waits for data is told by a range of PyTorch's.
  last.data_wait_known =
      use.loads_data() && last.left_out[static_cast<size_t>(ShedKind::operators)] <= 0;
  last.data_wait = static_cast<double>(use.data_ticks(begin, end)) / whole;
  // Where GPU records are missing or have no right times, idle time would be guessed.
  for (const Loss loss : {Loss::buffer_full, Loss::cupti_dropped, Loss::cupti_incomplete,
                          Loss::cupti_unknown, Loss::bad_timestamp, Loss::unfinished_gpu,
                          Loss::graph_untimed, Loss::event_captured, Loss::event_untimed}) {
    if (losses[static_cast<size_t>(loss)]) return;
  }
  for (size_t i = 0; i < WindowUse::kMostGpus; ++i) {
    WindowUse::Gpu& gpu = use.gpu(i);
    if (!gpu.worked) continue;
    const double all = static_cast<double>(gpu.all.total(begin, end));
    const double computing = static_cast<double>(gpu.computing.total(begin, end));
    last.gpus[last.gpu_count++] = {static_cast<uint32_t>(i), 1 - all / whole, !gpu.graphs,
                                   (all - computing) / whole};
  }
}

void metrics_end() {
  if (!g_metrics.on) return;
  g_metrics.ended = true;
  if (!g_metrics.last_written) return;
  const ErrnoGuard keep;
  ::unlinkat(g_metrics.directory.descriptor(), g_metrics.name, 0);
  g_metrics.last_written = 0;
}

void metrics_go_on() { g_metrics.ended = false; }

namespace {
void forget_metrics() {
  OwnDirectory& directory = g_metrics.directory;
  directory.forget();
  g_metrics = State{};
}
GPUPROF_FORGET_IN_CHILD(forget_metrics);
}  // namespace

}  // namespace gpuprof
