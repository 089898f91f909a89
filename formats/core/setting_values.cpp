// SPDX-License-Identifier: Apache-2.0
#include "formats/core/setting_values.h"

#include <iterator>
#include <type_traits>

#include "formats/core/command_line.h"
#include "formats/core/text.h"

namespace gpuprof {
namespace {

constexpr const char* kActivityNames[kActivityCount] = {
    "step",  "kernel",         "memcpy",   "memset",    "sync",   "api",    "graph",   "nccl",
    "alloc", "nvtx",           "op",       "op:shapes", "module", "tensor", "samples", "malloc",
    "nvml",  "samples:native", "sync:gpu", "nvtx:xla"};

constexpr std::string_view kStackNames[kStackKindCount] = {"launch", "sync", "alloc", "nccl"};

constexpr uint32_t bit(Activity activity) { return 1u << static_cast<unsigned>(activity); }

constexpr uint64_t kDefaultHeapInterval = 512 << 10, kMostHeapIntervalKib = 1 << 20;

constexpr uint32_t kLightPreset = bit(Activity::step) | bit(Activity::kernel) |
                                  bit(Activity::memcpy) | bit(Activity::memset) |
                                  bit(Activity::nccl) | bit(Activity::sync);
constexpr uint32_t kDefaultPreset =
    kLightPreset | bit(Activity::api) | bit(Activity::alloc) | bit(Activity::nvtx) |
    bit(Activity::op) | bit(Activity::tensor) | bit(Activity::samples) | bit(Activity::graph);
constexpr uint32_t kFullPreset =
    kDefaultPreset | bit(Activity::op_shapes) | bit(Activity::module) | bit(Activity::gpu_sync);

constexpr const char* kScheduleExample = "skip_first=10,wait=0,warmup=2,active=10,repeat=1";

// The whole-number keys of a schedule; max_s and max_mb may have a fraction.
struct ScheduleKey {
  std::string_view name;
  uint32_t ScheduleSpec::*whole;
  double ScheduleSpec::*decimal;
  uint32_t low, high;
};

constexpr ScheduleKey kScheduleKeys[] = {
    {"skip_first", &ScheduleSpec::skip_first, nullptr, 0, 1000000000},
    {"skip_first_wait", &ScheduleSpec::skip_first_wait, nullptr, 0, 1},
    {"wait", &ScheduleSpec::wait, nullptr, 0, 1000000000},
    {"warmup", &ScheduleSpec::warmup, nullptr, 0, 1000000},
    {"active", &ScheduleSpec::active, nullptr, 1, 1000000},
    {"repeat", &ScheduleSpec::repeat, nullptr, 0, 1000000},
    {"max_s", nullptr, &ScheduleSpec::max_s, 0, 1000000},
    {"max_mb", nullptr, &ScheduleSpec::max_mb, 0, 1000000},
};

constexpr size_t kRepeat = 5, kMaxSeconds = 6;  // their rows

TextBuilder explain(Reason& reason) { return TextBuilder(reason.text, sizeof(reason.text)); }

bool refuse(Reason& reason, std::string_view text) {
  explain(reason).add(text);
  return false;
}

bool refuse_schedule_value(const ScheduleKey& key, Reason& reason) {
  explain(reason)
      .add(key.name)
      .add(key.decimal != nullptr ? " must be a number from " : " must be a whole number from ")
      .add_whole(key.low)
      .add(" to ")
      .add_whole(key.high)
      .add(" (for example ")
      .add(kScheduleExample)
      .add(")");
  return false;
}

bool refuse_schedule_key(std::string_view name, std::string_view problem, Reason& reason) {
  TextBuilder out = explain(reason);
  out.add_quoted(name, 40).add(problem);
  const char* separator = " ";
  for (const ScheduleKey& key : kScheduleKeys) {
    out.add(separator).add(key.name).add("=N");
    separator = ",";
  }
  out.add(", or all (for example ").add(kScheduleExample).add(")");
  return false;
}

bool read_schedule_item(std::string_view item, ScheduleSpec& spec, uint32_t& seen, Reason& reason) {
  std::string_view value = item;
  const std::string_view name = trim(take_until(value, '='));
  value = trim(value);
  for (size_t i = 0; i < sizeof(kScheduleKeys) / sizeof(kScheduleKeys[0]); ++i) {
    const ScheduleKey& key = kScheduleKeys[i];
    if (key.name != name) continue;
    if ((seen & (1u << i)) != 0) {
      explain(reason).add(name).add(" is given twice; give it once");
      return false;
    }
    seen |= 1u << i;
    uint64_t whole = 0;
    double decimal = 0;
    if (key.decimal != nullptr) {
      if (!parse_decimal(value, decimal) || decimal > key.high) {
        return refuse_schedule_value(key, reason);
      }
      spec.*key.decimal = decimal;
      return true;
    }
    if (!parse_whole(value, whole) || whole < key.low || whole > key.high) {
      return refuse_schedule_value(key, reason);
    }
    spec.*key.whole = static_cast<uint32_t>(whole);
    return true;
  }
  return refuse_schedule_key(name, " is not a key of a schedule; the keys are", reason);
}

// `added`, not taken away: shapes want their operators with them, native frames their samples,
// CUPTI's records of waits the calls that wait, and XLA's ranges all others.
bool find_activity(std::string_view name, bool added, uint32_t& mask) {
  for (size_t i = 0; i < kActivityCount; ++i) {
    if (name == kActivityNames[i]) {
      mask = 1u << i;
      if (added && mask == bit(Activity::op_shapes)) mask |= bit(Activity::op);
      if (added && mask == bit(Activity::samples_native)) mask |= bit(Activity::samples);
      if (added && mask == bit(Activity::gpu_sync)) mask |= bit(Activity::sync);
      if (added && mask == bit(Activity::nvtx_xla)) mask |= bit(Activity::nvtx);
      return true;
    }
  }
  return false;
}

// "graph" of "graph:trace" and "graph:node", which also say how graphs are timed; else `item`.
std::string_view take_graph_times(std::string_view item, GraphTimes& graph_times) {
  if (item != "graph:trace" && item != "graph:node") return item;
  graph_times = item == "graph:trace" ? GraphTimes::whole : GraphTimes::nodes;
  return "graph";
}

// "malloc" of "malloc:64", which also says how many KiB lie between two samples; else `item`.
std::string_view take_heap_interval(std::string_view item, uint64_t& interval) {
  std::string_view count = item;
  uint64_t kib = 0;
  if (take_until(count, ':') != "malloc" || !parse_whole(count, kib)) return item;
  if (kib < 1 || kib > kMostHeapIntervalKib) return item;
  interval = kib << 10;
  return "malloc";
}

bool refuse_activity(std::string_view name, Reason& reason) {
  TextBuilder out = explain(reason);
  out.add_quoted(name, 40).add(" is not an activity; allowed are");
  const char* separator = " ";
  for (const char* known : kActivityNames) {
    out.add(separator).add(known);
    separator = ", ";
  }
  out.add(
      ", graph:trace, graph:node, malloc:KIB (1 to 1048576) (a list, or changes to the preset such "
      "as +api,-nvtx)");
  return false;
}

bool read_range(std::string_view item, uint64_t& low, uint64_t& high) {
  std::string_view rest = item;
  const std::string_view first = trim(take_until(rest, '-'));
  if (!parse_whole(first, low)) return false;
  if (first.size() == item.size()) {
    high = low;
    return true;
  }
  return parse_whole(trim(rest), high) && low <= high;
}

// Whether every %-sequence of `pattern` is one that expand_output knows.
bool check_pattern(std::string_view pattern, Reason& reason) {
  for (size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] != '%') continue;
    const std::string_view rest = slice(pattern, i + 1);
    const char c = rest.empty() ? '\0' : rest[0];
    bool known = c == 'h' || c == 'r' || c == 'p' || c == 'j' || c == '%';
    size_t length = 1;
    if (starts_with(rest, "q{")) {
      while (length < rest.size() && rest[length] != '}') ++length;
      known = length > 2 && length < rest.size();
    }
    if (!known) {
      return refuse(reason,
                    "after % allowed are h (host), r (rank), p (pid), j (job), q{VARIABLE} and %");
    }
    i += length;
  }
  return true;
}

}  // namespace

