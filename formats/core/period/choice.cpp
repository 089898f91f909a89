// SPDX-License-Identifier: Apache-2.0
#include "formats/core/period/choice.h"

#include <algorithm>

namespace gpuprof {
namespace {

constexpr double kMadeOf = 0.7;       // of the stream, for steps that a coarser level is made of
constexpr double kLeastMadeOf = 0.2;  // where the rest is of the same kernels
constexpr double kShortest = 30;      // kernels in a step that a coarser level is made of
constexpr double kLongLayer = 60;     // kernels: more than a layer has that has no parts
constexpr double kUnsure = 0.5;       // of steps whose number may be wrong
// Batches that a step accumulates are fewer; so many equal pieces, and something else, are steps
// and what comes now and then: metrics, a checkpoint.
constexpr double kMostBatches = 16;
constexpr double kNearlyAll = 0.85;  // of a step are batches, if it accumulates some
constexpr double kLeftOut = 0.03;    // of the stream, beside an uneven step at either end

class PeriodChooser {
 public:
  // `kernels`: as the program numbers them.
  PeriodChooser(const PeriodLevels& levels, const uint32_t* kernels)
      : levels_(levels), kernels_(kernels) {}

  // False: no memory.
  bool choose(Period& out);
  // All that come as often as the steps that were chosen, but for one at either end.
  bool anchors(PodVector<StepAnchor>& out) const;

 private:
  using Level = PeriodLevel;
  // A kernel's share of what is looked at, by its number.
  using Counts = PodVector<double>;

  size_t launches() const { return levels_.kernels().size(); }
  double coverage(const Level& level) const {
    return static_cast<double>(level.begins.size()) * level.distance /
           static_cast<double>(launches());
  }
  size_t begin_of(const Level& level, size_t step) const {
    return static_cast<size_t>(std::max(0.0, level.begins[step]));
  }

  static bool lies_in(const Level& level, double position);
  double share_of(const Level& coarse, const Level& fine) const;
  bool composite(const Level& level) const;
  bool made_of(const Level& coarse, const Level& fine);
  bool made_of_batches(const Level& level) const;
  bool leaves_steps_out(const Level& level);
  bool stands_between(const Level& coarse, const Level& fine, double steps, double rest) const;
  double likeness(const PodVector<double>& begins, double length);
  bool plausible(const Level& level) const;
  bool period_of(const Level& level, Period& out);
  StepAnchor best_anchor(const Level& level) const;
  StepAnchor anchor_of(const PeriodVote& vote) const;

