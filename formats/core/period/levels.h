// SPDX-License-Identifier: Apache-2.0
// Distances at which launches come back, and the steps that each of them would make; of these
// period.cpp chooses. Not thread-safe; memory comes from mmap. A function that returns false has
// had none.
#pragma once

#include "formats/core/byte_buffer.h"
#include "formats/core/period/period.h"

namespace gpuprof {

inline constexpr size_t kFewestBursts =
    5;  // of a sequence that votes: four equal distances are no chance
inline constexpr size_t kFewestVotes = 4;  // of a distance
inline constexpr double kRegular = 0.5;    // of the stream must lie in equal distances
inline constexpr double kLeastAgreement = 0.82;

// What `count` kernels may be off where one in twenty is missing or added.
inline double tolerance(double count) { return 0.02 * count + 3 * __builtin_sqrt(0.06 * count); }

// Of at least one value, whose order changes.
double median(PodVector<double>& values);

// The bursts of one sequence of kernels, and the distance between them.
struct PeriodVote {
  double distance;
  double regular;          // share of the stream
  uint32_t first, count;   // of its bursts, among all votes'
  uint32_t length, apart;  // of the sequence; the least between bursts
};

struct PeriodLevel {
  double distance = 0;
  PodVector<uint32_t> votes;
  PodVector<double> begins;  // of the steps that most votes agree on
  double agreement = 0;      // mean share of votes for a step
  bool unclear = false;      // how many there are depends on where they begin
};

class PeriodLevels {
 public:
  bool find(const uint32_t* kernels, size_t count);

  // Numbered in order of appearance, below kinds().
  const PodVector<uint32_t>& kernels() const { return kernels_; }
  size_t kinds() const { return kinds_; }
  // The largest distance first.
  size_t size() const { return level_count_; }
  const PeriodLevel& operator[](size_t i) const { return levels_[i]; }
  // What could have voted: sequences with so many bursts, of fewer than kCounted.
  static constexpr size_t kCounted = 64;
  size_t candidates(size_t bursts) const { return candidates_[bursts]; }
  const PeriodVote& vote(uint32_t number) const { return votes_[number]; }
  // Where a vote's bursts begin.
  const uint32_t* starts(const PeriodVote& vote) const { return starts_.data() + vote.first; }

 private:
  static constexpr size_t kMostLevels = 12;

  bool number_kernels(const uint32_t* kernels, size_t count);
  bool collect_votes();
  bool split(uint32_t length);
  bool add_vote(uint32_t length, uint32_t within_burst);
  bool find_levels();
  bool agree(PeriodLevel& level);
  bool agree_of_equal_count(PeriodLevel& level);
  bool agree_of(PeriodLevel& level, const PodVector<uint32_t>& all);
  double phase_of(const PeriodVote& vote, const PeriodVote& reference, double distance) const;
  bool gather(PeriodLevel& level, double behind, double& fit);
  bool keep_alike(PeriodLevel& level, double& margin);
  template <typename Visit>
  void each_of_step(double begin, double length, const Visit& visit) const;

  PodVector<uint32_t> kernels_;
  size_t kinds_ = 0;
  size_t candidates_[kCounted] = {};
  PodVector<uint32_t> starts_;
  PodVector<PeriodVote> votes_;
  PeriodLevel levels_[kMostLevels];
  size_t level_count_ = 0;

  // Used again and again.
  PodVector<uint32_t> positions_, gaps_;
  PodVector<double> values_, phases_, said_, usual_, seen_, alike_;
  PodVector<uint32_t> speakers_;  // votes that are heard of a level
  PodVector<size_t> until_;
};

}  // namespace gpuprof