const char* activity_name(Activity activity) {
  const size_t index = static_cast<size_t>(activity);
  return index < kActivityCount ? kActivityNames[index] : "";
}

const char* stack_kind_name(StackKind kind) {
  const size_t index = static_cast<size_t>(kind);
  return index < kStackKindCount ? kStackNames[index].data() : "";
}

bool read_mode(std::string_view text, Mode& mode, Reason& reason) {
  if (text == "on") return mode = Mode::on, true;
  if (text == "armed") return mode = Mode::armed, true;
  if (text == "off") return mode = Mode::off, true;
  return refuse(reason, "must be on, armed or off");
}

bool read_log_level(std::string_view text, LogLevel& level, Reason& reason) {
  constexpr std::string_view kNames[] = {"error", "warn", "info", "debug"};
  for (size_t i = 0; i < 4; ++i) {
    if (text != kNames[i]) continue;
    level = static_cast<LogLevel>(i);
    return true;
  }
  return refuse(reason, "must be error, warn, info or debug");
}

bool read_schedule(std::string_view text, ScheduleSpec& spec, Reason& reason) {
  ScheduleSpec result;
  uint32_t seen = 0;
  bool all = false;
  ListReader items(text);
  for (std::string_view item; items.next(item);) {
    if (trim(item) == "all") {
      all = true;
    } else if (!read_schedule_item(item, result, seen, reason)) {
      return false;
    }
  }
  if (all && !is_default_schedule(result)) {
    return refuse(reason, "all records the whole program: beside it stand max_s and max_mb alone");
  }
  if (all && !(seen & 1u << kMaxSeconds)) result.max_s = 0;
  result.all = all;
  result.has_repeat = (seen & 1u << kRepeat) != 0;
  spec = result;
  return true;
}

