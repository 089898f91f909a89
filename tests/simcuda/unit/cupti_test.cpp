// SPDX-License-Identifier: Apache-2.0
// CUPTI's records and callbacks against the truth.
#include <csignal>
#include <cstdlib>
#include <optional>

#include "collector/base/clock.h"
#include "tests/simcuda/core/clock.h"
#include "tests/simcuda/core/simcuda.h"
#include "tests/simcuda/unit/support.h"

namespace gpuprof::simcuda::testing {
namespace {

uint64_t CUPTIAPI monotonic() { return now_ns(); }

const std::vector<CUpti_ActivityKind> kGpuKinds = {
    CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_MEMCPY, CUPTI_ACTIVITY_KIND_MEMSET,
    CUPTI_ACTIVITY_KIND_MEMORY2, CUPTI_ACTIVITY_KIND_SYNCHRONIZATION};

template <typename Record>
void expect_same(const Record& record, const Json& line) {
  EXPECT_NEAR(static_cast<double>(record.start), static_cast<double>(begin_of(line)), 1000);
  EXPECT_NEAR(static_cast<double>(record.end), static_cast<double>(end_of(line)), 1000);
}

std::optional<Json> by_correlation(const std::vector<Json>& lines, uint32_t correlation) {
  for (const Json& line : lines) {
    if (line["corr"] == correlation) return line;
  }
  return std::nullopt;
}

// Some of everything, on two streams.
void do_work() {
  const Streams streams(2);
  void* device = nullptr;
  void* pinned = nullptr;
  ASSERT_EQ(cudaMalloc(&device, 1 << 20), cudaSuccess);
  ASSERT_EQ(cudaMallocHost(&pinned, 1 << 20), cudaSuccess);
  for (int i = 0; i < 300; ++i) {
    const cudaStream_t stream = streams[static_cast<size_t>(i % 2)];
    launch(i % 2 == 0 ? "even" : "odd", 2000 + static_cast<uint64_t>(i), stream);
    if (i % 10 == 0) {
      ASSERT_EQ(cudaMemcpyAsync(device, pinned, 4096, cudaMemcpyHostToDevice, stream), cudaSuccess);
      ASSERT_EQ(cudaMemsetAsync(device, 3, 4096, stream), cudaSuccess);
    }
  }
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  ASSERT_EQ(cudaFreeHost(pinned), cudaSuccess);
  ASSERT_EQ(cudaFree(device), cudaSuccess);
}

TEST(Cupti, RecordsAreTheTruth) {
  ASSERT_EQ(cuptiActivityRegisterTimestampCallback(&monotonic), CUPTI_SUCCESS);
  CuptiClient& client = CuptiClient::instance();
  client.start(kGpuKinds);
  const size_t before = truth().size();
  do_work();
  client.stop();
  std::vector<Json> lines = truth();
  lines.erase(lines.begin(), lines.begin() + static_cast<std::ptrdiff_t>(before));
  const auto kernels =
      client.records<CUpti_ActivityKernel10>(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
  const auto true_kernels = select(lines, "gpu", "type", "kernel");
  ASSERT_EQ(kernels.size(), 300u);
  ASSERT_EQ(true_kernels.size(), 300u);
  std::map<uint32_t, uint64_t> last;
  for (const CUpti_ActivityKernel10& k : kernels) {
    const std::optional<Json> line = by_correlation(true_kernels, k.correlationId);
    ASSERT_TRUE(line.has_value());
    expect_same(k, *line);
    EXPECT_EQ(k.name, (*line)["name"]);
    EXPECT_EQ(k.streamId, (*line)["stream"]);
    EXPECT_EQ(k.gridX, 4);
    EXPECT_EQ(k.blockX, 64);
    EXPECT_GE(k.start, last[k.streamId]) << "records of one stream come in order";
    last[k.streamId] = k.start;
  }
  const auto copies = client.records<CUpti_ActivityMemcpy6>(CUPTI_ACTIVITY_KIND_MEMCPY);
  ASSERT_EQ(copies.size(), 30u);
  for (const auto& copy : copies) {
    const std::optional<Json> line =
        by_correlation(select(lines, "gpu", "type", "memcpy"), copy.correlationId);
    ASSERT_TRUE(line.has_value());
    expect_same(copy, *line);
    EXPECT_EQ(copy.bytes, 4096u);
    EXPECT_EQ(copy.copyKind, CUPTI_ACTIVITY_MEMCPY_KIND_HTOD);
    EXPECT_EQ(copy.srcKind, CUPTI_ACTIVITY_MEMORY_KIND_PINNED);
  }
  EXPECT_EQ(client.records<CUpti_ActivityMemset4>(CUPTI_ACTIVITY_KIND_MEMSET).size(), 30u);
  EXPECT_EQ(client.records<CUpti_ActivityMemory4>(CUPTI_ACTIVITY_KIND_MEMORY2).size(), 4u);
  const auto syncs =
      client.records<CUpti_ActivitySynchronization2>(CUPTI_ACTIVITY_KIND_SYNCHRONIZATION);
  ASSERT_EQ(syncs.size(), 1u);
  expect_same(syncs[0], select(lines, "gpu", "type", "sync").at(0));
}

uint64_t CUPTIAPI tsc() { return read_counter(); }

// Both clocks at one moment. A thread that the kernel takes off between two readings tries again.
struct BothClocks {
  uint64_t ticks;
  uint64_t ns;
};

BothClocks both_clocks() {
  BothClocks best{};
  uint64_t narrowest = UINT64_MAX;
  for (int i = 0; i < 1000; ++i) {
    const uint64_t before = now_ns();
    const uint64_t ticks = tsc();
    const uint64_t width = now_ns() - before;
    if (width >= narrowest) continue;
    narrowest = width;
    best = {ticks, before + width / 2};
  }
  return best;
}

TEST(Cupti, TimesFollowTheClientsClock) {
  ASSERT_EQ(cuptiActivityRegisterTimestampCallback(&tsc), CUPTI_SUCCESS);
  CuptiClient& client = CuptiClient::instance();
  const BothClocks first = both_clocks();
  client.start(kGpuKinds);
  launch("in_ticks", 50'000'000, nullptr);
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  client.stop();
  const BothClocks last = both_clocks();
  const double ticks_per_ns =
      static_cast<double>(last.ticks - first.ticks) / static_cast<double>(last.ns - first.ns);
  const auto kernels =
      client.records<CUpti_ActivityKernel10>(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
  ASSERT_EQ(kernels.size(), 1u);
  const double length_ns = static_cast<double>(kernels[0].end - kernels[0].start) / ticks_per_ns;
  EXPECT_NEAR(length_ns, 50'000'000, 5000);
}

TEST(Cupti, ARecordComesOnlyWhenTheDeviceIsPastIt) {
  ASSERT_EQ(cuptiActivityRegisterTimestampCallback(&monotonic), CUPTI_SUCCESS);
  CuptiClient& client = CuptiClient::instance();
  client.start({CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL});
  launch("long", 300'000'000, nullptr);
  EXPECT_TRUE(
      client.records<CUpti_ActivityKernel10>(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL).empty());
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  EXPECT_EQ(client.records<CUpti_ActivityKernel10>(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL).size(),
            1u);
  client.stop();
}

struct Seen {
  CUpti_CallbackDomain domain;
  uint32_t cbid;
  CUpti_ApiCallbackSite site;
  uint32_t correlation;
  std::string symbol;
};
std::vector<Seen> seen;

void CUPTIAPI on_callback(void*, CUpti_CallbackDomain domain, CUpti_CallbackId cbid,
                          const void* data) {
  const auto* call = static_cast<const CUpti_CallbackData*>(data);
  seen.push_back({domain, cbid, call->callbackSite, call->correlationId,
                  call->symbolName == nullptr ? "" : call->symbolName});
}

TEST(Cupti, CallbacksSurroundTheCallAndShareItsCorrelationId) {
  CUpti_SubscriberHandle handle = nullptr;
  ASSERT_EQ(cuptiSubscribe(&handle, &on_callback, nullptr), CUPTI_SUCCESS);
  CUpti_SubscriberHandle second = nullptr;
  EXPECT_EQ(cuptiSubscribe(&second, &on_callback, nullptr),
            CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED);
  ASSERT_EQ(cuptiEnableCallback(1, handle, CUPTI_CB_DOMAIN_RUNTIME_API,
                                CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000),
            CUPTI_SUCCESS);
  ASSERT_EQ(cuptiEnableCallback(1, handle, CUPTI_CB_DOMAIN_DRIVER_API,
                                CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel),
            CUPTI_SUCCESS);
  seen.clear();
  launch("called_back", 1000, nullptr);
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  ASSERT_EQ(cuptiUnsubscribe(handle), CUPTI_SUCCESS);
  launch("not_called_back", 1000, nullptr);
  ASSERT_EQ(seen.size(), 4u);
  EXPECT_EQ(seen[0].site, CUPTI_API_ENTER);
  EXPECT_EQ(seen[0].domain, CUPTI_CB_DOMAIN_RUNTIME_API);
  EXPECT_EQ(seen[1].domain, CUPTI_CB_DOMAIN_DRIVER_API) << "the driver call is inside";
  EXPECT_EQ(seen[3].site, CUPTI_API_EXIT);
  for (const Seen& s : seen) {
    EXPECT_EQ(s.correlation, kernel("called_back")["corr"]);
    EXPECT_EQ(s.symbol, "called_back");
  }
}

TEST(Cupti, NamesOfCallbacks) {
  const char* name = nullptr;
  ASSERT_EQ(cuptiGetCallbackName(CUPTI_CB_DOMAIN_RUNTIME_API,
                                 CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000, &name),
            CUPTI_SUCCESS);
  EXPECT_STREQ(name, "cudaLaunchKernel_v7000");
  for (uint32_t i = 1; i < CUPTI_RUNTIME_TRACE_CBID_SIZE; ++i) {
    EXPECT_EQ(cuptiGetCallbackName(CUPTI_CB_DOMAIN_RUNTIME_API, i, &name), CUPTI_SUCCESS) << i;
  }
  EXPECT_EQ(cuptiGetCallbackName(CUPTI_CB_DOMAIN_RUNTIME_API, CUPTI_RUNTIME_TRACE_CBID_SIZE, &name),
            CUPTI_ERROR_INVALID_PARAMETER);
}

TEST(Cupti, ExternalIdsAndApiRecords) {
  CuptiClient& client = CuptiClient::instance();
  client.start({CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION, CUPTI_ACTIVITY_KIND_RUNTIME});
  ASSERT_EQ(cuptiActivityPushExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, 42),
            CUPTI_SUCCESS);
  launch("labelled", 1000, nullptr);
  uint64_t last = 0;
  ASSERT_EQ(cuptiActivityPopExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, &last),
            CUPTI_SUCCESS);
  EXPECT_EQ(last, 42u);
  launch("unlabelled", 1000, nullptr);
  client.stop();
  const auto ids =
      client.records<CUpti_ActivityExternalCorrelation>(CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION);
  ASSERT_EQ(ids.size(), 1u);
  EXPECT_EQ(ids[0].externalId, 42u);
  EXPECT_EQ(ids[0].correlationId, kernel("labelled")["corr"]);
  EXPECT_EQ(client.records<CUpti_ActivityAPI>(CUPTI_ACTIVITY_KIND_RUNTIME).size(), 2u);
}

cudaGraphExec_t small_graph(cudaStream_t stream) {
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t exec = nullptr;
  EXPECT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), cudaSuccess);
  launch("graph_node", 1000, stream);
  launch("graph_node", 1000, stream);
  EXPECT_EQ(cudaStreamEndCapture(stream, &graph), cudaSuccess);
  EXPECT_EQ(cudaGraphInstantiate(&exec, graph, 0), cudaSuccess);
  EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
  return exec;
}

