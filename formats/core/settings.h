// SPDX-License-Identifier: Apache-2.0
// The settings: one constexpr table, read by the preloaded library and by the gpuprof command.
// No allocation, no exceptions, libc only: it runs in the traced process before anything else.
// Order of precedence, lowest first: default, /etc/gpuprof.conf, the file GPUPROF_CONFIG names, the
// environment, flags of `gpuprof run` (which sets the environment of the program it starts).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace gpuprof {

enum class Setting : uint8_t {
#define GPUPROF_SETTING(id, name, default_value, allowed, help, read) id,
#include "formats/core/settings.def"
  count
};

struct SettingRow {
  Setting id;
  const char* name;  // "GPUPROF_MODE"
  const char* default_value;
  const char* allowed;  // for messages: "on, off"
  const char* help;     // one line
};

inline constexpr size_t kSettingCount = static_cast<size_t>(Setting::count);
extern const SettingRow kSettingRows[kSettingCount];

enum class SettingSource : uint8_t { defaults, system_file, config_file, environment };

inline constexpr const char* kSystemSettingsFile = "/etc/gpuprof.conf";

// One line, ready to print after "gpuprof: ": names variable, value, and what is allowed.
struct SettingError {
  char text[512];
};

// What can be recorded, a bit each; the names are those of GPUPROF_ACTIVITIES.
enum class Activity : uint8_t {
  step,
  kernel,
  memcpy,
  memset,
  sync,
  api,
  graph,
  nccl,
  alloc,
  nvtx,
  op,
  op_shapes,
  module,
  tensor,
  samples,
  heap,  // "malloc"
  nvml,
  samples_native,  // "samples:native"
  gpu_sync,        // "sync:gpu": CUPTI's records of waits and events
  nvtx_xla,        // "nvtx:xla": XLA's ranges, which its own profiler then goes without
  count
};
inline constexpr size_t kActivityCount = static_cast<size_t>(Activity::count);
const char* activity_name(Activity activity);

// Calls that can have a native stack recorded; the names are those of GPUPROF_STACKS.
enum class StackKind : uint8_t { launch, sync, alloc, nccl, count };
inline constexpr size_t kStackKindCount = static_cast<size_t>(StackKind::count);
const char* stack_kind_name(StackKind kind);

// In the order in which `auto` prefers them; kernel, period and time it does not take of itself.
enum class StepSource : uint8_t {
  automatic,
  manual,
  optimizer,
  profiler,
  nvtx,
  forward,
  nccl,
  kernel,
  graph,
  period,
  sync,
  time
};
// How GPU times of CUDA graphs are taken: automatic and nodes, of each node; whole, of the whole
// launch (of each node where a graph is older than the window).
enum class GraphTimes : uint8_t { automatic, nodes, whole };
enum class LogLevel : uint8_t { error, warn, info, debug };
// Where GPU times come from: CUPTI's records, or CUDA events around launches.
enum class GpuTimes : uint8_t { cupti, events };
enum class Mode : uint8_t { on, armed, off };

struct ScheduleSpec {
  bool all = false;  // the whole program, whatever marks its steps; of what follows only the limits
  uint32_t skip_first = 10;
  uint32_t skip_first_wait = 0;  // 1: the first cycle starts without its `wait`
  uint32_t wait = 0;
  uint32_t warmup = 2;
  uint32_t active = 10;
  uint32_t repeat = 1;      // 0: for ever
  bool has_repeat = false;  // somebody has set it
  double max_s = 30;        // a window ends early after this many seconds; 0: no limit
  double max_mb = 256;      // or this many MB of records; 0: no limit
};

struct StepSpec {
  StepSource source = StepSource::automatic;
  uint32_t every = 1;       // the N of nccl, kernel, graph, sync
  double milliseconds = 0;  // time:MS
  char name[128] = {};      // nvtx:NAME@THREAD, nccl:OP:N, kernel:REGEX:N
  char thread[64] = {};     // nvtx: name or number of the thread that makes the steps; empty: any
};

// The values as the program will use them.
// What GPUPROF_REDACT can keep out of dumps: arguments of the command line; directories of files;
// the host's name; the user's; names from the environment (the job's and the run's).
enum class Redact : uint32_t { command, paths, host, user, environment };
inline constexpr size_t kRedactCount = 5;

// Which runs stay in the output directory; 0: no such limit.
struct KeepSpec {
  uint32_t runs = 0;   // so many, the newest
  uint64_t bytes = 0;  // the newest that together have no more
  uint64_t age_s = 0;  // those that changed no longer ago
  bool everything() const { return runs == 0 && bytes == 0 && age_s == 0; }
};