bool read_preset(std::string_view text, Config& config, Reason& reason) {
  if (text != "light" && text != "default" && text != "full") {
    return refuse(reason, "must be light, default or full");
  }
  config.activities = text == "light"  ? kLightPreset
                      : text == "full" ? kFullPreset
                                       : kDefaultPreset;
  for (uint32_t& every : config.stack_every) every = text == "full" ? 1 : 0;
  return true;
}

bool read_stacks(std::string_view text, uint32_t (&every)[kStackKindCount], Reason& reason) {
  if (text.empty() || text == "preset") return true;
  uint32_t result[kStackKindCount] = {};
  ListReader items(text);
  for (std::string_view item; text != "none" && items.next(item);) {
    std::string_view count = item;
    const std::string_view name = trim(take_until(count, ':'));
    const bool has_count = name.size() < item.size();
    size_t kind = 0;
    while (kind < kStackKindCount && name != kStackNames[kind]) ++kind;
    if (kind == kStackKindCount) {
      explain(reason).add_quoted(name, 40).add(
          " has no stacks; allowed are launch, sync, alloc, nccl, as in launch:10,nccl "
          "(or preset, or none)");
      return false;
    }
    uint64_t number = 1;
    if (has_count && (!parse_whole(trim(count), number) || number < 1 || number > 1000000)) {
      explain(reason).add(name).add(
          ":N takes a whole number from 1 to 1000000 (one call in N), as in launch:10");
      return false;
    }
    result[kind] = static_cast<uint32_t>(number);
  }
  for (size_t kind = 0; kind < kStackKindCount; ++kind) every[kind] = result[kind];
  return true;
}

