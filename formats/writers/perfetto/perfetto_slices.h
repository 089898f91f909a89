// SPDX-License-Identifier: Apache-2.0
// Events as packets, made by several threads. What all events of a shape
// share is encoded once; names are defined before the first event uses
// them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "formats/trace/trace.h"
#include "formats/views/slices.h"
#include "formats/writers/perfetto/perfetto_message.h"
#include "formats/writers/perfetto/perfetto_packets.h"
#include "formats/writers/perfetto/perfetto_stacks.h"

namespace gpuprof::perfetto {

// Where a thread puts packets.
struct Output {
  Message message;
  int64_t start;  // PacketWriter::start_time()
};

class SlicePackets {
 public:
  // Defines the names of all shapes that events of these processes have.
  SlicePackets(const Trace& trace, std::span<const Process* const> processes, PacketWriter& out);
  // Goes on with a process: defines what only it has. Ids of flows begin at
  // `flow_base`.
  void enter(const Process& process, uint64_t flow_base);

  // The rest is thread-safe, between calls of enter().
  // A slice that ends before its event does says so in its arguments.
  void begin_slice(Output& out, uint64_t track, const Event& event, const Slice& slice) const;
  static void end_slice(Output& out, uint64_t track, int64_t time);
  void instant(Output& out, uint64_t track, const Event& event) const;

  struct Queue {
    uint64_t name, context;  // interned
    uint64_t gpu;            // counted through over all processes
  };
  // The same piece of work for the pages that know GPUs.
  void render_stage(Output& out, const Queue& queue, const Event& event) const;

 private:
  struct ShapePackets {
    uint8_t head[2 * (1 + kMaxVarintBytes)] = {};  // fields of a track event: first name and
    size_t head_size = 0;                          // category,
    std::string tail;                              // last arguments
    std::string collective;  // those that a collective's kernel has of its call
    uint64_t stage = 0;      // its name for the GPU pages
    uint64_t label = 0;      // its name as the value of an argument
    StringIndex args = StringIndex::empty;
    Kind kind = Kind::none;
    bool starts_flow = false, ends_flow = false;
    uint32_t payload_type = Shape::kAbsent;  // nvtx
  };
  // Interned names of arguments.
  struct Keys {
    uint64_t correlation, bytes, address, source, event, count, message_bytes, sequence, op,
        external_id, sequence_number, payload, args, stack, graph_node, captured_by,
        captured_before, capture, true_end;
  };

  ShapePackets packets_of(const Shape& shape);
  void host_tail(const Shape& shape, Message& tail);
  void gpu_tail(const Shape& shape, Message& tail);
  void operator_tail(const Shape& shape, Message& tail);
  void launch_shape(const Shape& shape, Message& tail);
  void collective_tail(const Shape& shape, Message& tail);
  void text(Message& out, const char* key, std::string_view value);
  void number(Message& out, const char* key, uint64_t value);
  void pointer(Message& out, const char* key, uint64_t value);

  void contents(Message& body, const Event& event, const ShapePackets& shape) const;
  void values(Message& body, const Event& event, const ShapePackets& shape,
              const EventExtra& extra) const;
  void args(Message& body, const ShapePackets& shape, const EventExtra& extra) const;
  void payload(Message& body, const ShapePackets& shape, uint64_t bits) const;
  void collective_values(Message& body, const Shape& shape, const EventExtra& extra) const;
  void graph_values(Message& body, const Event& event, const EventExtra& extra) const;
  void collective_of(Message& body, const Event& event) const;
  void stack(Message& body, StackIndex stack) const;
  void flows(Message& body, const Event& event, const ShapePackets& shape) const;
  const ShapePackets& of(EventIndex event) const {
    return shapes_[number_of(process_->events.shape_of(gpuprof::number(event)))];
  }
  static uint32_t number_of(ShapeIndex shape) { return static_cast<uint32_t>(shape); }

  const Trace& trace_;
  PacketWriter& out_;
  Keys keys_{};
  std::vector<ShapePackets> shapes_;
  const Process* process_ = nullptr;
  uint64_t flow_base_ = 0;
  std::vector<uint64_t> stacks_;                 // by StackIndex
  std::vector<bool> of_collective_;              // by event
  std::map<uint32_t, uint32_t> collectives_;     // kernel -> of collective_kernels
  std::map<std::string, uint64_t> captured_by_;  // call -> interned
};

}  // namespace gpuprof::perfetto
