// SPDX-License-Identifier: Apache-2.0
// What belongs together in a process that comes from a trace file: operators and what they called,
// forward and backward operators, steps.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "formats/kineto_reader/block.h"
#include "formats/kineto_reader/external_ids.h"
#include "formats/trace/trace.h"

namespace gpuprof::kineto {

class Links {
 public:
  Links(Trace& trace, Process& process, ExternalIds external_ids)
      : trace_(trace), process_(process), external_ids_(std::move(external_ids)) {}

  // Process::operators: by external id, else what encloses a call on its thread. An id that no
  // operator has is given back to the event's arguments. After join_process().
  void join_operators();
  // Process::forward_backward, from the ends of arrows; FlowEnd::row is a lane, its time that of
  // the trace.
  void join_flows(std::span<const FlowEnd> flows);
  // Process::steps, from ranges called ProfilerStep#N; where there is GPU work, or why there is
  // none.
  void find_steps();

 private:
  void join_by_id();
  void join_by_nesting(const Lane& lane);
  void give_back(uint32_t event, uint64_t id);
  EventIndex operator_at(uint32_t lane, int64_t time) const;

  Trace& trace_;
  Process& process_;
  ExternalIds external_ids_;
};

}  // namespace gpuprof::kineto