bool read_activities(std::string_view text, Config& config, Reason& reason) {
  config.graph_times = GraphTimes::automatic;
  config.heap_interval = kDefaultHeapInterval;
  if (text.empty() || text == "preset") return true;
  const bool changes = text[0] == '+' || text[0] == '-';
  uint32_t result = changes ? config.activities : 0;
  ListReader items(text);
  for (std::string_view item; items.next(item);) {
    const char sign = item.empty() ? '\0' : item[0];
    if ((sign == '+' || sign == '-') != changes) {
      return refuse(reason, changes ? "every activity needs + or - here, as in +api,-nvtx"
                                    : "+ and - do not go with a plain list; use one or the other");
    }
    if (changes) item.remove_prefix(1);
    uint32_t mask = 0;
    const std::string_view name =
        take_heap_interval(take_graph_times(item, config.graph_times), config.heap_interval);
    if (!find_activity(name, sign != '-', mask)) return refuse_activity(item, reason);
    result = sign == '-' ? result & ~mask : result | mask;
  }
  config.activities = result;
  return true;
}

bool read_redact(std::string_view text, uint32_t& what, Reason& reason) {
  constexpr std::string_view kNames[] = {"command", "paths", "host", "user", "environment"};
  static_assert(std::size(kNames) == kRedactCount);
  what = 0;
  if (text == "none") return true;
  if (text == "all") {
    what = (1u << kRedactCount) - 1;
    return true;
  }
  ListReader items(text);
  for (std::string_view item; items.next(item);) {
    size_t name = 0;
    while (name < kRedactCount && kNames[name] != item) ++name;
    if (name == kRedactCount) {
      return refuse(reason,
                    "must be none, all, or a list of command, paths, host, user, environment");
    }
    what |= 1u << name;
  }
  return true;
}

bool find_in_ranges(std::string_view text, uint64_t number, bool& found) {
  found = false;
  ListReader items(text);
  for (std::string_view item; items.next(item);) {
    uint64_t low = 0, high = 0;
    if (!read_range(item, low, high)) return false;
    if (low <= number && number <= high) found = true;
  }
  return true;
}

bool read_keep(std::string_view text, KeepSpec& keep, Reason& reason) {
  constexpr uint64_t kGigabyte = 1000000000, kDay = 24 * 60 * 60;
  constexpr double kMostRuns = 1e6, kMost = 1e5;  // of gigabytes, of days
  keep = KeepSpec{};
  if (text == "all") return true;
  KeepSpec read;
  bool good = true;
  // A limit that rounds to 0 would be none.
  const auto take = [&good](std::string_view number, double most, double unit, auto& limit) {
    double value = 0;
    good = good && limit == 0 && parse_decimal(number, value) && value <= most;
    if (good) limit = static_cast<std::remove_reference_t<decltype(limit)>>(value * unit);
    good = good && limit > 0;
  };
  ListReader items(text);
  for (std::string_view item; good && items.next(item);) {
    if (ends_with(item, "GB")) {
      take(trim(slice(item, 0, item.size() - 2)), kMost, kGigabyte, read.bytes);
    } else if (ends_with(item, "d")) {
      take(trim(slice(item, 0, item.size() - 1)), kMost, kDay, read.age_s);
    } else {
      uint64_t whole = 0;
      good = parse_whole(item, whole);
      take(item, kMostRuns, 1, read.runs);
    }
  }
  if (!good) {
    return refuse(
        reason,
        "must be all, or a list of N (runs), NGB (gigabytes) and Nd (days), each once and "
        "above 0, as in 20,50GB,14d");
  }
  keep = read;
  return true;
}

bool read_ranks(std::string_view text, int rank, bool& selected, Reason& reason) {
  selected = true;
  if (text == "all") return true;
  bool found = false;
  if (!find_in_ranges(text, static_cast<uint64_t>(rank < 0 ? 0 : rank), found)) {
    return refuse(reason, "must be all, or ranks and ranges of ranks, as in 0,8-15");
  }
  selected = found || rank < 0;
  return true;
}

bool read_switch(std::string_view text, bool& on, Reason& reason) {
  if (text != "0" && text != "1") return refuse(reason, "must be 0 or 1");
  on = text == "1";
  return true;
}

