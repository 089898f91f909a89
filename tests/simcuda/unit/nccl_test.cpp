// SPDX-License-Identifier: Apache-2.0
// Collectives: ranks end together, in one process and in several.
#include <nccl.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>

#include "tests/simcuda/unit/support.h"

namespace gpuprof::simcuda::testing {
namespace {

constexpr char kAllReduceKernel[] =
    "_Z39ncclDevKernel_AllReduce_Sum_f32_RING_LL24ncclDevKernelArgsStorageILm4096EE";
constexpr uint64_t kJitterNs = 2000;

ncclUniqueId id_from(const char* text) {
  ncclUniqueId id{};
  std::snprintf(id.internal, sizeof id.internal, "%s", text);
  return id;
}

// A rank: work of its own length, then a collective; three times.
TEST(DISABLED_Child, Rank) {
  const int rank = std::atoi(getenv("TEST_RANK"));
  const int ranks = std::atoi(getenv("TEST_RANKS"));
  ncclComm_t comm = nullptr;
  const Streams streams(1);
  ASSERT_EQ(ncclCommInitRank(&comm, ranks, id_from(getenv("TEST_ID")), rank), ncclSuccess);
  for (uint64_t i = 0; i < 3; ++i) {
    launch("own_work", (static_cast<uint64_t>(rank) + 1) * 3'000'000, streams[0]);
    ASSERT_EQ(ncclAllReduce(nullptr, nullptr, 1 << 20, ncclFloat, ncclSum, comm, streams[0]),
              ncclSuccess);
  }
  ASSERT_EQ(cudaStreamSynchronize(streams[0]), cudaSuccess);
  ASSERT_EQ(ncclCommDestroy(comm), ncclSuccess);
}

std::vector<Json> run_ranks(int ranks, const char* leaving_us = "2") {
  ncclUniqueId id{};
  EXPECT_EQ(ncclGetUniqueId(&id), ncclSuccess);
  const std::string directory = make_directory();
  std::vector<int> children;
  for (int rank = 0; rank < ranks; ++rank) {
    children.push_back(start_child("DISABLED_Child.Rank", {{"TEST_RANK", std::to_string(rank)},
                                                           {"TEST_RANKS", std::to_string(ranks)},
                                                           {"TEST_ID", id.internal},
                                                           {"SIMCUDA_NCCL_LEAVING_US", leaving_us},
                                                           {"SIMCUDA_TRUTH", directory}}));
  }
  for (const int child : children) EXPECT_EQ(wait_child(child), 0);
  return truth_in(directory);
}

// How far apart the ranks leave: the most of three collectives.
uint64_t most_apart(const char* leaving_us) {
  std::vector<uint64_t> ends;
  for (const Json& kernel : select(run_ranks(3, leaving_us), "gpu", "name", kAllReduceKernel)) {
    ends.push_back(end_of(kernel));
  }
  EXPECT_EQ(ends.size(), 9u);
  std::sort(ends.begin(), ends.end());
  uint64_t most = 0;
  for (size_t i = 0; i + 2 < ends.size(); i += 3) most = std::max(most, ends[i + 2] - ends[i]);
  return most;
}

TEST(Nccl, RanksInSeveralProcessesEndTogether) {
  const std::vector<Json> lines = run_ranks(3);
  std::vector<Json> kernels = select(lines, "gpu", "name", kAllReduceKernel);
  ASSERT_EQ(kernels.size(), 9u);
  std::sort(kernels.begin(), kernels.end(),
            [](const Json& a, const Json& b) { return end_of(a) < end_of(b); });
  for (size_t i = 0; i < 9; i += 3) {
    uint64_t last_begin = 0;
    for (size_t j = i; j < i + 3; ++j) last_begin = std::max(last_begin, begin_of(kernels[j]));
    EXPECT_LE(end_of(kernels[i + 2]) - end_of(kernels[i]), kJitterNs);
    EXPECT_GT(end_of(kernels[i]), last_begin) << "none ends before the last has come";
  }
  const auto calls = select(lines, "nccl", "name", "ncclAllReduce");
  ASSERT_EQ(calls.size(), 9u);
  EXPECT_EQ(calls[0]["count"], 1 << 20);
  EXPECT_EQ(calls[0]["nranks"], 3);
  EXPECT_EQ(select(lines, "call", "via", "nccl").size(), 9u);
}

TEST(Nccl, RanksLeaveAsFarApartAsTold) {
  EXPECT_EQ(most_apart("0"), 0u);
  const uint64_t most = most_apart("500");
  EXPECT_GT(most, kJitterNs);
  EXPECT_LE(most, 500'000u);
}

TEST(DISABLED_Child, Lonely) {
  ncclComm_t comm = nullptr;
  EXPECT_EQ(ncclCommInitRank(&comm, 2, id_from(getenv("TEST_ID")), 0), ncclSystemError);
}

TEST(Nccl, AMissingRankIsAnError) {
  ncclUniqueId id{};
  ASSERT_EQ(ncclGetUniqueId(&id), ncclSuccess);
  EXPECT_EQ(run_child("DISABLED_Child.Lonely",
                      {{"TEST_ID", id.internal}, {"SIMCUDA_NCCL_TIMEOUT_S", "0.2"}}),
            0);
}

class OneProcess : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(ncclCommInitAll(comms_, 2, nullptr), ncclSuccess);
    for (int i = 0; i < 2; ++i) {
      ASSERT_EQ(cudaSetDevice(i), cudaSuccess);
      ASSERT_EQ(cudaStreamCreateWithFlags(&streams_[i], cudaStreamNonBlocking), cudaSuccess);
    }
  }
  void TearDown() override {
    for (int i = 0; i < 2; ++i) {
      EXPECT_EQ(cudaStreamSynchronize(streams_[i]), cudaSuccess);
      EXPECT_EQ(ncclCommDestroy(comms_[i]), ncclSuccess);
      EXPECT_EQ(cudaStreamDestroy(streams_[i]), cudaSuccess);
    }
  }
  // The device work that nccl launched during the test.
  static std::vector<Json> nccl_kernels(size_t before) {
    std::vector<Json> lines = truth();
    lines.erase(lines.begin(), lines.begin() + static_cast<std::ptrdiff_t>(before));
    std::vector<Json> out;
    for (const Json& line : select(lines, "gpu", "type", "kernel")) {
      if (line["name"].get<std::string>().find("ncclDevKernel") != std::string::npos) {
        out.push_back(line);
      }
    }
    return out;
  }
  ncclComm_t comms_[2] = {};
  cudaStream_t streams_[2] = {};
};

// What both ranks have after `call(rank, from, to)`, of values rank * 10 + 1, 2, ... of `count`.
class Payloads : public OneProcess {
 protected:
  template <typename T, typename Call>
  std::vector<std::vector<T>> after(size_t count, const Call& call) {
    std::vector<std::vector<T>> out(2, std::vector<T>(count));
    T *from[2], *to[2];
    for (int rank = 0; rank < 2; ++rank) {
      std::vector<T> values;
      for (size_t i = 0; i < count; ++i) values.push_back(static_cast<T>(rank * 10 + 1) + T(i));
      EXPECT_EQ(cudaMalloc(&from[rank], count * sizeof(T)), cudaSuccess);
      EXPECT_EQ(cudaMalloc(&to[rank], count * sizeof(T)), cudaSuccess);
      EXPECT_EQ(cudaMemset(to[rank], 0, count * sizeof(T)), cudaSuccess);
      EXPECT_EQ(cudaMemcpy(from[rank], values.data(), count * sizeof(T), cudaMemcpyDefault),
                cudaSuccess);
    }
    for (int rank = 0; rank < 2; ++rank) call(rank, from[rank], to[rank]);
    for (int rank = 0; rank < 2; ++rank) {
      // Behind the collective on its stream: it waits for what that brings.
      EXPECT_EQ(cudaMemcpyAsync(out[static_cast<size_t>(rank)].data(), to[rank], count * sizeof(T),
                                cudaMemcpyDefault, streams_[rank]),
                cudaSuccess);
      EXPECT_EQ(cudaStreamSynchronize(streams_[rank]), cudaSuccess);
      EXPECT_EQ(cudaFree(from[rank]), cudaSuccess);
      EXPECT_EQ(cudaFree(to[rank]), cudaSuccess);
    }
    return out;
  }
};

TEST_F(Payloads, SmallOnesAreMoved) {
  using Ints = std::vector<std::vector<int64_t>>;
  const auto reduced = [&](ncclRedOp_t op) {
    return after<int64_t>(2, [&](int rank, int64_t* from, int64_t* to) {
      ASSERT_EQ(ncclAllReduce(from, to, 2, ncclInt64, op, comms_[rank], streams_[rank]),
                ncclSuccess);
    });
  };
  EXPECT_EQ(reduced(ncclSum), (Ints{{12, 14}, {12, 14}}));
  EXPECT_EQ(reduced(ncclProd), (Ints{{11, 24}, {11, 24}}));
  EXPECT_EQ(reduced(ncclMin), (Ints{{1, 2}, {1, 2}}));
  EXPECT_EQ(reduced(ncclMax), (Ints{{11, 12}, {11, 12}}));
  EXPECT_EQ(reduced(ncclAvg), (Ints{{6, 7}, {6, 7}}));
  EXPECT_EQ(after<int64_t>(4,
                           [&](int rank, int64_t* from, int64_t* to) {
                             ASSERT_EQ(ncclAllGather(from, to, 2, ncclInt64, comms_[rank],
                                                     streams_[rank]),
                                       ncclSuccess);
                           }),
            (Ints{{1, 2, 11, 12}, {1, 2, 11, 12}}));
  EXPECT_EQ(after<int64_t>(2,
                           [&](int rank, int64_t* from, int64_t* to) {
                             ASSERT_EQ(ncclBroadcast(from, to, 2, ncclInt64, 1, comms_[rank],
                                                     streams_[rank]),
                                       ncclSuccess);
                           }),
            (Ints{{11, 12}, {11, 12}}));
  EXPECT_EQ(after<int64_t>(2,
                           [&](int rank, int64_t* from, int64_t* to) {
                             ASSERT_EQ(ncclReduceScatter(from, to, 1, ncclInt64, ncclSum,
                                                         comms_[rank], streams_[rank]),
                                       ncclSuccess);
                           }),
            (Ints{{12, 0}, {14, 0}}));
  EXPECT_EQ(after<int64_t>(2,
                           [&](int rank, int64_t* from, int64_t* to) {
                             ASSERT_EQ(
                                 ncclAlltoAll(from, to, 1, ncclInt64, comms_[rank], streams_[rank]),
                                 ncclSuccess);
                           }),
            (Ints{{1, 11}, {2, 12}}));
  EXPECT_EQ(after<float>(2,
                         [&](int rank, float* from, float* to) {
                           ASSERT_EQ(ncclReduce(from, to, 2, ncclFloat, ncclSum, 0, comms_[rank],
                                                streams_[rank]),
                                     ncclSuccess);
                         }),
            (std::vector<std::vector<float>>{{12, 14}, {0, 0}}));
}

TEST_F(Payloads, LargeOnesAreNot) {
  const size_t count = 4096 / sizeof(int64_t) + 1;
  const auto found = after<int64_t>(count, [&](int rank, int64_t* from, int64_t* to) {
    ASSERT_EQ(ncclAllReduce(from, to, count, ncclInt64, ncclSum, comms_[rank], streams_[rank]),
              ncclSuccess);
  });
  EXPECT_EQ(found, std::vector(2, std::vector<int64_t>(count, 0)));
}

// Two ranks call what TEST_CALLS names; says by its exit whether the operation ended as TEST_ENDS
// wants: "right", "wrong" (data), "never".
TEST(DISABLED_Child, Mismatched) {
  const std::string calls = getenv("TEST_CALLS"), ends = getenv("TEST_ENDS");
  ncclComm_t comms[2] = {};
  ASSERT_EQ(ncclCommInitAll(comms, 2, nullptr), ncclSuccess);
  int *from[2], *to[2];
  cudaStream_t streams[2];
  for (int rank = 0; rank < 2; ++rank) {
    ASSERT_EQ(cudaSetDevice(rank), cudaSuccess);
    ASSERT_EQ(cudaStreamCreateWithFlags(&streams[rank], cudaStreamNonBlocking), cudaSuccess);
    ASSERT_EQ(cudaMalloc(&from[rank], 64), cudaSuccess);
    ASSERT_EQ(cudaMalloc(&to[rank], 64), cudaSuccess);
    const int values[2] = {rank + 1, rank + 1};
    ASSERT_EQ(cudaMemcpy(from[rank], values, sizeof values, cudaMemcpyDefault), cudaSuccess);
  }
  for (int rank = 0; rank < 2; ++rank) {
    const bool other = rank == 1;
    ncclResult_t result = ncclSuccess;
    if (calls == "message") {
      const size_t count = other ? 1 : 2;
      result = other ? ncclRecv(to[rank], count, ncclInt, 0, comms[rank], streams[rank])
                     : ncclSend(from[rank], count, ncclInt, 1, comms[rank], streams[rank]);
    } else if (other && calls == "function") {
      result = ncclAllGather(from[rank], to[rank], 2, ncclInt, comms[rank], streams[rank]);
    } else {
      result = ncclAllReduce(from[rank], to[rank], other && calls == "count" ? 1 : 2,
                             other && calls == "type" ? ncclFloat : ncclInt,
                             other && calls == "operation" ? ncclMax : ncclSum, comms[rank],
                             streams[rank]);
    }
    ASSERT_EQ(result, ncclSuccess) << "NCCL does not compare the calls";
  }
  int got[2] = {};
  for (int rank = 0; rank < 2; ++rank) {
    ASSERT_EQ(cudaMemcpyAsync(&got[rank], to[rank], 4, cudaMemcpyDefault, streams[rank]),
              cudaSuccess);
    ASSERT_EQ(cudaStreamSynchronize(streams[rank]), cudaSuccess);
  }
  ncclResult_t state = ncclSuccess;
  ASSERT_EQ(ncclCommGetAsyncError(comms[1], &state), ncclSuccess);
  EXPECT_EQ(state == ncclSystemError, ends == "never") << "the simulator gives up for its tests";
  if (ends == "right") {
    EXPECT_EQ(got[1], calls == "message" ? 1 : 3);
  } else if (ends == "wrong") {
    EXPECT_NE(got[1], 3);
    EXPECT_NE(got[1], 2);
  }
}

TEST(Nccl, RanksThatCallSomethingElseHangOrGetWrongData) {
  const auto run = [](const char* calls, const char* ends, const char* way) {
    return run_child("DISABLED_Child.Mismatched", {{"TEST_CALLS", calls},
                                                   {"TEST_ENDS", ends},
                                                   {"SIMCUDA_NCCL_MISMATCH", way},
                                                   {"SIMCUDA_DEVICES", "2"},
                                                   {"SIMCUDA_NCCL_TIMEOUT_S", "0.5"}});
  };
  EXPECT_EQ(run("same", "right", "hang"), 0);
  for (const char* calls : {"function", "count", "message"}) {
    EXPECT_EQ(run(calls, "never", "hang"), 0) << calls;
    EXPECT_EQ(run(calls, "wrong", "corrupt"), 0) << calls;
  }
  EXPECT_EQ(run("type", "wrong", "hang"), 0);
  EXPECT_EQ(run("operation", "wrong", "hang"), 0);
}

TEST_F(OneProcess, AGroupIsOneKernelPerCommunicator) {
  const size_t before = truth().size();
  launch("uneven", 5'000'000, streams_[1]);
  ASSERT_EQ(ncclGroupStart(), ncclSuccess);
  for (int i = 0; i < 2; ++i) {
    for (int n = 0; n < 3; ++n) {
      ASSERT_EQ(ncclAllReduce(nullptr, nullptr, 1024, ncclFloat, ncclSum, comms_[i], streams_[i]),
                ncclSuccess);
    }
  }
  ASSERT_EQ(ncclGroupEnd(), ncclSuccess);
  for (cudaStream_t stream : streams_) ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  const auto kernels = nccl_kernels(before);
  ASSERT_EQ(kernels.size(), 2u);
  const auto apart = static_cast<int64_t>(end_of(kernels[0]) - end_of(kernels[1]));
  EXPECT_LE(std::abs(apart), static_cast<int64_t>(kJitterNs));
  EXPECT_NE(kernels[0]["device"], kernels[1]["device"]);
}

TEST_F(OneProcess, MessagesMeet) {
  const size_t before = truth().size();
  ASSERT_EQ(ncclGroupStart(), ncclSuccess);
  ASSERT_EQ(ncclSend(nullptr, 1024, ncclFloat, 1, comms_[0], streams_[0]), ncclSuccess);
  ASSERT_EQ(ncclRecv(nullptr, 1024, ncclFloat, 0, comms_[1], streams_[1]), ncclSuccess);
  ASSERT_EQ(ncclGroupEnd(), ncclSuccess);
  for (cudaStream_t stream : streams_) ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  const auto kernels = nccl_kernels(before);
  ASSERT_EQ(kernels.size(), 2u);
  EXPECT_EQ(kernels[0]["name"], "_Z22ncclDevKernel_SendRecv24ncclDevKernelArgsStorageILm4096EE");
}

TEST_F(OneProcess, Split) {
  ncclComm_t halves[2] = {};
  ASSERT_EQ(ncclGroupStart(), ncclSuccess);
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(ncclCommSplit(comms_[i], 0, -i, &halves[i], nullptr), ncclSuccess);
    EXPECT_EQ(halves[i], nullptr) << "until the group ends";
  }
  ASSERT_EQ(ncclGroupEnd(), ncclSuccess);
  int rank = -1;
  ASSERT_EQ(ncclCommUserRank(halves[0], &rank), ncclSuccess);
  EXPECT_EQ(rank, 1) << "ordered by key";
  for (ncclComm_t half : halves) EXPECT_EQ(ncclCommDestroy(half), ncclSuccess);
}

