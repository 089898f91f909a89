// SPDX-License-Identifier: Apache-2.0
// What a call of each kind costs, in the process it runs in: cost_table.py starts it bare and
// recorded. The functions called do nothing (fake_cudart.c). Prints {kind: best ns} as JSON.
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <nccl.h>
#include <nvtx3/nvToolsExtPayload.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <utility>
#include <vector>

#include "collector/base/clock.h"

namespace {

constexpr int kCalls = 2000;  // two buffers of records and a bit
constexpr int kRounds = 40;

double g_ticks_per_ns = 1;

// The drain thread empties the buffers in the pause before each round.
template <typename Call>
double cost_of(Call call) {
  double best = 1e9;
  for (int round = 0; round < kRounds; ++round) {
    ::usleep(3000);
    const uint64_t begin = gpuprof::now_ticks();
    for (int i = 0; i < kCalls; i += 4) call(), call(), call(), call();
    const auto ticks = static_cast<double>(gpuprof::now_ticks() - begin);
    best = std::min(best, ticks / g_ticks_per_ns / kCalls);
  }
  return best;
}

// A range of a domain: that of NCCL's calls, or another.
struct DomainRange {
  nvtxDomainHandle_t domain;
  nvtxEventAttributes_t attributes{};

  explicit DomainRange(const char* name) : domain(nvtxDomainCreateA(name)) {
    attributes.version = NVTX_VERSION;
    attributes.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
    attributes.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
    attributes.message.registered = nvtxDomainRegisterStringA(domain, "ncclAllReduce");
  }
  void operator()() const {
    nvtxDomainRangePushEx(domain, &attributes);
    nvtxDomainRangePop(domain);
  }
};
// The same with what NCCL says of a reduction.
class NcclRange {
 public:
  NcclRange() {
    static constexpr nvtxPayloadSchemaEntry_t kEntries[] = {
        {0, NVTX_PAYLOAD_ENTRY_TYPE_UINT64, "NCCL communicator ID", nullptr, 0, 0, nullptr,
         nullptr},
        {0, NVTX_PAYLOAD_ENTRY_TYPE_SIZE, "Message size [bytes]", nullptr, 0, 8, nullptr, nullptr},
        {0, NVTX_PAYLOAD_ENTRY_TYPE_INT, "Reduction operation", nullptr, 0, 16, nullptr, nullptr}};
    nvtxPayloadSchemaAttr_t schema{};
    schema.fieldMask =
        NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_TYPE | NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_ENTRIES |
        NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_NUM_ENTRIES | NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_STATIC_SIZE |
        NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_SCHEMA_ID;
    schema.type = NVTX_PAYLOAD_SCHEMA_TYPE_STATIC;
    schema.entries = kEntries;
    schema.numEntries = 3;
    schema.payloadStaticSize = sizeof payload_;
    schema.schemaId = kSchema;
    nvtxPayloadSchemaRegister(range_.domain, &schema);
    range_.attributes.payloadType = NVTX_PAYLOAD_TYPE_EXT;
    range_.attributes.reserved0 = 1;
    range_.attributes.payload.ullValue = reinterpret_cast<uint64_t>(&data_);
  }
  NcclRange(const NcclRange&) = delete;
  void operator()() const { range_(); }

 private:
  static constexpr uint64_t kSchema = NVTX_PAYLOAD_SCHEMA_ID_STATIC_START + 5;
  DomainRange range_{"NCCL"};
  uint64_t payload_[3] = {0x1234567890, 4096, 0};
  nvtxPayloadData_t data_{kSchema, sizeof payload_, payload_};
};

void* g_arguments[1];
char g_memory[64];

}  // namespace

int main() {
  g_ticks_per_ns = gpuprof::choose_clock().ticks_per_ns;
  cudaEventRecord(nullptr, nullptr);  // the first call starts a session
  auto* const kernel = reinterpret_cast<CUfunction>(g_memory);
  auto* const graph = reinterpret_cast<cudaGraphExec_t>(g_memory);
  auto* const communicator = reinterpret_cast<ncclComm_t>(g_memory);
  void* made = nullptr;
  cudaStream_t stream = nullptr;
  const DomainRange range_of_a_domain("other");
  const NcclRange nccl_range;
  const std::vector<std::pair<const char*, double>> rows = {
      {"clock read", cost_of([] {
         uint64_t ticks = gpuprof::now_ticks();
         __asm__ volatile("" : "+r"(ticks));
       })},
      {"launch",
       cost_of([] { cudaLaunchKernel(g_memory, dim3(1), dim3(32), g_arguments, 0, nullptr); })},
      {"launch by the driver", cost_of([=] {
         cuLaunchKernel(kernel, 1, 1, 1, 32, 1, 1, 0, nullptr, g_arguments, nullptr);
       })},
      {"graph launch", cost_of([=] { cudaGraphLaunch(graph, nullptr); })},
      {"copy",
       cost_of([] { cudaMemcpyAsync(g_memory, g_memory, 8, cudaMemcpyDeviceToDevice, nullptr); })},
      {"set", cost_of([] { cudaMemsetAsync(g_memory, 0, 8, nullptr); })},
      {"allocation", cost_of([&] { cudaMalloc(&made, 64); })},
      {"release", cost_of([] { cudaFree(g_memory); })},
      {"synchronization", cost_of([] { cudaStreamSynchronize(nullptr); })},
      {"event", cost_of([] { cudaEventRecord(nullptr, nullptr); })},
      {"stream", cost_of([&] { cudaStreamCreateWithFlags(&stream, 0); })},
      {"collective", cost_of([=] {
         ncclAllReduce(g_memory, g_memory, 16, ncclFloat, ncclSum, communicator, nullptr);
       })},
      {"NVTX range", cost_of([] { nvtxRangePushA("range"), nvtxRangePop(); })},
      {"NVTX range of a domain", cost_of([&] { range_of_a_domain(); })},
      {"NCCL call by its range", cost_of([&] { nccl_range(); })},
      {"NVTX mark", cost_of([] { nvtxMarkA("mark"); })},
  };
  std::printf("{");
  for (const auto& [name, cost] : rows) {
    std::printf("%s\"%s\": %.2f", name == rows[0].first ? "" : ", ", name, cost);
  }
  std::printf("}\n");
  return 0;
}
