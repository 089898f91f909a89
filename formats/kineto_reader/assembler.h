// SPDX-License-Identifier: Apache-2.0
// Blocks of one trace file put together to Processes.
#pragma once

#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "formats/kineto_reader/block.h"
#include "formats/kineto_reader/external_ids.h"
#include "formats/kineto_reader/file_pids.h"
#include "formats/kineto_reader/interned.h"
#include "formats/kineto_reader/packed_row.h"
#include "formats/kineto_reader/top_level.h"
#include "formats/trace/trace.h"

namespace gpuprof::kineto {

// Blocks are added in their order in the file; then finish() is called once. Not thread-safe.
class Assembler {
 public:
  Assembler(Trace& trace, std::string path) : trace_(trace), path_(std::move(path)) {}

  void add(const Block& block);
  const FaultCounts& faults() const { return faults_; }
  FaultCounts& faults() { return faults_; }
  // Appends a Process for each host process in the file, one at least. Returns how many.
  size_t finish(const TopLevel& top, Completeness completeness);

 private:
  struct RowEvents {
    PackedRow events;
    uint32_t process = 0;
    bool calls = false;   // it has what only threads have,
    bool frames = false;  // Python functions apart, which it has, too
    bool works = false;   // it has what a stream does, annotations apart
    bool waits = false;   // it has waits of the driver
    bool said = false;    // it says again what another row has
    std::string name;
    int64_t sort_index = Lane::kUnsorted;
  };
  struct GpuFacts {
    std::string title, label;
  };
  // What belongs to one host process: places in the members of these names.
  struct ProcessParts {
    std::vector<uint32_t> rows, flows, steps, counters;
  };

  std::vector<StringIndex> intern_texts(const Block& block);
  std::vector<ShapeIndex> intern_shapes(const Block& block, const std::vector<StringIndex>& texts);
  std::vector<uint32_t> intern_rows(const Block& block, const std::vector<StringIndex>& texts);
  void read_facts();
  void choose_processes(const TopLevel& top);
  void complete_contexts();
  void choose_gpus(const std::set<int64_t>& gpus);
  uint32_t owner_of(int64_t gpu, bool& told) const;
  void place_host_waits();
  void divide();
  Process make_process(uint32_t process, const TopLevel& top, Completeness completeness);
  bool is_host(int64_t pid) const;
  Lane lane_of(const Row& row, const RowEvents& events, uint32_t number, bool ours);
  void lay_out(const ProcessParts& parts, const TopLevel& top, Process& process);
  int64_t lag_of(const ProcessParts& parts) const;
  void add_events(const Block& block, const std::vector<ShapeIndex>& shapes,
                  const std::vector<uint32_t>& rows);
  void fill_lane(const std::vector<uint32_t>& rows, const TopLevel& top, Process& process,
                 EventTable::Writer& writer);
  uint32_t extra_of(uint32_t extra, Process& process);
  void add_steps(const ProcessParts& parts, const TopLevel& top, Process& process);
  void add_counters(const ProcessParts& parts, const TopLevel& top, Process& process);
  std::vector<FlowEnd> flows_of(const ProcessParts& parts, const TopLevel& top) const;
  static void add_left_out(int64_t pid, const TopLevel& top, Process& process);
  void set_window(const TopLevel& top, Process& process);
  void end_before_gaps(int64_t lag, Process& process);
  std::string row_text(const Row& row) const;

  Trace& trace_;
  const std::string path_;
  std::vector<Row> rows_;
  Interned<Row> row_numbers_{rows_};
  std::vector<RowEvents> row_events_;  // parallel to rows_
  std::vector<EventExtra> extras_{1};
  std::vector<FlowEnd> flows_;  // category: a StringIndex; row: in rows_
  std::vector<RowFact> facts_;
  std::vector<CounterPoint> counters_;
  std::vector<RowStep> steps_;
  FilePids file_pids_;
  LabelledPids labelled_;
  int64_t span_begin_ = INT64_MAX, span_end_ = INT64_MIN;
  FaultCounts faults_{};
  uint64_t early_ = 0;  // events whose time is negative

  std::vector<int64_t> pids_;         // of the host processes
  std::map<int64_t, uint32_t> gpus_;  // pid of a GPU's rows -> host process
  std::map<int64_t, GpuFacts> process_facts_;
  std::vector<ProcessParts> parts_;    // of each host process
  std::vector<uint32_t> lane_of_row_;  // in the row's process; UINT32_MAX: the row has no events
  // Of the process that is being made.
  ExternalIds external_ids_;
  std::unordered_map<uint32_t, uint32_t> place_of_extra_;  // where there are several processes
};

}  // namespace gpuprof::kineto
