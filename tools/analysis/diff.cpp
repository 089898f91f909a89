// SPDX-License-Identifier: Apache-2.0
#include "tools/analysis/diff.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <set>
#include <utility>

#include "tools/analysis/kernel_matches.h"

namespace gpuprof::analysis {
namespace {

struct Pair {
  Change change;
  const KeySample* base = nullptr;
  const KeySample* other = nullptr;
};

// What one run left out on its way, or was not told to record, would look like a change.
bool differs(const RunSample& base, const RunSample& other, ShedKind kind) {
  const auto i = static_cast<size_t>(kind);
  return base.left_out.unset[i] != other.left_out.unset[i];
}

bool compares_operators(const RunSample& base, const RunSample& other) {
  return !base.lacks_operators && !other.lacks_operators &&
         !differs(base, other, ShedKind::operators);
}

bool compares_part(const RunSample& base, const RunSample& other, Part part) {
  const auto i = static_cast<size_t>(part);
  if (base.lacks_part[i] || other.lacks_part[i]) return false;
  for (size_t kind = 0; kind < kShedKinds; ++kind) {
    const auto each = static_cast<ShedKind>(kind);
    if (needs(part, each) && differs(base, other, each)) return false;
  }
  return true;
}

// Of several kernels: what they take of each step together. Their durations are not comparable.
KeySample sum_of(const RunSample& run, const std::vector<std::string>& kernels) {
  KeySample out;
  out.step_us.resize(run.step_us.size());
  for (const std::string& name : kernels) {
    const auto found = run.keys.find({"kernel", name});
    if (found == run.keys.end()) continue;
    for (size_t i = 0; i < out.step_us.size(); ++i) out.step_us[i] += found->second.step_us[i];
    out.count += found->second.count;
  }
  return out;
}

class Pairing {
 public:
  Pairing(const RunSample& base, const RunSample& other) : base_(base), other_(other) {}

  std::vector<Pair> take() {
    for (const KernelMatch& match : match_kernels(base_, other_)) add_match(match);
    for (const auto& [key, sample] : base_.keys) {
      if (matched_base_.contains(key) || !both_have(key)) continue;
      const auto found = other_.keys.find(key);
      Pair pair = pair_of(key, &sample, found == other_.keys.end() ? nullptr : &found->second);
      pair.change.gone = !pair.other;
      pairs_.push_back(std::move(pair));
    }
    for (const auto& [key, sample] : other_.keys) {
      if (base_.keys.contains(key) || matched_other_.contains(key) || !both_have(key)) continue;
      Pair pair = pair_of(key, nullptr, &sample);
      pair.change.fresh = true;
      pairs_.push_back(std::move(pair));
    }
    return std::move(pairs_);
  }

 private:
  // Without GPU times nothing is known of kernels, nor what the rest of a step's time was for.
  bool both_have(const SampleKey& key) const {
    if (key.kind == "operator") return compares_operators(base_, other_);
    return base_.gpu_timed == other_.gpu_timed && !(key.kind == "cause" && is_lacking(key.name));
  }

  bool is_lacking(std::string_view name) const {
    for (size_t i = 0; i < kParts; ++i) {
      if (part_name(static_cast<Part>(i)) != name) continue;
      return !compares_part(base_, other_, static_cast<Part>(i));
    }
    return false;
  }

  static Pair pair_of(const SampleKey& key, const KeySample* base, const KeySample* other) {
    Pair out{};
    out.change.kind = key.kind;
    out.change.name = key.name;
    out.base = base;
    out.other = other;
    return out;
  }

  void add_match(const KernelMatch& match) {
    using Kind = KernelMatch::Kind;
    const bool renamed = match.kind == Kind::renamed;
    Pair pair{};
    pair.change.kind = renamed                     ? "kernel"
                       : match.kind == Kind::fused ? "kernels_fused"
                                                   : "kernels_split";
    pair.change.name = match.name;
    pair.change.from = match.base;
    pair.change.to = match.other;
    if (renamed) {
      const auto old_sample = base_.keys.find({"kernel", match.base.front()});
      const auto new_sample = other_.keys.find({"kernel", match.other.front()});
      if (old_sample == base_.keys.end() || new_sample == other_.keys.end()) return;
      pair.base = &old_sample->second;
      pair.other = &new_sample->second;
    } else {
      pair.base = &sums_.emplace_back(sum_of(base_, match.base));
      pair.other = &sums_.emplace_back(sum_of(other_, match.other));
    }
    for (const std::string& name : match.base) matched_base_.insert({"kernel", name});
    for (const std::string& name : match.other) matched_other_.insert({"kernel", name});
    pairs_.push_back(std::move(pair));
  }

