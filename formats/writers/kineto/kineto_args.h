// SPDX-License-Identifier: Apache-2.0
// What stands in `args` of Kineto-style trace events. Names and units are
// Kineto's where it has them.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "formats/io/json_text.h"
#include "formats/trace/trace.h"
#include "formats/writers/kineto/external_id_map.h"

namespace gpuprof {

// A cudaEventRecord that a synchronization waited for.
struct EventRecord {
  int64_t time;
  uint32_t correlation;
  uint64_t stream_handle;
};

// Where GPU work is drawn.
struct GpuPlace {
  uint32_t gpu;                // the pid that the device goes by in the file
  uint64_t stream;             // the stream it goes by: its own, or one for what overlaps
  const dump::Device* device;  // what is known about the device, or null
  const Lane* lane;            // that the work is in
};

// Looks things up within one process while its events are written. Thread-safe
// once it is made.
class ChromeArgs {
 public:
  ChromeArgs(const Trace& trace, const Process& process, const ExternalIdMap& ids);

  // Whether a host event shows its correlation id: of several with the same,
  // one only may.
  bool shows_correlation(EventIndex event) const;
  void host(JsonText& json, const Event& event) const;
  void gpu(JsonText& json, const Event& event, const GpuPlace& place) const;
  void sync(JsonText& json, const Event& event, uint32_t gpu) const;

 private:
  class Object;
  void origin(Object& args, const Shape& shape) const;
  void framework(Object& args, const Event& event) const;
  void external_id(Object& args, const Event& event) const;
  // Those of this process's events.
  std::vector<bool> used_shapes() const;
  void find_records();
  void prepare_shapes(const std::vector<bool>& used);
  void launch(Object& args, const Shape& shape) const;
  void kernel(Object& args, const Shape& shape, const dump::Device* device) const;
  void copy(Object& args, const Event& event) const;
  void work(Object& args, const Event& event, const GpuPlace& where) const;
  void captured(Object& args, const Event& event) const;
  void collective(Object& args, const Event& call, bool inputs) const;
  std::optional<Event> collective_of(const Event& kernel) const;
  std::optional<EventRecord> record_waited_for(const Event& sync) const;

  const Trace& trace_;
  const Process& process_;
  const ExternalIdMap& ids_;
  std::vector<std::string> launches_;  // what all launches of a shape have, by shape
  std::map<const dump::Device*, std::vector<std::string>> kernels_;  // the same, by device
  std::vector<bool> is_collective_;                                  // by GPU event
  std::map<uint32_t, uint32_t> by_kernel_;  // GPU event -> collective_kernels
  std::unordered_map<uint64_t, std::vector<EventRecord>> records_;  // event handle -> in time order
};

}  // namespace gpuprof