TEST(Cupti, NodesOfEarlierGraphsHaveRecords) {
  const Streams streams(1);
  const cudaGraphExec_t before = small_graph(streams[0]);
  CuptiClient& client = CuptiClient::instance();
  client.start({CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL});
  const cudaGraphExec_t after = small_graph(streams[0]);
  ASSERT_EQ(cudaGraphLaunch(before, streams[0]), cudaSuccess);
  ASSERT_EQ(cudaGraphLaunch(after, streams[0]), cudaSuccess);
  ASSERT_EQ(cudaStreamSynchronize(streams[0]), cudaSuccess);
  client.stop();
  const auto kernels =
      client.records<CUpti_ActivityKernel10>(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
  ASSERT_EQ(kernels.size(), 4u);
  const auto launches = select(truth(), "call", "name", "cudaGraphLaunch");
  EXPECT_EQ(kernels[0].correlationId, launches[launches.size() - 2]["corr"]);
  EXPECT_EQ(kernels[2].correlationId, launches.back()["corr"]);
  EXPECT_NE(kernels[0].graphId, 0u);
  EXPECT_NE(kernels[0].graphNodeId, kernels[1].graphNodeId);

  client.start({CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_GRAPH_TRACE});
  const cudaGraphExec_t whole = small_graph(streams[0]);
  ASSERT_EQ(cudaGraphLaunch(whole, streams[0]), cudaSuccess);
  ASSERT_EQ(cudaStreamSynchronize(streams[0]), cudaSuccess);
  client.stop();
  EXPECT_TRUE(
      client.records<CUpti_ActivityKernel10>(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL).empty());
  EXPECT_EQ(client.records<CUpti_ActivityGraphTrace2>(CUPTI_ACTIVITY_KIND_GRAPH_TRACE).size(), 1u);
  EXPECT_EQ(cudaGraphExecDestroy(before), cudaSuccess);
  EXPECT_EQ(cudaGraphExecDestroy(whole), cudaSuccess);
  EXPECT_EQ(cudaGraphExecDestroy(after), cudaSuccess);
}

TEST(DISABLED_Child, LaunchesAnEarlierGraph) {
  std::signal(SIGSEGV, SIG_DFL);  // a sanitizer makes an exit of it
  const Streams streams(1);
  const cudaGraphExec_t before = small_graph(streams[0]);
  CuptiClient& client = CuptiClient::instance();
  client.start({CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_GRAPH_TRACE});
  ASSERT_EQ(cudaGraphLaunch(before, streams[0]), cudaSuccess);
  ASSERT_EQ(cudaStreamSynchronize(streams[0]), cudaSuccess);
  client.stop();
  EXPECT_TRUE(client.records<CUpti_ActivityGraphTrace2>(CUPTI_ACTIVITY_KIND_GRAPH_TRACE).empty());
  EXPECT_EQ(cudaGraphExecDestroy(before), cudaSuccess);
}

// The worker may come first, but not each time.
TEST(Cupti, AsksForABufferInTheCallThatFindsNone) {
  CuptiClient& client = CuptiClient::instance();
  bool asked = false;
  for (int session = 0; session < 50 && !asked; ++session) {
    client.start({CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL});
    launch("first", 1000, nullptr);
    client.stop();
    asked = client.requesters() == std::vector<pid_t>{::gettid()};
  }
  EXPECT_TRUE(asked);
}

TEST(Cupti, CrashesWhenItIsToTimeAnEarlierGraphAsAWhole) {
  constexpr int kKilled = 128;
  EXPECT_EQ(run_child("DISABLED_Child.LaunchesAnEarlierGraph", {}), kKilled + SIGSEGV);
  EXPECT_EQ(
      run_child("DISABLED_Child.LaunchesAnEarlierGraph", {{"SIMCUDA_CUPTI", "late_graph_crash=0"}}),
      0);
}

TEST(DISABLED_Child, DropsAndZeroes) {
  CuptiClient& client = CuptiClient::instance();
  client.start({CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL});
  for (int i = 0; i < 100; ++i) launch("counted", 1000, nullptr);
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  client.stop();
  const auto kernels =
      client.records<CUpti_ActivityKernel10>(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
  size_t dropped = 0;
  ASSERT_EQ(cuptiActivityGetNumDroppedRecords(nullptr, 0, &dropped), CUPTI_SUCCESS);
  size_t zero = 0;
  for (const auto& k : kernels) zero += k.start == 0 && k.end == 0 ? 1 : 0;
  EXPECT_EQ(kernels.size(), 90u);
  EXPECT_EQ(dropped, 10u);
  EXPECT_EQ(zero, 18u);
}

TEST(DISABLED_Child, NoDriverForCupti) {
  CUpti_SubscriberHandle handle = nullptr;
  uint32_t version = 0;
  EXPECT_EQ(cuptiGetVersion(&version), CUPTI_SUCCESS);
  EXPECT_EQ(version, 130001u);
  EXPECT_EQ(cuptiSubscribe(&handle, &on_callback, nullptr), CUPTI_ERROR_UNKNOWN);
  EXPECT_EQ(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_MEMCPY), CUPTI_ERROR_UNKNOWN);
  EXPECT_EQ(cuptiActivityFlushAll(0), CUPTI_ERROR_UNKNOWN);
  EXPECT_EQ(cuptiEnableCallback(1, nullptr, CUPTI_CB_DOMAIN_RUNTIME_API, 1),
            CUPTI_ERROR_INVALID_PARAMETER);
}

TEST(DISABLED_Child, SubscriberTaken) {
  CUpti_SubscriberHandle handle = nullptr;
  char other[64] = {};
  CUpti_SubscriberParams params{};
  params.structSize = CUpti_SubscriberParams_STRUCT_SIZE;
  params.oldSubscriberName = other;
  params.oldSubscriberSize = sizeof other;
  EXPECT_EQ(cuptiSubscribe_v2(&handle, &on_callback, nullptr, &params),
            CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED);
  EXPECT_STRNE(other, "");
}

TEST(Cupti, CanBeToldToFail) {
  EXPECT_EQ(run_child("DISABLED_Child.DropsAndZeroes", {{"SIMCUDA_CUPTI", "drop=10,zero_ts=5"}}),
            0);
  EXPECT_EQ(run_child("DISABLED_Child.NoDriverForCupti", {{"SIMCUDA_CUPTI", "nodriver"}}), 0);
  EXPECT_EQ(run_child("DISABLED_Child.SubscriberTaken", {{"SIMCUDA_CUPTI", "subscriber_taken"}}),
            0);
}

}  // namespace
}  // namespace gpuprof::simcuda::testing
