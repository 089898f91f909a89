// SPDX-License-Identifier: Apache-2.0
// Reads what a killed process left in its ring (core/ring_file.h) and turns it into the chunks that
// the process would have written. The file is not trusted: every offset, count and id is checked.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "formats/core/byte_buffer.h"
#include "formats/dump/dump_reader.h"

namespace gpuprof {

// What a ring says about itself, without its records.
struct RingInfo {
  uint32_t process_id = 0;
  uint32_t window = 0;       // the current or last
  uint32_t phase = 0;        // SessionPhase
  bool memory_log = false;   // it says what is allocated
  bool had_window = false;   // any has begun
  bool window_open = false;  // or its dump was being written: the ring may have records of it
  uint64_t boundaries = 0;   // of steps, of the whole run so far
};

// How many records of the ring chunks with these sequence numbers are in dumps already: they are
// left out.
using KnownChunks = std::unordered_map<uint64_t, uint32_t>;

// Of a ring's file whose head was not written yet.
inline constexpr std::string_view kNothingInRing =
    "holds nothing: its process was killed while the session started";

// Whether the bytes begin as a ring does.
bool is_ring(std::string_view bytes);

// One ring file, checked as far as its head goes.
class RingReader {
 public:
  // `bytes` must outlive the reader. Problems are appended to `problems` by every call.
  RingReader(std::string_view bytes, std::string file, std::vector<Problem>& problems);
  ~RingReader();

  bool ok() const;  // false: not a ring that can be read; a problem says why
  RingInfo info() const;

  struct Wanted {
    uint32_t window = 0;
    bool header = true;  // false: the chunks go after those of the dump of that window
  };
  // Appends the dump chunks of a window to `out`: Header, Events, Steps, Summary (end_reason
  // "recovered"). Of another window than the newest there are no events, nor is its begin known.
  // Returns the number of records in them.
  uint64_t recover(const Wanted& wanted, const KnownChunks& known, ByteBuffer& out);

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace gpuprof
