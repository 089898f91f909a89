// SPDX-License-Identifier: Apache-2.0
// The state of one profiled process: settings, phase, window. Phase changes happen on whichever
// thread meets the boundary; slow work (CUPTI, files) on the drain thread.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "collector/base/clock.h"
#include "collector/base/os.h"
#include "collector/record/recorder.h"
#include "collector/steps/step_tracker.h"
#include "collector/steps/window_plan.h"
#include "formats/core/settings.h"
#include "formats/core/trigger/request.h"

namespace gpuprof {

enum class SessionState : uint32_t {
  asleep = 0,  // no traced call yet
  configuring = 1,
  configured = 2,  // settings read, wanted, not started
  starting = 3,
  running = 4,
  off = 5,  // not wanted, or could not start: hooks only forward
  finished = 6,
};

struct Window {
  uint32_t number;
  uint64_t first_step;
  uint64_t begin_ticks;
  uint64_t ready_ticks;  // when the thread whose step opened it went on; 0: it did not wait
  uint64_t end_ticks;    // 0: open
  uint64_t last_step;    // last complete step
  bool partial;
  const char* end_reason;
  bool dropped;           // it is not to leave a dump
  bool keeps_cupti;       // the next one is near
  bool has_step;          // `first_step` is known, of a window that no step has opened
  uint64_t opened_ticks;  // what limits count from; one that begins with the process opens later
  char source[160];       // the step source as it ended; "" before
};

struct Session {
  std::atomic<SessionState> state{SessionState::asleep};
  uint32_t pid = 0;
  uint64_t start_ticks = 0;  // first traced call

  alignas(Settings) unsigned char settings_memory[sizeof(Settings)] = {};
  Settings* settings = nullptr;  // in settings_memory: nothing here may need a constructor at load
  Config config{};
  JobPlace place{};
  char host[256] = {};
  char own_host[256] = {};    // as the machine calls itself; `host` is what dumps tell
  char directory[1100] = {};  // <OUTPUT>/<run>
  char stem[1500] = {};       // <directory>/<host>_r<rank>_<pid>_<startns>
  char run[300] = {};
  char scratch[1024] = {};  // "" : choose
  ClockChoice clock{};

  // The step source for those who must not wait for step_lock: the drain thread, for which a thread
  // with that lock may be waiting. Held for a copy only.
  Mutex source_lock;
  StepSource source = StepSource::automatic;
  char source_text[160] = "auto";

  Mutex step_lock;  // guards what follows, up to `window`
  StepTracker tracker;
  alignas(WindowPlan) unsigned char plan_memory[sizeof(WindowPlan)] = {};
  WindowPlan* plan = nullptr;
  uint64_t boundaries = 0;  // in the step log
  uint64_t last_boundary_ticks = 0;
  uint64_t last_step_ticks = 0;    // of the step that ended there
  uint64_t silent_step_ticks = 0;  // of the last one before steps stopped coming; 0: they have not
  uint64_t looking_ticks = 0;      // since then others are looked for
  uint64_t idle_until_ticks = 0;   // the program gave the GPU nothing to do until then
  bool is_idle = false;            // nor since, as far as hooks have watched
  // What was chosen while the program started up; "": nothing. Its name is said again late.
  char start_up_source[160] = "";
  bool source_unsaid = false;        // it was chosen once more, and that is not said yet
  uint64_t start_up_boundaries = 0;  // that were forgotten as such
  bool records_again = false;  // a window was complete by then: one more, of what is chosen next
  bool awaits_own_request = false;  // it is asked for
  uint64_t next_due_ticks = 0;      // of the `time` source; 0: not known yet. Drain thread
  bool profiler_on = false;         // between cudaProfilerStart and Stop, where that is the source
  Window window{};
  uint32_t next_window = 0;   // number of the next one
  uint32_t put_off = 0;       // how many steps the window that is due was put off for CUDA graphs
  bool bracket_came = false;  // cudaProfilerStart was to open a window
  uint32_t brackets = 0;      // windows that it opened
  bool wants_early = false;   // what comes before the schedule's window is recorded
  bool source_came_late = false;  // `auto` chose when the program ended
  uint32_t early_windows = 0;
  std::atomic<SessionPhase> phase{SessionPhase::idle};
  uint32_t windows_done = 0;

