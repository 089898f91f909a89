// SPDX-License-Identifier: Apache-2.0
#include "tools/analysis/ranks/rank_jitter.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tools/analysis/findings.h"
#include "tools/analysis/spread.h"
#include "tools/analysis/statistics.h"
#include "tools/analysis/straggler.h"

namespace gpuprof::analysis {
namespace {

// As stages of a pipeline do.
bool ranks_send_and_receive(const Report& report) {
  double all = 0, between_two = 0;
  for (const CollectiveRow& row : report.tables.collectives) {
    all += row.total_us;
    if (row.name == "ncclSend" || row.name == "ncclRecv") between_two += row.total_us;
  }
  return 2 * between_two > all;
}

// A stage has two neighbours at most; in an all-to-all each rank sends to all others. Of groups of
// two or three ranks both may be.
enum class Messages { along_a_line, either, all_to_all };

Messages messages_of(const Report& report) {
  constexpr double kNeighbours = 2.5;  // to which a rank sends, as a mean
  std::map<std::string, std::set<std::string>> peers;
  for (const LinkRow& link : report.collective_times.links) peers[link.from].insert(link.to);
  size_t links = 0;
  bool all = true;  // a rank's peers send to it and to each other, and to no other
  for (const auto& [rank, to] : peers) {
    links += to.size();
    for (const std::string& peer : to) {
      const auto back = peers.find(peer);
      std::set<std::string> group = back == peers.end() ? std::set<std::string>() : back->second;
      all = all && group.erase(rank) == 1;
      group.insert(peer);
      all = all && group == to;
    }
  }
  if (static_cast<double>(links) > kNeighbours * static_cast<double>(peers.size())) {
    return Messages::all_to_all;
  }
  return all ? Messages::either : Messages::along_a_line;
}

// The steps in which most of the waits lie, if they are few, as of a part (spread.h).
struct FewSteps {
  size_t few = 0, all = 0;
  double percent = 0;    // of the waits, in these
  uint64_t longest = 0;  // the step that has most
  // Work that differs from step to step has more of them.
  bool are_pauses() const { return few > 0 && 4 * few < all; }
};

FewSteps few_steps(const WaitsOfSteps& waits, const Report& report) {
  std::map<std::pair<uint32_t, uint64_t>, double> of_steps;
  for (const StepRow& row : report.steps) of_steps[{row.window, row.anatomy.step}] = 0;
  FewSteps out;
  std::vector<double> all_us;
  double longest_us = 0;
  for (auto& [step, us] : of_steps) {
    if (const auto found = waits.find(step); found != waits.end()) us = found->second;
    all_us.push_back(us);
    if (us > longest_us) longest_us = us, out.longest = step.second;
  }
  out.all = all_us.size();
  const double most = kStandsOut * quantile(all_us, 0.5);
  double sum = 0, steady = 0;
  for (const double us : all_us) sum += us, steady += std::min(us, most);
  if (steady >= kSteadyShare * sum) return out;
  for (const double us : all_us) {
    if (us < kOfLongest * longest_us) continue;
    ++out.few;
    out.percent += 100 * us / sum;
  }
  return out;
}

// ", 99 % in 1 of 10 steps (step 15)"; empty: they are in all.
std::string describe(const FewSteps& steps, const Report& report) {
  if (steps.few == 0) return {};
  return fmt::format(", {:.0f} % in {} of {} {}s ({}{} {})", steps.percent, steps.few, steps.all,
                     report.unit(), steps.few == 1 ? "" : "most in ", report.unit(), steps.longest);
}

const char* why_ranks_wait(const Report& report, const FewSteps& steps) {
  if (steps.are_pauses()) return "Pauses do that, and not what each step does";
  if (!ranks_send_and_receive(report)) {
    return "Work that differs between ranks from step to step does that (lengths of sequences, "
           "data loading, the host)";
  }
  switch (messages_of(report)) {
    case Messages::all_to_all:
      return "They wait in sends and receives of all with all: parts of different sizes (experts "
             "with uneven numbers of tokens) do that, or work that differs between ranks";
    case Messages::either:
      return "They wait in sends and receives of all with all in groups of two or three: parts of "
             "different sizes (experts with uneven numbers of tokens) do that, work that differs "
             "between ranks, or, if these are stages, a pipeline that fills and drains";
    case Messages::along_a_line: break;
  }
  return "They wait in sends and receives, as stages of a pipeline do while it fills and drains: "
         "more micro-batches in a step, or an interleaved schedule, make that less";
}

constexpr double kMostOfTimePct = 75;  // of the joint collectives

struct Awaited {
  std::string text;  // for whom ranks wait longest, or that there is none such
  int32_t rank = -1;
};

// By time: who is last by a little each time costs nothing.
Awaited who_is_awaited(const std::vector<RankSpeed>& speeds) {
  constexpr double kMorePct = 5;  // than the next one; less is chance
  double sum = 0;
  const RankSpeed* most = &speeds.front();
  for (const RankSpeed& each : speeds) {
    sum += each.awaited_us;
    if (each.awaited_us > most->awaited_us) most = &each;
  }
  const auto percent = [&](const RankSpeed& each) {
    return sum > 0 ? 100 * each.awaited_us / sum : 0;
  };
  for (const RankSpeed& each : speeds) {
    if (&each != most && percent(each) > percent(*most) - kMorePct) {
      return {"they wait about as long for several"};
    }
  }
  return {fmt::format("{:.0f} % of it they wait for {}", percent(*most),
                      most->rank >= 0 ? fmt::format("rank {}", most->rank) : std::string("one")),
          most->rank};
}

// Of the waits: those for the ranks that the verdict has as stragglers.
double straggler_pct(const Report& report, double waited_pct) {
  const bool named = std::any_of(report.verdict.begin(), report.verdict.end(),
                                 [](const auto& each) { return each.cause == Cause::straggler; });
  return named ? std::min(waited_pct, awaited_pct(report)) : 0;
}

// What is known of the rank that is awaited: it is slow again and again. Empty: nothing.
std::string why_awaited(const Report& report, int32_t rank) {
  for (const SlowRank& slow : report.slow_ranks) {
    if (slow.rank != rank || rank < 0 || slow.pattern == SlowPattern::one_off) continue;
    return "R" + describe(slow).substr(1);
  }
  return {};
}

}  // namespace

bool one_is_mostly_last(const Report& report) {
  return std::any_of(report.speeds.begin(), report.speeds.end(),
                     [](const RankSpeed& speed) { return speed.last_pct > kMostOfTimePct; });
}

void add_rank_jitter(double waited_pct, const WaitsOfSteps& waits, Report& report) {
  const double straggler = straggler_pct(report, waited_pct);
  const double limit = finding_row(FindingKind::rank_jitter).limit.value;
  if (waited_pct - straggler < limit || report.speeds.empty()) return;
  const FewSteps steps = few_steps(waits, report);
  const Awaited awaited = who_is_awaited(report.speeds);
  std::string why = why_awaited(report, awaited.rank);
  if (why.empty()) why = why_ranks_wait(report, steps);
  add_finding<FindingKind::rank_jitter>(
      report.findings, waited_pct, waited_pct, report.unit(),
      straggler > 0 ? fmt::format("the straggler explains {:.0f} %", straggler)
                    : std::string("no rank is slow in most of them"),
      awaited.text + describe(steps, report), why);
}

}  // namespace gpuprof::analysis
