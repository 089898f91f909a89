// SPDX-License-Identifier: Apache-2.0
#include "formats/core/runs/run_files.h"

#include <cstdio>

#include "formats/core/text.h"
#include "formats/core/trigger/live_state.h"
#include "formats/core/trigger/request.h"

namespace gpuprof {
namespace {

bool drop_suffix(std::string_view& name, std::string_view suffix) {
  if (!ends_with(name, suffix)) return false;
  name = slice(name, 0, name.size() - suffix.size());
  return true;
}

// Takes `mark` and the number behind it off the end: "_r7", "_1234".
bool drop_number(std::string_view& name, std::string_view mark, uint64_t& number) {
  size_t begin = name.size();
  while (begin > 0 && name[begin - 1] >= '0' && name[begin - 1] <= '9') --begin;
  std::string_view rest = slice(name, 0, begin);
  if (!parse_whole(slice(name, begin), number) || !drop_suffix(rest, mark)) return false;
  name = rest;
  return true;
}

bool drop_kind(std::string_view& name, RunFileKind& kind) {
  kind = RunFileKind::ring;
  if (drop_suffix(name, ".gpuprof.ring")) return true;
  kind = RunFileKind::control;
  if (drop_suffix(name, kProcessControlSuffix)) return true;
  std::string_view state = name;
  drop_suffix(state, ".part");
  if (drop_suffix(state, kLiveStateSuffix)) {
    name = state;
    return true;
  }
  kind = RunFileKind::dump;
  if (!drop_suffix(name, ".part")) drop_suffix(name, ".new");
  uint64_t window = 0;
  return drop_suffix(name, ".gpuprof") &&
         (drop_number(name, "_w", window) || drop_number(name, "_early", window));
}

// <host>_r<rank>_<pid>_<begun>
bool drop_process(std::string_view name, RunFile& file) {
  uint64_t pid = 0, rank = 0;
  if (!drop_number(name, "_", file.begun_ns) || !drop_number(name, "_", pid) ||
      !drop_number(name, "_r", rank)) {
    return false;
  }
  file.pid = static_cast<uint32_t>(pid);
  return !name.empty() && pid > 0 && pid <= INT32_MAX;
}

}  // namespace

bool parse_run_file(std::string_view name, RunFile& file) {
  file = RunFile{};
  if (name == kRunControlFile) {
    file.kind = RunFileKind::control;
    return true;
  }
  return drop_kind(name, file.kind) && drop_process(name, file);
}

// The suffixes: kExporters (formats/exporters.cpp), without those of folders.
bool is_made_of_run(std::string_view name) {
  RunFile dump;
  if (name == "report.html" || name == "report.json") return true;
  std::string_view page = name;
  if (drop_suffix(page, ".html")) return parse_run_file(page, dump);
  for (const std::string_view suffix : {".pftrace", ".speedscope.json", ".json", ".pickle"}) {
    std::string_view stem = name;
    if (!drop_suffix(stem, suffix)) continue;
    uint64_t number = 0;
    return stem == "trace" ||
           ((drop_number(stem, "_w", number) || drop_number(stem, "_early", number)) &&
            drop_process(stem, dump));
  }
  return false;
}

void format_utc_start(time_t started, char (&out)[kUtcStartBytes]) {
  struct tm utc {};
  ::gmtime_r(&started, &utc);
  out[0] = '\0';
  ::strftime(out, sizeof out, "%Y%m%dT%H%M%SZ", &utc);
}

void format_started_run(time_t started, uint32_t parent, char* out, size_t size) {
  char start[kUtcStartBytes];
  format_utc_start(started, start);
  std::snprintf(out, size, "%s-%u", start, parent);
}

uint32_t parent_of_started_run(std::string_view folder) {
  constexpr std::string_view kForm = "00000000T000000Z";
  static_assert(kForm.size() + 1 == kUtcStartBytes);
  uint64_t parent = 0;
  if (!drop_number(folder, "-", parent) || folder.size() != kForm.size()) return 0;
  for (size_t i = 0; i < kForm.size(); ++i) {
    const bool digit = folder[i] >= '0' && folder[i] <= '9';
    if (kForm[i] == '0' ? !digit : folder[i] != kForm[i]) return 0;
  }
  return parent <= INT32_MAX ? static_cast<uint32_t>(parent) : 0;
}

void make_folder_name(char* name) {
  for (char* c = name; *c; ++c) {
    if (*c == '/' || static_cast<unsigned char>(*c) < ' ') *c = '_';
  }
}

}  // namespace gpuprof
