// SPDX-License-Identifier: Apache-2.0
// Pipelines whose slowdown is known, since their schedule is computed here.
#include "tools/analysis/pipeline.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <vector>

namespace gpuprof::analysis {
namespace {

constexpr int64_t kForward = 10'000'000, kBackward = 20'000'000, kSend = 100'000, kSync = 500'000;

struct Shape {
  uint32_t data_ranks = 3, stages = 4;
  int micro_batches = 6, steps = 4;
  // How many times as long a worker's computing takes.
  std::function<double(uint32_t rank, uint32_t stage)> slow = [](uint32_t, uint32_t) {
    return 1.0;
  };
};

// All forward passes, then all backward ones (GPipe). A receive begins when the worker is free for
// it, the transfer when the sender has come.
class Schedule {
 public:
  explicit Schedule(const Shape& shape) : shape_(shape) {
    job_.data_ranks = shape.data_ranks;
    job_.stages = shape.stages;
    for (uint32_t rank = 0; rank < shape.data_ranks; ++rank) {
      for (uint32_t stage = 0; stage < shape.stages; ++stage) job_.workers.push_back({rank, stage});
    }
    for (int step = 0; step < shape.steps; ++step) {
      job_.numbers.push_back(10 + static_cast<uint64_t>(step));
      job_.steps.emplace_back();
      run_step();
    }
  }
  const PipelineJob& job() const { return job_; }

 private:
  uint32_t worker(uint32_t rank, uint32_t stage) const { return rank * shape_.stages + stage; }
  void add(OperationKind kind, uint32_t at, int64_t sequence, int64_t begin, int64_t end) {
    job_.steps.back().push_back({begin, end, sequence, at, kind});
  }
  void run_step() {
    std::vector<int64_t> free(job_.workers.size(), begin_ + kSync);
    for (uint32_t i = 0; i < job_.workers.size(); ++i) {
      add(OperationKind::params_gather, i, 0, begin_, begin_ + kSync);
    }
    for (uint32_t rank = 0; rank < shape_.data_ranks; ++rank) {
      for (int batch = 0; batch < shape_.micro_batches; ++batch) pass(rank, batch, true, free);
      for (int batch = 0; batch < shape_.micro_batches; ++batch) pass(rank, batch, false, free);
    }
    for (uint32_t stage = 0; stage < shape_.stages; ++stage) {
      int64_t last = 0;
      for (uint32_t rank = 0; rank < shape_.data_ranks; ++rank) {
        last = std::max(last, free[worker(rank, stage)]);
      }
      for (uint32_t rank = 0; rank < shape_.data_ranks; ++rank) {
        const uint32_t at = worker(rank, stage);
        add(OperationKind::grads_reduce, at, 0, free[at], last + kSync);
        begin_ = std::max(begin_, last + kSync);
      }
    }
  }
  void pass(uint32_t rank, int batch, bool forward, std::vector<int64_t>& free) {
    int64_t arrived = 0;
    for (uint32_t i = 0; i < shape_.stages; ++i) {
      const uint32_t stage = forward ? i : shape_.stages - 1 - i;
      const uint32_t at = worker(rank, stage);
      if (i > 0) {
        const auto receive = forward ? OperationKind::forward_recv : OperationKind::backward_recv;
        add(receive, at, batch, std::min(free[at], arrived - kSend), arrived);
      }
      const int64_t begin = std::max(free[at], arrived);
      const auto length = static_cast<int64_t>(static_cast<double>(forward ? kForward : kBackward) *
                                               shape_.slow(rank, stage));
      add(forward ? OperationKind::forward_compute : OperationKind::backward_compute, at, batch,
          begin, begin + length);
      free[at] = begin + length;
      if (i + 1 == shape_.stages) break;
      add(forward ? OperationKind::forward_send : OperationKind::backward_send, at, batch, free[at],
          free[at] + kSend);
      arrived = free[at] + kSend;
    }
  }

  const Shape shape_;
  PipelineJob job_;
  int64_t begin_ = 0;
};

TEST(PipelineTest, IsReplayedAsItWas) {
  const Pipeline found = analyse(Schedule({}).job());
  EXPECT_NEAR(found.simulated_us, found.recorded_us, 0.01 * found.recorded_us);
  EXPECT_NEAR(found.slowdown, 1, 0.001);
  EXPECT_EQ(found.steps, 4u);
  EXPECT_EQ(found.workers, 12u);
}

TEST(PipelineTest, NamesASlowWorker) {
  Shape shape;
  shape.slow = [](uint32_t rank, uint32_t stage) { return rank == 1 && stage == 2 ? 2.0 : 1.0; };
  const Pipeline found = analyse(Schedule(shape).job());
  EXPECT_GT(found.slowdown, 1.3);
  EXPECT_NEAR(found.worst_workers, 1, 0.1);
  EXPECT_NEAR(found.last_stage, 0, 0.1);
  ASSERT_EQ(found.slow_workers.size(), 1u);
  EXPECT_EQ(found.slow_workers[0].name, "data-parallel rank 1, stage 2");
  EXPECT_NEAR(found.slow_workers[0].factor, 2, 0.03);  // its transfers take as long as others'
  EXPECT_EQ(found.worst_kind.name, "backward-compute");
  EXPECT_EQ(found.slow_steps, 4u);
  EXPECT_EQ(found.slow_since, 10u);
}

TEST(PipelineTest, NamesALongLastStage) {
  Shape shape;
  shape.slow = [](uint32_t, uint32_t stage) { return stage == 3 ? 1.6 : 1.0; };
  const Pipeline found = analyse(Schedule(shape).job());
  EXPECT_GT(found.last_stage, 0.7);
  EXPECT_LT(found.worst_workers, 0.5);
  EXPECT_NEAR(found.stage_shares.back().factor, 1.6, 0.01);
}

// The ideal job is the one in which every worker takes the mean: computed by the schedule itself.
TEST(PipelineTest, IdealIsTheJobWithTheWorkSpreadEvenly) {
  Shape shape, even;
  shape.slow = [](uint32_t rank, uint32_t) { return rank == 0 ? 1.9 : 1.0; };
  even.slow = [](uint32_t, uint32_t) { return 1.3; };
  const Pipeline found = analyse(Schedule(shape).job());
  const Pipeline wanted = analyse(Schedule(even).job());
  EXPECT_NEAR(found.ideal_us, wanted.recorded_us, 0.01 * wanted.recorded_us);
}

}  // namespace
}  // namespace gpuprof::analysis
