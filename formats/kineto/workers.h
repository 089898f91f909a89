// SPDX-License-Identifier: Apache-2.0
// Threads that turn stretches of text into blocks.
#pragma once

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "formats/kineto/block_parser.h"
#include "formats/kineto/text_window.h"

namespace gpuprof::kineto {

struct Job {
  Stretch stretch;
  ParseOptions options;
  Block block;
  Parsed parsed{};
  bool done = false;  // under the lock of Workers

  void run() { parsed = parse_block(stretch.view(), options, block); }
};

// Used from one thread. Threads start with the second job: a small file needs none.
class Workers {
 public:
  explicit Workers(unsigned threads) : count_(threads) {}
  ~Workers();
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  bool has_room() const { return jobs_.size() < count_ + 2; }
  void submit(std::unique_ptr<Job> job);
  // The oldest job, done; null: there is none.
  std::unique_ptr<Job> next();

 private:
  void work();

  const unsigned count_;
  std::vector<std::thread> threads_;
  std::deque<std::unique_ptr<Job>> jobs_;  // in order; the front ones may be done
  std::deque<Job*> waiting_;
  std::mutex lock_;
  std::condition_variable came_, done_;
  bool over_ = false;
};

}  // namespace gpuprof::kineto