bool read_buffer_mb(std::string_view text, uint32_t& megabytes, Reason& reason) {
  uint64_t value = 0;
  if (!parse_whole(text, value) || value < 1 || value > 65536) {
    return refuse(reason, "must be a whole number of megabytes from 1 to 65536 (for example 64)");
  }
  megabytes = static_cast<uint32_t>(value);
  return true;
}

bool read_budget(std::string_view text, double& percent, Reason& reason) {
  if (text == "none") return percent = 0, true;
  if (!text.empty() && text.back() == '%') text.remove_suffix(1);
  if (!parse_decimal(text, percent) || percent < 0.1 || percent > 100) {
    return refuse(reason, "must be none, or a percentage from 0.1 to 100 (for example 2)");
  }
  return true;
}

bool read_gpu_times(std::string_view text, GpuTimes& times, Reason& reason) {
  if (text == "cupti") return times = GpuTimes::cupti, true;
  if (text == "events") return times = GpuTimes::events, true;
  return refuse(reason, "must be cupti or events");
}

bool read_cupti(std::string_view text, char* out, size_t size, Reason& reason) {
  if (text == "auto") return copy_text("", out, size);
  bool is_path = false;
  for (const char c : text) is_path = is_path || c == '/';
  if (text != "off" && !is_path) {
    return refuse(reason, "must be auto, off, or the path of libcupti.so (with a /)");
  }
  if (!copy_text(text, out, size)) return refuse(reason, "is too long for a path");
  return true;
}

bool read_run(std::string_view text, char* out, size_t size, Reason& reason) {
  if (text == "auto") return copy_text("", out, size);
  for (const char c : text) {
    if (c == '/')
      return refuse(reason, "must be a plain name without / (a directory is made of it)");
  }
  if (text == "." || text == ".." || text == "latest") {
    return refuse(reason, "is a reserved name; choose another");
  }
  if (!check_pattern(text, reason)) return false;
  if (!copy_text(text, out, size)) return refuse(reason, "must have fewer than 256 characters");
  return true;
}

bool read_directory(std::string_view text, bool automatic, char* out, size_t size, Reason& reason) {
  if (automatic && text == "auto") text = "";
  if (!check_pattern(text, reason)) return false;
  if (!copy_text(text, out, size)) return refuse(reason, "is too long for a path");
  return true;
}

bool read_metrics(std::string_view text, char* out, size_t size, Reason& reason) {
  constexpr std::string_view kForm = "prometheus:";
  if (text == "none") return copy_text("", out, size);
  if (!starts_with(text, kForm)) return refuse(reason, "must begin with prometheus:");
  const std::string_view directory = slice(text, kForm.size());
  if (!starts_with(directory, "/")) {
    return refuse(reason, "must have a directory's absolute path behind prometheus:");
  }
  return read_directory(directory, false, out, size, reason);
}

bool read_command(std::string_view text, char* out, size_t size, Reason& reason) {
  if (text == "none") return copy_text("", out, size);
  // Tried with nothing for {}: what it will be is not known yet.
  static CommandLine parts;
  const char* problem = nullptr;
  if (!split_command(text, "", parts, &problem)) return refuse(reason, problem);
  if (!copy_text(text, out, size)) return refuse(reason, "must have fewer than 1024 characters");
  return true;
}

bool is_default_schedule(const ScheduleSpec& spec) {
  const ScheduleSpec usual;
  for (const ScheduleKey& key : kScheduleKeys) {
    if (key.whole != nullptr && spec.*key.whole != usual.*key.whole) return false;
  }
  return !spec.all;
}

size_t format_schedule(const ScheduleSpec& spec, char* out, size_t size) {
  TextBuilder text(out, size);
  if (spec.all) text.add("all");
  for (const ScheduleKey& key : kScheduleKeys) {
    if (spec.all && key.decimal == nullptr) continue;
    if (text.size() > 0) text.add(',');
    text.add(key.name).add('=');
    if (key.decimal != nullptr) {
      text.add_decimal(spec.*key.decimal);
    } else {
      text.add_whole(spec.*key.whole);
    }
  }
  return text.size();
}

}  // namespace gpuprof
