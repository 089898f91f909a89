// SPDX-License-Identifier: Apache-2.0
#include "collector/window/identity.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>

#include "collector/base/environment.h"
#include "collector/base/file_systems.h"
#include "collector/base/fork_waits.h"
#include "collector/base/host.h"
#include "collector/base/log.h"
#include "collector/base/os.h"
#include "collector/base/own_directory.h"
#include "collector/base/redact.h"
#include "collector/python/bridge.h"
#include "collector/python/frame_check.h"
#include "collector/record/ring.h"
#include "collector/record/session.h"
#include "collector/runs/run_lock.h"
#include "collector/samples/data_worker.h"
#include "collector/samples/native_samples.h"
#include "collector/samples/samples.h"
#include "collector/sources/device_info.h"
#include "collector/stacks/stacks.h"
#include "collector/window/ancestor.h"
#include "formats/core/chunk.h"
#include "formats/core/runs/run_files.h"
#include "formats/core/text.h"
#include "formats/core/wire.h"
#include "gpuprof_version.h"

namespace gpuprof {
namespace {

// Start of the process in clock ticks since boot.
uint64_t os_start_time(uint32_t pid) { return stat_field(pid, 22); }

// A setting's %-sequences with this process's values. False: said why.
bool expand(const char* setting, const char* pattern, char* out, size_t size) {
  const Session& s = session();
  SettingError error;
  if (expand_output(pattern, s.place, s.host, static_cast<int>(s.pid), kept_environment(), out,
                    size, error)) {
    return true;
  }
  log_line(LogLevel::error, "%s=%s; this program runs unprofiled", setting, error.text);
  return false;
}

// The last directory of a dump's path.
bool take_run_of(const char* stem, char* directory, size_t directory_size, char* run,
                 size_t run_size) {
  const char* const slash = std::strrchr(stem, '/');
  if (!slash || static_cast<size_t>(slash - stem) >= directory_size) return false;
  std::snprintf(directory, directory_size, "%.*s", static_cast<int>(slash - stem), stem);
  const char* const last = std::strrchr(directory, '/');
  std::snprintf(run, run_size, "%s", last ? last + 1 : "");
  return true;
}

// What a process that is profiled starts is of its run.
bool is_of_ancestors_run(Session& s) {
  static Ancestor ancestor;
  find_ancestor(ancestor);
  char directory[sizeof s.directory];
  const bool found = ancestor.header &&
                     take_run_of(ancestor.stem, directory, sizeof directory, s.run, sizeof s.run);
  forget_ancestor(ancestor);
  return found && s.run[0];
}

// Whose process it was to start this one, and others of one job: all that one parent starts agree
// on its start. What lost its parent has init's, as all daemons of the machine: so it is of its
// session (setsid), whose number no other process has while it lives. What has a parent outside its
// namespace of processes is the first one of a container, and of no other's job.
uint32_t starter_of(const Session& s) {
  uint64_t raylet = 0;
  const char* const of_ray = find_in_environment(kept_environment(), "RAY_RAYLET_PID");
  if (of_ray && parse_whole(of_ray, raylet) && raylet <= INT32_MAX &&
      os_start_time(static_cast<uint32_t>(raylet)) != 0) {
    return static_cast<uint32_t>(raylet);  // the node's, which lives as long as the cluster
  }
  auto parent = static_cast<uint32_t>(::getppid());
  if (parent == 0) return s.pid;
  if (s.place.rank < 0 && s.place.local_rank > 0 && ::getenv("NODE_RANK")) {
    // So Lightning's rank 0, which has none of these variables, starts the others. It may not be
    // profiled yet.
    const auto above = static_cast<uint32_t>(stat_field(parent, 4));
    if (above > 1) parent = above;
  }
  const pid_t of_session = parent == 1 ? ::getsid(0) : 0;
  return of_session > 1 ? static_cast<uint32_t>(of_session) : parent;
}

bool choose_run(Session& s) {
  if (s.config.run[0]) {
    if (!expand("GPUPROF_RUN", s.config.run, s.run, sizeof s.run)) return false;
  } else if (s.place.job[0]) {
    std::snprintf(s.run, sizeof s.run, "%s", s.place.job);
  } else if (!is_of_ancestors_run(s)) {
    const uint32_t starter = starter_of(s);
    format_started_run(static_cast<time_t>(start_of_process(starter)), starter, s.run,
                       sizeof s.run);
    // Of all the jobs of a cluster, whose number is its own in that cluster alone.
    const char* const ray_job = find_in_environment(kept_environment(), "RAY_JOB_ID");
    const size_t length = std::strlen(s.run);
    if (ray_job && ray_job[0]) {
      std::snprintf(s.run + length, sizeof s.run - length, ".%s", ray_job);
    }
  }
  make_folder_name(s.run);
  return true;
}

// Processes of one host share its clock, so its other name is the same for all of them. Nobody else
// knows this boot's id.
void hide_host(Session& s) {
  char boot[64] = "";
  read_small_file("/proc/sys/kernel/random/boot_id", boot, sizeof boot);
  pseudonym("host", s.own_host, boot, s.host, sizeof s.host);
}

void make_stem() {
  Session& s = session();
  if (is_redacted(Redact::host)) hide_host(s);
  const ClockAnchor now = read_anchor();
  std::snprintf(s.stem, sizeof s.stem, "%s/%s_r%d_%u_%llu", s.directory, s.host,
                s.place.rank < 0 ? 0 : s.place.rank, s.pid,
                static_cast<unsigned long long>(now.realtime_ns));
}

// A worker's dumps lie beside those of the process that it loads for.
bool make_names_beside(const char* parent_stem) {
  Session& s = session();
  if (!take_run_of(parent_stem, s.directory, sizeof s.directory, s.run, sizeof s.run)) return false;
  make_stem();
  char why[1800];
  if (open_run_directory(s.directory, why, sizeof why)) return true;
  log_line(LogLevel::error, "%s; this data loader worker is not profiled", why);
  return false;
}

void encode_command(WireWriter& out) {
  // Long command lines are cut, at an argument's end.
  static char text[65536];
  ssize_t got = 0;
  {
    const ForkWaitsScope forks_wait;
    const int file = ::open(OwnProcPath("cmdline").c_str(), O_RDONLY | O_CLOEXEC);
    if (file < 0) return;
    got = ::read(file, text, sizeof text);
    ::close(file);
  }
  std::string_view rest(text, got > 0 ? static_cast<size_t>(got) : 0);
  if (is_redacted(Redact::command)) rest = take_until(rest, '\0');
  static char argument[sizeof text];
  while (!rest.empty()) {
    const std::string_view next = take_until(rest, '\0');
    std::snprintf(argument, sizeof argument, "%.*s", static_cast<int>(next.size()), next.data());
    static char shown[sizeof text];
    out.bytes(8, shown_text(argument, shown, sizeof shown));
  }
}

// Most values say what is recorded. Those with a directory, or a name from the environment, do not.
const char* shown_setting(Setting id, const char* value) {
  const bool names_run = id == Setting::run && value[0];
  const bool hidden =
      (is_redacted(Redact::paths) && std::strchr(value, '/')) ||
      (is_redacted(Redact::environment) && (names_run || std::strchr(value, '%'))) ||
      (is_redacted(Redact::host) && std::strstr(value, session().own_host)) ||
      (is_redacted(Redact::command) && std::strchr(value, ' '));
  return hidden ? kRedacted : value;
}

void encode_settings(WireWriter& out, const Settings& settings) {
  for (const SettingRow& row : kSettingRows) {
    const size_t mark = out.open(14);
    out.text(1, row.name);
    out.text(2, shown_setting(row.id, settings.text(row.id)));
    out.bytes(3, shown_path(settings.source_name(row.id)));
    out.close(mark);
  }
}

}  // namespace

bool make_output_names() {
  Session& s = session();
  if (::gethostname(s.host, sizeof s.host - 1) != 0 || !s.host[0]) {
    std::snprintf(s.host, sizeof s.host, "localhost");
  }
  for (char* c = s.host; *c; ++c) {
    if (*c == '/') *c = '_';
  }
  std::snprintf(s.own_host, sizeof s.own_host, "%s", s.host);
  if (!expand("GPUPROF_SCRATCH", s.config.scratch, s.scratch, sizeof s.scratch)) return false;
  if (s.loads_data) return make_names_beside(parent_stem());
  char output[1024];
  if (!choose_run(s) || !expand("GPUPROF_OUTPUT", s.config.output, output, sizeof output)) {
    return false;
  }
  char absolute[2200];
  const char* const here = output[0] == '/' ? "" : g_host.start_directory;
  const int length = std::snprintf(absolute, sizeof absolute, "%s%s%s/%s", here, here[0] ? "/" : "",
                                   output, s.run);
  if (length < 0 || static_cast<size_t>(length) >= sizeof s.directory) {
    log_line(LogLevel::error,
             "GPUPROF_OUTPUT=\"%s\": the path is longer than %zu bytes; this program "
             "runs unprofiled",
             s.config.output, sizeof s.directory - 1);
    return false;
  }
  std::memcpy(s.directory, absolute, static_cast<size_t>(length) + 1);
  char why[1800];
  if (!open_run_directory(s.directory, why, sizeof why)) {
    log_line(LogLevel::error, "GPUPROF_OUTPUT=\"%s\": %s; this program runs unprofiled",
             s.config.output, why);
    return false;
  }
  make_stem();
  return true;
}

// A mapped file is safe neither on a network nor where pages are written anew.
static bool suits_ring(const char* directory) {
  return !on_network(directory) && !writes_pages_anew(directory);
}

// GPUPROF_SCRATCH=auto: "" is beside the dumps, also where no folder suits; the ring is in memory
// then, unless the network's file system can allocate.
static const char* choose_scratch(const char* beside) {
  if (suits_ring(beside)) return "";
  const char* const own = find_in_environment(kept_environment(), "TMPDIR");
  for (const char* directory : {own, "/tmp"}) {
    if (directory && directory[0] && suits_ring(directory)) return directory;
  }
  return on_network(beside) ? "/tmp" : "";
}

void make_ring_names(char* path, size_t path_size, char* link, size_t link_size) {
  const Session& s = session();
  link[0] = '\0';
  const char* const scratch = s.scratch[0] ? s.scratch : choose_scratch(s.directory);
  if (!scratch[0]) {
    std::snprintf(path, path_size, "%s.gpuprof.ring", s.stem);
    return;
  }
  static char place[sizeof s.scratch + sizeof g_host.start_directory];  // which the directory keeps
  const char* const here = scratch[0] == '/' ? "" : g_host.start_directory;
  std::snprintf(place, sizeof place, "%s%s%s", here, here[0] ? "/" : "", scratch);
  char why[1800];
  if (!scratch_directory().open(place, OwnDirectory::Kind::scratch, why, sizeof why)) {
    log_line(LogLevel::warn, "GPUPROF_SCRATCH=\"%s\": %s", scratch, why);
  }
  std::snprintf(path, path_size, "%s/%s.gpuprof.ring", place, std::strrchr(s.stem, '/') + 1);
  std::snprintf(link, link_size, "%s.gpuprof.ring", s.stem);
}

void update_latest_link(LatestLink which) {
  const Session& s = session();
  constexpr const char* kName = "latest";
  const ForkWaitsScope forks_wait;
  const int above = ::openat(run_directory().descriptor(), "..", O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (above < 0) return;
  char fresh[32];
  std::snprintf(fresh, sizeof fresh, "%s.%u", kName, s.pid);
  struct stat info {};
  const bool there = ::syscall(SYS_newfstatat, above, kName, &info, AT_SYMLINK_NOFOLLOW) == 0;
  if (there ? which == LatestLink::replaced && S_ISLNK(info.st_mode) : true) {
    ::unlinkat(above, fresh, 0);  // of a process with this number that was killed here
    if (::symlinkat(s.run, above, fresh) == 0 && ::renameat(above, fresh, above, kName) != 0) {
      ::unlinkat(above, fresh, 0);
    }
  }
  ::close(above);
}

bool encode_header(ByteBuffer& buffer, const char* gpu_times_missing, bool asks_cuda) {
  const Session& s = session();
  const RingHeader& ring_header = *ring()->header;
  WireWriter out(buffer);
  out.uint(1, kFormatVersion);
  out.text(2, GPUPROF_VERSION);
  char text[1024] = {};
  out.text(3, s.host);
  out.uint(4, s.pid);
  out.int_field(5, s.place.rank);
  out.int_field(6, s.place.world_size);
  out.int_field(7, s.place.local_rank);
  encode_command(out);
  if (::readlink(OwnProcPath("exe").c_str(), text, sizeof text - 1) > 0)
    out.bytes(9, shown_path(text));
  out.text(10, shown_name("run", s.run, text, sizeof text));
  out.uint(11, s.window.number);
  format_schedule(s.config.schedule, text, sizeof text);
  out.text(12, text);
  describe_step_source_of(s.window, text, sizeof text);
  out.text(13, text);
  encode_settings(out, *s.settings);
  encode_clock(out, 15, ring_header);
  out.uint(16, g_host.process_start_ticks);
  out.uint(17, s.window.begin_ticks);
  // CUDA in a forked child answers with errors.
  if (asks_cuda && !s.loads_data) encode_devices_and_versions(out);
  out.text(23, shown_text(gpu_times_missing, text, sizeof text));
  out.text(24, shown_name("job", s.place.job, text, sizeof text));
  const char* const user = find_in_environment(kept_environment(), "USER");
  if (user && !is_redacted(Redact::user)) out.text(25, user);
  out.uint(26, os_start_time(s.pid));
  out.text(27, s.clock.note);
  out.text(28, stack_note());
  out.text(29, samples_note());
  const bool sampled = python_is_known() || native_samples_on();
  out.uint(30, activity_on(Activity::samples) && sampled ? kSamplePeriodNs : 0);
  if (s.loads_data) {
    out.uint(31, parent_process());
    out.uint(32, data_worker_number() + 1);
    out.uint(36, os_start_time(parent_process()));
  }
  out.text(33, native_samples_note());
  out.uint(34, static_cast<uint32_t>(s.place.node + 1));
  out.text(35, s.place.attempt);
  return out.ok();
}

}  // namespace gpuprof
