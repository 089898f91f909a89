// SPDX-License-Identifier: Apache-2.0
// What a record of CUPTI costs us, by kind: buffers full of them, as CUPTI hands them over, through
// our completion callback into the ring; and what our callback costs a call, with a hook around it
// and without. Prints {kind: best ns} as JSON; cost_table.py makes a table of it.
#include <cuda_runtime_api.h>
#include <cupti.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "collector/base/host.h"
#include "collector/cupti/cupti_buffers.h"
#include "collector/cupti/cupti_callback.h"
#include "collector/record/collector.h"
#include "collector/record/ring.h"
#include "collector/record/session.h"

namespace {

using namespace gpuprof;

constexpr size_t kRecords = 1000;  // in a buffer
constexpr int kRounds = 40;
constexpr ApiRow kRows[] = {{"cudaLaunchKernel", Library::cudart, Kind::launch, ApiRole::launch}};
constexpr uint32_t kLaunch = CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000;

size_t g_record_bytes = 0;

// The next record of a buffer of one kind; null: from its beginning.
CUptiResult CUPTIAPI next_record(uint8_t* buffer, size_t valid, CUpti_Activity** record) {
  auto* const at = *record ? reinterpret_cast<uint8_t*>(*record) + g_record_bytes : buffer;
  if (at >= buffer + valid) return CUPTI_ERROR_MAX_LIMIT_REACHED;
  *record = reinterpret_cast<CUpti_Activity*>(at);
  return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI none_dropped(CUcontext, uint32_t, size_t* dropped) {
  return *dropped = 0, CUPTI_SUCCESS;
}

double ns(uint64_t ticks, size_t count) {
  return static_cast<double>(ticks) / session().clock.ticks_per_ns / static_cast<double>(count);
}

template <typename Activity>
void set_common(Activity& record, uint32_t number) {
  if constexpr (requires { record.correlationId; }) record.correlationId = number;
  if constexpr (requires { record.start; })
    record.start = now_ticks(), record.end = record.start + 9;
  if constexpr (requires { record.name; }) record.name = number % 2 ? "_Z5firstPf" : "_Z6secondPf";
  if constexpr (requires { record.gridX; }) record.gridX = 1 + number % 4;
  if constexpr (requires { record.timestamp; }) record.timestamp = now_ticks();
}

template <typename Activity>
double cost_of(CUpti_ActivityKind kind) {
  static_assert(kRecords * sizeof(Activity) <= 256 * 1024);
  g_record_bytes = sizeof(Activity);
  double best = 1e9;
  for (int round = 0; round < kRounds; ++round) {
    uint8_t* buffer = nullptr;
    size_t size = 0, limit = 0;
    cupti_buffer_requested(&buffer, &size, &limit);
    if (!buffer) return -1;
    for (uint32_t i = 0; i < kRecords; ++i) {
      Activity record;
      std::memset(static_cast<void*>(&record), 0, sizeof record);
      record.kind = kind;
      set_common(record, i + 1);
      std::memcpy(buffer + i * sizeof record, static_cast<const void*>(&record), sizeof record);
    }
    const uint64_t begin = now_ticks();
    cupti_buffer_completed(nullptr, 0, buffer, size, kRecords * sizeof(Activity));
    best = std::min(best, ns(now_ticks() - begin, kRecords));
  }
  return best;
}

// Entry and exit of a launch. `hooked`: a hook of ours is around it, which records it.
double callback_cost(bool hooked) {
  cudaLaunchKernel_v7000_params params{};
  uint64_t word = 0;
  CUpti_CallbackData data{};
  data.functionName = "cudaLaunchKernel";
  data.symbolName = "_Z5firstPf";
  data.functionParams = &params;
  data.correlationData = &word;
  double best = 1e9;
  for (int round = 0; round < kRounds; ++round) {
    const uint64_t begin = now_ticks();
    for (uint32_t i = 0; i < kRecords; ++i) {
      data.correlationId = i + 1;
      t_state.inside[static_cast<size_t>(Library::cudart)] = hooked ? &data : nullptr;
      t_state.correlation = 0;
      data.callbackSite = CUPTI_API_ENTER;
      on_api_callback(nullptr, CUPTI_CB_DOMAIN_RUNTIME_API, kLaunch, &data);
      data.callbackSite = CUPTI_API_EXIT;
      on_api_callback(nullptr, CUPTI_CB_DOMAIN_RUNTIME_API, kLaunch, &data);
    }
    best = std::min(best, ns(now_ticks() - begin, kRecords));
  }
  t_state.inside[static_cast<size_t>(Library::cudart)] = nullptr;
  return best;
}

double clock_cost() {
  double best = 1e9;
  for (int round = 0; round < kRounds; ++round) {
    const uint64_t begin = now_ticks();
    for (size_t i = 0; i < 10 * kRecords; ++i) {
      uint64_t ticks = now_ticks();
      __asm__ volatile("" : "+r"(ticks));
    }
    best = std::min(best, ns(now_ticks() - begin, 10 * kRecords));
  }
  return best;
}

}  // namespace

int main() {
  Session& s = session();
  g_host.rows = kRows;
  g_host.row_count = 1;
  collector_init();
  s.clock = choose_clock();
  char why[200] = "";
  // Memory only: a place that no file can be made in.
  const uint64_t begin = now_ticks();
  if (!create_ring("/dev/null/none", {256, RingStacks::none, false, false, false}, s.clock, begin,
                   why, sizeof why)) {
    return 1;
  }
  publish_ring();
  while (populate_more()) {
  }
  CuptiApi api{};
  api.ActivityGetNextRecord = next_record;
  api.ActivityGetNumDroppedRecords = none_dropped;
  CuptiRecordContext context{};
  context.version = 130000;
  context.clock.begin([]() -> uint64_t { return now_ticks(); }, 1);
  context.clock.add({0, 0, 1});
  context.clock.add({1'000'000'000, 1'000'000'000, 1});
  context.now_ticks = UINT64_MAX;
  set_buffer_reader(api, context);
  records_are_ours(true);
  set_callback_api(CUPTI_CB_DOMAIN_RUNTIME_API, kLaunch, 0);
  s.phase = SessionPhase::active;

  const std::vector<std::pair<const char*, double>> rows = {
      {"clock read", clock_cost()},
      {"kernel", cost_of<CUpti_ActivityKernel10>(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL)},
      {"copy", cost_of<CUpti_ActivityMemcpy6>(CUPTI_ACTIVITY_KIND_MEMCPY)},
      {"copy between devices", cost_of<CUpti_ActivityMemcpyPtoP4>(CUPTI_ACTIVITY_KIND_MEMCPY2)},
      {"set", cost_of<CUpti_ActivityMemset4>(CUPTI_ACTIVITY_KIND_MEMSET)},
      {"memory", cost_of<CUpti_ActivityMemory4>(CUPTI_ACTIVITY_KIND_MEMORY2)},
      {"synchronization",
       cost_of<CUpti_ActivitySynchronization2>(CUPTI_ACTIVITY_KIND_SYNCHRONIZATION)},
      {"event", cost_of<CUpti_ActivityCudaEvent2>(CUPTI_ACTIVITY_KIND_CUDA_EVENT)},
      {"overhead", cost_of<CUpti_ActivityOverhead3>(CUPTI_ACTIVITY_KIND_OVERHEAD)},
      {"graph launch", cost_of<CUpti_ActivityGraphTrace2>(CUPTI_ACTIVITY_KIND_GRAPH_TRACE)},
      {"callback, call with a hook", callback_cost(true)},
      {"callback, call without", callback_cost(false)},
  };
  std::printf("{");
  for (const auto& [name, cost] : rows) {
    std::printf("%s\"%s\": %.2f", name == rows[0].first ? "" : ", ", name, cost);
  }
  std::printf("}\n");
  return 0;
}
