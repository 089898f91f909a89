// SPDX-License-Identifier: Apache-2.0
// Names and order of the tracks of a Perfetto trace. Per process its threads (calls and NVTX
// ranges), steps, memory and CUPTI's overhead; per process and device a parent "GPU n" with its
// streams and synchronization below it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "formats/trace/process_key.h"
#include "formats/trace/trace.h"
#include "formats/views/slices.h"
#include "formats/writers/perfetto/perfetto_packets.h"
#include "formats/writers/perfetto/perfetto_slices.h"

namespace gpuprof::perfetto {

// The rows that the events of a lane go to: up to two families of tracks, and one for moments.
struct LaneRows {
  struct Family {
    Overlap overlap = Overlap::nest;
    std::string path, name;
    uint64_t parent = 0;
    int32_t rank = 0;                // among the tracks of its parent
    std::vector<uint64_t> tracks{};  // [0]: the usual one; 0: not declared
  };
  LaneType type = LaneType::thread;
  Family families[2], moments;
  std::optional<SlicePackets::Queue> queue{};  // for the GPU pages
};

// Declares each track once, also where windows of a process follow one another. One thread.
class Tracks {
 public:
  explicit Tracks(PacketWriter& out) : out_(out) {}

  // Goes on with a process.
  void enter(const Process& process);
  int64_t pid() const { return pid_; }
  int64_t thread_id(int64_t tid) const { return machine_offset_ + tid; }

  LaneRows rows_of(const Lane& lane);
  // What does not fit on the usual track goes to tracks of its own beside it.
  void declare_all(LaneRows::Family& family, size_t count);

  // A track of the process, below the process itself.
  uint64_t of_process(std::string_view path, std::string_view name, int32_t rank,
                      bool counter = false) {
    return declare(path, process_uuid_, name, rank, counter);
  }
  // A counter of a device; `source` tells it from others of that name, `unit` as Perfetto names it.
  uint64_t gpu_counter(uint32_t device, std::string_view source, std::string_view name,
                       int32_t rank, std::string_view unit);
  // A counter with a name of the program's or of an outside trace's: `path` tells it from others of
  // that name. Of a device, or of the process (Shape::kAbsent). Its unit is what the name ends in,
  // where that is "%" or "bytes"; else it is not known.
  uint64_t named_counter(uint32_t device, std::string_view path, std::string_view name);

 private:
  struct Id {
    uint64_t uuid;
    bool fresh;  // to be declared
  };
  Id id_of(std::string path);
  uint64_t declare(std::string_view path, uint64_t parent, std::string_view name, int32_t rank,
                   bool counter = false, bool ordered = false);
  int64_t machine_number(const Process& process);
  uint64_t gpu_track(uint32_t device);
  LaneRows thread(const Lane& lane);
  LaneRows stream(const Lane& lane);
  LaneRows device(const Lane& lane);
  LaneRows overhead();
  LaneRows other(const Lane& lane);

  PacketWriter& out_;
  const Process* process_ = nullptr;
  std::map<std::pair<std::string, size_t>, int64_t> machines_;  // by host and container
  std::map<std::pair<std::string, uint32_t>, std::vector<ProcessKey>> same_pids_;  // by host
  std::map<std::pair<uint64_t, uint32_t>, size_t> gpus_;  // process and device -> number
  std::unordered_map<std::string, uint64_t> ids_;         // by path
  std::string prefix_;
  uint64_t process_uuid_ = 0;
  int64_t pid_ = 0, machine_offset_ = 0;
};

}  // namespace gpuprof::perfetto
