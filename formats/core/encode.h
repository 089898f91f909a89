// SPDX-License-Identifier: Apache-2.0
// Records to dump bytes. Used by the collector's drain thread and by the tools, which turn what a
// killed process left in its ring into the same chunks: one path, one reader.
#pragma once

#include <cstdint>
#include <string_view>

#include "formats/core/byte_buffer.h"
#include "formats/core/record.h"
#include "formats/core/ring_file.h"
#include "formats/core/string_table.h"

namespace gpuprof {

// What the encoder must know to turn ids into names. It asks in finish() only, so that it uses
// names that become known while the batch is open. Views stay valid until finish() returns. The
// functions are not pure because a pure one needs a symbol of the C++ runtime library.
class NameResolver {
 public:
  virtual std::string_view string(StringId) const { return {}; }
  virtual std::string_view api_name(ApiId) const { return {}; }          // "" if unknown
  virtual uint32_t api_domain(ApiId) const { return 0; }                 // Shape.api_domain
  virtual std::string_view function_name(uint64_t) const { return {}; }  // "" if unknown
  virtual const LaunchShape* launch_shape(uint32_t) const { return nullptr; }
  virtual std::string_view stack(StringId) const { return {}; }  // bytes of return addresses

 protected:
  ~NameResolver() = default;
};

// Collects records of many ring chunks and writes them as one self-contained Events message.
// Single-threaded; memory comes from mmap and is kept between batches.
class BatchEncoder {
 public:
  explicit BatchEncoder(const NameResolver& names);
  ~BatchEncoder();

  void begin(uint32_t window, uint32_t clock_shift);
  // Host records go to the lane of (thread_id); gpu records to the lane that their payload names.
  // Records may come in any order; a record of a kind that the format does not know is left out. A
  // Kind::stack belongs to the record added next, if that has the same begin.
  // Returns false when memory could not be had: the record is not in the batch.
  bool add(const Record& record, uint32_t thread_id, std::string_view thread_name);
  // Notes that the first `records` records of ring chunk `sequence` are in this batch or in one
  // before.
  bool add_ring_chunk(uint64_t sequence, uint32_t records);
  size_t size() const;  // records added
  // Appends the serialized Events message to `out` and empties the batch. False when memory could
  // not be had; `out` is then unchanged and the batch is lost. Dictionaries are per batch: 30,000
  // records and more make them cheap.
  bool finish(ByteBuffer& out);

 private:
  struct State;
  State* state_;
};

// Appends a serialized Steps message of boundaries[0..count) (ticks), the first being number
// `first`.
bool encode_steps(ByteBuffer& out, const uint64_t* boundaries, size_t count, uint64_t first,
                  uint32_t clock_shift, std::string_view source);

}  // namespace gpuprof
