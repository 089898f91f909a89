// SPDX-License-Identifier: Apache-2.0
#include "collector/samples/data_worker.h"

#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <new>

#include "collector/base/log.h"
#include "collector/base/os.h"
#include "collector/record/collector.h"
#include "collector/record/ring.h"
#include "collector/record/session.h"
#include "collector/window/ancestor.h"
#include "collector/window/drain.h"
#include "formats/core/text.h"

extern char** environ;

namespace gpuprof {

constinit std::atomic<bool> g_data_worker_due{false};

namespace {

constexpr const char* kWorkerModule = "torch.utils.data._utils.worker";
constexpr uint32_t kLookMs = 50,
                   kLooksASearch = 5;  // the parent's files are looked through less often
constexpr uint32_t kBufferMb = 2;

constinit Ancestor g_parent{};
constinit bool g_wanted = false;  // the setting
constinit uint32_t g_number = 0;
alignas(Settings) unsigned char g_settings_memory[sizeof(Settings)];

bool window_is_near() {
  if (!g_parent.header) return false;
  const uint32_t phase = g_parent.header->phase.load(std::memory_order_acquire);
  return phase == static_cast<uint32_t>(SessionPhase::warmup) ||
         phase == static_cast<uint32_t>(SessionPhase::active);
}

// Nothing is made before a window is near: workers come and go with each epoch.
void* watch(void*) {
  const BlockedScope blocked;
  ::prctl(PR_SET_NAME, "gpuprof-worker");
  for (uint32_t look = 0; !window_is_near(); ++look) {
    if (look % kLooksASearch == 0) {
      if (only_our_threads_are_left()) return nullptr;
      if (!g_parent.header) find_ancestor(g_parent);
    }
    ::usleep(kLookMs * 1000);
  }
  ensure_started();
  return nullptr;
}

// Its number in its loader; -1: this is no worker, or none yet.
long number_in_loader(const PythonApi& py) {
  // Not PyImport_GetModuleDict(), which ends the process where an interpreter has none any more.
  PyObject* const modules = py.PySys_GetObject("modules");
  PyObject* const module = modules ? py.PyDict_GetItemString(modules, kWorkerModule) : nullptr;
  if (!module || module == py.none) return -1;
  const Owned info(py, py.PyObject_GetAttrString(module, "_worker_info"));
  long number = -1;
  if (info.get() && info.get() != py.none) {
    const Owned id(py, py.PyObject_GetAttrString(info.get(), "id"));
    if (id.get()) number = py.PyLong_AsLong(id.get());
  }
  if (py.PyErr_Occurred()) {
    py.PyErr_Clear();
    return -1;
  }
  return number;
}

}  // namespace

void data_workers_possible() {
  const ErrnoGuard keep_errno;
  const JobPlace place = find_job_place(environ);
  auto* const settings = new (g_settings_memory) Settings;
  static Config config;
  SettingError error;  // said when a session starts
  g_wanted = settings->load_all(environ, error, nullptr, nullptr) &&
             settings->parse(std::max(place.rank, 0), config, error) && config.workers &&
             config.mode != Mode::off && config.rank_selected;
  g_data_worker_due = g_wanted;
}

void data_worker_forked() {
  Session& s = session();
  g_data_worker_due = false;
  forget_ancestor(g_parent);
  if (s.loads_data) g_wanted = s.loads_data = false;  // what a worker starts is none
  if (!g_wanted) return;
  g_data_worker_due = true;
  if (s.state.load(std::memory_order_relaxed) != SessionState::running) return;
  g_parent.header = keep_ring_header();
  if (g_parent.header) std::memcpy(g_parent.stem, s.stem, sizeof g_parent.stem);
}

void data_worker_look(const PythonApi& python) {
  Session& s = session();
  const SessionState state = s.state.load(std::memory_order_acquire);
  const bool own = state != SessionState::asleep && state != SessionState::configured;
  if (own || python.Py_IsFinalizing()) {
    g_data_worker_due = false;  // a process that uses CUDA has a session of its own
    return;
  }
  if (python.PyErr_Occurred()) return;
  const long number = number_in_loader(python);
  if (number < 0 || !g_data_worker_due.exchange(false)) return;
  const ErrnoGuard keep_errno;
  g_number = static_cast<uint32_t>(number);
  s.pid = current_pid();
  s.loads_data = true;
  if (const int failed = start_thread(watch, 256 * 1024)) {
    log_line(LogLevel::warn, "DataLoader worker %u is not recorded: cannot start a thread: %s",
             g_number, std::strerror(failed));
  }
}

void limit_to_data_worker(Config& config) {
  config.activities = 1u << static_cast<uint32_t>(Activity::samples);
  config.step = StepSpec{};
  for (uint32_t& every : config.stack_every) every = 0;
  config.memory = false;
  config.buffer_mb = kBufferMb;
  std::snprintf(config.cupti, sizeof config.cupti, "off");
  // Each worker would run it once more, and be waited for when it exits.
  config.on_trace_ready[0] = '\0';
  config.log = LogLevel::error;  // the parent says the rest
}

uint32_t parent_process() { return g_parent.header ? g_parent.header->process_id : 0; }
int parent_rank() { return g_parent.header ? g_parent.header->rank : -1; }
uint32_t parent_clock_source() { return g_parent.header ? g_parent.header->clock_source : 0; }
const char* parent_stem() { return g_parent.stem; }
uint32_t data_worker_number() { return g_number; }

bool read_parent_window(ParentWindow& out) {
  const RingHeader& header = *g_parent.header;
  const uint32_t phase = header.phase.load(std::memory_order_acquire);
  out.number = header.window.load(std::memory_order_acquire);
  out.begin_ticks = header.window_begin_ticks.load(std::memory_order_acquire);
  out.end_ticks = header.window_end_ticks.load(std::memory_order_acquire);
  out.first_step = header.window_first_step.load(std::memory_order_acquire);
  out.last_step = header.window_last_step.load(std::memory_order_acquire);
  out.open = phase == static_cast<uint32_t>(SessionPhase::active);
  return header.window.load(std::memory_order_acquire) == out.number &&
         header.phase.load(std::memory_order_acquire) == phase;
}

}  // namespace gpuprof
