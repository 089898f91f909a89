// SPDX-License-Identifier: Apache-2.0
#include "collector/window/control.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>

#include "collector/base/file_systems.h"
#include "collector/base/fork.h"
#include "collector/base/fork_waits.h"
#include "collector/base/log.h"
#include "collector/base/os.h"
#include "collector/base/own_directory.h"
#include "collector/record/ring.h"
#include "collector/record/session.h"
#include "collector/samples/data_worker.h"
#include "formats/core/trigger/live_state.h"
#include "formats/core/trigger/request.h"

namespace gpuprof {
namespace {

constexpr size_t kFiles = 2;  // the run's, and this process's own

struct Control {
  char names[kFiles][600];  // in the run's directory, and in the ring's, if that has one
  uint64_t read[kFiles];    // newest id of each
  uint64_t started;         // CLOCK_BOOTTIME, ns: windows asked for before are not this process's
  uint64_t last_look;
  bool in_memory;                    // the ring is: nobody else can find it
  bool tells;                        // its state, to those who cannot see the ring
  char state[600], state_part[600];  // names in the run's directory
  bool said_unseen;                  // that it cannot
  uint64_t beat, last_told;
};
Control g_control{};

// Only a plain file of this user's, that nobody else can write.
bool is_trusted(int file) {
  struct stat info {};
  return ::syscall(SYS_fstat, file, &info) == 0 && S_ISREG(info.st_mode) &&
         info.st_uid == effective_user() && (info.st_mode & 0022) == 0;
}

OwnDirectory& directory_of(size_t which) {
  const bool of_run = which == 0 || g_control.in_memory || !scratch_directory().is_open();
  return of_run ? run_directory() : scratch_directory();
}

bool read_request(size_t which, ControlRequest& request) {
  const ForkWaitsScope forks_wait;
  const int file = ::openat(directory_of(which).descriptor(), g_control.names[which],
                            O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (file < 0) return false;
  char text[kControlFileBytes];
  const ssize_t got = is_trusted(file) ? ::read(file, text, sizeof text) : -1;
  ::close(file);
  return got > 0 && parse_control({text, static_cast<size_t>(got)}, request);
}

// Before a lock is taken that a step of the program waits for.
bool has_room() {
  char why[1700] = "";
  if (make_ring_whole(why, sizeof why)) return true;
  log_line(LogLevel::warn, "%s; the window that gpuprof trigger asks for is left out", why);
  return false;
}

uint64_t clock_ns(clockid_t clock) {
  timespec now{};
  ::clock_gettime(clock, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

// Ids are of the wall clock, which may have been set since this process started.
bool is_of_before(uint64_t id) {
  const uint64_t age = clock_ns(CLOCK_BOOTTIME) - g_control.started;
  return id < clock_ns(CLOCK_REALTIME) - age;
}

void look(size_t which) {
  ControlRequest request;
  if (!g_control.names[which][0] || !read_request(which, request)) return;
  uint64_t& newest = g_control.read[which];
  if (request.id <= newest) return;
  const bool stale = request.command == ControlCommand::window && is_of_before(request.id);
  ControlResult result = ControlResult::none;
  const bool wants_room = !stale && request.command == ControlCommand::window;
  if (wants_room && !has_room()) {
    result = ControlResult::no_room;
  } else if (!stale && !steps_control(request, result)) {
    return;  // the lock is held: the next time
  }
  newest = request.id;
  if (stale) return;
  RingHeader& header = *ring()->header;
  header.control_result.store(static_cast<uint32_t>(result));
  header.control_id.store(request.id, std::memory_order_release);
}

uint64_t mean_step_ns(const RingHeader& header, uint64_t boundaries) {
  constexpr uint64_t kSteps = 8;
  const uint64_t capacity = header.steps.bytes / sizeof(uint64_t);
  if (boundaries < 2 || capacity < 2 || header.ticks_per_second == 0) return 0;
  const uint64_t most = boundaries - 1 < capacity - 1 ? boundaries - 1 : capacity - 1;
  const uint64_t steps = most < kSteps ? most : kSteps;
  const auto* const slots = reinterpret_cast<const uint64_t*>(
      reinterpret_cast<const uint8_t*>(&header) + header.steps.offset);
  const uint64_t newest = slots[(boundaries - 1) % capacity];
  const uint64_t oldest = slots[(boundaries - 1 - steps) % capacity];
  if (newest <= oldest) return 0;
  return static_cast<uint64_t>(static_cast<double>(newest - oldest) * 1e9 /
                               static_cast<double>(header.ticks_per_second)) /
         steps;
}

void tell_state(uint64_t now_ns) {
  const RingHeader& header = *ring()->header;
  g_control.last_told = now_ns;
  LiveState state{};
  state.beat = ++g_control.beat;
  state.process_id = header.process_id;
  state.rank = header.rank;
  state.boundaries = header.steps.used.load(std::memory_order_acquire) / sizeof(uint64_t);
  state.step_ns = mean_step_ns(header, state.boundaries);
  state.poll_ms = header.control_poll_ms;
  state.control_result = header.control_result.load();
  state.control_id = header.control_id.load(std::memory_order_acquire);
  state.recording_off = header.recording_off.load();
  char text[kLiveStateBytes];
  const size_t length = format_live_state(state, text);
  const ForkWaitsScope forks_wait;
  const int folder = run_directory().descriptor();
  ::unlinkat(folder, g_control.state_part, 0);
  const int file = ::openat(folder, g_control.state_part,
                            O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  const int error = file < 0 ? errno : 0;
  const bool whole = file >= 0 && ::write(file, text, length) == static_cast<ssize_t>(length);
  if (file >= 0) ::close(file);
  if (whole) ::renameat(folder, g_control.state_part, folder, g_control.state);
  // One that has a schedule of its own has said already that its folder takes no file.
  const bool waits = session().config.mode == Mode::armed;
  if (whole || !g_control.in_memory || !waits || g_control.said_unseen) return;
  g_control.said_unseen = true;
  log_line(LogLevel::warn,
           "cannot write %s: %s; gpuprof trigger does not see this process, whose buffers are in "
           "memory only",
           g_control.state_part, error ? std::strerror(error) : "the disk has no room");
}

// A run whose recording was switched off before this process started, or while it did. Before the
// session has a window: no lock is needed.
void begin_switched_off() {
  ControlRequest request;
  if (!read_request(0, request) || request.command != ControlCommand::off) return;
  Session& s = session();
  g_control.read[0] = request.id;
  s.wants_early = false;
  s.plan->switch_off(UINT64_MAX);
  RingHeader& header = *ring()->header;
  header.recording_off.store(1);
  header.control_result.store(static_cast<uint32_t>(ControlResult::accepted));
  header.control_id.store(request.id, std::memory_order_release);
  log_line(LogLevel::info, "recording is switched off, as asked by gpuprof trigger");
}

}  // namespace

void control_begin() {
  const Session& s = session();
  Ring& own = *ring();
  g_control = Control{};
  const uint64_t age = clock_ns(CLOCK_MONOTONIC) - own.header->anchors[0].monotonic_ns;
  g_control.started = clock_ns(CLOCK_BOOTTIME) - age;
  std::snprintf(g_control.names[0], sizeof g_control.names[0], "%s", kRunControlFile);
  const char* const stem = name_in_directory(s.stem);
  std::snprintf(g_control.names[1], sizeof g_control.names[1], "%s%s", stem, kProcessControlSuffix);
  std::snprintf(g_control.state, sizeof g_control.state, "%s%s", stem, kLiveStateSuffix);
  std::snprintf(g_control.state_part, sizeof g_control.state_part, "%s%s.part", stem,
                kLiveStateSuffix);
  g_control.in_memory = own.path[0] == '\0';
  g_control.tells = (s.config.mode == Mode::armed || g_control.in_memory) && !s.loads_data;
  RingHeader& header = *own.header;
  header.ticks_per_second = static_cast<uint64_t>(s.clock.ticks_per_ns * 1e9);
  header.rank = s.place.rank;
  header.parent_process = s.loads_data ? parent_process() : 0;
  header.control_poll_ms = on_network(s.directory) ? kControlPollNetworkMs : kControlPollMs;
  if (!s.loads_data) begin_switched_off();
}

void control_tick(uint64_t now_ns) {
  const uint64_t period = uint64_t{ring()->header->control_poll_ms} * 1000000 * 4 / 5;
  const bool tells = g_control.tells && now_ns - g_control.last_told >= kLiveStateMs * 1000000ull;
  if (now_ns - g_control.last_look < period) return tells ? tell_state(now_ns) : void();
  g_control.last_look = now_ns;
  const uint64_t before = ring()->header->control_id.load();
  for (size_t which = 0; which < kFiles; ++which) look(which);
  const bool answered = ring()->header->control_id.load() != before;
  if (tells || (g_control.tells && answered)) tell_state(now_ns);
}

void control_end() {
  if (g_control.beat) ::unlinkat(run_directory().descriptor(), g_control.state, 0);
  if (g_control.read[1]) ::unlinkat(directory_of(1).descriptor(), g_control.names[1], 0);
}

namespace {
void forget_control() { g_control = Control{}; }
GPUPROF_FORGET_IN_CHILD(forget_control);
}  // namespace

}  // namespace gpuprof
