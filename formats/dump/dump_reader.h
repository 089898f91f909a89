// SPDX-License-Identifier: Apache-2.0
// Reads the chunks of a dump (FORMAT.md), whole or cut or damaged: what is readable is delivered,
// the rest is reported. Input is not trusted; nothing here throws for what is in a file.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "formats/gpuprof.pb.h"
#include "formats/io/problem.h"

namespace gpuprof {

struct DecodedEvents;  // events_decoder.h

// Receives the chunks of a file in their order, on the thread that reads.
class ChunkVisitor {
 public:
  virtual ~ChunkVisitor() = default;
  // Starts a new dump; `offset` is where its chunk lies. Every `on_*` after it belongs to this
  // dump.
  virtual void on_header(const dump::Header&, uint64_t /*offset*/) {}
  virtual void on_events(DecodedEvents&, uint64_t /*offset*/) {}
  virtual void on_steps(const dump::Steps&, uint64_t /*offset*/) {}
  virtual void on_modules(const dump::Modules&, uint64_t /*offset*/) {}
  virtual void on_summary(const dump::Summary&, uint64_t /*offset*/) {}
  virtual void on_workers(const dump::Workers&, uint64_t /*offset*/) {}
  virtual void on_counters(const dump::Counters&, uint64_t /*offset*/) {}
  virtual void on_live_memory(const dump::LiveMemory&, uint64_t /*offset*/) {}
  virtual void on_nvtx_names(const dump::NvtxNames&, uint64_t /*offset*/) {}
  virtual void on_budget(const dump::Budget&, uint64_t /*offset*/) {}
  // Fields 18 to 22 of the dump's header.
  virtual void on_cuda(const dump::Header&, uint64_t /*offset*/) {}
  virtual void on_graphs(const dump::Graphs&, uint64_t /*offset*/) {}
  // Bytes were lost between the chunks delivered before and after this call.
  virtual void on_damage(const Problem&) {}
};

struct ReadOptions {
  uint64_t base_offset = 0;  // added to offsets in problems: `bytes` is a part of a larger file
};

struct ReadResult {
  uint64_t chunks = 0;   // delivered
  bool cut = false;      // the last chunk is incomplete
  bool damaged = false;  // bytes were skipped
  bool refused = false;  // a dump of a newer format version was skipped
};

// Problems are appended to `problems`. Chunks of events are decompressed and decoded by several
// threads. Memory: at most some of the largest chunks, decoded.
ReadResult read_chunks(std::string_view bytes, const std::string& file, const ReadOptions& options,
                       ChunkVisitor& visitor, std::vector<Problem>& problems);

}  // namespace gpuprof
