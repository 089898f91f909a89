// SPDX-License-Identifier: Apache-2.0
// Chunks to Processes of a Trace: which chunks are of one dump, and how much of a file is believed.
// What becomes of a dump's chunks: trace_segment.h.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>

#include "formats/dump/dump_reader.h"
#include "formats/trace/trace.h"

namespace gpuprof {

struct TraceSegment;

// Receives the chunks of one file (or of a file and the ring beside it) and appends a Process to
// `trace` for each dump in it. Not thread-safe.
class TraceBuilder : public ChunkVisitor {
 public:
  // `input_bytes` bounds how many events are believed, so that a small hostile file stays small.
  TraceBuilder(Trace& trace, std::string file, uint64_t input_bytes);
  ~TraceBuilder() override;

  void on_header(const dump::Header& header, uint64_t offset) override;
  void on_events(DecodedEvents& events, uint64_t offset) override;
  void on_steps(const dump::Steps& steps, uint64_t offset) override;
  void on_modules(const dump::Modules& modules, uint64_t offset) override;
  void on_summary(const dump::Summary& summary, uint64_t offset) override;
  void on_workers(const dump::Workers& workers, uint64_t offset) override;
  void on_counters(const dump::Counters& counters, uint64_t offset) override;
  void on_graphs(const dump::Graphs& graphs, uint64_t offset) override;
  void on_nvtx_names(const dump::NvtxNames& names, uint64_t offset) override;
  void on_cuda(const dump::Header& cuda, uint64_t offset) override;
  void on_budget(const dump::Budget& budget, uint64_t offset) override;
  void on_live_memory(const dump::LiveMemory& live, uint64_t offset) override;
  void on_damage(const Problem& problem) override;

  // What follows comes from a ring that was read then (Unix ns): it belongs to the dump being read,
  // or starts one.
  void mark_recovered(int64_t looked_at);
  // Whether a dump is being read, that is, some chunk of one was delivered.
  bool has_dump() const { return segment_ != nullptr; }
  // Whether the dump being read has its Summary.
  bool has_summary() const;
  // Window of the dump being read.
  uint32_t window() const;
  // Ring chunks that went into what was read so far.
  const std::unordered_map<uint64_t, uint32_t>& ring_chunks() const { return ring_chunks_; }
  // The last dump ends. Returns the number of Processes appended since the builder was made.
  size_t finish();

 private:
  TraceSegment& segment();
  void end_segment();
  // Null when the stacks are sound, else what is wrong with them.
  const char* add_stacks(const dump::Events& events, std::vector<StackIndex>& stacks);

  Trace& trace_;
  std::string file_;
  uint64_t event_limit_;
  uint64_t events_ = 0;
  uint64_t frames_ = 0;
  size_t appended_ = 0;
  bool damaged_ = false;
  bool recovered_ = false;
  int64_t looked_at_ = 0;
  std::unordered_map<uint64_t, uint32_t> ring_chunks_;  // sequence -> records
  std::unique_ptr<TraceSegment> segment_;
};

}  // namespace gpuprof
