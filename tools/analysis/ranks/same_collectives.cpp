// SPDX-License-Identifier: Apache-2.0
#include "tools/analysis/ranks/same_collectives.h"

#include <map>
#include <numeric>
#include <string_view>

#include "formats/trace/communicators.h"
#include "tools/analysis/walks.h"

namespace gpuprof::analysis {
namespace {

// Work of which one piece in twenty has no name is not all that its rank did.
constexpr size_t kMostUnnamed = 20;

class Names {
 public:
  uint32_t number(const CallName& name) {
    const auto [at, fresh] = numbers_.emplace(name, static_cast<uint32_t>(parents_.size()));
    if (fresh) parents_.push_back(at->second);
    return at->second;
  }
  uint32_t root(uint32_t number) {
    while (parents_[number] != number) number = parents_[number] = parents_[parents_[number]];
    return number;
  }
  void join(uint32_t a, uint32_t b) { parents_[root(a)] = root(b); }

 private:
  std::map<CallName, uint32_t> numbers_;
  std::vector<uint32_t> parents_;
};

bool communicates(const Timeline& timeline) {
  bool out = !timeline.process->collective_kernels.empty();
  if (out) return true;
  each_work(timeline,
            [&](const Work& work) { out = out || work.kind == WorkClass::communication; });
  return out;
}

// False: too much has no name.
bool number_work(const Timeline& timeline, Names& names,
                 std::unordered_map<uint32_t, uint32_t>& out) {
  const Process& process = *timeline.process;
  if (process.collective_kernels.empty()) return false;
  size_t unnamed = 0;
  for (const CollectiveKernel& pair : process.collective_kernels) {
    const auto name = name_of_call(*timeline.trace, process, number(pair.collective));
    if (!name) {
      ++unnamed;
      continue;
    }
    const uint32_t own = names.number(*name);
    const auto [at, fresh] = out.emplace(number(pair.kernel), own);
    if (!fresh) names.join(at->second, own);
  }
  return unnamed * kMostUnnamed <= process.collective_kernels.size();
}

}  // namespace

std::optional<CallName> name_of_call(const Trace& trace, const Process& process, uint32_t event) {
  const Shape& shape = trace.shapes[process.events.shape_of(event)];
  const uint64_t identity =
      communicator_identity(process, shape.communicator, process.events.begin_of(event));
  if (identity == 0) return std::nullopt;
  CallName out{identity, -1, -1, process.extras[process.events.extra_of(event)].value};
  const std::string_view name = trace.text(shape.name);
  const bool sends = name == "ncclSend";
  if (!sends && name != "ncclRecv") return out;
  if (shape.rank == Shape::kAbsent || shape.peer == Shape::kAbsent) return std::nullopt;
  const auto own = static_cast<int32_t>(shape.rank), peer = static_cast<int32_t>(shape.peer);
  out.from = sends ? own : peer;
  out.to = sends ? peer : own;
  return out;
}

std::optional<NumbersOfWork> numbers_by_name(std::span<const Timeline> timelines) {
  Names names;
  NumbersOfWork out(timelines.size());
  bool any = false;
  for (size_t i = 0; i < timelines.size(); ++i) {
    if (!communicates(timelines[i])) continue;
    if (!number_work(timelines[i], names, out[i])) return std::nullopt;
    any = true;
  }
  if (!any) return std::nullopt;
  for (auto& numbers : out) {
    for (auto& [event, number] : numbers) number = names.root(number);
  }
  return out;
}

}  // namespace gpuprof::analysis