struct Config {
  Mode mode;
  ScheduleSpec schedule;
  StepSpec step;
  uint32_t activities;  // bit per Activity
  GraphTimes graph_times;
  GpuTimes gpu_times;
  uint64_t heap_interval;                 // activity malloc: bytes between two samples, on average
  uint32_t stack_every[kStackKindCount];  // one call in so many of each kind has its stack; 0: none
  bool memory;                            // whether allocations are logged all the time
  bool workers;                           // whether a DataLoader's workers are recorded, too
  uint32_t buffer_mb;                     // size of the ring's record buffers, 1 to 65536
  LogLevel log;
  uint32_t redact;     // bit per Redact
  bool rank_selected;  // whether GPUPROF_RANKS includes `rank` (true when rank is unknown)
  char output[1024];   // %h %r %p %j %q{VAR} not yet expanded: see expand_output
  char run[256];       // empty: choose one; may hold the same %-sequences
  char scratch[1024];  // empty: choose; may hold the same %-sequences
  KeepSpec keep;
  bool cupti_teardown;        // whether CUPTI is taken down after each window
  char cupti[1024];           // empty: look for it; "off": do not use CUPTI; else a path
  char on_trace_ready[1024];  // see command_line.h; empty: none
  char metrics[1024];         // a directory, which may hold the same %-sequences; empty: none
  double budget;              // what recording may cost, percent of the time; 0: whatever it costs
};

// Told of each GPUPROF_* name that is no setting, with the known name that is nearest to it.
using UnknownSetting = void (*)(const char* name, const char* nearest, void* context);

// Raw texts and where each came from. About 15 KiB; put it in static storage.
class Settings {
 public:
  Settings();  // defaults
  // "NAME=VALUE" lines, '#' comments, blanks, optional quotes. A missing file is no error for
  // the system file (returns true). On error returns false and fills `error` (names file and line).
  // GPUPROF_CONFIG is refused in a file. `unknown` may be null, here and below.
  bool load_file(const char* path, SettingSource source, SettingError& error,
                 UnknownSetting unknown = nullptr, void* context = nullptr);
  // Takes GPUPROF_* out of `environment` (a NULL-terminated NAME=VALUE array). GPUPROF_TEST_* is
  // ours.
  bool load_environment(char* const* environment, SettingError& error, UnknownSetting unknown,
                        void* context);
  // All sources in order: system file, GPUPROF_CONFIG file, environment.
  bool load_all(char* const* environment, SettingError& error, UnknownSetting unknown,
                void* context);
  // An empty value stands for the default. Only the name and the length are checked here.
  bool set(std::string_view name, std::string_view value, SettingSource source,
           SettingError& error);

  const char* text(Setting id) const;
  SettingSource source(Setting id) const;
  const char* source_name(Setting id) const;  // "default", "/etc/gpuprof.conf", path, "environment"

  // Checks every value and fills `config`. `rank` is -1 when unknown.
  bool parse(int rank, Config& config, SettingError& error) const;

 private:
  bool load_line(std::string_view line, SettingSource source, char* reason, size_t size,
                 UnknownSetting unknown, void* context);
  bool parse_one(Setting id, int rank, Config& config, SettingError& error) const;

  struct Value {
    char text[1024];
    SettingSource source;
  };
  Value values_[kSettingCount];
  char config_path_[1024];
};

// The known GPUPROF_* name nearest to `name` by edit distance; never null.
const char* nearest_setting(std::string_view name);

// Whether the steps that are recorded are those of the default.
bool is_default_schedule(const ScheduleSpec& spec);
bool parse_schedule(std::string_view text, ScheduleSpec& spec, SettingError& error);
bool parse_step(std::string_view text, StepSpec& spec, SettingError& error);
// "skip_first=10,skip_first_wait=0,wait=0,..." in full, for the dump's header. Returns the length
// written, which is less than the whole when `size` is too small.
size_t format_schedule(const ScheduleSpec& spec, char* out, size_t size);
size_t format_step(const StepSpec& spec, char* out, size_t size);

// What is known of the process's place in the job, from the variables of its launcher
// (job_place.cpp has the tables). -1 and 0 when not known.
struct JobPlace {
  int rank;
  int local_rank;
  int world_size;
  char job[128];  // job id of the scheduler, Kubernetes pod's job, launcher's run; "" if none
  int node = -1;  // number of the host among those of the job
  char attempt[24] = "";  // restarts so far: "2"; of scheduler and launcher "1.2"; "" if none says
};
JobPlace find_job_place(char* const* environment);

// Expands %h host, %r rank ("0" when unknown), %p pid, %j job ("nojob"), %q{VAR}, %% in `pattern`.
// False when the result does not fit, a %-sequence is unknown or VAR is not set (error filled). The
// message quotes `pattern` and does not know which setting it came from.
bool expand_output(const char* pattern, const JobPlace& place, const char* host, int pid,
                   char* const* environment, char* out, size_t size, SettingError& error);

}  // namespace gpuprof
