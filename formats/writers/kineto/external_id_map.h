// SPDX-License-Identifier: Apache-2.0
// External ids of a JSON document's events. Readers join operators, calls and kernels by them,
// whatever their process and window: no two things of a document may have the same.
#pragma once

#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "formats/io/json_text.h"
#include "formats/trace/trace.h"

namespace gpuprof {

// Those of one window of a process. Thread-safe once it is made.
class ExternalIdMap {
 public:
  // Takes ids from `next` on, which is at least 1, and sets it to the first that is left. Operators
  // of a dump count from 1 in each window: they are moved behind the ids that are taken. Another
  // trace's ids stay as they are, unless one of them is taken: then all are moved alike.
  ExternalIdMap(const Trace& trace, const Process& process, uint64_t& next);

  // Of what the trace names by `own`, which is not 0: operators, annotations.
  uint64_t of_named(uint64_t own) const { return own + moved_by_; }
  // Of a collective, or of a data loader's range, which goes as an operator; of other events 0.
  uint64_t of_event(EventIndex event) const;
  // Of the window's first step; the others follow.
  uint64_t of_first_step() const { return first_step_; }
  // Of an event's EventExtra::args, in which an id that names no operator comes first: whether they
  // have one; and writes them.
  static bool is_in(std::string_view args);
  void write_args(std::string_view args, JsonText& json) const;

 private:
  enum class Use : uint8_t { none, named, collective, loader };
  // Of ids that the trace has: the least and the greatest.
  struct Taken;

  static std::vector<Use> uses_of(const Trace& trace);
  void find_named_collectives(const Trace& trace, const Process& process);
  void find_ids(const Trace& trace, const Process& process, Taken& taken);

  uint64_t moved_by_ = 0, first_counted_ = 0, first_step_ = 0;
  std::unordered_map<uint32_t, uint64_t> named_, counted_;  // event -> its id or number
};

}  // namespace gpuprof
