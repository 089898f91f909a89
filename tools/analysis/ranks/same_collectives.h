// SPDX-License-Identifier: Apache-2.0
// Which collectives of different ranks are one, by what the dumps say of communicators: their
// identity, which is the same on all ranks, and each call's number on them. Neither clocks nor
// steps are needed.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "tools/analysis/timeline.h"

namespace gpuprof::analysis {

// A call as all its ranks name it. Of a message `from` and `to` are ranks in the communicator, else
// -1.
struct CallName {
  uint64_t communicator;
  int32_t from, to;
  uint64_t sequence;
  auto operator<=>(const CallName&) const = default;
};

// Of a collective's host event; nothing: its communicator was not seen to be made.
std::optional<CallName> name_of_call(const Trace& trace, const Process& process, uint32_t event);

// By timeline: the number of the collective that an event's work does. Work of a group does several
// calls, so that groups that share a call have one number. Nothing: some rank has work of
// collectives that cannot be named.
using NumbersOfWork = std::vector<std::unordered_map<uint32_t, uint32_t>>;
std::optional<NumbersOfWork> numbers_by_name(std::span<const Timeline> timelines);

}  // namespace gpuprof::analysis
