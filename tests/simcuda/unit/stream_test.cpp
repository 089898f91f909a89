// SPDX-License-Identifier: Apache-2.0
// The order of work on the virtual device.
#include "tests/simcuda/core/clock.h"
#include "tests/simcuda/unit/support.h"

namespace gpuprof::simcuda::testing {
namespace {

constexpr uint64_t kMillisecond = 1'000'000;
// What the host is to be quicker than, also where the machine holds it up.
constexpr uint64_t kLong = 1000 * kMillisecond;

TEST(Stream, RunsInOrderAndForAsLongAsAsked) {
  const Streams streams(1);
  launch("fifo_a", kLong, streams[0]);
  launch("fifo_b", 2 * kMillisecond, streams[0]);
  const Json a = kernel("fifo_a");
  const Json b = kernel("fifo_b");
  EXPECT_EQ(end_of(a) - begin_of(a), kLong);
  EXPECT_EQ(begin_of(b), end_of(a));
  EXPECT_EQ(end_of(b) - begin_of(b), 2 * kMillisecond);
}

TEST(Stream, StartsAfterItsLaunch) {
  const Streams streams(1);
  launch("late_start", 1000, streams[0]);
  const auto calls = select(truth(), "call", "kernel", "late_start");
  ASSERT_EQ(calls.size(), 1u);
  EXPECT_GT(begin_of(kernel("late_start")), begin_of(calls[0]));
  EXPECT_EQ(kernel("late_start")["corr"], calls[0]["corr"]);
  EXPECT_EQ(kernel("late_start")["stream"], calls[0]["stream"]);
}

TEST(Stream, DifferentStreamsRunSideBySide) {
  const Streams streams(2);
  launch("side_a", kLong, streams[0]);
  launch("side_b", 50 * kMillisecond, streams[1]);
  EXPECT_LT(begin_of(kernel("side_b")), end_of(kernel("side_a")));
}

TEST(Stream, WaitsForAnEventOfAnotherStream) {
  const Streams streams(2);
  cudaEvent_t event = nullptr;
  ASSERT_EQ(cudaEventCreate(&event), cudaSuccess);
  launch("before_event", kLong, streams[0]);
  ASSERT_EQ(cudaEventRecord(event, streams[0]), cudaSuccess);
  launch("after_event", kLong, streams[0]);
  ASSERT_EQ(cudaStreamWaitEvent(streams[1], event, 0), cudaSuccess);
  launch("waiter", 1000, streams[1]);
  EXPECT_GE(begin_of(kernel("waiter")), end_of(kernel("before_event")));
  EXPECT_LT(begin_of(kernel("waiter")), end_of(kernel("after_event")));
  EXPECT_EQ(cudaEventDestroy(event), cudaSuccess);
}

TEST(Stream, LegacyDefaultStreamAndBlockingStreamsWaitForEachOther) {
  const Streams blocking(1, cudaStreamDefault);
  const Streams free_running(1);
  launch("blocking_first", kLong, blocking[0]);
  launch("legacy", kLong, nullptr);
  launch("blocking_second", 1000, blocking[0]);
  launch("free", 1000, free_running[0]);
  EXPECT_EQ(begin_of(kernel("legacy")), end_of(kernel("blocking_first")));
  EXPECT_EQ(begin_of(kernel("blocking_second")), end_of(kernel("legacy")));
  EXPECT_LT(begin_of(kernel("free")), end_of(kernel("legacy")));
  EXPECT_EQ(kernel("legacy")["stream"], 7);
}

TEST(Stream, TheLegacyStreamWaitsForNoDestroyedStreamThatDoesNotBlock) {
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);  // with what other tests have left
  launch("left_behind", kLong, Streams(1)[0]);
  launch("waited_for", 1000, Streams(1, cudaStreamDefault)[0]);
  launch("legacy_next", 1000, nullptr);
  EXPECT_GE(begin_of(kernel("legacy_next")), end_of(kernel("waited_for")));
  EXPECT_LT(begin_of(kernel("legacy_next")), end_of(kernel("left_behind")));
}

TEST(Stream, HostSynchronisationBlocksUntilTheComputedEnd) {
  const Streams streams(1);
  launch("slow", kLong, streams[0]);
  EXPECT_EQ(cudaStreamQuery(streams[0]), cudaErrorNotReady);
  ASSERT_EQ(cudaStreamSynchronize(streams[0]), cudaSuccess);
  EXPECT_GE(now_ns(), end_of(kernel("slow")));
  EXPECT_EQ(cudaStreamQuery(streams[0]), cudaSuccess);
}

TEST(Stream, DeviceSynchronisationWaitsForADestroyedStreamsWork) {
  {
    const Streams streams(1);
    launch("orphan", 30 * kMillisecond, streams[0]);
  }
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  EXPECT_GE(now_ns(), end_of(kernel("orphan")));
}

TEST(Event, ElapsedTimeIsTheDeviceTimeBetween) {
  const Streams streams(1);
  cudaEvent_t from = nullptr;
  cudaEvent_t to = nullptr;
  ASSERT_EQ(cudaEventCreate(&from), cudaSuccess);
  ASSERT_EQ(cudaEventCreate(&to), cudaSuccess);
  launch("warm", kLong, streams[0]);
  ASSERT_EQ(cudaEventRecord(from, streams[0]), cudaSuccess);
  launch("timed", 300 * kMillisecond, streams[0]);
  ASSERT_EQ(cudaEventRecord(to, streams[0]), cudaSuccess);
  float ms = 0;
  EXPECT_EQ(cudaEventElapsedTime(&ms, from, to), cudaErrorNotReady);
  ASSERT_EQ(cudaEventSynchronize(to), cudaSuccess);
  ASSERT_EQ(cudaEventElapsedTime(&ms, from, to), cudaSuccess);
  EXPECT_FLOAT_EQ(ms, 300.0f);
  EXPECT_EQ(cudaEventDestroy(from), cudaSuccess);
  EXPECT_EQ(cudaEventDestroy(to), cudaSuccess);
  EXPECT_EQ(cudaEventDestroy(to), cudaErrorInvalidResourceHandle);
}

TEST(Graph, AWaitInACaptureMakesItInvalid) {
  const Streams streams(1);
  cudaGraph_t graph = reinterpret_cast<cudaGraph_t>(1);
  ASSERT_EQ(cudaStreamBeginCapture(streams[0], cudaStreamCaptureModeGlobal), cudaSuccess);
  EXPECT_EQ(cudaStreamSynchronize(streams[0]), cudaErrorStreamCaptureUnsupported);
  EXPECT_EQ(cudaStreamEndCapture(streams[0], &graph), cudaErrorStreamCaptureInvalidated);
  EXPECT_EQ(graph, nullptr);
  EXPECT_EQ(cudaStreamSynchronize(streams[0]), cudaSuccess) << "the capture is over";
}

TEST(Graph, ReplaysItsNodesOnTheLaunchStream) {
  const Streams streams(2);
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t exec = nullptr;
  ASSERT_EQ(cudaStreamBeginCapture(streams[0], cudaStreamCaptureModeGlobal), cudaSuccess);
  launch("node_a", 1000, streams[0]);
  launch("node_b", 2000, streams[0]);
  ASSERT_EQ(cudaStreamEndCapture(streams[0], &graph), cudaSuccess);
  EXPECT_TRUE(select(truth(), "gpu", "name", "node_a").empty()) << "captured work does not run";
  size_t nodes = 0;
  ASSERT_EQ(cudaGraphGetNodes(graph, nullptr, &nodes), cudaSuccess);
  EXPECT_EQ(nodes, 2u);
  ASSERT_EQ(cudaGraphInstantiate(&exec, graph, 0), cudaSuccess);
  ASSERT_EQ(cudaGraphLaunch(exec, streams[1]), cudaSuccess);
  ASSERT_EQ(cudaGraphLaunch(exec, streams[1]), cudaSuccess);
  ASSERT_EQ(cudaStreamSynchronize(streams[1]), cudaSuccess);
  const auto a = select(truth(), "gpu", "name", "node_a");
  const auto b = select(truth(), "gpu", "name", "node_b");
  const auto launches = select(truth(), "call", "name", "cudaGraphLaunch");
  const auto spans = select(truth(), "gpu", "type", "graph");
  ASSERT_EQ(a.size(), 2u);
  ASSERT_EQ(b.size(), 2u);
  ASSERT_EQ(spans.size(), 2u);
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(begin_of(b[i]), end_of(a[i]));
    EXPECT_EQ(a[i]["corr"], launches[i]["corr"]);
    EXPECT_EQ(a[i]["stream"], launches[i]["stream"]);
    EXPECT_NE(a[i]["node"], b[i]["node"]);
    EXPECT_EQ(begin_of(spans[i]), begin_of(a[i]));
    EXPECT_EQ(end_of(spans[i]), end_of(b[i]));
  }
  EXPECT_EQ(cudaGraphExecDestroy(exec), cudaSuccess);
  EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
}

