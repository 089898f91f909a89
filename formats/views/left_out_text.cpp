// SPDX-License-Identifier: Apache-2.0
#include "formats/views/left_out_text.h"

#include <fmt/format.h>

#include "formats/io/duration_text.h"

namespace gpuprof {

std::string_view left_out_name(ShedKind kind) { return kShedTexts[static_cast<size_t>(kind)].name; }

std::string describe_since(const Process& process, const RecordingBudget::LeftOut& left_out) {
  if (left_out.since <= process.window_begin) return "in the whole window";
  const auto into = static_cast<double>(left_out.since - process.window_begin);
  const Step* const step = process.step_at(left_out.since);
  const std::string when = format_duration(into) + " into the window";
  return step ? fmt::format("since step {} ({})", step->step, when) : "since " + when;
}

std::string left_out_words(ShedKind kind) { return kShedTexts[static_cast<size_t>(kind)].text; }

std::string left_out_words(ShedKind kind, std::string_view since) {
  return fmt::format("{} {}", left_out_words(kind), since);
}

std::string left_out_list(const Process& process) {
  std::string out;
  for (const RecordingBudget::LeftOut& each : process.budget.left_out) {
    if (!out.empty()) out += "; ";
    out += left_out_words(each.kind, describe_since(process, each));
  }
  return out;
}

std::string left_out_note(const Process& process) {
  const std::string list = left_out_list(process);
  return list.empty() ? list : "; not recorded by GPUPROF_BUDGET: " + list;
}

std::string left_out_note(const Process& process, ShedKind kind) {
  const RecordingBudget::LeftOut* const found = process.budget.left_out_of(kind);
  return found ? "; not recorded " + describe_since(process, *found) : std::string();
}

}  // namespace gpuprof
