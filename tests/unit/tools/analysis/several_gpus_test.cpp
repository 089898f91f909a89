// SPDX-License-Identifier: Apache-2.0
// Processes that drive several GPUs each: figures of a rank are those that it has with one GPU.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/unit/support/dump_maker.h"
#include "tools/analysis/report.h"

namespace gpuprof::analysis {
namespace {

constexpr uint64_t kSteps = 10, kStep = 1000;  // of so many us
constexpr uint64_t kLate = 130;                // us: a rank's kernel, in every second step

uint64_t ticks(uint64_t us) { return 10'000'000 + us * test::kTicksPerUs; }

struct Job {
  uint32_t gpus = 1;       // of each of the two processes
  bool apart = false;      // the nth GPUs of the processes have a communicator of their own
  uint32_t late_gpus = 8;  // how many of a process's are late in its turn
};

// Two ranks take turns in being late to a collective of all GPUs, which they leave together.
std::string dump_of(const Job& job, uint32_t rank) {
  test::MemoryNames names;
  BatchEncoder encoder(names);
  encoder.begin(0, 1);
  const auto add = [&](const Record& record) {
    if (!encoder.add(record, 4242 + rank, "python")) throw std::bad_alloc();
  };
  uint32_t correlation = 0;
  const auto work = [&](uint64_t launched, uint64_t begin, uint64_t end, const char* name,
                        uint32_t gpu, uint32_t stream) {
    Record launch = test::make_record(Kind::launch, ticks(launched), ticks(launched) + 1000,
                                      names.api("cudaLaunchKernel"));
    launch.correlation = ++correlation;
    launch.launch.function = names.intern(name), launch.flags = kFlagNamed;
    launch.launch.stream = 0x5000 + 16 * gpu + stream;
    add(launch);
    Record kernel = test::make_record(Kind::gpu_kernel, ticks(begin), ticks(end));
    kernel.correlation = correlation;
    kernel.gpu_kernel.name = names.intern(name), kernel.gpu_kernel.device = gpu;
    kernel.gpu_kernel.stream = stream, kernel.gpu_kernel.context = 1 + gpu;
    add(kernel);
  };
  dump::Summary summary = test::make_summary(ticks(kSteps * kStep), 0, kSteps - 1);
  for (uint32_t gpu = 0; gpu < job.gpus; ++gpu) {
    dump::Communicator* const communicator = summary.add_communicator();
    communicator->set_handle(0x9000 + gpu);
    communicator->set_identity(job.apart ? 0x1234 + gpu : 0x1234);
    communicator->set_made_ticks(ticks(0));
  }
  std::vector<uint64_t> boundaries{ticks(0)};
  for (uint64_t step = 0; step < kSteps; ++step) {
    const uint64_t at = step * kStep;
    boundaries.push_back(ticks(at + kStep));
    for (uint32_t gpu = 0; gpu < job.gpus; ++gpu) {
      const bool late = step % 2 == rank && gpu < job.late_gpus;
      const uint64_t arrival = at + 300 + (late ? kLate : 0);
      work(at + 1 + 2 * gpu, at + 10 + 2 * gpu, arrival, "gemm", gpu, 7);
      Record call = test::make_record(Kind::collective, ticks(at + 100 + 10 * gpu),
                                      ticks(at + 108 + 10 * gpu), names.api("ncclAllReduce", 3));
      call.collective.communicator = 0x9000 + gpu, call.collective.count = 1024;
      call.collective.stream = 0x5000 + 16 * gpu + 9;
      call.collective.data_type = 7, call.collective.peer = -1;
      call.collective.sequence = static_cast<uint32_t>(step);
      call.collective.rank_count = static_cast<uint16_t>(job.apart ? 2 : 2 * job.gpus);
      call.collective.rank = static_cast<uint16_t>(job.apart ? rank : rank * job.gpus + gpu);
      add(call);
      work(at + 101 + 10 * gpu, arrival, at + 995, "ncclDevKernel_AllReduce_Sum_f32", gpu, 9);
    }
  }
  ByteBuffer bytes;
  test::append(bytes, ChunkKind::header, test::make_header(1, static_cast<int>(rank)));
  test::append_events(bytes, encoder);
  test::append_steps(bytes, boundaries, 0, 1);
  test::append(bytes, ChunkKind::summary, summary);
  return std::string(test::view(bytes));
}

Report report_of(const Job& job) {
  return make_report(test::load(dump_of(job, 0) + dump_of(job, 1)));
}

// A rank waits in every second step, and is last in the others. The host begins each step at its
// time, whatever the GPUs do: without their communication steps would be as long.
void expect_that_of_one_gpu(const Report& report) {
  ASSERT_EQ(report.speeds.size(), 2u);
  for (const RankSpeed& speed : report.speeds) {
    EXPECT_NEAR(speed.waited_us, kLate / 2.0, 0.01);
    EXPECT_NEAR(speed.last_pct, 50, 0.01);
  }
  EXPECT_TRUE(report.verdict.empty());
  EXPECT_NE(report.reason.find("communication 56.5 %, and without that alone steps would be no"),
            std::string::npos)
      << report.reason;
}

TEST(SeveralGpus, ARankWaitsAsItsGpusDoSideBySide) {
  for (const uint32_t gpus : {1u, 8u}) {
    const Report report = report_of({.gpus = gpus});
    expect_that_of_one_gpu(report);
    const CollectiveTimes& times = report.collective_times;
    ASSERT_EQ(times.rows.size(), 1u);
    EXPECT_EQ(times.rows[0].matched, kSteps);
    EXPECT_NEAR(times.rows[0].waiting_us, kSteps * kLate / 2.0, 0.1);
    ASSERT_EQ(times.waits.waits_us.size(), 2u);
    EXPECT_NEAR(times.waits.waits_us[0][1], kSteps * kLate / 2.0, 0.1) << gpus;
    EXPECT_NEAR(times.waits.waits_us[1][0], kSteps * kLate / 2.0, 0.1) << gpus;
  }
}

TEST(SeveralGpus, SoTheyDoInCommunicatorsOfTheirOwn) {
  expect_that_of_one_gpu(report_of({.gpus = 8, .apart = true}));
}

// One GPU of eight makes its process the last one; the others of the process wait for it, too.
TEST(SeveralGpus, ARankIsLastWhereOneOfItsGpusIs) {
  const Report report = report_of({.gpus = 8, .late_gpus = 1});
  ASSERT_EQ(report.speeds.size(), 2u);
  for (const RankSpeed& speed : report.speeds) {
    EXPECT_NEAR(speed.last_pct, 50, 0.01);
    EXPECT_NEAR(speed.waited_us, kLate * (1 + 7 / 8.0) / 2, 0.01);
    EXPECT_EQ(speed.collectives, kSteps);
  }
}

}  // namespace
}  // namespace gpuprof::analysis
