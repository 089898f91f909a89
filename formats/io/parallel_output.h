// SPDX-License-Identifier: Apache-2.0
// A file whose contents several threads make: stretch after stretch, in order.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "formats/io/file_bytes.h"
#include "formats/io/ordered_jobs.h"

namespace gpuprof {

// Used from one thread. Memory: some stretches at a time, whose buffers are used again.
class ParallelOutput {
 public:
  // Writes a stretch's bytes over what stands in `out` and returns how many they are, on any
  // thread; reads what nobody writes until finish().
  using Fill = std::function<size_t(std::string& out)>;

  // `done`: called with `events` of each stretch that was written; may be empty.
  explicit ParallelOutput(OutputFile& file, std::function<void(uint64_t)> done = {})
      : file_(file), done_(std::move(done)) {}

  void add(Fill fill, uint64_t events);
  // Takes `text`, which is as good as new afterwards.
  void write(std::string& text);
  // Until everything is in the file, as far as it takes it.
  void finish();

 private:
  struct Stretch {
    Fill fill;
    std::string text, packed;  // text: often longer than the stretch
    size_t size = 0;
    uint64_t events = 0;
    bool pack = false;
    void run();
  };

  std::unique_ptr<Stretch> spare();
  void submit(std::unique_ptr<Stretch> stretch);
  void write_next();

  OutputFile& file_;
  const std::function<void(uint64_t)> done_;
  std::vector<std::unique_ptr<Stretch>> spare_;
  OrderedJobs<Stretch> jobs_;
};

}  // namespace gpuprof
