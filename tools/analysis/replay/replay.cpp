// SPDX-License-Identifier: Apache-2.0
#include "tools/analysis/replay/replay.h"

#include <algorithm>
#include <ctime>
#include <utility>

#include "tools/analysis/anatomy.h"
#include "tools/analysis/intervals.h"
#include "tools/analysis/statistics.h"
#include "tools/analysis/walks.h"

namespace gpuprof::analysis {
namespace {

constexpr size_t kNodesOfPiece = 1 << 12;  // of all ranks, at least; few enough for a cache

int64_t earliest(std::span<const Timeline> timelines) {
  int64_t out = INT64_MAX;
  for (const Timeline& timeline : timelines) {
    const auto calls = all_calls(timeline);
    const auto works = all_work(timeline);
    if (!calls.at_end()) out = std::min(out, calls->begin);
    if (!works.at_end()) out = std::min(out, works->begin);
  }
  return out;
}

size_t first_known(const Timeline& timeline) {
  if (timeline.whole_window) return 0;
  constexpr int64_t kLittle = 20;  // so small a part of a step changes nothing
  const Interval unknown = unknown_time(timeline);
  const auto& steps = timeline.steps;
  const auto known = std::partition_point(steps.begin(), steps.end(), [&](const Step& step) {
    const int64_t end = std::min(unknown.end, step.end),
                  begin = std::max(unknown.begin, step.begin);
    return end > begin && (end - begin) * kLittle > step.end - step.begin;
  });
  return static_cast<size_t>(known - steps.begin());
}

// What happens once (a checkpoint, a pause between requests) may happen in the first step, which
// otherwise only says when the second one began.
bool first_stands_out(const Timeline& timeline) {
  constexpr int64_t kTimesAsLong = 2;
  const auto& steps = timeline.steps;
  if (steps.size() < 2) return false;
  const int64_t others =
      (steps.back().end - steps.front().end) / static_cast<int64_t>(steps.size() - 1);
  return steps.front().end - steps.front().begin > kTimesAsLong * others;
}

// By step: the time that lies between it, or one before it, and the step before that. Not that in
// which the GPU does what the steps issued: it is theirs.
std::vector<int64_t> between_before(const Timeline& timeline) {
  std::vector<int64_t> out(timeline.steps.size());
  const Intervals gaps = times_between(timeline.steps);
  if (gaps.empty()) return out;
  Intervals works;
  each_work_of_steps(timeline, [&](const Work& work) { works.push_back({work.begin, work.end}); });
  const Measure gpu(cover(std::move(works)));
  auto gap = gaps.begin();
  for (size_t i = 1; i < out.size(); ++i) {
    out[i] = out[i - 1];
    if (gap == gaps.end() || gap->end != timeline.steps[i].begin) continue;
    out[i] += gap->length() - gpu.inside(gap->begin, gap->end);
    ++gap;
  }
  return out;
}

// Of this thread: what other programs do is not in it.
double processor_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

// Calls and pieces of work: a node each.
size_t nodes_of(std::span<const Timeline> timelines) {
  size_t out = 0;
  for (const Timeline& timeline : timelines) {
    out += timeline.works;
    for (const HostThread& thread : timeline.threads) out += thread.call_count;
  }
  return out;
}

}  // namespace

Replay::Replay(std::span<const Timeline> timelines, const RankComparison& ranks,
               ReplayLimits limits)
    : limits_(limits) {
  bool steps = false;
  for (const Timeline& timeline : timelines) {
    step_ends_.add_rank(timeline.steps.size());
    steps = steps || timeline.steps.size() > 1 || timeline.whole_window;
  }
  if (!steps) return;
  ended_ = run(timelines, ranks);
  if (!ended_) return;
  for (size_t i = 0; i < step_times_.size(); ++i) {
    step_times_[i] = mean_step(i);
    median_times_[i] = median_step(i);
  }
}

// Whether all of it ends in time, as far as what is done tells.
bool Replay::in_time(double begun, size_t nodes) {
  constexpr size_t kTells = 100;  // a part of all
  if (nodes_ < nodes / kTells || nodes_ == 0) return true;
  const double all = (processor_seconds() - begun) * static_cast<double>(nodes) /
                     static_cast<double>(std::min(nodes, nodes_));
  if (all <= limits_.seconds) return true;
  would_take_ = all;
  return false;
}

bool Replay::run(std::span<const Timeline> timelines, const RankComparison& comparison) {
  const double begun = processor_seconds();
  const size_t nodes = nodes_of(timelines);
  ReplayPiece piece(step_ends_);
  std::vector<RankReplay> ranks;
  const int64_t origin = earliest(timelines);
  const ReplayClocks clocks = replay_clocks(timelines, comparison);
  contradiction_ = clocks.contradiction;
  // A rank whose window began earlier did its first step beside another step of the others.
  const bool with_first = !comparison.windows_differ &&
                          std::any_of(timelines.begin(), timelines.end(), first_stands_out);
  for (size_t i = 0; i < timelines.size(); ++i) {
    const Timeline& timeline = timelines[i];
    const size_t known_from = first_known(timeline);
    measured_.push_back(comparison.apart ? StepRange{0, timeline.steps.size()}
                                         : comparison.joint_steps[i]);
    measured_.back().first = std::max(measured_.back().first, known_from);
    between_.push_back(between_before(timeline));
    const bool known = known_from == 0 && !timeline.steps.empty();
    const bool from_begin = (with_first && known) || timeline.whole_window;
    const int64_t begin = from_begin ? timeline.steps.front().begin : INT64_MIN;
    window_begins_.push_back(from_begin ? begin - origin - clocks.ahead[i] : INT64_MIN);
    ranks.emplace_back(timeline, comparison, static_cast<uint32_t>(i), origin, begin, clocks,
                       piece);
  }
  const auto advance = [&](size_t rank) {
    const bool more = !ranks[rank].at_end();
    if (more) ranks[rank].advance();
    return more;
  };
  for (bool more = true; more;) {
    more = false;
    // To make a piece takes longer than to keep what is left of it, so that all of them take a time
    // that grows with the events alone.
    const size_t share = std::max(kNodesOfPiece, 2 * piece.kept()) / ranks.size();
    for (size_t i = 0; i < ranks.size(); ++i) {
      const size_t enough = piece.size() + share;
      while (piece.size() <= enough && advance(i)) more = true;
    }
    // All ranks have come to a collective, or none has.
    while (!piece.whole()) {
      bool any = false;
      for (size_t i = 0; i < ranks.size(); ++i) {
        while (piece.lacks(static_cast<uint32_t>(i)) && advance(i)) {
          any = true;
          if (piece.size() > limits_.nodes) return false;
        }
      }
      if (!any) break;
    }
    if (piece.size() > limits_.nodes) return false;
    finish_piece(piece, ranks);
    if (more && !in_time(begun, nodes)) return false;
  }
  return true;
}

void Replay::finish_piece(ReplayPiece& piece, std::vector<RankReplay>& ranks) {
  piece.work_out();
  nodes_ += piece.size();
  piece.begin_keeping();
  for (RankReplay& rank : ranks) {
    rank.forget_old();
    rank.each_kept([&](uint32_t& node) { node = piece.keep(node); });
  }
  piece.restart();
  carried_ += piece.kept();
}

Replay::Ends Replay::ends_of(size_t rank, size_t which) const {
  const auto& steps = step_ends_.of(rank);
  Ends out;
  for (size_t step = measured_[rank].first; step < measured_[rank].end; ++step) {
    const int64_t end = steps[step][which];
    if (end != INT64_MIN) out.push_back({step, end - between_[rank][step]});
  }
  return out;
}

double Replay::mean_step(size_t which) const {
  double sum = 0;
  size_t ranks = 0;
  for (size_t rank = 0; rank < step_ends_.ranks(); ++rank) {
    const Ends ends = ends_of(rank, which);
    if (ends.empty()) continue;
    if (window_begins_[rank] != INT64_MIN) {
      sum += static_cast<double>(ends.back().second - window_begins_[rank]) /
             static_cast<double>(ends.back().first + 1);
    } else if (ends.size() > 1) {
      sum += static_cast<double>(ends.back().second - ends.front().second) /
             static_cast<double>(ends.back().first - ends.front().first);
    } else {
      continue;
    }
    ++ranks;
  }
  return ranks ? std::max(0.0, sum / static_cast<double>(ranks)) : 0;
}

double Replay::median_step(size_t which) const {
  double sum = 0;
  size_t ranks = 0;
  for (size_t rank = 0; rank < step_ends_.ranks(); ++rank) {
    const Ends ends = ends_of(rank, which);
    std::vector<double> lengths;
    for (size_t i = 1; i < ends.size(); ++i) {
      if (ends[i].first != ends[i - 1].first + 1) continue;
      lengths.push_back(static_cast<double>(ends[i].second - ends[i - 1].second));
    }
    if (lengths.size() < 2) continue;
    sum += quantile(lengths, 0.5);
    ++ranks;
  }
  return ranks ? sum / static_cast<double>(ranks) : 0;
}

}  // namespace gpuprof::analysis
