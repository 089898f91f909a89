// SPDX-License-Identifier: Apache-2.0
#include "tools/analysis/kernel_matches.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <utility>

namespace gpuprof::analysis {
namespace {

using Names = std::vector<std::string>;
// The kernels around a place that both runs have; "": the stream's begin or end.
using Neighbours = std::pair<std::string, std::string>;
// What only one run has there, at each of the places with these neighbours, in order.
using Strangers = std::map<Neighbours, std::vector<Names>>;

std::set<std::string> names_of(const RunSample& run) {
  std::set<std::string> out;
  for (const Names& stream : run.program) out.insert(stream.begin(), stream.end());
  return out;
}

Strangers strangers(const RunSample& run, const std::set<std::string>& common) {
  Strangers out;
  for (const Names& stream : run.program) {
    std::string before;
    Names here;
    for (const std::string& name : stream) {
      if (!common.contains(name)) {
        here.push_back(name);
        continue;
      }
      out[{before, name}].push_back(std::exchange(here, {}));
      before = name;
    }
    out[{before, ""}].push_back(std::move(here));
  }
  return out;
}

Names distinct(const Names& names) {
  Names out;
  std::set<std::string_view> seen;
  for (const std::string& name : names) {
    if (seen.insert(name).second) out.push_back(name);
  }
  return out;
}

std::string sum_text(const Names& names) {
  std::string out;
  for (const std::string& name : distinct(names)) {
    const auto count = std::count(names.begin(), names.end(), name);
    out += out.empty() ? "" : " + ";
    if (count > 1) out += fmt::format("{} x ", count);
    out += name;
  }
  return out;
}

// What stands in one run where something else stands in the other.
struct Replacement {
  Names base, other;
  bool between;  // next to a kernel that both have
};

// The only content that is not empty; null: there are several, or none.
const Names* only_one(const std::vector<Names>& places) {
  const Names* found = nullptr;
  for (const Names& names : places) {
    if (names.empty()) continue;
    if (found && *found != names) return nullptr;
    found = &names;
  }
  return found;
}

class Matcher {
 public:
  Matcher(const RunSample& base, const RunSample& other) : base_(base), other_(other) {}

  std::vector<KernelMatch> match() {
    find_replacements();
    // Fused first: what is left of them may have been renamed.
    for (const Replacement& each : replacements_) {
      if (!is_fusion(each)) continue;
      add(each.base.size() > 1 ? KernelMatch::Kind::fused : KernelMatch::Kind::split, each);
    }
    for (const Replacement& each : replacements_) {
      const Names old_names = distinct(each.base), new_names = distinct(each.other);
      if (old_names.size() != new_names.size()) continue;
      for (size_t i = 0; i < old_names.size(); ++i) {
        add(KernelMatch::Kind::renamed, {{old_names[i]}, {new_names[i]}, each.between});
      }
    }
    return std::move(out_);
  }

 private:
  void find_replacements() {
    const std::set<std::string> in_base = names_of(base_), in_other = names_of(other_);
    std::set<std::string> common;
    std::set_intersection(in_base.begin(), in_base.end(), in_other.begin(), in_other.end(),
                          std::inserter(common, common.end()));
    const Strangers gone = strangers(base_, common), fresh = strangers(other_, common);
    for (const auto& [neighbours, old_places] : gone) {
      const auto found = fresh.find(neighbours);
      compare_places(old_places, found == fresh.end() ? std::vector<Names>() : found->second,
                     !neighbours.first.empty() || !neighbours.second.empty());
    }
    for (const auto& [neighbours, new_places] : fresh) {
      if (!gone.contains(neighbours)) compare_places({}, new_places, true);
    }
  }

  void compare_places(const std::vector<Names>& old_places, const std::vector<Names>& new_places,
                      bool between) {
    const Names *const old_names = only_one(old_places), *const new_names = only_one(new_places);
    if (old_places.size() == new_places.size()) {
      for (size_t i = 0; i < old_places.size(); ++i) note({old_places[i], new_places[i], between});
    } else if (old_names && new_names) {
      // One run comes by here more often; what it finds is the same each time.
      note({*old_names, *new_names, between});
    } else {
      for (const Names& names : old_places) note({names, {}, between});
      for (const Names& names : new_places) note({{}, names, between});
    }
  }

  void note(Replacement each) {
    const auto [at, fresh] = numbers_.try_emplace({each.base, each.other}, replacements_.size());
    if (!fresh) return;
    for (const std::string& name : each.base) base_places_[name].insert(at->second);
    for (const std::string& name : each.other) other_places_[name].insert(at->second);
    replacements_.push_back(std::move(each));
  }

  // One in the place of several, or several in the place of one; and never anything else: the times
  // of all of them are compared.
  bool is_fusion(const Replacement& each) const {
    if (!each.between || each.base.size() == each.other.size()) return false;
    if (each.base.empty() || each.other.empty()) return false;
    if (each.base.size() != 1 && each.other.size() != 1) return false;
    const auto elsewhere = [](const auto& places, const std::string& name) {
      return places.at(name).size() > 1;
    };
    return std::none_of(each.base.begin(), each.base.end(),
                        [&](const auto& name) { return elsewhere(base_places_, name); }) &&
           std::none_of(each.other.begin(), each.other.end(),
                        [&](const auto& name) { return elsewhere(other_places_, name); });
  }

  void add(KernelMatch::Kind kind, const Replacement& each) {
    Names old_names = distinct(each.base), new_names = distinct(each.other);
    // One that the other run has in another step is not gone.
    const auto taken = [this](const std::string& name, const RunSample& absent_from,
                              std::set<std::string>& matched) {
      return absent_from.keys.contains({"kernel", name}) || matched.contains(name);
    };
    for (const std::string& name : old_names) {
      if (taken(name, other_, matched_base_)) return;
    }
    for (const std::string& name : new_names) {
      if (taken(name, base_, matched_other_)) return;
    }
    matched_base_.insert(old_names.begin(), old_names.end());
    matched_other_.insert(new_names.begin(), new_names.end());
    out_.push_back({kind, std::move(old_names), std::move(new_names),
                    sum_text(each.base) + " -> " + sum_text(each.other)});
  }

  const RunSample &base_, &other_;
  std::vector<Replacement> replacements_;  // each once; either side may have nothing
  std::map<std::pair<Names, Names>, size_t> numbers_;
  std::map<std::string, std::set<size_t>> base_places_, other_places_;  // where a kernel stands
  std::set<std::string> matched_base_, matched_other_;
  std::vector<KernelMatch> out_;
};

}  // namespace

std::vector<KernelMatch> match_kernels(const RunSample& base, const RunSample& other) {
  return Matcher(base, other).match();
}

}  // namespace gpuprof::analysis
