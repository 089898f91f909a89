// SPDX-License-Identifier: Apache-2.0
#include "tools/analysis/period.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <unordered_map>
#include <unordered_set>

namespace gpuprof::analysis {
namespace {

constexpr size_t kFewestBursts = 5;  // of a sequence that votes: four equal distances are no chance
constexpr size_t kFewestVotes = 4;   // of a distance
constexpr double kRegular = 0.5;     // of the stream must lie in equal distances
constexpr double kLevelWidth = 0.05;  // votes that differ by less are for the same distance
constexpr double kMadeOf = 0.7;       // of the stream, for steps that a coarser level is made of
constexpr double kAgreed = 0.25;      // of votes make a step
constexpr double kAlike = 0.88;       // of a long step's kernels are those that steps usually have
constexpr double kShortest = 30;      // kernels in a step that a coarser level is made of
constexpr double kUnsure = 0.5;       // of steps whose number may be wrong
constexpr double kLeastAgreement = 0.82;
constexpr int kTurns = 16;            // places in a step where it may begin
constexpr size_t kMostSaid = 60'000;  // bursts that are heard of a level
constexpr size_t kLongest = 3;        // kernels in a sequence
constexpr size_t kMostCuts = 5;
constexpr size_t kMostLevels = 12;
constexpr size_t kMostRounds = 100;   // in which levels are looked for
constexpr double kWeight = 1u << 20;  // of a vote for which the whole stream is regular

struct Occurrence {
  uint64_t hash;
  uint32_t position;
};

// The bursts of one sequence of kernels, and the distance between them.
struct Vote {
  double distance;
  double regular;  // share of the stream
  std::vector<uint32_t> starts;
};

struct Level {
  double distance;
  std::vector<const Vote*> votes;
  std::vector<double> begins;  // of the steps that most votes agree on
  double agreement = 0;        // mean share of votes for a step
};

// What `count` kernels may be off where one in twenty is missing or added.
double tolerance(double count) { return 0.02 * count + 3 * std::sqrt(0.06 * count); }

uint64_t mix(uint64_t x) {
  x ^= x >> 33;
  x *= 0xff51afd7ed558ccdULL;
  x ^= x >> 33;
  x *= 0xc4ceb9fe1a85ec53ULL;
  return x ^ (x >> 33);
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<int64_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

class PeriodFinder {
 public:
  // Kernels are numbered in order of appearance.
  explicit PeriodFinder(std::span<const uint32_t> kernels) {
    std::unordered_map<uint32_t, uint32_t> numbers;
    kernels_.reserve(kernels.size());
    for (const uint32_t kernel : kernels) {
      kernels_.push_back(
          numbers.try_emplace(kernel, static_cast<uint32_t>(numbers.size())).first->second);
    }
    kinds_ = numbers.size();
  }

  Period find() {
    collect_votes();
    find_levels();
    return choose();
  }

 private:
  void collect_votes() {
    std::vector<Occurrence> all;
    for (size_t length = 1; length <= kLongest; ++length) {
      all.clear();
      for (size_t i = 0; i + length <= kernels_.size(); ++i) {
        uint64_t hash = length;
        for (size_t j = 0; j < length; ++j) hash = mix(hash ^ (kernels_[i + j] + 1));
        all.push_back({hash, static_cast<uint32_t>(i)});
      }
      std::sort(all.begin(), all.end(), [](const Occurrence& a, const Occurrence& b) {
        return a.hash != b.hash ? a.hash < b.hash : a.position < b.position;
      });
      for (size_t i = 0, end = 0; i < all.size(); i = end) {
        end = i;
        positions_.clear();
        while (end < all.size() && all[end].hash == all[i].hash) {
          positions_.push_back(all[end++].position);
        }
        if (positions_.size() >= kFewestBursts) split();
      }
    }
  }

  // Occurrences are apart by distances of several sorts: in a burst, between bursts, between bursts
  // of bursts. Each leap in the sorted distances may be where one sort ends.
  void split() {
    gaps_.clear();
    for (size_t i = 1; i < positions_.size(); ++i)
      gaps_.push_back(positions_[i] - positions_[i - 1]);
    std::sort(gaps_.begin(), gaps_.end());
    std::vector<std::pair<double, uint32_t>> cuts;  // leap, greatest gap within a burst
    for (size_t i = 1; i < gaps_.size(); ++i) {
      const double leap = static_cast<double>(gaps_[i]) / gaps_[i - 1];
      if (leap >= 1.5) cuts.emplace_back(leap, gaps_[i - 1]);
    }
    std::sort(cuts.rbegin(), cuts.rend());
    if (cuts.size() > kMostCuts) cuts.resize(kMostCuts);
    cuts.emplace_back(0, 0);
    for (const auto& [leap, cut] : cuts) vote(cut);
  }

  void vote(uint32_t within_burst) {
    Vote vote{0, 0, {positions_[0]}};
    for (size_t i = 1; i < positions_.size(); ++i) {
      if (positions_[i] - positions_[i - 1] > within_burst) vote.starts.push_back(positions_[i]);
    }
    if (vote.starts.size() < kFewestBursts) return;
    if (vote.starts.size() < kCounted) ++candidates_[vote.starts.size()];
    std::vector<double> gaps;
    for (size_t i = 1; i < vote.starts.size(); ++i) {
      gaps.push_back(vote.starts[i] - vote.starts[i - 1]);
    }
    vote.distance = median(gaps);
    if (vote.distance < 4) return;
    double regular = 0;
    size_t single = 0;
    for (const double gap : gaps) {
      const double times = std::round(gap / vote.distance);
      if (times < 1 || times > 3) continue;
      if (std::abs(gap - times * vote.distance) > tolerance(times * vote.distance)) continue;
      regular += gap;
      if (times == 1) ++single;
    }
    const double whole = std::max(static_cast<double>(kernels_.size()) - vote.distance,
                                  static_cast<double>(vote.starts.back() - vote.starts.front()));
    vote.regular = regular / whole;
    if (vote.regular < kRegular || 2 * single < gaps.size()) return;
    votes_.push_back(std::move(vote));
  }

  // Distances that many vote for, the largest first.
  void find_levels() {
    std::sort(votes_.begin(), votes_.end(),
              [](const Vote& a, const Vote& b) { return a.distance > b.distance; });
    std::vector<uint64_t> weights;  // whole numbers, so that what is added can be taken away
    for (const Vote& vote : votes_)
      weights.push_back(static_cast<uint64_t>(kWeight * vote.regular));
    for (size_t round = 0; round < kMostRounds && levels_.size() < kMostLevels; ++round) {
      size_t best = 0, best_end = 0;
      uint64_t most = 0, weight = 0;  // of the votes from i to end
      for (size_t i = 0, end = 0; i < votes_.size(); ++i) {
        const double least = votes_[i].distance * (1 - 2 * kLevelWidth);
        for (; end < votes_.size() && votes_[end].distance >= least; ++end) weight += weights[end];
        if (weight > most) most = weight, best = i, best_end = end;
        weight -= weights[i];
      }
      if (static_cast<double>(most) < kFewestVotes * kRegular * kWeight) break;
      Level level{0, {}, {}, 0};
      std::vector<double> distances;
      for (size_t j = best; j < best_end; ++j) {
        if (weights[j] == 0) continue;
        weights[j] = 0;
        level.votes.push_back(&votes_[j]);
        distances.push_back(votes_[j].distance);
      }
      if (level.votes.size() < kFewestVotes) continue;
      level.distance = median(distances);
      agree(level);
      levels_.push_back(std::move(level));
    }
    std::sort(levels_.begin(), levels_.end(),
              [](const Level& a, const Level& b) { return a.distance > b.distance; });
  }

  // Where votes' bursts lie in the step is told by the most regular one's; each burst then says
  // where its step begins. What stands between steps tells where one ends: of several places the
  // one for which votes agree best.
  void agree(Level& level) const {
    std::vector<const Vote*> votes = level.votes;
    std::sort(votes.begin(), votes.end(),
              [](const Vote* a, const Vote* b) { return a->regular > b->regular; });
    const size_t most =
        std::max<size_t>(kFewestVotes, std::min<size_t>(200, kMostSaid / votes[0]->starts.size()));
    if (votes.size() > most) votes.resize(most);
    std::vector<double> phases;
    for (const Vote* vote : votes) phases.push_back(phase_of(*vote, *votes[0], level.distance));
    const double first = std::fmod(votes[0]->starts[0], level.distance) + 1;
    double best_fit = -1;
    for (int turn = 0; turn < kTurns; ++turn) {
      Level tried{level.distance, {}, {}, 0};
      const double fit = gather(tried, votes, phases, first + level.distance * turn / kTurns);
      keep_alike(tried);
      const bool more = tried.begins.size() > level.begins.size();
      const bool better = tried.begins.size() == level.begins.size() && fit > best_fit + 1e-3;
      if (!more && !better) continue;
      best_fit = fit;
      level.begins = std::move(tried.begins);
      level.agreement = tried.agreement;
    }
  }

  // How far a vote's bursts are behind the reference's, 0 to `distance`.
  static double phase_of(const Vote& vote, const Vote& reference, double distance) {
    double sine = 0, cosine = 0;
    for (const uint32_t start : vote.starts) {
      auto at = std::upper_bound(reference.starts.begin(), reference.starts.end(), start);
      if (at == reference.starts.begin()) continue;
      const double offset = start - *std::prev(at);
      if (offset > 1.2 * distance) continue;
      sine += std::sin(2 * M_PI * offset / distance);
      cosine += std::cos(2 * M_PI * offset / distance);
    }
    return std::atan2(sine, cosine) / (2 * M_PI) * distance;
  }

  // Where many votes meet; a lone one is noise.
  static double gather(Level& level, const std::vector<const Vote*>& votes,
                       const std::vector<double>& phases, double behind) {
    std::vector<double> said;
    for (size_t i = 0; i < votes.size(); ++i) {
      double phase = std::fmod(phases[i] + behind, level.distance);
      if (phase < 0) phase += level.distance;
      for (const uint32_t start : votes[i]->starts) said.push_back(start - phase);
    }
    std::sort(said.begin(), said.end());
    const size_t count = said.size();
    std::vector<size_t> until(count);  // votes within a quarter of a step after each
    for (size_t i = 0, end = 0; i < count; ++i) {
      while (end < count && said[end] <= said[i] + level.distance / 4) ++end;
      until[i] = end;
    }
    double sum = 0, squares = 0;
    for (size_t i = 0; i < count;) {
      size_t best = i;
      for (size_t j = i; j < until[i]; ++j) {
        if (until[j] - j > until[best] - best) best = j;
      }
      const double share = std::min(
          1.0, static_cast<double>(until[best] - best) / static_cast<double>(votes.size()));
      if (share < kAgreed) {
        ++i;
        continue;
      }
      level.begins.push_back(said[(best + until[best]) / 2]);
      sum += share;
      squares += share * share;
      const double past = said[best] + level.distance / 2;
      for (i = until[best]; i < count && said[i] < past;) ++i;
    }
    if (level.begins.empty()) return 0;
    level.agreement = sum / static_cast<double>(level.begins.size());
    return squares / sum;
  }

  // Evaluation has the kernels of the forward pass only, and is no step; nor is a piece of one at
  // either end.
  void keep_alike(Level& level) const {
    const double length = level.distance, whole = static_cast<double>(kernels_.size());
    std::erase_if(level.begins, [&](double begin) {
      return begin < -0.1 * length || begin + 0.85 * length > whole;
    });
    if (level.begins.empty()) return;
    std::vector<double> usual(kinds_, 0.0);
    const auto each = [&](double begin, auto what) {
      const auto from = static_cast<size_t>(std::max(0.0, begin));
      const auto to = std::min(from + static_cast<size_t>(length), kernels_.size());
      for (size_t i = from; i < to; ++i) what(kernels_[i]);
    };
    for (const double begin : level.begins) each(begin, [&](uint32_t kernel) { ++usual[kernel]; });
    for (double& count : usual) count /= static_cast<double>(level.begins.size());
    std::vector<double> seen(kinds_, 0.0);
    std::erase_if(level.begins, [&](double begin) {
      double common = 0;
      each(begin, [&](uint32_t kernel) {
        common += std::clamp(usual[kernel] - seen[kernel], 0.0, 1.0);
        ++seen[kernel];
      });
      each(begin, [&](uint32_t kernel) { seen[kernel] = 0; });
      return common <
             (kAlike - 1 / std::sqrt(length)) * std::min(length, whole - std::max(0.0, begin));
    });
  }

  double coverage(const Level& level) const {
    return static_cast<double>(level.begins.size()) * level.distance /
           static_cast<double>(kernels_.size());
  }

  static bool lies_in(const Level& level, double position) {
    const auto after = std::upper_bound(level.begins.begin(), level.begins.end(), position);
    return after != level.begins.begin() && position < *std::prev(after) + level.distance;
  }

  // Steps have layers; a layer has no parts that repeat.
  bool composite(const Level& level) const {
    return std::any_of(levels_.begin(), levels_.end(), [&](const Level& finer) {
      return finer.distance < level.distance / 1.6 && coverage(finer) >= kRegular;
    });
  }

  // Whether what a coarser level has beside the steps of a finer one is something that stands
  // between steps, rather than their end: launches that steps have, too (evaluation), or as many
  // other ones as a step (a prompt before the tokens).
  bool made_of(const Level& coarse, const Level& fine) const {
    if (coarse.distance < 1.6 * fine.distance || fine.distance < kShortest) return false;
    if (fine.begins.size() < 2) return false;
    std::unordered_map<uint32_t, double> in_steps, between;
    double steps = 0, rest = 0;
    for (size_t i = 0; i < fine.begins.size(); ++i) {
      const auto begin = static_cast<size_t>(std::max(0.0, fine.begins[i]));
      const auto next = i + 1 < fine.begins.size()
                            ? static_cast<size_t>(std::max(0.0, fine.begins[i + 1]))
                            : kernels_.size();
      const auto end =
          std::min(next, begin + static_cast<size_t>(fine.distance + tolerance(fine.distance) / 2));
      for (size_t j = begin; j < std::min(end, kernels_.size()); ++j, ++steps)
        ++in_steps[kernels_[j]];
      if (i + 1 == fine.begins.size()) break;
      for (size_t j = end; j < std::min(next, kernels_.size()); ++j) {
        if (!lies_in(coarse, static_cast<double>(j))) continue;
        ++rest;
        ++between[kernels_[j]];
      }
    }
    if (rest < 0.004 * steps || steps == 0) return false;
    double shared = 0;
    size_t distinct_shared = 0, distinct_between = 0, distinct_steps = 0;
    for (const auto& [kernel, count] : between) {
      const auto at = in_steps.find(kernel);
      if (at != in_steps.end() && at->second / steps >= 0.2 * count / rest) {
        shared += count;
        if (count >= 0.3 * rest / 200) ++distinct_shared;
      }
      if (count >= 0.3 * rest / 200) ++distinct_between;
    }
    for (const auto& [kernel, count] : in_steps) {
      if (count >= 0.3 * steps / 200) ++distinct_steps;
    }
    const double groups = static_cast<double>(coarse.begins.empty() ? 1 : coarse.begins.size());
    const double each = rest / groups;
    if (each >= 0.3 * fine.distance && shared >= 0.5 * rest &&
        4 * distinct_shared >= distinct_steps) {
      return true;
    }
    return coverage(fine) >= kMadeOf && composite(fine) && each >= 0.5 * fine.distance &&
           each <= 3 * fine.distance &&
           static_cast<double>(distinct_between) >= 0.6 * static_cast<double>(distinct_steps);
  }

  // How alike steps are: what of a step's kernels the one before it has as often.
  double likeness(const std::vector<double>& begins, double length) const {
    std::vector<double> found;
    std::unordered_map<uint32_t, int> before, now;
    for (size_t i = 0; i < begins.size(); ++i) {
      now.clear();
      const auto begin = static_cast<size_t>(std::max(0.0, begins[i]));
      const auto end = std::min(kernels_.size(), begin + static_cast<size_t>(length));
      for (size_t j = begin; j < end; ++j) ++now[kernels_[j]];
      double common = 0;
      for (const auto& [kernel, count] : now) {
        if (const auto at = before.find(kernel); at != before.end()) {
          common += std::min(count, at->second);
        }
      }
      if (i) found.push_back(common / length);
      std::swap(before, now);
    }
    return found.empty() ? 0 : median(found);
  }

  // Steps of a length, except where something else stands between two.
  bool plausible(const Level& level) const {
    if (level.begins.size() < kFewestBursts || coverage(level) > 1.12) return false;
    size_t even = 0, short_ones = 0;
    for (size_t i = 1; i < level.begins.size(); ++i) {
      const double gap = level.begins[i] - level.begins[i - 1];
      if (std::abs(gap - level.distance) <= 1.5 * tolerance(level.distance)) ++even;
      if (gap < 0.6 * level.distance) ++short_ones;
    }
    const double least_even = level.votes.size() < 12 && level.begins.size() < 10 ? 0.85 : 0.5;
    if (even < least_even * static_cast<double>(level.begins.size() - 1)) return false;
    if (short_ones > level.begins.size() / 20) return false;
    // Four equal distances may be chance where thousands of sequences have as many; eight are not.
    size_t could = 0;
    const size_t count = level.begins.size();
    for (size_t i = count * 4 / 5; i <= count * 6 / 5 && i < kCounted; ++i) could += candidates_[i];
    return count >= 9 || 10 * level.votes.size() >= could;
  }

  Period choose() const {
    Period out;
    size_t unclear = 0;  // votes for a level that does not hold
    for (size_t i = 0; i < levels_.size(); ++i) {
      const Level& level = levels_[i];
      if (!plausible(level)) {
        unclear = std::max(unclear, level.votes.size());
        continue;
      }
      bool descend = false;
      for (size_t j = i + 1; j < levels_.size() && !descend; ++j) {
        descend = plausible(levels_[j]) && 30 * levels_[j].votes.size() >= level.votes.size() &&
                  made_of(level, levels_[j]) &&
                  likeness(levels_[j].begins, levels_[j].distance) >= 0.6;
      }
      if (descend) continue;
      // A coarser period that was there, but not steady: what is steady within may be its layers.
      return unclear > level.votes.size() ? out : period_of(level);
    }
    return out;
  }

  Period period_of(const Level& level) const {
    Period out;
    std::vector<double> gaps;
    for (size_t i = 1; i < level.begins.size(); ++i) {
      gaps.push_back(level.begins[i] - level.begins[i - 1]);
    }
    out.length = median(gaps);
    double even = 0;
    for (const double gap : gaps) {
      if (std::abs(gap - out.length) <= 1.5 * tolerance(out.length)) ++even;
    }
    even /= static_cast<double>(gaps.size());
    const double alike = likeness(level.begins, out.length);
    const double votes = std::min(1.0, static_cast<double>(level.votes.size()) / 6);
    if (level.agreement < kLeastAgreement) return {};
    out.confidence = std::min({1.0, 1.15 * level.agreement, 1.1 * alike, 0.3 + 0.8 * even}) *
                     (0.7 + 0.3 * votes);
    if (out.confidence < kLeastConfidence) return {};
    // What stands between steps may hide some; and few large ones may be made of small ones.
    const bool small_ones = std::any_of(levels_.begin(), levels_.end(), [&](const Level& finer) {
      const double shorter = 1.6 * finer.distance;
      return shorter < level.distance && 2 * finer.begins.size() > 3 * level.begins.size();
    });
    if (even < 1 || (small_ones && level.begins.size() < 10)) {
      out.confidence = std::min(out.confidence, kUnsure);
    }
    const double first = level.begins[0];
    for (const double begin : level.begins) {
      const double at = first < out.length ? begin - first : begin;
      out.begins.push_back(static_cast<size_t>(std::max(0.0, at)));
    }
    return out;
  }

  std::vector<uint32_t> kernels_;
  size_t kinds_ = 0;  // distinct kernels
  std::vector<uint32_t> positions_;
  std::vector<uint32_t> gaps_;
  static constexpr size_t kCounted = 64;
  std::array<size_t, kCounted> candidates_{};  // by number of bursts: what could have voted
  std::vector<Vote> votes_;
  std::vector<Level> levels_;
};

}  // namespace

Period find_period(std::span<const uint32_t> kernels) { return PeriodFinder(kernels).find(); }

}  // namespace gpuprof::analysis
