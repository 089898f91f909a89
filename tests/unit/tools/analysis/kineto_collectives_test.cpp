// SPDX-License-Identifier: Apache-2.0
// Collectives of torch.profiler's traces, as PyTorch describes them in the arguments of kernels.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>

#include "formats/kineto_reader/reader.h"
#include "tools/analysis/collective_args.h"
#include "tools/analysis/report.h"

namespace gpuprof::analysis {
namespace {

constexpr uint64_t kElements = 25'000'000;  // of floats: 100 MB
constexpr int kSteps = 4;

// Four steps, each with a kernel that computes and one that communicates for 1 ms. `args`: what the
// latter says.
std::string rank_trace(int rank, int ranks, const std::string& args) {
  std::string events;
  const auto event = [&](const char* category, const char* name, int pid, int tid, double begin,
                         double length, const std::string& members) {
    events += fmt::format(
        R"({}{{"ph":"X","cat":"{}","name":"{}","pid":{},"tid":{},"ts":{},"dur":{},"args":{{{}}}}})",
        events.empty() ? "" : ",\n", category, name, pid, tid, begin, length, members);
  };
  const int pid = 4000 + rank;
  for (int step = 0; step < kSteps; ++step) {
    const double at = 1000 + 10'000.0 * step;
    const int id = 100 + 2 * step;
    event("user_annotation", fmt::format("ProfilerStep#{}", step).c_str(), pid, pid, at, 9999, "");
    const auto work = [&](const char* name, int stream, int correlation, double begin,
                          double length, const std::string& more) {
      event("cuda_runtime", "cudaLaunchKernel", pid, pid, begin - 50, 5,
            fmt::format(R"("correlation":{})", correlation));
      event("kernel", name, 0, stream, begin, length,
            fmt::format(R"("device":0,"context":1,"stream":{},"correlation":{}{})", stream,
                        correlation, more));
    };
    work("gemm", 7, id, at + 200, 5000, "");
    work("ncclDevKernel_SendRecv", 20, id + 1, at + 5400, 1000, "," + args);
  }
  return fmt::format(
      R"({{"schemaVersion":1,"distributedInfo":{{"rank":{},"world_size":{}}},"traceEvents":[{}]}})",
      rank, ranks, events);
}

CollectiveTimes times_of(int ranks, const std::function<std::string(int)>& args_of) {
  Trace trace;
  const std::string path = fmt::format("{}kineto_collectives_{}", testing::TempDir(), ::getpid());
  for (int rank = 0; rank < ranks; ++rank) {
    std::ofstream(path) << rank_trace(rank, ranks, args_of(rank));
    read_kineto(path, trace);
  }
  std::filesystem::remove(path);
  return make_report(trace).collective_times;
}

std::string args_of(const char* name, uint64_t in, uint64_t out, int ranks,
                    const std::string& more = "") {
  return fmt::format(
      R"("Collective name":"{}","In msg nelems":{},"Out msg nelems":{},"Group size":{},)"
      R"("dtype":"Float","Process Group Name":"0"{})",
      name, in, out, ranks, more);
}

constexpr const char* kEight = R"(,"Process Group Ranks":"[0, 1, 2, 3, 4, 5, 6, 7]")";

TEST(KinetoCollectives, RanksMayExchangeUnequalLengths) {
  for (const char* splits : {"all_to_allv", "all_to_all"}) {
    const CollectiveTimes times = times_of(8, [&](int rank) {
      const auto own = static_cast<uint64_t>(rank) * 1000;
      return args_of(splits, kElements + own, kElements + 7000 - own, 8,
                     std::string(kEight) + R"(,"In split size":"[1, 2, 3]")");
    });
    EXPECT_EQ(times.different, 0u);
    EXPECT_EQ(times.matched, 4u);
    ASSERT_EQ(times.rows.size(), 1u);
    EXPECT_EQ(times.rows[0].function, "all_to_allv");
    EXPECT_EQ(times.rows[0].bytes, kSteps * 4 * (kElements + 3500)) << "the mean";
    EXPECT_NEAR(times.rows[0].bus_gbs, 100.0 * 7 / 8, 0.1);
  }
}

TEST(KinetoCollectives, ListsMayHoldTensorsOfSeveralSizes) {
  const CollectiveTimes times = times_of(8, [](int rank) {
    const auto own = kElements / 8 + static_cast<uint64_t>(rank) * 1000;
    return args_of("all_gather", own, 8 * own, 8, kEight);
  });
  EXPECT_EQ(times.different, 0u);
  ASSERT_EQ(times.rows.size(), 1u);
  EXPECT_EQ(times.rows[0].function, "ncclAllGather");
  EXPECT_EQ(times.rows[0].bytes, kSteps * 4 * (kElements + 8 * 3500));
}

TEST(KinetoCollectives, SizesThatMustBeEqualAreSaidToDiffer) {
  const CollectiveTimes times = times_of(8, [](int rank) {
    const uint64_t own = kElements + (rank == 3);
    return args_of("allreduce", own, own, 8, kEight);
  });
  EXPECT_EQ(times.different, 4u);
  EXPECT_EQ(times.matched, 0u);
}

TEST(KinetoCollectives, GroupSizeCountsWhereTheListOfRanksIsShortOrAbsent) {
  for (const char* list :
       {"", R"(,"Process Group Ranks":"")", R"(,"Process Group Ranks":"[0, 1, 2, ..., 39]")"}) {
    const CollectiveTimes reduced =
        times_of(40, [&](int) { return args_of("allreduce", kElements, kElements, 40, list); });
    ASSERT_EQ(reduced.rows.size(), 1u);
    EXPECT_EQ(reduced.rows[0].ranks, 40u);
    EXPECT_NEAR(reduced.rows[0].bus_gbs, 100.0 * 2 * 39 / 40, 0.1);
    const CollectiveTimes gathered = times_of(
        40, [&](int) { return args_of("_allgather_base", kElements / 40, kElements, 40, list); });
    ASSERT_EQ(gathered.rows.size(), 1u);
    EXPECT_EQ(gathered.rows[0].bytes, kSteps * 4 * kElements);
    EXPECT_NEAR(gathered.rows[0].bus_gbs, 100.0 * 39 / 40, 0.1);
  }
}

TEST(KinetoCollectives, WholeTensorsAreTakenForWhatNcclCounts) {
  struct Row {
    const char* name;
    uint64_t in, out;
    double factor;  // bus bandwidth over algorithm bandwidth
  };
  constexpr uint64_t kPart = kElements / 8;
  for (const Row& row : {Row{"all_to_all", kElements, kElements, 7.0 / 8},
                         {"all_to_all_single", kElements, kElements, 7.0 / 8},
                         {"all_gather", kPart, kElements, 7.0 / 8},
                         {"_allgather_base", kPart, kElements, 7.0 / 8},
                         {"reduce_scatter", kElements, kPart, 7.0 / 8},
                         {"_reduce_scatter_base", kElements, kPart, 7.0 / 8},
                         {"gather", kPart, kElements, 7.0 / 8},
                         {"scatter", kElements, kPart, 7.0 / 8},
                         {"allreduce_coalesced", kElements, kElements, 2 * 7.0 / 8},
                         {"broadcast", kElements, kElements, 1}}) {
    const CollectiveTimes times =
        times_of(8, [&](int) { return args_of(row.name, row.in, row.out, 8, kEight); });
    ASSERT_EQ(times.rows.size(), 1u) << row.name;
    EXPECT_EQ(times.rows[0].bytes, kSteps * 4 * kElements) << row.name;
    EXPECT_NEAR(times.rows[0].bus_gbs, 100 * row.factor, 0.1) << row.name;
  }
}

// Ranks 0 and 2, and ranks 1 and 3, are groups.
TEST(KinetoCollectives, PeersAreRanksOfTheJob) {
  const CollectiveTimes times = times_of(4, [](int rank) {
    const bool sends = rank < 2;
    const std::string peer =
        fmt::format(R"(,"{}":{})", sends ? "Dst Rank" : "Src Rank", sends ? rank + 2 : rank - 2);
    const std::string list =
        fmt::format(R"(,"Process Group Ranks":"[{}, {}]")", rank % 2, rank % 2 + 2);
    return args_of(sends ? "send" : "recv", kElements, kElements, 2, peer + list);
  });
  EXPECT_EQ(times.calls, 8u);
  EXPECT_EQ(times.matched, 8u);
  ASSERT_EQ(times.links.size(), 2u);
  for (const LinkRow& link : times.links) EXPECT_EQ(link.messages, 4u);
}

TEST(KinetoCollectives, EveryTypeOfPyTorchHasItsSize) {
  const auto bytes_of = [](const char* type) {
    const std::string args = fmt::format(
        R"("Collective name":"allreduce","In msg nelems":10,"Out msg nelems":10,"dtype":"{}")",
        type);
    return collective_in(args)->bytes;
  };
  EXPECT_EQ(bytes_of("Bool"), 10u);
  EXPECT_EQ(bytes_of("Float8_e4m3fnuz"), 10u);
  EXPECT_EQ(bytes_of("Short"), 20u);
  EXPECT_EQ(bytes_of("Float"), 40u);
  EXPECT_EQ(bytes_of("ComplexFloat"), 80u);
  EXPECT_EQ(bytes_of("ComplexDouble"), 160u);
  EXPECT_EQ(bytes_of("Newer"), std::nullopt);
}

TEST(KinetoCollectives, OfATypeThatIsNotKnownThereIsNoSize) {
  const auto report_of = [](const char* type) {
    return times_of(8, [&](int) {
      std::string args = args_of("allreduce", kElements, kElements, 8, kEight);
      return args.replace(args.find("Float"), 5, type);
    });
  };
  const CollectiveTimes truths = report_of("Bool");
  ASSERT_EQ(truths.rows.size(), 1u);
  EXPECT_EQ(truths.rows[0].bytes, kSteps * kElements);
  EXPECT_TRUE(report_of("Newer").rows.empty());
}

}  // namespace
}  // namespace gpuprof::analysis