  std::atomic<bool> nvtx_steps{true};  // NVTX ranges may be steps: their texts must be looked at
  std::atomic<bool> finishing{false};
  std::atomic<uint32_t> execs{0};  // threads that are in a call of exec
  // The thread in which CUDA's driver starts, and on which it loads this library and lets it start
  // the session; 0: none. It holds what others' calls of CUPTI wait for.
  std::atomic<uint32_t> driver_thread{0};
  // Since when a window that begins with the session is being opened; 0: none is.
  std::atomic<uint64_t> opening_ns{0};
  // Whether another thread went on meanwhile, and made calls that no window holds.
  std::atomic<bool> opening_missed{false};
  std::atomic<bool> tells_optimizers{false};  // PyTorch, of its optimizers' steps
  std::atomic<bool> names_workers{false};     // it does, those of its DataLoaders
  // A mark has not ended for long: no other one waits for it again.
  std::atomic<bool> mark_is_stuck{false};
  std::atomic<bool> stuck_mark_is_said{false};
  std::atomic<bool> watches_work{false};  // hooks of what gives the GPU work tell of it:
  std::atomic<bool> works{false};         //   it came since they do
  bool loads_data = false;  // a DataLoader's worker (data_worker.h): no steps of its own
};

Session& session();

// Session::step_lock in the program's own call: one whose owner a signal handler has made jump out
// of a mark is never free, and is waited for once, 10 s. False: it is not to be had.
class StepLock {
 public:
  StepLock();
  ~StepLock();
  StepLock(const StepLock&) = delete;
  StepLock& operator=(const StepLock&) = delete;
  explicit operator bool() const { return has_; }

 private:
  bool has_;
};

const ApiRow* api_rows();
size_t api_count();

// Reads the settings if that has not happened. False: not wanted here, hooks are off.
bool ensure_configured();
// Starts ring and drain thread if that has not happened. False: off.
bool ensure_started();

// A mark of a step source, on any thread: may change the phase. Bounded wait (3 s) at the beginning
// of a window, until CUPTI is attached.
void step_mark(const StepMark& mark);
// cudaProfilerStart (or Stop): where it is the source, opens (closes) a window, whatever the
// schedule says. Same wait.
void step_profiler(bool start, uint64_t ticks);
// The same for an NVTX range or mark of this text, at its beginning. `is_thread`: whether the
// calling thread has that name or number.
void step_nvtx(std::string_view message, uint64_t ticks, bool (*is_thread)(const char* name));

// Carries out a request of `gpuprof trigger`. Drain thread. False: not now, a boundary is in
// progress.
bool steps_control(const ControlRequest& request, ControlResult& result);

// Of the open window only what began at `ticks` or later is complete. Drain thread. False: not now.
bool move_window_begin(uint64_t ticks);
// Ends the open window now, if one is open. On any thread.
void cut_window(const char* reason);

// The step source in force, and its text ("nvtx:step"). Any thread.
StepSource step_source();
void describe_step_source(char* out, size_t size);
// That of the window's steps: another may have been chosen since it ended.
void describe_step_source_of(const Window& window, char* out, size_t size);

// Which calls are marks of which source: once, before the first mark.
void find_step_calls();
// Boundary 0 of a source that marks ends is the process's start: opens a window that begins there.
void steps_begin();
// The `time` source, limits, and `auto` that found nothing; called by the drain thread.
void steps_tick(uint64_t ticks);

// In a DataLoader's worker: its windows are those of its parent. Called by the drain thread.
void follow_parent(uint64_t ticks);
// Which steps the open window has, as it ends now.
void settle_steps(Window& window);

// Sets the flags of all hooks according to phase, activities and step source.
void apply_hook_flags();
// The same from outside: takes the lock, and does nothing where no session runs. Any thread.
void refresh_hook_flags();
bool activity_on(Activity activity);
// Which activity the calls of a row belong to.
Activity activity_of(const ApiRow& row);
// True while NVTX ranges are to be recorded.
inline bool window_is_open() {
  return session().phase.load(std::memory_order_relaxed) == SessionPhase::active;
}

}  // namespace gpuprof
