// SPDX-License-Identifier: Apache-2.0
#include "tools/analysis/ranks/places.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>

#include "tools/analysis/collective_args.h"
#include "tools/analysis/ranks/joint_steps.h"
#include "tools/analysis/ranks/same_collectives.h"
#include "tools/analysis/walks.h"

namespace gpuprof::analysis {
namespace {

struct Issued {
  int64_t at;
  Work work;
};

using Placed = std::vector<PlacedWork>;
using Names = std::map<std::string, uint32_t>;  // of collectives, over all ranks
using Numbers = std::unordered_map<uint32_t, uint32_t>;

std::string name_of(const Timeline& timeline, const Work& work) {
  const Process& process = *timeline.process;
  const EventExtra& extra = process.extras[timeline.events().extra_of(work.event)];
  const auto args = collective_in(timeline.trace->text(extra.args));
  return args ? common_name(*args, process.header.rank()) : std::string();
}

// By NCCL's calls, which their dumps name; what has no name is in none.
Placed places_by_call(const Timeline& timeline, const Numbers& numbers) {
  Placed out;
  each_issued_work_of_steps(timeline, [&](const Work& work, int64_t issued) {
    const auto found = numbers.find(work.event);
    if (found == numbers.end()) return;
    const Step* const step = timeline.step_at(issued);
    if (step) out.push_back({{0, Place::kByCall, found->second}, step->step, work});
  });
  return out;
}

// By work: its collective's call, of several the first. Work of one call is one collective.
Numbers first_calls(const Process& process) {
  Numbers out;
  for (const CollectiveKernel& pair : process.collective_kernels) {
    out.emplace(number(pair.kernel), number(pair.collective));
  }
  return out;
}

// By step and order. `numbers`: what has a place by its call.
Placed places_by_order(const Timeline& timeline, const Numbers& numbers, Names& names) {
  std::vector<Issued> works;
  each_issued_work_of_steps(timeline, [&](const Work& work, int64_t issued) {
    if (work.kind != WorkClass::communication || numbers.contains(work.event)) return;
    works.push_back({issued, work});
  });
  std::stable_sort(works.begin(), works.end(),
                   [](const Issued& a, const Issued& b) { return a.at < b.at; });
  const Numbers calls = first_calls(*timeline.process);
  std::unordered_map<uint32_t, Place> of_calls;
  std::map<uint32_t, uint32_t> stream_numbers;
  std::map<std::pair<uint64_t, uint32_t>, uint32_t> counts;
  Placed out;
  auto step = timeline.steps.begin();
  for (const auto& [time, work] : works) {
    while (step != timeline.steps.end() && step->end <= time) ++step;
    if (step == timeline.steps.end()) break;
    if (time < step->begin) continue;
    const auto call = calls.find(work.event);
    const auto known = call == calls.end() ? of_calls.end() : of_calls.find(call->second);
    if (known != of_calls.end()) {
      out.push_back({known->second, known->second.step, work});
      continue;
    }
    const std::string name = name_of(timeline, work);
    const auto next = static_cast<uint32_t>(stream_numbers.size());
    const uint32_t stream =
        name.empty() ? stream_numbers.emplace(work.stream, next).first->second
                     : Place::kNamed |
                           names.emplace(name, static_cast<uint32_t>(names.size())).first->second;
    out.push_back({{step->step, stream, counts[{step->step, stream}]++}, step->step, work});
    if (call != calls.end()) of_calls.emplace(call->second, out.back().place);
  }
  return out;
}

// What is to be added to the numbers of a stream's collectives to get those of another rank's
// stream; together: the time in which both run.
struct Offset {
  uint32_t stream = 0;
  int64_t numbers = 0, together = 0;
};

// A window as a whole begins with another collective on each rank: the same one runs at the same
// time.
Offset offset_to(const Placed& other, const Placed& own, uint32_t stream) {
  std::map<std::pair<uint32_t, int64_t>, int64_t> together;  // by stream and numbers
  std::map<uint32_t, std::vector<std::pair<Interval, int64_t>>> theirs;
  for (const auto& [place, step, work] : other) {
    theirs[place.stream].push_back({{work.begin, work.end}, place.number});
  }
  for (const auto& [place, step, work] : own) {
    if (place.stream != stream) continue;
    const int64_t begin = work.begin;
    for (const auto& [their_stream, runs] : theirs) {
      auto at = std::partition_point(runs.begin(), runs.end(),
                                     [&](const auto& run) { return run.first.end <= begin; });
      for (; at != runs.end() && at->first.begin < work.end; ++at) {
        together[{their_stream, at->second - place.number}] +=
            std::min(at->first.end, work.end) - std::max(at->first.begin, work.begin);
      }
    }
  }
  Offset out;
  for (const auto& [place, time] : together) {
    if (time > out.together) out = {place.first, place.second, time};
  }
  return out;
}

// Gives the same collectives the same numbers as on a rank before, those that run with none no
// place. `before`: those that have some.
void align(std::span<const Placed* const> before, Placed& own) {
  if (before.empty()) return;
  std::map<uint32_t, Offset> offsets;  // by stream
  for (const PlacedWork& each : own) {
    const auto [at, fresh] = offsets.try_emplace(each.place.stream);
    for (size_t i = 0; fresh && i < before.size() && !at->second.together; ++i) {
      at->second = offset_to(*before[i], own, each.place.stream);
    }
  }
  std::erase_if(own, [&](const auto& each) { return !offsets[each.place.stream].together; });
  for (PlacedWork& each : own) {
    const Offset& offset = offsets[each.place.stream];
    each.place.number += offset.numbers;
    each.place.stream = offset.stream;
  }
}

// By rank: what its steps' numbers are more than those of the lowest rank with which it does
// collectives that have a name.
std::vector<int64_t> step_offsets(const std::vector<Placed>& named) {
  struct Parts {
    std::vector<CollectivePart> parts;
    std::vector<uint64_t> steps;
  };
  std::map<int64_t, Parts> of_calls;
  for (uint32_t rank = 0; rank < named.size(); ++rank) {
    for (const auto& [place, step, work] : named[rank]) {
      Parts& each = of_calls[place.number];
      if (!each.parts.empty() && each.parts.back().rank == rank) continue;
      each.parts.push_back({rank, work.event, work.event});
      each.steps.push_back(step);
    }
  }
  std::vector<StepsOfParts> joint;
  for (const auto& [call, each] : of_calls) {
    if (each.parts.size() > 1) joint.push_back({each.parts, each.steps});
  }
  return join_ranks(named.size(), joint).offsets;
}

// Those of steps in which ranks have different numbers of them: they cannot be told apart.
void leave_out_uneven(std::vector<Placed>& ranks) {
  using Row = std::pair<uint64_t, uint32_t>;  // step and stream
  std::map<Row, size_t> first;
  std::set<Row> uneven;
  for (const Placed& own : ranks) {
    std::map<Row, size_t> counts;
    for (const PlacedWork& each : own) ++counts[{each.place.step, each.place.stream}];
    for (const auto& [row, count] : counts) {
      if (first.emplace(row, count).first->second != count) uneven.insert(row);
    }
  }
  for (Placed& own : ranks) {
    std::erase_if(own, [&](const PlacedWork& each) {
      return uneven.contains({each.place.step, each.place.stream});
    });
  }
}

}  // namespace

Places places_of(std::span<const Timeline> timelines) {
  const std::optional<NumbersOfWork> by_call = numbers_by_name(timelines);
  const Numbers none;
  Places out{{}, by_call.has_value()};
  for (size_t i = 0; by_call && i < timelines.size(); ++i) {
    out.of_ranks.push_back(places_by_call(timelines[i], (*by_call)[i]));
  }
  const std::vector<int64_t> offsets = step_offsets(out.of_ranks);
  std::vector<Placed> by_order;
  by_order.reserve(timelines.size());
  std::vector<const Placed*> filled;  // of them
  Names names;
  for (size_t i = 0; i < timelines.size(); ++i) {
    const Timeline& timeline = timelines[i];
    Placed own = places_by_order(timeline, by_call ? (*by_call)[i] : none, names);
    for (PlacedWork& each : own) {
      if (by_call) each.place.step -= static_cast<uint64_t>(offsets[i]);
    }
    if (timeline.whole_window) align(filled, own);
    by_order.push_back(std::move(own));
    if (!by_order.back().empty()) filled.push_back(&by_order.back());
  }
  if (!by_call) {
    out.of_ranks = std::move(by_order);
    return out;
  }
  leave_out_uneven(by_order);
  for (size_t i = 0; i < timelines.size(); ++i) {
    out.of_ranks[i].insert(out.of_ranks[i].end(), by_order[i].begin(), by_order[i].end());
  }
  return out;
}

}  // namespace gpuprof::analysis
