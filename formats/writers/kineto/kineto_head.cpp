// SPDX-License-Identifier: Apache-2.0
#include "formats/writers/kineto/kineto_head.h"

#include <algorithm>
#include <utility>

#include "formats/views/left_out_text.h"
#include "formats/views/slices.h"

namespace gpuprof {
namespace {

// Readers take a device's place in the array for its id. Of one process these are its own, and it
// knows those in front of the ones that worked; of several they are counted through.
void device_properties(JsonText& json, std::span<const Process* const> processes,
                       const std::map<ProcessKey, KinetoIds>& ids) {
  std::map<uint32_t, const dump::Device*> known;
  for (const Process* process : processes) {
    for (const auto& [device, pid] : ids.at(key_of(*process)).gpus) {
      if (pid < 4096) known[pid] = device_of(*process, device);
    }
  }
  const dump::Device none;
  const uint32_t count = known.empty() ? 0 : known.rbegin()->first + 1;
  for (uint32_t id = 0; id < count; ++id) {
    const dump::Device* const found = known.contains(id) ? known[id]
                                      : ids.size() == 1  ? device_of(*processes.front(), id)
                                                         : nullptr;
    const dump::Device& d = found ? *found : none;
    json.raw(id ? ",\n" : "\n").raw("{\"id\": ").number(id);
    json.raw(", \"name\": ").string(d.name().empty() ? "unknown" : d.name());
    const std::pair<const char*, uint64_t> numbers[] = {
        {"totalGlobalMem", d.total_memory_bytes()},
        {"computeMajor", d.compute_major()},
        {"computeMinor", d.compute_minor()},
        {"maxThreadsPerBlock", d.max_threads_per_block()},
        {"maxThreadsPerMultiprocessor", d.max_threads_per_multiprocessor()},
        {"regsPerBlock", d.registers_per_block()},
        {"warpSize", d.warp_size()},
        {"sharedMemPerBlock", d.shared_bytes_per_block()},
        {"numSms", d.multiprocessors()},
        {"regsPerMultiprocessor", d.registers_per_multiprocessor()},
        {"sharedMemPerBlockOptin", d.shared_bytes_per_block_optin()},
        {"sharedMemPerMultiprocessor", d.shared_bytes_per_multiprocessor()}};
    for (const auto& [name, value] : numbers) {
      json.raw(", \"").raw(name).raw("\": ").number(value);
    }
    json.raw("}");
  }
}

// Readers look for "rank" on a line of its own, before the events.
void identity(JsonText& json, const Process& first) {
  const dump::Header& h = first.header;
  json.raw("\"host_name\": ").string(h.host()).raw(",\n");
  if (!first.metadata.empty()) json.raw(first.metadata).raw(",\n");
  if (h.rank() < 0) return;
  json.raw("\"distributedInfo\": {\n");
  json.raw(first.distributed.empty() ? "\"backend\": \"nccl\"" : first.distributed);
  json.raw(",\n\"rank\": ").number(h.rank());
  json.raw(",\n\"world_size\": ").number(std::max(h.world_size(), 1)).raw("\n},\n");
}

// What GPUPROF_BUDGET left out, for a reader that judges: `since_ns` is Unix time.
void left_out(JsonText& json, std::span<const Process* const> processes,
              const std::map<ProcessKey, KinetoIds>& ids) {
  bool first = true;
  for (const Process* process : processes) {
    for (const RecordingBudget::LeftOut& each : process->budget.left_out) {
      json.raw(first ? "\"gpuprof left out\": [\n" : ",\n").raw("{\"pid\": ");
      json.number(ids.at(key_of(*process)).pid).raw(", \"kind\": ");
      json.string(left_out_name(each.kind)).raw(", \"since_ns\": ").number(each.since);
      json.raw(", \"budget_pct\": ").shortest(process->budget.allowed_pct).raw("}");
      first = false;
    }
  }
  if (!first) json.raw("\n],\n");
}

}  // namespace

void write_kineto_head(JsonText& json, std::span<const Process* const> processes,
                       const std::map<ProcessKey, KinetoIds>& ids, int64_t base) {
  json.raw("{\n\"schemaVersion\": 1,\n\"producer\": \"gpuprof\",\n\"deviceProperties\": [");
  device_properties(json, processes, ids);
  json.raw("],\n");
  left_out(json, processes, ids);
  if (ids.size() == 1) identity(json, *processes.front());
  json.raw("\"displayTimeUnit\": \"ms\",\n\"baseTimeNanoseconds\": ").number(base);
  json.raw(",\n\"traceEvents\": [\n");
}

}  // namespace gpuprof