TEST_F(OneProcess, Shrink) {
  int excluded = 1, rank = -1, ranks = -1;
  ncclComm_t smaller = nullptr;
  EXPECT_EQ(ncclCommShrink(comms_[1], &excluded, 1, &smaller, nullptr, NCCL_SHRINK_DEFAULT),
            ncclInvalidArgument)
      << "an excluded rank does not call it";
  ASSERT_EQ(ncclCommShrink(comms_[0], &excluded, 1, &smaller, nullptr, NCCL_SHRINK_DEFAULT),
            ncclSuccess);
  ASSERT_EQ(ncclCommUserRank(smaller, &rank), ncclSuccess);
  ASSERT_EQ(ncclCommCount(smaller, &ranks), ncclSuccess);
  EXPECT_EQ(rank, 0);
  EXPECT_EQ(ranks, 1);
  EXPECT_EQ(ncclCommDestroy(smaller), ncclSuccess);
}

TEST_F(OneProcess, WrongArguments) {
  EXPECT_EQ(ncclBroadcast(nullptr, nullptr, 1, ncclFloat, 7, comms_[0], streams_[0]),
            ncclInvalidArgument);
  EXPECT_EQ(ncclAllReduce(nullptr, nullptr, 1, ncclFloat, ncclSum, nullptr, streams_[0]),
            ncclInvalidArgument);
}

