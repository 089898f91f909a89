// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "formats/io/ordered_jobs.h"

namespace gpuprof::analysis {

// Does all of them, on as many threads as the machine has, those that take longest best first. None
// may write what another one touches.
inline void side_by_side(std::vector<std::function<void()>> tasks) {
  struct Task {
    std::function<void()> work;
    void run() { work(); }
  };
  OrderedJobs<Task> jobs;
  for (size_t i = 0; i < tasks.size(); ++i) {
    jobs.submit(std::make_unique<Task>(Task{std::move(tasks[i])}), i + 1 == tasks.size());
  }
  while (!jobs.empty()) jobs.next();
}

}  // namespace gpuprof::analysis
