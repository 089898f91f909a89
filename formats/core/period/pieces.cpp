// SPDX-License-Identifier: Apache-2.0
#include "formats/core/period/pieces.h"

#include <algorithm>

#include "formats/core/period/choice.h"

namespace gpuprof {
namespace {

constexpr size_t kPieces[] = {8, 4};  // a piece needs some steps, and most lie between two changes
constexpr size_t kMostPieces = 8;
constexpr size_t kMostTried = 64;    // anchors
constexpr double kExplained = 0.98;  // of the distances between an anchor's launches
constexpr double kMostOfStream = 0.9;
constexpr double kUnsure = 0.5;

struct Candidate {
  StepAnchor anchor;
  uint32_t pieces;  // in which it comes once in each step
  uint32_t number;  // in order of appearance
};

bool same(const StepAnchor& a, const StepAnchor& b) {
  return a.count == b.count && std::equal(a.kernels, a.kernels + a.count, b.kernels);
}

class PieceWalker {
 public:
  PieceWalker(const uint32_t* kernels, size_t count, size_t pieces)
      : kernels_(kernels), count_(count), pieces_(pieces) {}

  // False: no memory.
  bool find(Period& out, bool& changes);

 private:
  size_t begin_of(size_t piece) const { return count_ * piece / pieces_; }
  bool look_at(size_t piece);
  bool add(const StepAnchor& anchor);
  bool matches(const StepAnchor& anchor, size_t at) const;
  bool walk(const StepAnchor& anchor);
  bool is_explained(size_t begin, size_t end) const;
  bool change_one_way(bool& changes) const;
  double explained() const;

  const uint32_t* kernels_;
  const size_t count_, pieces_;
  double lengths_[kMostPieces] = {};  // of a step, by piece; 0: not known
  PodVector<Candidate> candidates_;
  PodVector<size_t> begins_;
};

bool PieceWalker::look_at(size_t piece) {
  const size_t begin = begin_of(piece), size = begin_of(piece + 1) - begin;
  PeriodLevels levels;
  Period period;
  PodVector<StepAnchor> anchors;
  if (!levels.find(kernels_ + begin, size) ||
      !choose_period(levels, kernels_ + begin, period, &anchors)) {
    return false;
  }
  lengths_[piece] = period.length;
  for (const StepAnchor& anchor : anchors) {
    if (!add(anchor)) return false;
  }
  return true;
}

bool PieceWalker::add(const StepAnchor& anchor) {
  for (Candidate& known : candidates_) {
    if (!same(known.anchor, anchor)) continue;
    ++known.pieces;
    known.anchor.apart = std::max(known.anchor.apart, anchor.apart);
    return true;
  }
  return candidates_.push_back({anchor, 1, static_cast<uint32_t>(candidates_.size())});
}

bool PieceWalker::matches(const StepAnchor& anchor, size_t at) const {
  return at + anchor.count <= count_ &&
         std::equal(anchor.kernels, anchor.kernels + anchor.count, kernels_ + at);
}

// The first launch of each burst of the anchor.
bool PieceWalker::walk(const StepAnchor& anchor) {
  begins_.clear();
  size_t last = 0;
  for (size_t i = 0; i < count_; ++i) {
    if (!matches(anchor, i)) continue;
    const bool first = begins_.empty() || i - last >= anchor.apart;
    last = i;
    if (first && !begins_.push_back(i)) return false;
  }
  return true;
}

// By the steps of the piece that it begins in, and of those around it.
bool PieceWalker::is_explained(size_t begin, size_t end) const {
  const size_t piece = std::min(pieces_ - 1, begin * pieces_ / count_);
  double least = 0, most = 0;
  const auto take = [&](double length) {
    least = least > 0 ? std::min(least, length) : length;
    most = std::max(most, length);
  };
  if (lengths_[piece] > 0) take(lengths_[piece]);
  size_t before = piece, after = piece + 1;
  while (before > 0 && lengths_[before - 1] == 0) --before;
  while (after < pieces_ && lengths_[after] == 0) ++after;
  if (before > 0) take(lengths_[before - 1]);
  if (after < pieces_) take(lengths_[after]);
  const auto gap = static_cast<double>(end - begin);
  return most > 0 && gap >= least - tolerance(least) && gap <= most + tolerance(most);
}

// Steps that become longer, then shorter, then longer are something else in turn: evaluation.
bool PieceWalker::change_one_way(bool& changes) const {
  bool grow = false, shrink = false;
  double last = 0;
  for (size_t piece = 0; piece < pieces_; ++piece) {
    const double length = lengths_[piece];
    if (length == 0) continue;
    grow |= last > 0 && length > last + tolerance(last);
    shrink |= last > 0 && length < last - tolerance(last);
    last = length;
  }
  changes = grow || shrink;
  return !(grow && shrink);
}

double PieceWalker::explained() const {
  if (begins_.size() < kFewestBursts) return 0;
  size_t good = 0;
  for (size_t i = 1; i < begins_.size(); ++i) good += is_explained(begins_[i - 1], begins_[i]);
  const double share = static_cast<double>(begins_[begins_.size() - 1] - begins_[0]);
  if (share < kMostOfStream * static_cast<double>(count_)) return 0;
  return static_cast<double>(good) / static_cast<double>(begins_.size() - 1);
}

bool PieceWalker::find(Period& out, bool& changes) {
  for (size_t piece = 0; piece < pieces_; ++piece) {
    if (!look_at(piece)) return false;
  }
  if (!change_one_way(changes)) return true;
  std::sort(candidates_.begin(), candidates_.end(), [](const Candidate& a, const Candidate& b) {
    return a.pieces != b.pieces ? a.pieces > b.pieces : a.number < b.number;
  });
  candidates_.truncate(kMostTried);
  const Candidate* best = nullptr;
  double most = 0;
  for (const Candidate& candidate : candidates_) {
    if (2 * candidate.pieces < pieces_) break;
    if (!walk(candidate.anchor)) return false;
    const double share = explained();
    if (share >= kExplained && share > most) best = &candidate, most = share;
  }
  if (!best) return true;
  if (!walk(best->anchor)) return false;
  PodVector<double> gaps;
  for (size_t i = 0; i < begins_.size(); ++i) {
    if (i && !gaps.push_back(static_cast<double>(begins_[i] - begins_[i - 1]))) return false;
    if (!out.begins.push_back(begins_[i])) return false;
  }
  out.length = median(gaps);
  out.anchor = best->anchor;
  // Which of the lengths are those of steps is a guess.
  out.confidence = kUnsure;
  return true;
}

}  // namespace

bool find_period_in_pieces(const uint32_t* kernels, size_t count, Period& out, bool& changes) {
  for (const size_t pieces : kPieces) {
    if (count < pieces * kFewestBursts) continue;
    if (!PieceWalker(kernels, count, pieces).find(out, changes)) return false;
    if (out.confidence > 0) return true;
  }
  return true;
}

}  // namespace gpuprof
