// SPDX-License-Identifier: Apache-2.0
// Single events of a Kineto-style JSON document. What is the same for all events of a shape is
// written once, so that an event is a few copies and numbers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "formats/io/json_text.h"
#include "formats/trace/trace.h"
#include "formats/views/slices.h"
#include "formats/writers/kineto/kineto_args.h"
#include "formats/writers/kineto/kineto_json.h"

namespace gpuprof {

// An argument: the event repeats what others say, and our own reader passes it over.
inline constexpr std::string_view kDerived = "\"gpuprof derived\":1";

// Of one process: who writes its events, from which time on, and under which numbers. Times: ns.
struct KinetoContext {
  int64_t base = 0;  // times count from it
  uint32_t pid = 0;
  uint64_t flow_base = 0;                // ids of flows begin there
  uint64_t first_step_id = 0;            // external ids of steps
  std::vector<uint32_t> stack_nodes{0};  // in stackFrames, by StackIndex
};

// A row: its numbers, ready to be written.
struct KinetoRow {
  KinetoRow(uint32_t process, uint64_t thread);
  uint32_t pid;
  uint64_t tid;
  std::string text;  // ,"pid":1,"tid":2,"ts":
};

class KinetoEvents {
 public:
  KinetoEvents(const Trace& trace, KinetoSpelling spelling);
  void enter(const Process& process, const ChromeArgs& args, KinetoContext context);

  // The rest is thread-safe between calls of enter(). All write a comma first.
  void mark(JsonText& json, const Event& event, const KinetoRow& row) const;
  void host_slice(JsonText& json, const Event& event, const Slice& slice,
                  const KinetoRow& row) const;
  void step(JsonText& json, const Slice& slice, const KinetoRow& row) const;
  // `stream`: the one that the work goes by.
  void gpu_slice(JsonText& json, const Event& event, const Slice& slice, const KinetoRow& row,
                 uint64_t stream, const Lane& lane) const;
  // A range of the host where it has work on the GPU; said again by what it is made of.
  void annotation(JsonText& json, const Event& range, const Slice& slice,
                  const KinetoRow& row) const;
  // Up to the arguments.
  void slice(JsonText& json, ShapeIndex shape, int64_t begin, int64_t end, const KinetoRow& row,
             uint32_t stack = 0) const;
  bool is_drawn_work(ShapeIndex shape) const {
    return shapes_[static_cast<uint32_t>(shape)].drawn_work;
  }

 private:
  struct ShapeText {
    std::string head;       // up to the name
    bool launches = false;  // a call that starts work on a stream
    bool drawn_work = false;
  };

  std::string head_of(const Shape& shape) const;
  std::string_view host_category(const Shape& shape, std::string_view name) const;
  bool launches_work(EventIndex call) const;
  void times(JsonText& json, int64_t begin, int64_t end, const KinetoRow& row,
             uint32_t stack) const;
  void flow(JsonText& json, bool start, uint32_t correlation, const KinetoRow& row,
            int64_t time) const;

  const Trace& trace_;
  const KinetoSpelling spelling_;
  std::vector<ShapeText> shapes_;
  const Process* process_ = nullptr;
  const ChromeArgs* args_ = nullptr;
  KinetoContext context_;
};

}  // namespace gpuprof