// Work that waits for another rank holds back what comes after it, not the host.
TEST_F(OneProcess, UnresolvedWorkHoldsBackItsStream) {
  ASSERT_EQ(ncclAllReduce(nullptr, nullptr, 1, ncclFloat, ncclSum, comms_[0], streams_[0]),
            ncclSuccess);
  launch("behind", 1000, streams_[0]);
  EXPECT_TRUE(select(truth(), "gpu", "name", "behind").empty());
  EXPECT_EQ(cudaStreamQuery(streams_[0]), cudaErrorNotReady);
  ASSERT_EQ(ncclAllReduce(nullptr, nullptr, 1, ncclFloat, ncclSum, comms_[1], streams_[1]),
            ncclSuccess);
  ASSERT_EQ(cudaStreamSynchronize(streams_[0]), cudaSuccess);
  EXPECT_EQ(select(truth(), "gpu", "name", "behind").size(), 1u);
}

// Until the last operation on it is over: what became of it.
ncclResult_t settle(ncclComm_t comm) {
  ncclResult_t state = ncclInProgress;
  while (state == ncclInProgress) EXPECT_EQ(ncclCommGetAsyncError(comm, &state), ncclSuccess);
  return state;
}

TEST(Nccl, OfANonBlockingCommunicatorIsDoneLater) {
  ncclUniqueId id{};
  ncclComm_t comms[2] = {};
  const Streams streams(1);
  int count = -1;
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  ASSERT_EQ(ncclGetUniqueId(&id), ncclSuccess);
  ASSERT_EQ(ncclCommInitRankConfig(&comms[0], 2, id, 0, &config), ncclInProgress);
  ASSERT_NE(comms[0], nullptr) << "the handle is there at once";
  EXPECT_EQ(ncclCommCount(comms[0], &count), ncclInvalidArgument) << "rank 1 is missing";
  ASSERT_EQ(cudaSetDevice(1), cudaSuccess);
  ASSERT_EQ(ncclCommInitRankConfig(&comms[1], 2, id, 1, &config), ncclInProgress);
  for (const ncclComm_t comm : comms) EXPECT_EQ(settle(comm), ncclSuccess);
  EXPECT_EQ(ncclCommCount(comms[0], &count), ncclSuccess);
  EXPECT_EQ(count, 2);
  ASSERT_EQ(ncclGroupStart(), ncclSuccess);
  for (const ncclComm_t comm : comms) {
    EXPECT_EQ(ncclAllReduce(nullptr, nullptr, 1 << 20, ncclFloat, ncclSum, comm, nullptr),
              ncclSuccess);
  }
  EXPECT_EQ(ncclGroupEnd(), ncclInProgress);
  for (const ncclComm_t comm : comms) EXPECT_EQ(settle(comm), ncclSuccess);
  ncclComm_t halves[2] = {};
  EXPECT_EQ(ncclCommSplit(comms[0], 0, 0, &halves[0], nullptr), ncclInProgress);
  EXPECT_EQ(__atomic_load_n(&halves[0], __ATOMIC_ACQUIRE), nullptr) << "rank 1 is missing";
  EXPECT_EQ(ncclCommSplit(comms[0], 0, 0, &halves[0], nullptr), ncclInvalidArgument)
      << "the parent is busy";
  EXPECT_EQ(ncclCommSplit(comms[1], 0, 0, &halves[1], nullptr), ncclInProgress);
  for (const ncclComm_t comm : comms) EXPECT_EQ(settle(comm), ncclSuccess);
  for (const ncclComm_t half : halves) {
    EXPECT_EQ(ncclCommCount(half, &count), ncclSuccess);
    EXPECT_EQ(ncclCommDestroy(half), ncclSuccess);
  }
  for (const ncclComm_t comm : comms) EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess);
}

TEST(Nccl, GivesTheHandleWithinTheGroupAndTheSizeAtItsEnd) {
  ncclUniqueId id{};
  ncclComm_t comm = nullptr;
  int count = -1;
  ASSERT_EQ(ncclGetUniqueId(&id), ncclSuccess);
  ASSERT_EQ(ncclGroupStart(), ncclSuccess);
  ASSERT_EQ(ncclCommInitRank(&comm, 1, id, 0), ncclSuccess);
  ASSERT_NE(comm, nullptr);
  EXPECT_EQ(ncclCommCount(comm, &count), ncclSuccess);
  EXPECT_EQ(count, 0);
  ASSERT_EQ(ncclGroupEnd(), ncclSuccess);
  EXPECT_EQ(ncclCommCount(comm, &count), ncclSuccess);
  EXPECT_EQ(count, 1);
  EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess);
}

}  // namespace
}  // namespace gpuprof::simcuda::testing
