// SPDX-License-Identifier: Apache-2.0
#include "tools/analysis/diff.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

namespace gpuprof::analysis {
namespace {

// Kernels that only one of the runs has, by their neighbours in a step that both have.
using Neighbours = std::pair<std::string, std::string>;

std::map<Neighbours, std::vector<std::string>> strangers(const std::vector<std::string>& program,
                                                         const std::set<std::string>& common) {
  std::map<Neighbours, std::vector<std::string>> out;
  std::set<std::string> seen;
  std::string before;
  for (size_t i = 0; i < program.size(); ++i) {
    if (common.contains(program[i])) {
      before = program[i];
      continue;
    }
    size_t next = i;
    while (next < program.size() && !common.contains(program[next])) ++next;
    const std::string after = next < program.size() ? program[next] : std::string();
    if (seen.insert(program[i]).second) out[{before, after}].push_back(program[i]);
  }
  return out;
}

// Old name -> new name, where a place in the step has one stranger in each run.
std::map<std::string, std::string> renamed(const RunSample& base, const RunSample& other) {
  const std::set<std::string> in_base(base.program.begin(), base.program.end());
  const std::set<std::string> in_other(other.program.begin(), other.program.end());
  std::set<std::string> common;
  std::set_intersection(in_base.begin(), in_base.end(), in_other.begin(), in_other.end(),
                        std::inserter(common, common.end()));
  const auto gone = strangers(base.program, common), fresh = strangers(other.program, common);
  std::map<std::string, std::string> out;
  for (const auto& [place, names] : gone) {
    const auto found = fresh.find(place);
    if (found == fresh.end() || names.size() != found->second.size()) continue;
    for (size_t i = 0; i < names.size(); ++i) {
      // One that the other run has elsewhere is not gone.
      const SampleKey old_key{"kernel", names[i]}, new_key{"kernel", found->second[i]};
      if (other.keys.contains(old_key) || base.keys.contains(new_key)) continue;
      out.emplace(names[i], found->second[i]);
    }
  }
  return out;
}

struct Pair {
  Change change;
  const KeySample* base;
  const KeySample* other;
};

std::vector<Pair> pair_up(const RunSample& base, const RunSample& other) {
  const auto names = renamed(base, other);
  std::set<std::string> taken;
  std::vector<Pair> out;
  for (const auto& [key, sample] : base.keys) {
    Pair pair{{key.kind, key.name}, &sample, nullptr};
    auto found = other.keys.find(key);
    if (found == other.keys.end() && key.kind == "kernel" && names.contains(key.name)) {
      const std::string& name = names.at(key.name);
      taken.insert(name);
      pair.change.name += " -> " + name;
      found = other.keys.find({key.kind, name});
    }
    if (found != other.keys.end()) pair.other = &found->second;
    pair.change.gone = !pair.other;
    out.push_back(std::move(pair));
  }
  for (const auto& [key, sample] : other.keys) {
    if (base.keys.contains(key) || (key.kind == "kernel" && taken.contains(key.name))) continue;
    Pair pair{{key.kind, key.name}, nullptr, &sample};
    pair.change.fresh = true;
    out.push_back(std::move(pair));
  }
  return out;
}

// The two tests see different things: sums change with counts, durations do not.
double test(Pair& pair, const RunSample& base, const RunSample& other) {
  const std::vector<double> no_base(base.step_us.size()), no_other(other.step_us.size());
  const MeanChange sums =
      welch(pair.base ? pair.base->step_us : no_base, pair.other ? pair.other->step_us : no_other);
  pair.change.base_us = sums.base;
  pair.change.new_us = sums.other;
  pair.change.change_pct = sums.change_pct;
  if (!pair.base || !pair.other || pair.base->duration_us.empty()) return sums.p;
  return std::min(
      1.0, 2 * std::min(sums.p, mann_whitney(pair.base->duration_us, pair.other->duration_us)));
}

}  // namespace

Diff compare(const RunSample& base, const RunSample& other) {
  Diff out;
  out.base_steps = base.step_us.size();
  out.new_steps = other.step_us.size();
  if (out.base_steps < 3 || out.new_steps < 3) {
    out.reason = "too few steps to compare: both runs need at least three";
    return out;
  }
  out.step_time = welch(base.step_us, other.step_us);
  out.significant =
      out.step_time.p < kStepLevel && std::abs(out.step_time.change_pct) >= kStepFloorPct;

  std::vector<Pair> pairs = pair_up(base, other);
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
