// SPDX-License-Identifier: Apache-2.0
// What captures of streams forbid to whom, and what that makes of them.
#include <functional>
#include <thread>

#include "tests/simcuda/unit/support.h"

namespace gpuprof::simcuda::testing {
namespace {

void begin(cudaStream_t stream, cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal) {
  ASSERT_EQ(cudaStreamBeginCapture(stream, mode), cudaSuccess);
}

cudaStreamCaptureStatus status_of(cudaStream_t stream) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  EXPECT_EQ(cudaStreamIsCapturing(stream, &status), cudaSuccess);
  return status;
}

// Ends the capture; whether it was valid.
bool end(cudaStream_t stream) {
  cudaGraph_t graph = nullptr;
  const cudaError_t result = cudaStreamEndCapture(stream, &graph);
  EXPECT_TRUE(result == cudaSuccess || result == cudaErrorStreamCaptureInvalidated) << result;
  EXPECT_EQ(graph != nullptr, result == cudaSuccess);
  if (graph != nullptr) {
    EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
  }
  return result == cudaSuccess;
}

// As another thread in that mode calls it.
cudaError_t elsewhere(cudaStreamCaptureMode mode, const std::function<cudaError_t()>& call) {
  cudaError_t result = cudaSuccess;
  std::thread([&] {
    EXPECT_EQ(cudaThreadExchangeStreamCaptureMode(&mode), cudaSuccess);
    EXPECT_EQ(mode, cudaStreamCaptureModeGlobal) << "a thread's first one";
    result = call();
  }).join();
  return result;
}

cudaError_t allocate() {
  void* memory = nullptr;
  const cudaError_t result = cudaMalloc(&memory, 16);
  if (result != cudaSuccess) return result;
  auto mode = cudaStreamCaptureModeRelaxed;
  EXPECT_EQ(cudaThreadExchangeStreamCaptureMode(&mode), cudaSuccess);
  EXPECT_EQ(cudaFree(memory), cudaSuccess);
  EXPECT_EQ(cudaThreadExchangeStreamCaptureMode(&mode), cudaSuccess);
  return result;
}

TEST(Capture, ForbidsUnsafeCallsToItsThread) {
  const Streams streams(1);
  for (const auto mode : {cudaStreamCaptureModeGlobal, cudaStreamCaptureModeThreadLocal}) {
    begin(streams[0], mode);
    EXPECT_EQ(allocate(), cudaErrorStreamCaptureUnsupported);
    EXPECT_EQ(status_of(streams[0]), cudaStreamCaptureStatusInvalidated);
    EXPECT_FALSE(end(streams[0]));
  }
  begin(streams[0], cudaStreamCaptureModeRelaxed);
  EXPECT_EQ(allocate(), cudaSuccess);
  EXPECT_TRUE(end(streams[0]));

  auto mine = cudaStreamCaptureModeRelaxed;
  ASSERT_EQ(cudaThreadExchangeStreamCaptureMode(&mine), cudaSuccess);
  begin(streams[0]);
  EXPECT_EQ(allocate(), cudaSuccess) << "the thread is in relaxed mode";
  EXPECT_TRUE(end(streams[0]));
  ASSERT_EQ(cudaThreadExchangeStreamCaptureMode(&mine), cudaSuccess);
}

TEST(Capture, ForbidsUnsafeCallsToOtherThreadsInGlobalMode) {
  const Streams streams(1);
  cudaEvent_t event = nullptr;
  ASSERT_EQ(cudaEventCreate(&event), cudaSuccess);
  ASSERT_EQ(cudaEventRecord(event, streams[0]), cudaSuccess);
  ASSERT_EQ(cudaEventSynchronize(event), cudaSuccess);
  const auto query = [event] { return cudaEventQuery(event); };
  begin(streams[0]);
  EXPECT_EQ(elsewhere(cudaStreamCaptureModeThreadLocal, query), cudaSuccess);
  EXPECT_EQ(elsewhere(cudaStreamCaptureModeRelaxed, query), cudaSuccess);
  EXPECT_EQ(status_of(streams[0]), cudaStreamCaptureStatusActive);
  EXPECT_EQ(elsewhere(cudaStreamCaptureModeGlobal, query), cudaErrorStreamCaptureUnsupported);
  EXPECT_FALSE(end(streams[0]));
  begin(streams[0], cudaStreamCaptureModeThreadLocal);
  EXPECT_EQ(elsewhere(cudaStreamCaptureModeGlobal, query), cudaSuccess);
  EXPECT_TRUE(end(streams[0]));
  EXPECT_EQ(cudaEventDestroy(event), cudaSuccess);
}

TEST(Capture, OfABlockingStreamForbidsTheLegacyStream) {
  const Streams blocking(1, cudaStreamDefault), other(1);
  cudaStreamCaptureStatus status;
  begin(other[0]);
  launch("beside_capture", 1000, nullptr);
  EXPECT_TRUE(end(other[0])) << "the legacy stream does not wait for it";
  begin(blocking[0]);
  EXPECT_EQ(cudaStreamIsCapturing(nullptr, &status), cudaErrorStreamCaptureImplicit);
  EXPECT_EQ(status_of(blocking[0]), cudaStreamCaptureStatusActive) << "to ask is no fault";
  EXPECT_EQ(cudaStreamQuery(nullptr), cudaErrorStreamCaptureImplicit);
  EXPECT_FALSE(end(blocking[0]));
  EXPECT_EQ(cudaStreamSynchronize(nullptr), cudaSuccess);
}

TEST(Capture, OnceInvalidTakesNothingMore) {
  const Streams streams(2);
  cudaEvent_t event = nullptr;
  ASSERT_EQ(cudaEventCreate(&event), cudaSuccess);
  const auto spoil = [&](const std::function<cudaError_t()>& call, cudaError_t expected) {
    begin(streams[0]);
    ASSERT_EQ(cudaEventRecord(event, streams[0]), cudaSuccess);
    EXPECT_EQ(call(), expected);
    EXPECT_EQ(cudaEventRecord(event, streams[0]), cudaErrorStreamCaptureInvalidated);
    EXPECT_FALSE(end(streams[0]));
  };
  spoil([&] { return cudaEventQuery(event); }, cudaErrorCapturedEvent);
  spoil([&] { return cudaEventSynchronize(event); }, cudaErrorCapturedEvent);
  spoil([] { return cudaDeviceSynchronize(); }, cudaErrorStreamCaptureUnsupported);
  spoil([&] { return cudaStreamQuery(streams[0]); }, cudaErrorStreamCaptureUnsupported);
  EXPECT_EQ(cudaStreamWaitEvent(streams[1], event, 0), cudaErrorCapturedEvent) << "it is over";
  EXPECT_EQ(status_of(streams[1]), cudaStreamCaptureStatusNone);
  ASSERT_EQ(cudaEventRecord(event, streams[1]), cudaSuccess);
  begin(streams[0]);
  EXPECT_EQ(cudaStreamWaitEvent(streams[0], event, 0), cudaErrorStreamCaptureIsolation);
  EXPECT_FALSE(end(streams[0]));
  EXPECT_EQ(cudaEventDestroy(event), cudaSuccess);
}

TEST(Capture, IsEndedByTheThreadThatBeganIt) {
  const Streams streams(1);
  const auto end_it = [&] {
    cudaGraph_t graph = nullptr;
    return cudaStreamEndCapture(streams[0], &graph);
  };
  begin(streams[0]);
  EXPECT_EQ(elsewhere(cudaStreamCaptureModeGlobal, end_it), cudaErrorStreamCaptureWrongThread);
  EXPECT_TRUE(end(streams[0]));
  begin(streams[0], cudaStreamCaptureModeRelaxed);
  EXPECT_EQ(elsewhere(cudaStreamCaptureModeGlobal, end_it), cudaSuccess);
}

}  // namespace
}  // namespace gpuprof::simcuda::testing
