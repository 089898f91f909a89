// SPDX-License-Identifier: Apache-2.0
// Threads that turn stretches of text into blocks.
#pragma once

#include "formats/io/ordered_jobs.h"
#include "formats/kineto_reader/block_parser.h"
#include "formats/kineto_reader/text_window.h"

namespace gpuprof::kineto {

// May be used again: then its memory is.
struct Job {
  Stretch stretch;
  ParseOptions options;
  Block block;
  Parsed parsed{};

  void run() {
    block.clear();
    parsed = parse_block(stretch.view(), options, block);
  }
};

using Workers = OrderedJobs<Job>;

}  // namespace gpuprof::kineto
