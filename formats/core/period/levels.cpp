// SPDX-License-Identifier: Apache-2.0
#include "formats/core/period/levels.h"

#include <algorithm>

#include "formats/core/interned.h"
#include "formats/core/plain_math.h"

namespace gpuprof {
namespace {

constexpr double kLevelWidth = 0.05;  // votes that differ by less are for the same distance
constexpr double kAgreed = 0.25;      // of votes make a step
constexpr double kAlike = 0.88;       // of a long step's kernels are those that steps usually have
constexpr double kLessAlike = 0.12;   // than most steps
constexpr double kClear = 0.2;        // between steps and what is none
constexpr double kFewOfMany = 0.01;   // of steps: one at either end, of more than a hundred
constexpr int kTurns = 16;            // places in a step where it may begin
constexpr size_t kMostSaid = 60'000;  // bursts that are heard of a level
constexpr size_t kMostCuts = 5;
constexpr size_t kMostRounds = 100;   // in which levels are looked for
constexpr double kWeight = 1u << 20;  // of a vote for which the whole stream is regular

struct Occurrence {
  uint64_t hash;
  uint32_t position;
};

uint64_t mix(uint64_t x) {
  x ^= x >> 33;
  x *= 0xff51afd7ed558ccdULL;
  x ^= x >> 33;
  x *= 0xc4ceb9fe1a85ec53ULL;
  return x ^ (x >> 33);
}

}  // namespace

double median(PodVector<double>& values) {
  double* const middle = values.begin() + values.size() / 2;
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

bool PeriodLevels::find(const uint32_t* kernels, size_t count) {
  return number_kernels(kernels, count) && collect_votes() && find_levels();
}

bool PeriodLevels::number_kernels(const uint32_t* kernels, size_t count) {
  Interned<uint32_t> numbers;
  if (!kernels_.resize(count)) return false;
  for (size_t i = 0; i < count; ++i) {
    kernels_[i] = numbers.position_of(kernels[i]);
    if (kernels_[i] == kNoPosition) return false;
  }
  kinds_ = numbers.size();
  return true;
}

bool PeriodLevels::collect_votes() {
  PodVector<Occurrence> all;
  for (size_t length = 1; length <= StepAnchor::kMost; ++length) {
    if (kernels_.size() < length) break;
    if (!all.resize(kernels_.size() - length + 1)) return false;
    for (size_t i = 0; i < all.size(); ++i) {
      uint64_t hash = length;
      for (size_t j = 0; j < length; ++j) hash = mix(hash ^ (kernels_[i + j] + 1));
      all[i] = {hash, static_cast<uint32_t>(i)};
    }
    std::sort(all.begin(), all.end(), [](const Occurrence& a, const Occurrence& b) {
      return a.hash != b.hash ? a.hash < b.hash : a.position < b.position;
    });
    for (size_t i = 0, end = 0; i < all.size(); i = end) {
      end = i;
      positions_.clear();
      while (end < all.size() && all[end].hash == all[i].hash) {
        if (!positions_.push_back(all[end++].position)) return false;
      }
      if (positions_.size() >= kFewestBursts && !split(static_cast<uint32_t>(length))) return false;
    }
  }
  return true;
}

// Occurrences are apart by distances of several sorts: in a burst, between bursts, between bursts
// of bursts. Each leap in the sorted distances may be where one sort ends.
bool PeriodLevels::split(uint32_t length) {
  struct Cut {
    double leap;
    uint32_t within;  // greatest gap within a burst
  };
  gaps_.clear();
  for (size_t i = 1; i < positions_.size(); ++i) {
    if (!gaps_.push_back(positions_[i] - positions_[i - 1])) return false;
  }
  std::sort(gaps_.begin(), gaps_.end());
  PodVector<Cut> cuts;
  for (size_t i = 1; i < gaps_.size(); ++i) {
    const double leap = static_cast<double>(gaps_[i]) / gaps_[i - 1];
    if (leap >= 1.5 && !cuts.push_back({leap, gaps_[i - 1]})) return false;
  }
  std::sort(cuts.begin(), cuts.end(), [](const Cut& a, const Cut& b) {
    return a.leap != b.leap ? a.leap > b.leap : a.within > b.within;
  });
  cuts.truncate(kMostCuts);
  for (const Cut& cut : cuts) {
    if (!add_vote(length, cut.within)) return false;
  }
  return add_vote(length, 0);
}

bool PeriodLevels::add_vote(uint32_t length, uint32_t within_burst) {
  PeriodVote vote{0, 0, static_cast<uint32_t>(starts_.size()), 0, length, within_burst + 1};
  for (size_t i = 0; i < positions_.size(); ++i) {
    if (i && positions_[i] - positions_[i - 1] <= within_burst) continue;
    if (!starts_.push_back(positions_[i])) return false;
  }
  const uint32_t* const starts = starts_.data() + vote.first;
  vote.count = static_cast<uint32_t>(starts_.size()) - vote.first;
  const auto reject = [&] {
    starts_.truncate(vote.first);
    return true;
  };
  if (vote.count < kFewestBursts) return reject();
  if (vote.count < kCounted) ++candidates_[vote.count];
  values_.clear();
  for (uint32_t i = 1; i < vote.count; ++i) {
    if (!values_.push_back(starts[i] - starts[i - 1])) return false;
  }
  vote.distance = median(values_);
  if (vote.distance < 4) return reject();
  double regular = 0, inserted = 0;
  size_t single = 0;
  for (uint32_t i = 1; i < vote.count; ++i) {
    const double gap = starts[i] - starts[i - 1];
    const double times = nearest(gap / vote.distance);
    const bool near =
        __builtin_fabs(gap - times * vote.distance) <= tolerance(times * vote.distance);
    if (times >= 1 && times <= 3 && near) {
      regular += gap;
      if (times == 1) ++single;
    } else if (gap > vote.distance) {
      inserted += gap - vote.distance;
    }
  }
  const double whole = std::max(static_cast<double>(kernels_.size()) - vote.distance,
                                static_cast<double>(starts[vote.count - 1] - starts[0]));
  vote.regular = regular / whole;
  if (2 * single < vote.count - 1) return reject();
  // What stands between steps takes nothing from their being regular, if most follow each other.
  const bool steps_in_between = regular >= kRegular * std::max(whole - inserted, 1.0) &&
                                5 * single >= size_t{3} * (vote.count - 1);
  if (vote.regular < kRegular && !steps_in_between) return reject();
  return votes_.push_back(vote);
}

// Distances that many vote for, the largest first.
bool PeriodLevels::find_levels() {
  // Of equal ones the first that was found: its bursts tell.
  std::sort(votes_.begin(), votes_.end(), [](const PeriodVote& a, const PeriodVote& b) {
    return a.distance != b.distance ? a.distance > b.distance : a.first < b.first;
  });
  PodVector<uint64_t> weights;  // whole numbers, so that what is added can be taken away
  if (!weights.resize(votes_.size())) return false;
  for (size_t i = 0; i < votes_.size(); ++i) {
    weights[i] = static_cast<uint64_t>(kWeight * votes_[i].regular);
  }
  for (size_t round = 0; round < kMostRounds && level_count_ < kMostLevels; ++round) {
    size_t best = 0, best_end = 0;
    uint64_t most = 0, weight = 0;  // of the votes from i to end
    for (size_t i = 0, end = 0; i < votes_.size(); ++i) {
      const double least = votes_[i].distance * (1 - 2 * kLevelWidth);
      for (; end < votes_.size() && votes_[end].distance >= least; ++end) weight += weights[end];
      if (weight > most) most = weight, best = i, best_end = end;
      weight -= weights[i];
    }
    if (static_cast<double>(most) < kFewestVotes * kRegular * kWeight) break;
    PeriodLevel level;
    values_.clear();
    for (size_t j = best; j < best_end; ++j) {
      if (weights[j] == 0) continue;
      weights[j] = 0;
      if (!level.votes.push_back(static_cast<uint32_t>(j)) ||
          !values_.push_back(votes_[j].distance)) {
        return false;
      }
    }
    if (level.votes.size() < kFewestVotes) continue;
    level.distance = median(values_);
    if (!agree(level)) return false;
    levels_[level_count_++] = std::move(level);
  }
  std::sort(levels_, levels_ + level_count_,
            [](const PeriodLevel& a, const PeriodLevel& b) { return a.distance > b.distance; });
  return true;
}

bool PeriodLevels::agree(PeriodLevel& level) {
  return agree_of(level, level.votes) &&
         (level.agreement >= kLeastAgreement || agree_of_equal_count(level));
}

// Launches that stand between steps, too, disagree; those of steps alone come as often as steps.
bool PeriodLevels::agree_of_equal_count(PeriodLevel& level) {
  PodVector<uint32_t> counts;
  for (const uint32_t vote : level.votes) {
    if (!counts.push_back(votes_[vote].count)) return false;
  }
  std::sort(counts.begin(), counts.end());
  uint32_t usual = 0;
  size_t most = 0;
  for (size_t i = 0, end = 0; i < counts.size(); i = end) {
    while (end < counts.size() && counts[end] == counts[i]) ++end;
    if (end - i > most) most = end - i, usual = counts[i];
  }
  if (most < kFewestVotes || 4 * most < level.votes.size()) return true;
  PodVector<uint32_t> equal;
  for (const uint32_t vote : level.votes) {
    if (votes_[vote].count == usual && !equal.push_back(vote)) return false;
  }
  PeriodLevel again;
  again.distance = level.distance;
  if (!agree_of(again, equal)) return false;
  if (again.agreement < kLeastAgreement || again.begins.size() > usual) return true;
  level.begins.swap(again.begins);
  level.agreement = again.agreement;
  level.unclear = again.unclear;
  return true;
}

// Where votes' bursts lie in the step is told by the most regular one's; each burst then says
// where its step begins. What stands between steps tells where one ends: of several places the
// one for which votes agree best.
bool PeriodLevels::agree_of(PeriodLevel& level, const PodVector<uint32_t>& all) {
  speakers_.clear();
  if (!speakers_.append(all.data(), all.size())) return false;
  std::sort(speakers_.begin(), speakers_.end(), [this](uint32_t a, uint32_t b) {
    return votes_[a].regular != votes_[b].regular ? votes_[a].regular > votes_[b].regular : a < b;
  });
  const PeriodVote& reference = votes_[speakers_[0]];
  speakers_.truncate(
      std::max<size_t>(kFewestVotes, std::min<size_t>(200, kMostSaid / reference.count)));
  if (!phases_.resize(speakers_.size())) return false;
  for (size_t i = 0; i < speakers_.size(); ++i) {
    phases_[i] = phase_of(votes_[speakers_[i]], reference, level.distance);
  }
  const double first = rest_of(starts(reference)[0], level.distance) + 1;
  double best_fit = -1;
  size_t clear_counts[kTurns], clear = 0;  // of turns that tell steps from what is none
  for (int turn = 0; turn < kTurns; ++turn) {
    PeriodLevel tried;
    tried.distance = level.distance;
    double fit = 0, margin = 0;
    if (!gather(tried, first + level.distance * turn / kTurns, fit)) return false;
    if (!keep_alike(tried, margin)) return false;
    if (margin >= kClear) clear_counts[clear++] = tried.begins.size();
    const bool more = tried.begins.size() > level.begins.size();
    const bool better = tried.begins.size() == level.begins.size() && fit > best_fit + 1e-3;
    if (!more && !better) continue;
    best_fit = fit;
    level.begins.swap(tried.begins);
    level.agreement = tried.agreement;
  }
  const size_t most = level.begins.size();  // of all turns
  level.unclear = std::any_of(clear_counts, clear_counts + clear, [&](size_t count) {
    return static_cast<double>(most - count) > kFewOfMany * static_cast<double>(most);
  });
  return true;
}

// How far a vote's bursts are behind the reference's, 0 to `distance`.
double PeriodLevels::phase_of(const PeriodVote& vote, const PeriodVote& reference,
                              double distance) const {
  double sine = 0, cosine = 0;
  const uint32_t *const begin = starts(reference), *const end = begin + reference.count;
  for (uint32_t i = 0; i < vote.count; ++i) {
    const uint32_t start = starts(vote)[i];
    const uint32_t* const after = std::upper_bound(begin, end, start);
    if (after == begin) continue;
    const double offset = start - after[-1];
    if (offset > 1.2 * distance) continue;
    const double turn = offset / distance;
    sine += sine_of_turn(turn - nearest(turn));
    cosine += sine_of_turn(turn + 0.25 - nearest(turn + 0.25));
  }
  return turn_of(sine, cosine) * distance;
}

// Where many votes meet; a lone one is noise.
bool PeriodLevels::gather(PeriodLevel& level, double behind, double& fit) {
  struct Meeting {
    double begin, share;
    bool chosen;
  };
  said_.clear();
  for (size_t i = 0; i < speakers_.size(); ++i) {
    const double phase = rest_of(phases_[i] + behind, level.distance);
    const PeriodVote& vote = votes_[speakers_[i]];
    for (uint32_t j = 0; j < vote.count; ++j) {
      if (!said_.push_back(starts(vote)[j] - phase)) return false;
    }
  }
  std::sort(said_.begin(), said_.end());
  const size_t count = said_.size();
  if (!until_.resize(count)) return false;  // votes within a quarter of a step after each
  for (size_t i = 0, end = 0; i < count; ++i) {
    while (end < count && said_[end] <= said_[i] + level.distance / 4) ++end;
    until_[i] = end;
  }
  PodVector<Meeting> meetings;
  for (size_t i = 0; i < count;) {
    size_t best = i;
    for (size_t j = i; j < until_[i]; ++j) {
      if (until_[j] - j > until_[best] - best) best = j;
    }
    const double share = std::min(
        1.0, static_cast<double>(until_[best] - best) / static_cast<double>(speakers_.size()));
    if (share < kAgreed) {
      ++i;
      continue;
    }
    if (!meetings.push_back({said_[(best + until_[best]) / 2], share, false})) return false;
    i = until_[best];
  }
  // Where fewer meet within half a step of where more do is no begin.
  PodVector<uint32_t> order;
  for (uint32_t i = 0; i < meetings.size(); ++i) {
    if (!order.push_back(i)) return false;
  }
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    return meetings[a].share != meetings[b].share ? meetings[a].share > meetings[b].share : a < b;
  });
  double sum = 0, squares = 0;
  for (const uint32_t number : order) {
    const double begin = meetings[number].begin, half = level.distance / 2;
    bool near = false;
    for (size_t i = number; i-- > 0 && meetings[i].begin >= begin - half;) {
      near |= meetings[i].chosen;
    }
    for (size_t i = number + 1; i < meetings.size() && meetings[i].begin <= begin + half; ++i) {
      near |= meetings[i].chosen;
    }
    if (near) continue;
    meetings[number].chosen = true;
    sum += meetings[number].share;
    squares += meetings[number].share * meetings[number].share;
  }
  for (const Meeting& meeting : meetings) {
    if (meeting.chosen && !level.begins.push_back(meeting.begin)) return false;
  }
  fit = level.begins.empty() ? 0 : squares / sum;
  level.agreement = level.begins.empty() ? 0 : sum / static_cast<double>(level.begins.size());
  return true;
}