  const RunSample &base_, &other_;
  std::deque<KeySample> sums_;
  std::set<SampleKey> matched_base_, matched_other_;
  std::vector<Pair> pairs_;
};

// The two tests see different things: sums change with counts, durations do not.
double test(Pair& pair, const RunSample& base, const RunSample& other) {
  const std::vector<double> no_base(base.step_us.size()), no_other(other.step_us.size());
  const MeanChange sums =
      welch(pair.base ? pair.base->step_us : no_base, pair.other ? pair.other->step_us : no_other);
  pair.change.base_us = sums.base;
  pair.change.new_us = sums.other;
  pair.change.change_pct = sums.change_pct;
  if (!pair.base || !pair.other || pair.base->duration_us.empty() ||
      pair.other->duration_us.empty()) {
    return sums.p;
  }
  return std::min(
      1.0, 2 * std::min(sums.p, mann_whitney(pair.base->duration_us, pair.other->duration_us)));
}

// The change less what recording took of both runs, in per cent. That is of all threads together,
// so it may be more than a step has.
MeanChange without(MeanChange change, double base_pct, double other_pct) {
  const auto rest = [](double taken_pct) { return 1 - std::min(taken_pct, 95.0) / 100; };
  const double base_rest = rest(base_pct), other_rest = rest(other_pct);
  change.base *= base_rest;
  change.other *= other_rest;
  for (double* const pct : {&change.change_pct, &change.low_pct, &change.high_pct}) {
    *pct = 100 * ((1 + *pct / 100) * other_rest / base_rest - 1);
  }
  return change;
}

void note_recording(const RunSample& base, const RunSample& other, Diff& out) {
  out.base = {base.left_out, base.recording_pct()};
  out.other = {other.left_out, other.recording_pct()};
  out.operators_not_compared = !compares_operators(base, other);
  for (size_t i = 0; i < kParts; ++i) {
    if (base.gpu_timed != other.gpu_timed) break;  // then none is compared
    const auto part = static_cast<Part>(i);
    if (!compares_part(base, other, part)) out.parts_not_compared.push_back(part);
  }
  if (!out.anything_left_out() || !out.base.cost_pct || !out.other.cost_pct) return;
  out.without_recording = without(out.step_time, *out.base.cost_pct, *out.other.cost_pct);
  out.without_most = without(out.step_time, kMostOfCounted * *out.base.cost_pct,
                             kMostOfCounted * *out.other.cost_pct);
}

constexpr const char* kClockSaysNothing =
    "which are as long whatever the program does; mark steps (gpuprof run --step)";

// Why runs whose steps are stretches of the clock cannot be compared; empty: none is such a run.
std::string by_clock(const RunSample& base, const RunSample& other) {
  const std::string &before = base.clock_source, &now = other.clock_source;
  if (before.empty() && now.empty()) return {};
  return fmt::format("the steps of {} are stretches of wall time ({}), {}",
                     before.empty() ? "new"
                     : now.empty()  ? "base"
                                    : "both runs",
                     before.empty() ? now : before, kClockSaysNothing);
}

// Why runs cannot be compared of which one has parts of an iteration for steps; empty: none is so.
std::string by_waits(const RunSample& base, const RunSample& other) {
  const uint32_t before = base.waits_in_step, now = other.waits_in_step;
  if (before == 0 || now == 0 || before == now) return {};
  return fmt::format(
      "a step is {} of cudaDeviceSynchronize in base and {} in new; record both with "
      "GPUPROF_STEP=sync:{}",
      before == 1 ? "one call" : fmt::format("{} calls", before), now, std::max(before, now));
}

std::string steps_text(size_t count) {
  if (count == 1) return "one step";
  return count == 0 ? "no step" : fmt::format("{} steps", count);
}

}  // namespace

bool is_significant(const MeanChange& step_time) {
  const bool has_interval = step_time.p < 1;  // of a single step there is none
  return has_interval && (step_time.low_pct > 0 || step_time.high_pct < 0) &&
         std::abs(step_time.change_pct) >= kStepFloorPct;
}

std::string lacking(const RunSample& run) {
  if (!run.clock_source.empty()) {
    return fmt::format("its steps are stretches of wall time ({}), {}", run.clock_source,
                       kClockSaysNothing);
  }
  if (run.step_us.size() >= kLeastSteps) return {};
  return fmt::format("it has {}, and a comparison needs at least {}",
                     steps_text(run.step_us.size()), kLeastSteps);
}

Diff compare(const RunSample& base, const RunSample& other) {
  Diff out;
  out.base_steps = base.step_us.size();
  out.new_steps = other.step_us.size();
  out.setup = differences(base.setup, other.setup);
  out.reason = by_clock(base, other);
  if (out.reason.empty()) out.reason = by_waits(base, other);
  if (!out.reason.empty()) return out;
  std::string few;
  for (const auto& [name, count] :
       {std::pair("base", out.base_steps), std::pair("new", out.new_steps)}) {
    if (count >= kLeastSteps) continue;
    few += fmt::format("{}{} has {}", few.empty() ? "" : ", ", name, steps_text(count));
  }
  if (!few.empty()) {
    out.reason =
        fmt::format("too few steps: {}; at least {} of each run are needed", few, kLeastSteps);
    return out;
  }
  out.step_time = welch(base.step_us, other.step_us);
  out.significant = is_significant(out.step_time);
  out.typical_step = typical_change(base.step_us, other.step_us);

  note_recording(base, other, out);

  Pairing pairing(base, other);
  std::vector<Pair> pairs = pairing.take();
  std::vector<double> p;
  for (Pair& pair : pairs) p.push_back(test(pair, base, other));
  const std::vector<double> rates = false_discovery_rates(p);
  for (size_t i = 0; i < pairs.size(); ++i) {
    Change& change = pairs[i].change;
    const double difference = std::abs(change.new_us - change.base_us);
    change.significant = rates[i] < kDiscoveryRate &&
                         difference > kKeyFloorPct / 100 * change.base_us &&
                         difference > kKeyFloorOfStepPct / 100 * out.step_time.base;
    out.changes.push_back(std::move(change));
  }
  std::stable_sort(out.changes.begin(), out.changes.end(), [](const Change& a, const Change& b) {
    if (a.significant != b.significant) return a.significant;
    return std::abs(a.new_us - a.base_us) > std::abs(b.new_us - b.base_us);
  });
  return out;
}

}  // namespace gpuprof::analysis
