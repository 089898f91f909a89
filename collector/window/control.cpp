// SPDX-License-Identifier: Apache-2.0
#include "collector/window/control.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>

#include "collector/base/fork.h"
#include "collector/base/os.h"
#include "collector/base/own_directory.h"
#include "collector/record/ring.h"
#include "collector/record/session.h"
#include "collector/samples/data_worker.h"
#include "collector/window/identity.h"
#include "formats/core/control.h"

namespace gpuprof {
namespace {

constexpr std::string_view kRingSuffix = ".gpuprof.ring";
constexpr size_t kFiles = 2;  // the run's, and this process's own

struct Control {
  char names[kFiles][600];  // in the run's directory, and in the ring's
  uint64_t read[kFiles];    // newest id of each
  uint64_t started;         // realtime ns; windows asked for before are not this process's
  uint64_t last_look;
};
Control g_control{};

// Only a plain file of this user's, that nobody else can write.
bool is_trusted(int file) {
  struct stat info {};
  return ::syscall(SYS_fstat, file, &info) == 0 && S_ISREG(info.st_mode) &&
         info.st_uid == ::geteuid() && (info.st_mode & 0022) == 0;
}

OwnDirectory& directory_of(size_t which) {
  return which == 0 || !scratch_directory().is_open() ? run_directory() : scratch_directory();
}

bool read_request(size_t which, ControlRequest& request) {
  const int file = ::openat(directory_of(which).descriptor(), g_control.names[which],
                            O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (file < 0) return false;
  char text[kControlFileBytes];
  const ssize_t got = is_trusted(file) ? ::read(file, text, sizeof text) : -1;
  ::close(file);
  return got > 0 && parse_control({text, static_cast<size_t>(got)}, request);
}

void look(size_t which) {
  ControlRequest request;
  if (!g_control.names[which][0] || !read_request(which, request)) return;
  uint64_t& newest = g_control.read[which];
  if (request.id <= newest) return;
  const bool stale = request.command == ControlCommand::window && request.id < g_control.started;
  ControlResult result = ControlResult::none;
  if (!stale && !steps_control(request, result)) return;  // the lock is held: the next time
  newest = request.id;
  if (stale) return;
  RingHeader& header = *ring()->header;
  header.control_result.store(static_cast<uint32_t>(result));
  header.control_id.store(request.id, std::memory_order_release);
}

}  // namespace

void control_begin() {
  const Session& s = session();
  Ring& own = *ring();
  g_control = Control{};
  g_control.started = own.header->anchors[0].realtime_ns;
  std::snprintf(g_control.names[0], sizeof g_control.names[0], "%s", kRunControlFile);
  const char* const name = name_in_directory(own.path);
  const size_t length = std::strlen(name);
  if (length > kRingSuffix.size()) {
    std::snprintf(g_control.names[1], sizeof g_control.names[1], "%.*s%s",
                  static_cast<int>(length - kRingSuffix.size()), name, kProcessControlSuffix);
  }
  RingHeader& header = *own.header;
  header.ticks_per_second = static_cast<uint64_t>(s.clock.ticks_per_ns * 1e9);
  header.rank = s.place.rank;
  header.parent_process = s.loads_data ? parent_process() : 0;
  header.control_poll_ms = on_network(s.directory) ? kControlPollNetworkMs : kControlPollMs;
}

void control_tick(uint64_t now_ns) {
  const uint64_t period = uint64_t{ring()->header->control_poll_ms} * 1000000 * 4 / 5;
  if (now_ns - g_control.last_look < period) return;
  g_control.last_look = now_ns;
  for (size_t which = 0; which < kFiles; ++which) look(which);
}

void control_end() {
  if (g_control.read[1]) ::unlinkat(directory_of(1).descriptor(), g_control.names[1], 0);
}

namespace {
void forget_control() { g_control = Control{}; }
GPUPROF_FORGET_IN_CHILD(forget_control);
}  // namespace

}  // namespace gpuprof
