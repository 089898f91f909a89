// SPDX-License-Identifier: Apache-2.0
// Where the program's framework told of its tensors, they are the allocations, and what CUDA
// allocated are the segments they lie in, as in PyTorch; else each CUDA allocation is a segment
// with one block.
#include "formats/writers/memory_viz_export.h"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "formats/views/left_out_text.h"
#include "formats/views/memory_curves.h"
#include "formats/views/slices.h"
#include "formats/writers/memory_viz_changes.h"
#include "formats/writers/pickle_text.h"

namespace gpuprof {
namespace {

using Change = MemoryVizChange;

struct Block {
  int64_t bytes;
  const Process* process;
  EventIndex event;
  const LiveAllocation* before;
};

class MemoryVizExport {
 public:
  MemoryVizExport(const Trace& trace, OutputFile& file)
      : trace_(trace), pickle_(file), gpus_(memory_viz_changes(trace)) {}

  void run() {
    pickle_.begin_dict().key("segments").begin_list();
    for (const auto& [gpu, changes] : gpus_) segments(gpu, changes);
    pickle_.end_list().key("device_traces").begin_list();
    const uint32_t count = gpus_.empty() ? 1 : gpus_.rbegin()->first + 1;
    for (uint32_t gpu = 0; gpu < count; ++gpu) {
      pickle_.begin_list();
      const auto found = gpus_.find(gpu);
      if (found != gpus_.end()) device_trace(found->second);
      pickle_.end_list();
    }
    pickle_.end_list().key("allocator_settings").begin_dict().end_dict();
    left_out();
    pickle_.end_dict().finish();
  }

 private:
  // Viewers pass over the key. Without calls, what was released later looks as if it stayed.
  void left_out() {
    std::vector<std::string> texts;
    for (const Process& process : trace_.processes) {
      const std::string list = left_out_list(process);
      if (!list.empty()) texts.push_back(process_title(process) + ": " + list);
    }
    if (texts.empty()) return;  // PyTorch's own keys alone
    pickle_.key("gpuprof_not_recorded").begin_list();
    for (const std::string& text : texts) pickle_.text(text);
    pickle_.end_list();
  }

  static bool has_tensors(const std::vector<Change>& changes) {
    return std::any_of(changes.begin(), changes.end(), [](const Change& c) { return c.tensor; });
  }

  void device_trace(const std::vector<Change>& changes) {
    const bool tensors = has_tensors(changes);
    for (const Change& c : changes) {
      const bool blocks = c.tensor || !tensors;  // else it is a segment only
      if (c.bytes > 0) {
        if (!c.tensor) entry("segment_alloc", c);
        if (blocks) entry("alloc", c);
      } else {
        if (blocks) entry("free_requested", c);
        if (blocks) entry("free_completed", c);
        if (!c.tensor) entry("segment_free", c);
      }
    }
  }

  void entry(const char* action, const Change& c) {
    pickle_.begin_dict().key("action").text(action);
    pickle_.key("addr").number(static_cast<int64_t>(c.address));
    pickle_.key("size").number(c.bytes < 0 ? -c.bytes : c.bytes);
    pickle_.key("stream").number(0).key("time_us").number(c.time / 1000);
    pickle_.key("frames");
    frames(*c.process, c.event, c.before);
    pickle_.end_dict();
  }

  // Innermost first. A call without a native stack is its own only frame.
  void frames(const Process& process, EventIndex index, const LiveAllocation* before) {
    if (before) {
      pickle_.begin_list();
      frame(before->is_block() ? "block" : trace_.text(before->api), "", 0);
      stack(process, before->stack);
      return pickle_.end_list(), void();
    }
    if (is_gpu_kind(trace_.shape(process.event(index)).kind) &&
        process.event(index).partner != EventIndex::none) {
      index = process.event(index).partner;  // CUPTI's record: the call has the stack
    }
    const Event& event = process.event(index);
    const Shape& shape = trace_.shape(event);
    const EventExtra& extra = process.extra(event);
    pickle_.begin_list();
    if (!is_gpu_kind(shape.kind)) frame(trace_.text(shape.label), "", 0);
    stack(process, extra.stack);
    pickle_.end_list();
  }

  void stack(const Process& process, StackIndex index) {
    if (index == StackIndex::none) return;
    for (const uint64_t address : process.stacks[index]) {
      for (const Frame& f : process.stacks.frames(address)) frame(f.function, f.file, f.line);
    }
  }

  void frame(std::string_view name, std::string_view file, uint32_t line) {
    pickle_.begin_dict().key("name").text(name).key("filename").text(file);
    pickle_.key("line").number(line).end_dict();
  }

