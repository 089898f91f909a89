// SPDX-License-Identifier: Apache-2.0
#include "tools/analysis/left_out_kinds.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "formats/trace/activities.h"
#include "formats/views/left_out_text.h"
#include "tools/analysis/anatomy.h"
#include "tools/analysis/findings.h"
#include "tools/analysis/report.h"

namespace gpuprof::analysis {
namespace {

// What is not recorded looks like work of the host's own between its calls, so host_work is known
// only where everything that the host does is. Loading of data is told by ranges of PyTorch's. The
// replay lets the host go on where it does not know that it waits.
bool needs(Cause cause, ShedKind kind) {
  switch (kind) {
    case ShedKind::operators: return cause == Cause::data_loading || cause == Cause::host_work;
    case ShedKind::calls: return cause == Cause::allocation || cause == Cause::host_work;
    case ShedKind::waits:
      return cause == Cause::synchronization || cause == Cause::host_work ||
             cause == Cause::kernel_launch || cause == Cause::data_loading ||
             cause == Cause::allocation;
    case ShedKind::none:
    case ShedKind::samples:
    case ShedKind::stacks: break;
  }
  return false;
}

// Of what operators and calls do between launches a part is the issuing of work: without them it
// has a smaller share. It is there if it is found, and may be there if not.
bool may_be_missed(Cause cause, ShedKind kind) {
  return cause == Cause::kernel_launch && (kind == ShedKind::operators || kind == ShedKind::calls);
}

}  // namespace

// Idle time goes to a part by the calls and ranges that the launching thread is in. What is not
// recorded gives its time to others: a call in a data loader's range to the call's own part, a wait
// to what comes after it, and a gap that is not filled to `other`.
bool needs(Part part, ShedKind kind) {
  switch (kind) {
    case ShedKind::operators:
      return part == Part::data_loading || part == Part::kernel_launch ||
             part == Part::allocation || part == Part::synchronization || part == Part::other;
    case ShedKind::calls:
      return part == Part::kernel_launch || part == Part::allocation || part == Part::other;
    case ShedKind::waits:
      return part == Part::kernel_launch || part == Part::synchronization || part == Part::other;
    case ShedKind::none:
    case ShedKind::samples:
    case ShedKind::stacks: break;
  }
  return false;
}

bool lacks(const Process& process, ShedKind kind, int64_t end) {
  const RecordingBudget::LeftOut* const found = process.budget.left_out_of(kind);
  return found && found->since < end;
}

KindSet unset_kinds(const Process& process) {
  KindSet out{};
  const std::optional<uint32_t> recorded = activities_of(process);
  if (!recorded) return out;
  const auto lacks = [&](Activity activity) {
    return (*recorded >> static_cast<uint32_t>(activity) & 1) == 0;
  };
  out[static_cast<size_t>(ShedKind::operators)] = lacks(Activity::op);
  out[static_cast<size_t>(ShedKind::calls)] = lacks(Activity::api) || lacks(Activity::alloc);
  out[static_cast<size_t>(ShedKind::waits)] = lacks(Activity::sync);
  return out;
}

namespace {

bool needs_any(Part part, const KindSet& kinds) {
  for (size_t i = 0; i < kShedKinds; ++i) {
    if (kinds[i] && needs(part, static_cast<ShedKind>(i))) return true;
  }
  return false;
}

}  // namespace

bool is_known(Part part, const Process& process, int64_t end, const KindSet& unset) {
  return !needs_any(part, unset) &&
         std::none_of(process.budget.left_out.begin(), process.budget.left_out.end(),
                      [&](const RecordingBudget::LeftOut& each) {
                        return each.since < end && needs(part, each.kind);
                      });
}

bool is_known(Part part, const LeftOutKinds& left_out) {
  return !needs_any(part, left_out.lacking());
}

const LeftOutKind* LeftOutKinds::find(ShedKind kind) const {
  const auto at = std::find_if(kinds.begin(), kinds.end(),
                               [&](const LeftOutKind& each) { return each.kind == kind; });
  return at == kinds.end() ? nullptr : &*at;
}

KindSet LeftOutKinds::lacking() const {
  KindSet out = unset;
  for (const LeftOutKind& each : kinds) out[static_cast<size_t>(each.kind)] = true;
  return out;
}

void LeftOutKinds::add(const LeftOutKinds& other) {
  for (const LeftOutKind& each : other.kinds) {
    const auto at = std::find_if(kinds.begin(), kinds.end(),
                                 [&](const LeftOutKind& own) { return own.kind >= each.kind; });
    if (at == kinds.end() || at->kind != each.kind) {
      kinds.insert(at, each);
    } else {
      at->windows += each.windows;
    }
  }
  for (size_t i = 0; i < kShedKinds; ++i) unset[i] = unset[i] || other.unset[i];
  windows += other.windows;
  allowed_pct = std::max(allowed_pct, other.allowed_pct);
}

LeftOutKinds left_out_of(const Trace& trace) {
  LeftOutKinds out;
  struct First {
    size_t windows = 0;
    int64_t since = 0;
    std::string text;
  };
  std::array<First, kShedKinds> first;
  for (const Process& process : trace.processes) {
    if (process.is_data_worker()) continue;
    ++out.windows;
    const KindSet unset = unset_kinds(process);
    for (size_t i = 0; i < kShedKinds; ++i) out.unset[i] = out.unset[i] || unset[i];
    for (const RecordingBudget::LeftOut& each : process.budget.left_out) {
      First& of_kind = first[static_cast<size_t>(each.kind)];
      if (of_kind.windows++ == 0 || each.since < of_kind.since) {
        of_kind.since = each.since;
        of_kind.text = describe_since(process, each);
      }
      out.allowed_pct = process.budget.allowed_pct;
    }
  }
  for (size_t kind = 1; kind < kShedKinds; ++kind) {
    if (first[kind].windows == 0) continue;
    out.kinds.push_back({static_cast<ShedKind>(kind), first[kind].windows, first[kind].text});
  }
  return out;
}

void note_left_out_kinds(const Trace& trace, Report& report) {
  report.left_out = left_out_of(trace);
}

void leave_out_unknown_causes(Report& report) {
  const KindSet lacking = report.left_out.lacking();
  for (size_t i = 0; i < kCauseCount; ++i) {
    const auto cause = static_cast<Cause>(i);
    const auto is_it = [&](const Verdict& verdict) { return verdict.cause == cause; };
    const bool found = std::any_of(report.verdict.begin(), report.verdict.end(), is_it);
    bool unknown = false;
    for (size_t kind = 0; kind < kShedKinds; ++kind) {
      const auto lacks = static_cast<ShedKind>(kind);
      unknown = unknown ||
                (lacking[kind] && (needs(cause, lacks) || (!found && may_be_missed(cause, lacks))));
    }
    if (!unknown) continue;
    report.unknown_causes.push_back(cause);
    std::erase_if(report.verdict, is_it);
  }
}

std::string describe(const LeftOutKinds& left_out) {
  std::string out;
  for (const LeftOutKind& each : left_out.kinds) {
    out += (out.empty() ? "" : "; ") + left_out_words(each.kind, each.since);
    if (left_out.windows > 1) {
      out += fmt::format(", in {} of {} windows", each.windows, left_out.windows);
    }
  }
  return out;
}

std::string not_whole_text(const LeftOutKinds& left_out, ShedKind kind) {
  const LeftOutKind* const found = left_out.find(kind);
  return found ? "; not recorded " + found->since : std::string();
}

std::vector<std::string> unknown_parts(const LeftOutKinds& left_out) {
  std::vector<std::string> out;
  for (size_t i = 0; i < kParts; ++i) {
    const auto part = static_cast<Part>(i);
    if (!is_known(part, left_out)) out.emplace_back(part_name(part));
  }
  return out;
}

std::string unknown_parts_text(const std::vector<std::string>& parts, bool by_budget) {
  if (parts.empty()) return "";
  return fmt::format("Not known apart, since {} left out records: {}",
                     by_budget ? "GPUPROF_BUDGET" : "GPUPROF_PRESET or GPUPROF_ACTIVITIES",
                     fmt::join(parts, ", "));
}

std::string why_not_known(const LeftOutKinds& left_out) {
  std::string out;
  if (!left_out.kinds.empty()) out = "GPUPROF_BUDGET left out " + describe(left_out);
  std::vector<std::string_view> unset;
  for (size_t i = 0; i < kShedKinds; ++i) {
    if (left_out.unset[i]) unset.push_back(kShedTexts[i].text);
  }
  if (unset.empty()) return out;
  return fmt::format("{}{}GPUPROF_PRESET or GPUPROF_ACTIVITIES left out {}", out,
                     out.empty() ? "" : "; ", fmt::join(unset, ", "));
}

std::string unknown_causes_text(const std::vector<std::string>& causes, std::string_view why) {
  return fmt::format("Of these causes it is not known whether they are there, since {}: {}", why,
                     fmt::join(causes, ", "));
}

std::string names_of(const std::vector<Cause>& causes) {
  std::string out;
  for (const Cause cause : causes) {
    out += (out.empty() ? "" : ", ") + std::string(cause_name(cause));
  }
  return out;
}

void add_left_out_kinds(Report& report) {
  if (report.left_out.kinds.empty()) return;
  const std::string unknown = names_of(report.unknown_causes);
  add_finding<FindingKind::left_out_kinds>(
      report.findings, report.left_out.allowed_pct, report.left_out.allowed_pct,
      describe(report.left_out),
      unknown.empty()
          ? std::string()
          : fmt::format(". Of causes it is not known whether they are there: {}", unknown));
}

}  // namespace gpuprof::analysis
