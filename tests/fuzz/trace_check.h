// SPDX-License-Identifier: Apache-2.0
// What must hold of every trace, whatever was read.
#pragma once

#include <cstdlib>
#include <string_view>

#include "formats/kineto_reader/texts.h"
#include "formats/trace/heap.h"
#include "formats/trace/trace.h"
#include "formats/views/memory_curves.h"
#include "formats/views/slices.h"

namespace gpuprof::test {

inline void require(bool holds) {
  if (!holds) std::abort();
}

inline void check_trace(const Trace& trace) {
  for (const Process& process : trace.processes) {
    size_t count = 0;
    for (const Lane& lane : process.lanes) {
      const auto events = process.lane_events(lane);
      count += events.size();
      for (size_t i = 0; i < events.size(); ++i) {
        const Event& event = events[i];
        require(event.begin <= event.end);
        require(i == 0 || events[i - 1].begin <= event.begin);
        require(number(event.shape) < trace.shapes.size());
        require(event.extra < process.extras.size());
        require(event.partner == EventIndex::none || number(event.partner) < process.events.size());
        for (const StringIndex text : {trace.shape(event).args, process.extra(event).args}) {
          const std::string_view args = trace.text(text);
          require(args.empty() || kineto::are_strict_members(args));
        }
      }
    }
    require(count == process.events.size());
    process.operators.each(
        [&](size_t event, EventIndex op) { require(event < count && number(op) < count); });
    require(process.metadata.empty() || kineto::are_strict_members(process.metadata));
    memory_curves(trace, process);
    for (const HeapSite& site : heap_sites(process)) require(site.bytes >= 0 && site.count >= 0);
    for (const HeapPoint& point : heap_curve(process)) whole_number(point.held_bytes);
    process.window_steps();
  }
  for (const Problem& problem : trace.problems) require(!problem.text().empty());
}

}  // namespace gpuprof::test
