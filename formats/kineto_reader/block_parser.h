// SPDX-License-Identifier: Apache-2.0
// The text of a stretch of an array of events, read into a Block.
#pragma once

#include <cstdint>
#include <string_view>
#include <unordered_map>

#include "formats/kineto_reader/block.h"
#include "formats/kineto_reader/event_args.h"

namespace gpuprof::kineto {

enum class Stop {
  end_of_text,   // behind an event, before the next
  cut,           // within an event, which begins at `at`
  end_of_array,  // behind the ']' of the array
};

struct Parsed {
  Stop stop;
  size_t at;  // in the text
};

struct ParseOptions {
  uint64_t offset = 0;  // of the text in the file, for faults
  bool ours = false;    // the file says that we wrote it
  bool final = true;    // nothing follows the text: a cut event may be a broken one
};

// Reads events from the start of `text`, which is in an array of them, up to its end. Text must be
// followed by kScanPadding readable bytes. What is no event is noted and passed over.
Parsed parse_block(std::string_view text, const ParseOptions& options, Block& block);

}  // namespace gpuprof::kineto