  const PeriodLevels& levels_;
  const uint32_t* kernels_;
  Counts in_steps_, between_, left_;
  PodVector<double> values_;
  const Level* chosen_ = nullptr;
  bool ok_ = true;  // memory was had
};

bool PeriodChooser::lies_in(const Level& level, double position) {
  const double* const after = std::upper_bound(level.begins.begin(), level.begins.end(), position);
  return after != level.begins.begin() && position < after[-1] + level.distance;
}

// Of what lies in the coarse level's steps, what lies in those of the fine one, too.
double PeriodChooser::share_of(const Level& coarse, const Level& fine) const {
  double inside = 0;
  for (const double begin : fine.begins) {
    if (lies_in(coarse, begin + fine.distance / 2)) inside += fine.distance;
  }
  const double all = static_cast<double>(coarse.begins.size()) * coarse.distance;
  return all > 0 ? inside / all : 0;
}

// Steps have layers; a layer has no parts that repeat.
bool PeriodChooser::composite(const Level& level) const {
  for (size_t i = 0; i < levels_.size(); ++i) {
    const Level& finer = levels_[i];
    if (finer.distance < level.distance / 1.6 && coverage(finer) >= kRegular) return true;
  }
  return false;
}

// Whether what a coarser level has beside the steps of a finer one is something that stands
// between steps, rather than their end: launches that steps have, too (evaluation), or as many
// other ones as a step (a prompt before the tokens).
bool PeriodChooser::made_of(const Level& coarse, const Level& fine) {
  if (coarse.distance < 1.6 * fine.distance || fine.distance < kShortest) return false;
  if (fine.begins.size() < 2) return false;
  if (static_cast<double>(fine.begins.size()) >
          kMostBatches * static_cast<double>(coarse.begins.size()) &&
      share_of(coarse, fine) >= kMadeOf && (fine.distance >= kLongLayer || composite(fine))) {
    return true;
  }
  ok_ = ok_ && in_steps_.resize(levels_.kinds()) && between_.resize(levels_.kinds());
  if (!ok_) return false;
  std::fill(in_steps_.begin(), in_steps_.end(), 0.0);
  std::fill(between_.begin(), between_.end(), 0.0);
  const PodVector<uint32_t>& kernels = levels_.kernels();
  double steps = 0, rest = 0;
  for (size_t i = 0; i < fine.begins.size(); ++i) {
    const size_t begin = begin_of(fine, i);
    const bool last = i + 1 == fine.begins.size();
    const size_t next = std::min(launches(), last ? launches() : begin_of(fine, i + 1));
    const size_t end =
        std::min(next, begin + static_cast<size_t>(fine.distance + tolerance(fine.distance) / 2));
    for (size_t j = begin; j < end; ++j, ++steps) ++in_steps_[kernels[j]];
    if (last) break;
    for (size_t j = end; j < next; ++j) {
      if (!lies_in(coarse, static_cast<double>(j))) continue;
      ++rest;
      ++between_[kernels[j]];
    }
  }
  return rest >= 0.004 * steps && steps > 0 && stands_between(coarse, fine, steps, rest);
}

// Whether these may be a few steps each, and something small that follows them.
bool PeriodChooser::made_of_batches(const Level& level) const {
  for (size_t i = 0; i < levels_.size(); ++i) {
    const Level& fine = levels_[i];
    if (level.distance < 1.6 * fine.distance || fine.distance < kShortest) continue;
    if (plausible(fine) && share_of(level, fine) >= kNearlyAll) return true;
  }
  return false;
}

// Whether more than a bit of what steps launch lies outside of all.
bool PeriodChooser::leaves_steps_out(const Level& level) {
  const PodVector<uint32_t>& kernels = levels_.kernels();
  ok_ = ok_ && left_.resize(levels_.kinds());
  if (!ok_) return true;
  std::fill(left_.begin(), left_.end(), 0.0);
  const auto each = [&](bool inside, auto what) {
    size_t end = 0;
    for (size_t i = 0; i <= level.begins.size(); ++i) {
      const size_t begin = i < level.begins.size() ? begin_of(level, i) : launches();
      if (!inside) {
        for (size_t j = end; j < begin; ++j) what(kernels[j]);
      }
      const auto length = static_cast<size_t>(level.distance + tolerance(level.distance));
      end = std::min(launches(), begin + length);
      for (size_t j = begin; inside && j < end; ++j) what(kernels[j]);
    }
  };
  each(true, [&](uint32_t kernel) { left_[kernel] = 1; });
  double outside = 0;
  each(false, [&](uint32_t kernel) { outside += left_[kernel]; });
  return outside > kLeftOut * static_cast<double>(launches()) + 2 * level.distance;
}

// `steps`, `rest`: launches in `in_steps_`, `between_`.
bool PeriodChooser::stands_between(const Level& coarse, const Level& fine, double steps,
                                   double rest) const {
  const double often_in_steps = 0.3 * steps / 200, often_between = 0.3 * rest / 200;
  double shared = 0;
  size_t distinct_shared = 0, distinct_between = 0, distinct_steps = 0;
  for (size_t kernel = 0; kernel < levels_.kinds(); ++kernel) {
    const double in = in_steps_[kernel], out = between_[kernel];
    if (in > 0 && in >= often_in_steps) ++distinct_steps;
    if (out == 0) continue;
    const bool often = out >= often_between;
    if (often) ++distinct_between;
    if (in > 0 && in / steps >= 0.2 * out / rest) {
      shared += out;
      if (often) ++distinct_shared;
    }
  }
  const double groups = coarse.begins.empty() ? 1 : static_cast<double>(coarse.begins.size());
  const double each = rest / groups;
  if (each >= 0.3 * fine.distance && shared >= 0.5 * rest &&
      4 * distinct_shared >= distinct_steps && share_of(coarse, fine) >= kLeastMadeOf) {
    return true;
  }
  return share_of(coarse, fine) >= kMadeOf && composite(fine) && each >= 0.5 * fine.distance &&
         each <= 3 * fine.distance &&
         static_cast<double>(distinct_between) >= 0.6 * static_cast<double>(distinct_steps);
}

// How alike steps are: what of a step's kernels the one before it has as often.
double PeriodChooser::likeness(const PodVector<double>& begins, double length) {
  const PodVector<uint32_t>& kernels = levels_.kernels();
  ok_ = ok_ && left_.resize(levels_.kinds());
  if (!ok_) return 0;
  std::fill(left_.begin(), left_.end(), 0.0);
  values_.clear();
  const auto each = [&](double begin, auto what) {
    const auto from = static_cast<size_t>(std::max(0.0, begin));
    const size_t to = std::min(launches(), from + static_cast<size_t>(length));
    for (size_t j = from; j < to; ++j) what(kernels[j]);
  };
  for (size_t i = 0; i < begins.size(); ++i) {
    double common = 0;  // with the one before, whose kernels are in left_
    each(begins[i], [&](uint32_t kernel) {
      if (left_[kernel] > 0) --left_[kernel], ++common;
    });
    if (i) {
      each(begins[i - 1], [&](uint32_t kernel) { left_[kernel] = 0; });
      ok_ = ok_ && values_.push_back(common / length);
    }
    each(begins[i], [&](uint32_t kernel) { ++left_[kernel]; });
  }
  return values_.empty() ? 0 : median(values_);
}

// Steps of a length, except where something else stands between two.
bool PeriodChooser::plausible(const Level& level) const {
  const size_t count = level.begins.size();
  if (count < kFewestBursts || coverage(level) > 1.12) return false;
  size_t even = 0, short_ones = 0;
  for (size_t i = 1; i < count; ++i) {
    const double gap = level.begins[i] - level.begins[i - 1];
    if (__builtin_fabs(gap - level.distance) <= 1.5 * tolerance(level.distance)) ++even;
    if (gap < 0.6 * level.distance) ++short_ones;
  }
  const double least_even = level.votes.size() < 12 && count < 10 ? 0.85 : 0.5;
  if (static_cast<double>(even) < least_even * static_cast<double>(count - 1)) return false;
  if (short_ones > count / 20) return false;
  // Four equal distances may be chance where thousands of sequences have as many; eight are not.
  size_t could = 0;
  for (size_t i = count * 4 / 5; i <= count * 6 / 5 && i < PeriodLevels::kCounted; ++i) {
    could += levels_.candidates(i);
  }
  return count >= 9 || 10 * level.votes.size() >= could;
}

bool PeriodChooser::choose(Period& out) {
  size_t unclear = 0;  // votes for a level that does not hold
  for (size_t i = 0; i < levels_.size(); ++i) {
    const Level& level = levels_[i];
    if (!plausible(level)) {
      unclear = std::max(unclear, level.votes.size());
      continue;
    }
    bool descend = false;
    for (size_t j = i + 1; j < levels_.size() && !descend; ++j) {
      const Level& finer = levels_[j];
      descend = plausible(finer) && 30 * finer.votes.size() >= level.votes.size() &&
                made_of(level, finer) && likeness(finer.begins, finer.distance) >= 0.6;
    }
    if (descend) continue;
    // A coarser period that was there, but not steady: what is steady within may be its layers.
    if (unclear <= level.votes.size() && !period_of(level, out)) return false;
    return ok_;
  }
  return ok_;
}

bool PeriodChooser::period_of(const Level& level, Period& out) {
  PodVector<double> gaps;
  for (size_t i = 1; i < level.begins.size(); ++i) {
    if (!gaps.push_back(level.begins[i] - level.begins[i - 1])) return false;
  }
  const double length = median(gaps);
  double even = 0;
  for (const double gap : gaps) {
    if (__builtin_fabs(gap - length) <= 1.5 * tolerance(length)) ++even;
  }
  even /= static_cast<double>(gaps.size());
  const double alike = likeness(level.begins, length);
  const double votes = std::min(1.0, static_cast<double>(level.votes.size()) / 6);
  if (level.agreement < kLeastAgreement) return true;
  double confidence =
      std::min({1.0, 1.15 * level.agreement, 1.1 * alike, 0.3 + 0.8 * even}) * (0.7 + 0.3 * votes);
  if (confidence < kLeastConfidence) return true;
  // What stands between steps may hide some; few large ones may be made of small ones; and a
  // coarser period that most votes agree on may be the step, this a part of it.
  bool small_ones = false, large_ones = false;
  for (size_t i = 0; i < levels_.size(); ++i) {
    const Level& other = levels_[i];
    small_ones |=
        1.6 * other.distance < level.distance && 2 * other.begins.size() > 3 * level.begins.size();
    large_ones |= other.distance > 1.6 * level.distance && other.begins.size() >= kFewestBursts &&
                  other.agreement >= kLeastAgreement &&
                  10 * other.votes.size() >= level.votes.size() && !made_of(other, level);
  }
  if (even < 1 || level.unclear || large_ones || leaves_steps_out(level) ||
      made_of_batches(level) || (small_ones && level.begins.size() < 10)) {
    confidence = std::min(confidence, kUnsure);
  }
  const double first = level.begins[0];
  for (const double begin : level.begins) {
    const double at = first < length ? begin - first : begin;
    if (!out.begins.push_back(static_cast<size_t>(std::max(0.0, at)))) return false;
  }
  out.length = length;
  out.confidence = confidence;
  out.anchor = best_anchor(level);
  chosen_ = &level;
  return true;
}

size_t apart(size_t a, size_t b) { return a > b ? a - b : b - a; }

// Of votes that come as often as steps, the most regular one.
StepAnchor PeriodChooser::best_anchor(const Level& level) const {
  const PeriodVote* best = nullptr;
  const auto off = [&](const PeriodVote& vote) { return apart(vote.count, level.begins.size()); };
  for (const uint32_t number : level.votes) {
    const PeriodVote& vote = levels_.vote(number);
    if (!best || off(vote) < off(*best) ||
        (off(vote) == off(*best) && vote.regular > best->regular)) {
      best = &vote;
    }
  }
  return best ? anchor_of(*best) : StepAnchor{};
}

StepAnchor PeriodChooser::anchor_of(const PeriodVote& vote) const {
  StepAnchor out;
  out.count = vote.length;
  out.apart = vote.apart;
  const uint32_t at = levels_.starts(vote)[0];
  for (uint32_t i = 0; i < vote.length; ++i) out.kernels[i] = kernels_[at + i];
  return out;
}

bool PeriodChooser::anchors(PodVector<StepAnchor>& out) const {
  if (!chosen_) return true;
  for (const uint32_t number : chosen_->votes) {
    const PeriodVote& vote = levels_.vote(number);
    const bool each_step = apart(vote.count, chosen_->begins.size()) <= 1;
    if (each_step && !out.push_back(anchor_of(vote))) return false;
  }
  return true;
}

}  // namespace

bool choose_period(const PeriodLevels& levels, const uint32_t* kernels, Period& out,
                   PodVector<StepAnchor>* anchors) {
  PeriodChooser chooser(levels, kernels);
  if (!chooser.choose(out)) return false;
  return !anchors || chooser.anchors(*anchors);
}

}  // namespace gpuprof