  // What is there at the end. The viewer sums up block sizes, so blocks cover their segment. It
  // looks for the segment of each block of any time (MemoryViz.js, simulate_memory), so that those
  // of blocks without one are made up: they are there all the time, and nothing allocates them.
  void segments(uint32_t gpu, const std::vector<Change>& changes) {
    const bool tensors = has_tensors(changes);
    std::map<uint64_t, Block> live[2];  // by address: segments, tensors
    for (const Change& c : changes) {
      if (c.bytes > 0) {
        live[c.tensor].insert_or_assign(c.address, Block{c.bytes, c.process, c.event, c.before});
      } else {
        live[c.tensor].erase(c.address);
      }
    }
    const auto within = [&](uint64_t begin, uint64_t end) {
      return std::map<uint64_t, Block>(live[1].lower_bound(begin), live[1].lower_bound(end));
    };
    std::map<uint64_t, Block> made_up;
    for (const auto& [begin, end] : ranges_without_segment(changes)) {
      made_up.emplace(begin, Block{static_cast<int64_t>(end - begin), nullptr, {}, nullptr});
    }
    for (const auto& [address, segment] : live[0]) {
      std::map<uint64_t, Block> blocks;
      const uint64_t end = address + static_cast<uint64_t>(segment.bytes);
      if (tensors) {
        blocks = within(address, end);
        live[1].erase(live[1].lower_bound(address), live[1].lower_bound(end));
      } else {
        blocks.emplace(address, segment);
      }
      one_segment(gpu, address, segment, blocks);
    }
    for (const auto& [address, segment] : made_up) {
      one_segment(gpu, address, segment,
                  within(address, address + static_cast<uint64_t>(segment.bytes)));
    }
  }

  void one_segment(uint32_t gpu, uint64_t address, const Block& segment,
                   const std::map<uint64_t, Block>& blocks) {
    const uint64_t end = address + static_cast<uint64_t>(segment.bytes);
    int64_t used = 0;
    for (const auto& [at, block] : blocks) used += block.bytes;
    used = std::min(used, segment.bytes);
    pickle_.begin_dict().key("device").number(gpu);
    pickle_.key("address").number(static_cast<int64_t>(address));
    pickle_.key("total_size").number(segment.bytes).key("allocated_size").number(used);
    pickle_.key("active_size").number(used).key("requested_size").number(used);
    pickle_.key("stream").number(0);
    pickle_.key("segment_type").text(segment.bytes > (2 << 20) ? "large" : "small");
    pickle_.key("segment_pool_id").pair(0, 0).key("is_expandable").boolean(false);
    pickle_.key("frames");
    if (segment.process) {
      frames(*segment.process, segment.event, segment.before);
    } else {
      pickle_.begin_list().end_list();
    }
    pickle_.key("blocks").begin_list();
    uint64_t at = address;
    for (const auto& [begin, block] : blocks) {
      if (begin < at) continue;  // overlaps the one before: an error in the input
      if (begin > at) one_block(at, begin - at, nullptr);
      const uint64_t size = std::min(static_cast<uint64_t>(block.bytes), end - begin);
      one_block(begin, size, &block);
      at = begin + size;
    }
    if (at < end) one_block(at, end - at, nullptr);
    pickle_.end_list().end_dict();
  }

  void one_block(uint64_t address, uint64_t size, const Block* block) {
    pickle_.begin_dict().key("address").number(static_cast<int64_t>(address));
    pickle_.key("size").number(static_cast<int64_t>(size));
    pickle_.key("requested_size").number(block ? static_cast<int64_t>(size) : 0);
    pickle_.key("state").text(block ? "active_allocated" : "inactive").key("frames");
    if (block) {
      frames(*block->process, block->event, block->before);
    } else {
      pickle_.begin_list().end_list();
    }
    pickle_.end_dict();
  }

  const Trace& trace_;
  PickleText pickle_;
  const std::map<uint32_t, std::vector<Change>> gpus_;
};

}  // namespace

bool has_gpu_allocations(const Trace& trace) {
  return std::any_of(trace.processes.begin(), trace.processes.end(), [&](const Process& process) {
    if (!process.live_memory.empty()) return true;
    const MemoryCurves curves = memory_curves(trace, process);
    return !curves.device.empty() ||
           std::any_of(curves.tensors.begin(), curves.tensors.end(), [](const TensorCurve& curve) {
             return is_gpu_memory(curve.device_type) && !curve.points.empty();
           });
  });
}

bool lacks_segments(const Trace& trace) {
  const auto gpus = memory_viz_changes(trace);
  return std::any_of(gpus.begin(), gpus.end(),
                     [](const auto& each) { return !ranges_without_segment(each.second).empty(); });
}

bool write_memory_viz(const Trace& trace, const std::string& path, const ExportOptions& options,
                      std::string& error) {
  OutputFile file(path, options.compression, options.links);
  if (file.ok()) MemoryVizExport(trace, file).run();
  if (file.commit()) return true;
  error = file.error();
  return false;
}

}  // namespace gpuprof
