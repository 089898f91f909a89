// SPDX-License-Identifier: Apache-2.0
#include "tests/programs/simtrain/options.h"

#include <CLI/CLI.hpp>
#include <cstdlib>

namespace gpuprof::simtrain {
namespace {

// "R:FACTOR" applied to this process's rank.
void apply_slow_rank(Options* o) {
  if (o->slow_rank.empty()) return;
  const size_t colon = o->slow_rank.find(':');
  char* end = nullptr;
  const long rank = std::strtol(o->slow_rank.c_str(), &end, 10);
  const double factor =
      colon == std::string::npos ? 0 : std::strtod(o->slow_rank.c_str() + colon + 1, nullptr);
  if (end != o->slow_rank.c_str() + colon || factor <= 0) {
    throw CLI::ValidationError("--slow-rank", "'" + o->slow_rank + "' is not RANK:FACTOR");
  }
  if (rank == o->rank) o->kernel_factor = factor;
}

// "R:STEP" or "R:STEP:SECONDS", of this process's rank.
void apply_asleep(Options* o) {
  if (o->asleep.empty()) return;
  char *colon = nullptr, *end = nullptr;
  const long rank = std::strtol(o->asleep.c_str(), &colon, 10);
  const long step = *colon == ':' ? std::strtol(colon + 1, &end, 10) : -1;
  if (step >= 0 && *end == ':')
    o->asleep_s = static_cast<unsigned>(std::strtoul(end + 1, &end, 10));
  if (step < 0 || *end != '\0') {
    throw CLI::ValidationError("--asleep", "'" + o->asleep + "' is not RANK:STEP[:SECONDS]");
  }
  if (rank == o->rank) o->asleep_in = static_cast<int>(step);
}

}  // namespace

Options parse_options(int argc, char** argv) {
  Options o;
  CLI::App app{"A training loop on the simulated CUDA stack"};
  app.add_option("--steps", o.steps, "training steps")->check(CLI::PositiveNumber);
  app.add_option("--layers", o.layers, "layers of the model")->check(CLI::PositiveNumber);
  app.add_option("--kernel-us", o.kernel_us, "time of a layer's matrix product")
      ->check(CLI::PositiveNumber);
  app.add_option("--small-kernels", o.small_kernels, "2 us kernels per step, in the forward pass")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--data-ms", o.data_ms, "time to load a batch")->check(CLI::NonNegativeNumber);
  app.add_option("--h2d-mb", o.h2d_mb, "size of a batch")->check(CLI::PositiveNumber);
  app.add_flag("--pageable", o.pageable, "batches in pageable, not pinned, host memory");
  app.add_option("--sync-every", o.sync_every, "read the loss back every N steps")
      ->check(CLI::PositiveNumber);
  app.add_option("--malloc-per-step", o.malloc_per_step, "cudaMalloc/cudaFree pairs per step")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--comm-mb", o.comm_mb, "gradients to reduce per step")
      ->check(CLI::NonNegativeNumber);
  app.add_flag("--gather", o.gathers, "gather each rank's part of them instead");
  app.add_flag("--overlap", o.overlap, "reduce gradients on a stream of their own");
  app.add_flag("--graphs", o.graphs, "forward and backward pass as one CUDA graph");
  app.add_option("--ranks", o.ranks, "processes")->check(CLI::Range(1, 64));
  app.add_option(
      "--rank-variable", o.rank_variable,
      "how processes are told their rank; another name than RANK says it to nobody else");
  app.add_option("--slow-rank", o.slow_rank, "R:FACTOR: rank R's kernels take FACTOR times longer");
  app.add_option("--asleep", o.asleep,
                 "R:STEP[:SECONDS]: rank R sleeps in that step, for ever or so long");
  app.add_option("--markers", o.markers, "what marks a step")
      ->check(
          CLI::IsMember({"nvtx", "sync", "none", "profiler", "profiler+nvtx", "profiler+sync"}));
  app.add_option("--profile-steps", o.profile_steps,
                 "--markers profiler...: cudaProfilerStart and Stop around steps, as in 5-9,20-22");
  app.add_option("--seed", o.seed, "of the data and of the kernels' jitter");
  app.add_option("--threads", o.threads, "threads that launch kernels")->check(CLI::Range(1, 64));
  try {
    app.parse(argc, argv);
    if (o.graphs && o.threads > 1) {
      throw CLI::ValidationError("--graphs", "captures one thread; leave out --threads");
    }
    const char* const rank = std::getenv(o.rank_variable.c_str());
    o.launches_ranks = o.ranks > 1 && rank == nullptr;
    if (rank != nullptr) o.rank = std::atoi(rank);
    apply_slow_rank(&o);
    apply_asleep(&o);
  } catch (const CLI::ParseError& e) {
    std::exit(app.exit(e));
  }
  return o;
}

}  // namespace gpuprof::simtrain
