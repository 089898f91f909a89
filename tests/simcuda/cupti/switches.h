// SPDX-License-Identifier: Apache-2.0
// SIMCUDA_CUPTI: which of the real CUPTI's published faults the simulated one has, and what else it
// is told to do wrong. README.md lists them with their sources; without any it behaves as
// CUPTI 13.0 on driver R580 is documented to.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace gpuprof::simcuda {

// What records of graphs' nodes have for a correlation id from the second session of a process on.
enum class GraphIds : uint8_t { right, stale, previous, zero };

struct CuptiSwitches {
  // 0 or 1.
  uint64_t no_driver = 0;
  uint64_t dies_without_driver = 0;
  uint64_t subscriber_taken = 0;
  uint64_t reversed_order = 0;
  uint64_t late_nodes = 1;
  uint64_t late_graph_times = 0;
  uint64_t late_graph_crash = 1;
  uint64_t finalize_graph_crash = 1;
  uint64_t sticky_graph_trace = 1;
  uint64_t late_transfers_as_kernels = 0;
  uint64_t no_body_records = 0;
  uint64_t first_iteration_only = 0;
  uint64_t foreign_clock = 1;
  uint64_t dead_after_empty_session = 0;
  uint64_t no_device_sync_records = 0;
  uint64_t ids_need_api_kinds = 0;
  uint64_t old_driver = 0;
  uint64_t v1_v2_once = 0;
  uint64_t own_call_words = 0;
  uint64_t whole_buffers = 1;
  uint64_t deliver_in_calls = 0;
  uint64_t v2_registers_once = 0;
  uint64_t reset_loses_records = 1;
  // Numbers; of counts, 0 is never.
  uint64_t refused_kind = 0;  // an activity kind that is refused
  uint64_t drop_every = 0;
  uint64_t zero_timestamps_every = 0;
  uint64_t reversed_timestamps_every = 0;
  uint64_t duplicate_timestamps_every = 0;
  uint64_t unknown_kind_every = 0;
  uint64_t incomplete_every = 0;
  uint64_t callback_zero_every = 0;
  uint64_t buffers_run_out_after = 0;
  uint64_t hold_buffers = 0;
  uint64_t subscribe_ms = 0;        // that subscribing takes
  uint64_t first_subscribe_ms = 0;  // and how much more for the first time
  uint64_t forced_flush_ms = 0;     // that a forced flush takes
  uint64_t launch_id = 0;           // the callback id of launches; 0: that of the headers
  uint64_t overhead_kind = 0;       // CUpti_ActivityOverheadKind, and how long it lasts
  uint64_t overhead_us = 0;
  uint64_t next_record_us = 0;  // that cuptiActivityGetNextRecord takes

  std::string refused;  // a function that fails
  GraphIds graph_ids = GraphIds::right;
};

const CuptiSwitches& switches();
bool is_refused(std::string_view function);

}  // namespace gpuprof::simcuda
