// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <exception>

#include "tests/programs/simtrain/launcher.h"
#include "tests/programs/simtrain/options.h"
#include "tests/programs/simtrain/trainer.h"

int main(int argc, char** argv) {
  using namespace gpuprof::simtrain;
  const Options options = parse_options(argc, argv);
  if (options.launches_ranks) return run_ranks(options, argv);
  try {
    const Result result = Trainer(options).run();
    if (options.rank == 0) {
      fmt::print("simtrain: {} steps, checksum {:016x}\n", result.steps, result.checksum);
    }
    return 0;
  } catch (const std::exception& e) {
    fmt::print(stderr, "simtrain: rank {}: {}\n", options.rank, e.what());
    return 1;
  }
}