TEST(Graph, LaunchesOfOneFollowEachOtherOnWhateverStreams) {
  const Streams streams(2);
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t execs[2] = {};
  ASSERT_EQ(cudaStreamBeginCapture(streams[0], cudaStreamCaptureModeGlobal), cudaSuccess);
  launch("only_node", kLong, streams[0]);
  ASSERT_EQ(cudaStreamEndCapture(streams[0], &graph), cudaSuccess);
  for (cudaGraphExec_t& exec : execs) {
    ASSERT_EQ(cudaGraphInstantiate(&exec, graph, 0), cudaSuccess);
  }
  ASSERT_EQ(cudaGraphLaunch(execs[0], streams[0]), cudaSuccess);
  ASSERT_EQ(cudaGraphLaunch(execs[0], streams[1]), cudaSuccess);
  launch("behind_second", 1000, streams[1]);
  const auto nodes = select(truth(), "gpu", "name", "only_node");
  ASSERT_EQ(nodes.size(), 2u);
  EXPECT_EQ(begin_of(nodes[1]), end_of(nodes[0]));
  EXPECT_EQ(begin_of(kernel("behind_second")), end_of(nodes[1]));
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  ASSERT_EQ(cudaGraphLaunch(execs[0], streams[0]), cudaSuccess);
  ASSERT_EQ(cudaGraphLaunch(execs[1], streams[1]), cudaSuccess);
  const auto all = select(truth(), "gpu", "name", "only_node");
  ASSERT_EQ(all.size(), 4u);
  EXPECT_LT(begin_of(all[3]), end_of(all[2])) << "instantiated twice, it runs beside itself";
  for (const cudaGraphExec_t exec : execs) EXPECT_EQ(cudaGraphExecDestroy(exec), cudaSuccess);
  EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
}

}  // namespace
}  // namespace gpuprof::simcuda::testing
