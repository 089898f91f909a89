// SPDX-License-Identifier: Apache-2.0
#include "tools/show/perfetto_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>
#include <string_view>
#include <vector>

#include "formats/views/slices.h"

namespace gpuprof {
namespace {

constexpr size_t kOpenProcesses = 4, kOpenThreads = 8;  // of one process; more fill the screen

// As a regular expression of JavaScript's that matches just this.
std::string literally(std::string_view text) {
  constexpr std::string_view kSpecial = "\\^$.|?*+()[]{}/";
  std::string out;
  for (const char c : text) {
    if (kSpecial.find(c) != std::string_view::npos) out += '\\';
    out += c;
  }
  return out;
}

// Of those of the first host, whose numbers of processes and threads Perfetto shows as they are; of
// containers that have the same pids, those of the first alone.
std::vector<const Process*> shown_first(const Trace& trace) {
  std::vector<const Process*> out;
  for (const Process& process : trace.processes) {
    const bool same_host = process.header.host() == trace.processes[0].header.host();
    const bool known = std::any_of(out.begin(), out.end(), [&](const Process* other) {
      return other->header.pid() == process.header.pid();
    });
    if (same_host && !known && !process.is_data_worker()) out.push_back(&process);
  }
  std::stable_sort(out.begin(), out.end(), [](const Process* a, const Process* b) {
    return a->header.rank() < b->header.rank();
  });
  if (out.size() > kOpenProcesses) out.resize(kOpenProcesses);
  return out;
}

// The threads with the most events.
std::vector<const Lane*> busy_threads(const Process& process) {
  std::vector<const Lane*> out;
  for (const Lane& lane : process.lanes) {
    if (lane.type == LaneType::thread) out.push_back(&lane);
  }
  std::stable_sort(out.begin(), out.end(),
                   [](const Lane* a, const Lane* b) { return a->event_count > b->event_count; });
  if (out.size() > kOpenThreads) out.resize(kOpenThreads);
  return out;
}

std::string groups_of(const Process& process) {
  const dump::Header& header = process.header;
  std::string out = "^" + literally(process_title(process));
  out += header.rank() >= 0 ? fmt::format("|^GPU .*\\(rank {}\\)$", header.rank())
                            : fmt::format("|^GPU .*\\(pid {}\\)$", header.pid());
  for (const Lane* lane : busy_threads(process)) out += fmt::format("| {}$", lane->thread_id);
  return out;
}

}  // namespace

std::string percent_encoded(std::string_view text, std::string_view kept) {
  constexpr std::string_view kPlain = "-_.~";
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool plain = std::isalnum(byte) || kPlain.find(c) != std::string_view::npos ||
                       kept.find(c) != std::string_view::npos;
    out += plain ? std::string(1, c) : fmt::format("%{:02X}", byte);
  }
  return out;
}

std::string perfetto_page(const Trace& trace, const std::string& trace_address) {
  std::string page = fmt::format("{}/#!/?url={}", kPerfetto, trace_address);
  std::string groups;
  for (const Process* process : shown_first(trace)) {
    groups += (groups.empty() ? "" : "|") + groups_of(*process);
  }
  if (groups.empty()) return page;
  const nlohmann::json commands = {
      {{"id", "dev.perfetto.ExpandTracksByRegex"}, {"args", {groups}}}};
  const std::string text = commands.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  return page + "&startupCommands=" + percent_encoded(text);
}

}  // namespace gpuprof
