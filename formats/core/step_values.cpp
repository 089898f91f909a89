// SPDX-License-Identifier: Apache-2.0
// How GPUPROF_STEP is read and written.
#include <regex.h>

#include "formats/core/setting_values.h"
#include "formats/core/text.h"

namespace gpuprof {
namespace {

constexpr const char* kStepSources =
    "auto, manual, optimizer (PyTorch's), profiler (cudaProfilerStart/Stop), nvtx:NAME, "
    "nvtx:NAME@THREAD, "
    "forward (of PyTorch's outermost module), nccl:OP:N, kernel:REGEX:N, graph:N, period (found "
    "from the order of launches), "
    "sync:N (every Nth cudaDeviceSynchronize), time:MS";

constexpr std::string_view kCollectives[] = {
    "ncclAllReduce", "ncclBroadcast",     "ncclBcast",    "ncclReduce",
    "ncclAllGather", "ncclReduceScatter", "ncclAlltoAll", "ncclGather",
    "ncclScatter",   "ncclSend",          "ncclRecv",
};

constexpr uint64_t kMostEvery = 1000000;

TextBuilder explain(Reason& reason) { return TextBuilder(reason.text, sizeof(reason.text)); }

bool refuse(Reason& reason, std::string_view text) {
  explain(reason).add(text);
  return false;
}

bool read_every(std::string_view text, uint32_t& every, std::string_view form,
                std::string_view example, Reason& reason) {
  uint64_t value = 0;
  if (!parse_whole(text, value) || value < 1 || value > kMostEvery) {
    explain(reason).add(form).add(" takes a whole number from 1 to 1000000, as in ").add(example);
    return false;
  }
  every = static_cast<uint32_t>(value);
  return true;
}

// "NAME:N", where NAME may hold colons.
bool split_at_last_colon(std::string_view text, std::string_view& name, std::string_view& number) {
  size_t colon = text.size();
  while (colon > 0 && text[colon - 1] != ':') --colon;
  if (colon == 0) return false;
  name = slice(text, 0, colon - 1);
  number = slice(text, colon);
  return true;
}

bool read_nccl(std::string_view argument, StepSpec& spec, Reason& reason) {
  std::string_view name = argument, number;
  split_at_last_colon(argument, name, number);
  for (const std::string_view known : kCollectives) {
    if (name != known) continue;
    copy_text(name, spec.name, sizeof(spec.name));
    return read_every(number, spec.every, "nccl:OP:N", "nccl:ncclAllReduce:8", reason);
  }
  TextBuilder out = explain(reason);
  out.add("nccl:OP:N takes one of");
  const char* separator = " ";
  for (const std::string_view known : kCollectives) {
    out.add(separator).add(known);
    separator = ", ";
  }
  out.add(", as in nccl:ncclAllReduce:8");
  return false;
}

bool read_kernel(std::string_view argument, StepSpec& spec, Reason& reason) {
  std::string_view name, number;
  if (!split_at_last_colon(argument, name, number) || name.empty() ||
      !copy_text(name, spec.name, sizeof(spec.name))) {
    return refuse(reason,
                  "kernel:REGEX:N takes a regular expression of 1 to 127 characters and a number, "
                  "as in kernel:adam:1");
  }
  regex_t compiled;
  if (const int error = ::regcomp(&compiled, spec.name, REG_EXTENDED | REG_NOSUB)) {
    char why[80];
    ::regerror(error, &compiled, why, sizeof(why));
    explain(reason)
        .add_quoted(spec.name)
        .add(" is no POSIX extended regular expression: ")
        .add(why)
        .add(" (as in kernel:adam:1)");
    return false;
  }
  ::regfree(&compiled);
  return read_every(number, spec.every, "kernel:REGEX:N", "kernel:adam:1", reason);
}

bool read_time(std::string_view argument, StepSpec& spec, Reason& reason) {
  if (parse_decimal(argument, spec.milliseconds) && spec.milliseconds >= 1 &&
      spec.milliseconds <= 86400000) {
    return true;
  }
  return refuse(reason, "time:MS takes milliseconds from 1 to 86400000, as in time:1000");
}

// "NAME@THREAD"; NAME may hold an @ if one follows it.
bool read_nvtx(std::string_view argument, StepSpec& spec, Reason& reason) {
  std::string_view name = argument, thread;
  if (const size_t at = argument.rfind('@'); at != std::string_view::npos) {
    name = slice(argument, 0, at);
    thread = slice(argument, at + 1);
  }
  // All that begins with nothing are all ranges.
  if (name.empty() || name == "*" || !copy_text(name, spec.name, sizeof(spec.name))) {
    return refuse(reason, "the name of an NVTX range has 1 to 127 characters, as in nvtx:step");
  }
  if (copy_text(thread, spec.thread, sizeof(spec.thread))) return true;
  return refuse(reason, "the name of a thread has 1 to 63 characters, as in nvtx:step@trainer");
}

bool read_graph(std::string_view argument, StepSpec& spec, Reason& reason) {
  return read_every(argument, spec.every, "graph:N", "graph:1", reason);
}

bool read_sync(std::string_view argument, StepSpec& spec, Reason& reason) {
  return read_every(argument, spec.every, "sync:N", "sync:1", reason);
}

struct SourceRow {
  std::string_view name;
  StepSource source;
  bool (*read)(std::string_view argument, StepSpec& spec, Reason& reason);  // null: no argument
};

constexpr SourceRow kSources[] = {
    {"auto", StepSource::automatic, nullptr},      {"manual", StepSource::manual, nullptr},
    {"optimizer", StepSource::optimizer, nullptr}, {"profiler", StepSource::profiler, nullptr},
    {"nvtx", StepSource::nvtx, read_nvtx},         {"forward", StepSource::forward, nullptr},
    {"nccl", StepSource::nccl, read_nccl},         {"kernel", StepSource::kernel, read_kernel},
    {"graph", StepSource::graph, read_graph},      {"period", StepSource::period, nullptr},
    {"sync", StepSource::sync, read_sync},         {"time", StepSource::time, read_time},
};

constexpr bool is_in_order() {
  size_t at = 0;
  for (const SourceRow& row : kSources) {
    if (row.source != static_cast<StepSource>(at++)) return false;
  }
  return at == static_cast<size_t>(StepSource::time) + 1;  // the last
}
static_assert(is_in_order(), "a row for each StepSource, in the order of the enum");

}  // namespace

bool read_step(std::string_view text, StepSpec& spec, Reason& reason) {
  std::string_view argument = text;
  const std::string_view name = take_until(argument, ':');
  const bool has_argument = name.size() < text.size();
  for (const SourceRow& row : kSources) {
    if (name != row.name || has_argument != (row.read != nullptr)) continue;
    StepSpec result;
    result.source = row.source;
    if (row.read && !row.read(argument, result, reason)) return false;
    spec = result;
    return true;
  }
  explain(reason).add("must be one of ").add(kStepSources);
  return false;
}

size_t format_step(const StepSpec& spec, char* out, size_t size) {
  TextBuilder text(out, size);
  for (const SourceRow& row : kSources) {
    if (row.source == spec.source) text.add(row.name);
  }
  switch (spec.source) {
    case StepSource::automatic:
    case StepSource::manual:
    case StepSource::optimizer:
    case StepSource::profiler:
    case StepSource::forward:
    case StepSource::period: break;
    case StepSource::nvtx: {
      const std::string_view name(spec.name), thread(spec.thread);
      text.add(':').add(name);
      const bool marked = !thread.empty() || name.find('@') != std::string_view::npos;
      if (marked) text.add('@').add(thread);
      break;
    }
    case StepSource::nccl:
    case StepSource::kernel: text.add(':').add(spec.name).add(':').add_whole(spec.every); break;
    case StepSource::graph:
    case StepSource::sync: text.add(':').add_whole(spec.every); break;
    case StepSource::time: text.add(':').add_decimal(spec.milliseconds); break;
  }
  return text.size();
}

}  // namespace gpuprof