template <typename Visit>
void PeriodLevels::each_of_step(double begin, double length, const Visit& visit) const {
  const auto from = static_cast<size_t>(std::max(0.0, begin));
  const auto to = std::min(from + static_cast<size_t>(length), kernels_.size());
  for (size_t i = from; i < to; ++i) visit(kernels_[i]);
}

// Evaluation has the kernels of the forward pass only, and is no step; nor is a piece of one at
// either end. `margin`: between the steps and what is none.
bool PeriodLevels::keep_alike(PeriodLevel& level, double& margin) {
  const double length = level.distance, whole = static_cast<double>(kernels_.size());
  size_t kept = 0;
  for (const double begin : level.begins) {
    if (begin < -0.1 * length || begin + 0.85 * length > whole) continue;
    level.begins[kept++] = begin;
  }
  level.begins.truncate(kept);
  if (kept == 0) return true;
  if (!usual_.resize(kinds_) || !seen_.resize(kinds_) || !alike_.resize(kept)) return false;
  std::fill(usual_.begin(), usual_.end(), 0.0);
  std::fill(seen_.begin(), seen_.end(), 0.0);
  for (const double begin : level.begins) {
    each_of_step(begin, length, [&](uint32_t kernel) { ++usual_[kernel]; });
  }
  for (double& count : usual_) count /= static_cast<double>(kept);
  for (size_t i = 0; i < kept; ++i) {
    const double begin = level.begins[i];
    double common = 0;
    each_of_step(begin, length, [&](uint32_t kernel) {
      common += std::clamp(usual_[kernel] - seen_[kernel], 0.0, 1.0);
      ++seen_[kernel];
    });
    each_of_step(begin, length, [&](uint32_t kernel) { seen_[kernel] = 0; });
    alike_[i] = common / std::min(length, whole - std::max(0.0, begin));
  }
  values_.clear();
  if (!values_.append(alike_.data(), kept)) return false;
  const double least = std::max(kAlike - 1 / __builtin_sqrt(length), median(values_) - kLessAlike);
  double least_kept = 1, most_left = -1;
  size_t alike = 0;
  for (size_t i = 0; i < kept; ++i) {
    if (alike_[i] >= least) {
      level.begins[alike++] = level.begins[i];
      least_kept = std::min(least_kept, alike_[i]);
    } else {
      most_left = std::max(most_left, alike_[i]);
    }
  }
  level.begins.truncate(alike);
  margin = alike ? least_kept - (most_left < 0 ? least : most_left) : 0;
  return true;
}

}  // namespace gpuprof
