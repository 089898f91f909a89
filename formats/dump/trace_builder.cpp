// SPDX-License-Identifier: Apache-2.0
#include "formats/dump/trace_builder.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "formats/dump/live_memory_decoder.h"
#include "formats/dump/shape_decoder.h"
#include "formats/dump/trace_segment.h"
#include "formats/trace/input_limits.h"

namespace gpuprof {
namespace {

constexpr size_t kMostModules = 8192;       // a ring has room for 4,681
constexpr size_t kMostNvtxNames = 1 << 16;  // a process keeps 4,096

// A frame as a message has it: an address, or the number of one of its Python codes. `text_of`
// gives the text of an element of `functions` or `files`.
template <typename Names, typename TextOf>
uint64_t frame_of(StackTable& table, uint64_t value, const Names& functions, const Names& files,
                  const TextOf& text_of) {
  const auto code = static_cast<int>(static_cast<uint32_t>(value));
  if (!(value & kPythonFrame)) return value;
  if (code < 0 || code >= functions.size() || code >= files.size()) {
    return table.python_frame("?", "", 0);
  }
  return table.python_frame(text_of(functions.Get(code)), text_of(files.Get(code)),
                            static_cast<uint32_t>(value >> 32));
}

}  // namespace

TraceBuilder::TraceBuilder(Trace& trace, std::string file, uint64_t input_bytes)
    : trace_(trace), file_(std::move(file)), event_limit_(event_limit(input_bytes)) {}

TraceBuilder::~TraceBuilder() = default;

TraceSegment& TraceBuilder::segment() {
  if (!segment_) {
    segment_ = std::make_unique<TraceSegment>();
    segment_->process.path = file_;
    segment_->process.recovered = recovered_;
    segment_->process.looked_at = looked_at_;
    segment_->process.extras.push_back({});
    segment_->process.header.set_rank(-1);
    segment_->process.header.set_local_rank(-1);
  }
  return *segment_;
}

void TraceBuilder::end_segment() {
  if (!segment_) return;
  const std::unique_ptr<TraceSegment> done = std::move(segment_);
  Process& p = done->process;
  done->complete(trace_);
  if (damaged_) {
    p.completeness = Completeness::damaged;
  } else {
    const bool whole = p.has_summary && !p.recovered;
    p.completeness = whole ? Completeness::complete : Completeness::truncated;
  }
  damaged_ = false;
  if (!p.clock.usable()) {
    trace_.problems.push_back(
        {file_, 0,
         "the clock cannot be related to wall time: the chunk that says how is missing; "
         "times are clock ticks"});
  }
  trace_.processes.push_back(std::move(p));
  ++appended_;
}

void TraceBuilder::on_header(const dump::Header& header, uint64_t) {
  // A damage found before the header of a second dump belongs to the first one.
  end_segment();
  Process& p = segment().process;
  p.header = header;
  p.has_header = true;
}

void TraceBuilder::on_counters(const dump::Counters& counters, uint64_t) {
  segment().add_counters(counters);
}

void TraceBuilder::on_workers(const dump::Workers& workers, uint64_t) {
  segment().add_workers(workers);
}

void TraceBuilder::on_graphs(const dump::Graphs& graphs, uint64_t offset) {
  Process& p = segment().process;
  const auto read = [&](const dump::GraphNode& node, GraphNode& out) {
    std::vector<uint64_t> frames;
    uint64_t address = 0;
    if ((frames_ += static_cast<uint64_t>(node.stack_frame_size())) > event_limit_) {
      trace_.problems.push_back(
          {file_, offset, "graph nodes have more frames than a file of this size can"});
      damaged_ = true;
      return false;
    }
    for (const int64_t step : node.stack_frame()) {
      address += static_cast<uint64_t>(step);
      frames.push_back(frame_of(p.stacks, address, graphs.code_function(), graphs.code_file(),
                                [](const std::string& text) { return std::string_view(text); }));
    }
    out = {node.api(),     static_cast<int64_t>(node.captured_time()),
           node.thread(),  node.stream_handle(),
           node.capture(), frames.empty() ? StackIndex::none : p.stacks.add(frames)};
    return true;
  };
  for (const dump::GraphNode& node : graphs.node()) {
    if (!read(node, p.graph_nodes[node.id()])) return;
  }
  for (const dump::ReplayedGraph& in : graphs.replayed()) {
    ReplayedGraph& graph = p.replayed_graphs.emplace_back();
    graph = {in.exec(), static_cast<int64_t>(in.since()), in.complete(), {}};
    for (const dump::ReplayedCall& call : in.call()) {
      ReplayedCall& out = graph.calls.emplace_back();
      out.kind = static_cast<Kind>(call.kind());
      out.kernel = trace_.strings.intern(call.kernel());
      if (call.size_size() == 6) {
        out.grid = {call.size(0), call.size(1), call.size(2)};
        out.block = {call.size(3), call.size(4), call.size(5)};
      }
      out.bytes = call.bytes();
      out.known = !call.node().api().empty();
      if (!read(call.node(), out.node)) return;
    }
  }
}

void TraceBuilder::on_live_memory(const dump::LiveMemory& live, uint64_t offset) {
  if (segment_ && segment_->process.has_summary && !segment_->process.recovered) end_segment();
  Process& p = segment().process;
  const char* wrong = nullptr;
  if (events_ += static_cast<uint64_t>(live.address_size()); events_ > event_limit_) {
    wrong = "has more allocations than a file of this size can";
  } else if (frames_ += static_cast<uint64_t>(live.stack_frame_size()); frames_ > event_limit_) {
    wrong = "has more frames than a file of this size can";
  } else {
    wrong = decode_live_memory(live, trace_, p, [&](uint64_t value) {
      return frame_of(p.stacks, value, live.code_function(), live.code_file(),
                      [](const std::string& text) { return std::string_view(text); });
    });
  }
  if (!wrong) return;
  trace_.problems.push_back({file_, offset, fmt::format("a chunk of live memory {}", wrong)});
  damaged_ = true;
}

const char* TraceBuilder::add_stacks(const dump::Events& events, std::vector<StackIndex>& stacks) {
  uint64_t address = 0;
  int at = 0;
  std::vector<uint64_t> frames;
  StackTable& table = segment().process.stacks;
  const auto text_of = [&](uint32_t index) -> std::string_view {
    if (index >= static_cast<uint32_t>(events.string_size())) return {};
    return events.string(static_cast<int>(index));
  };
  for (const uint32_t depth : events.stack_depth()) {
    if (depth > static_cast<uint64_t>(events.stack_frame_size() - at)) return "are cut";
    if ((frames_ += depth) > event_limit_) return "have more frames than a file of this size can";
    frames.clear();
    for (uint32_t i = 0; i < depth; ++i) {
      address += static_cast<uint64_t>(events.stack_frame(at++));
      frames.push_back(
          frame_of(table, address, events.code_function(), events.code_file(), text_of));
    }
    stacks.push_back(table.add(frames));
  }
  return nullptr;
}

void TraceBuilder::on_events(DecodedEvents& decoded, uint64_t offset) {
  if (segment_ && segment_->process.has_summary && !segment_->process.recovered) end_segment();
  TraceSegment& s = segment();
  const dump::Events& events = decoded.rest;
  const auto problem = [&](std::string reason) {
    trace_.problems.push_back({file_, offset, std::move(reason)});
    damaged_ = true;
  };
  const auto shapes = std::make_shared<std::vector<ShapeIndex>>();
  if (!decode_shapes(events, trace_, *shapes)) {
    return problem("a chunk's shapes name strings that are not there; the chunk was skipped");
  }
  const auto stacks = std::make_shared<std::vector<StackIndex>>();
  if (const char* const wrong = add_stacks(events, *stacks)) {
    return problem(fmt::format("a chunk's stacks {}; the chunk was skipped", wrong));
  }
  for (DecodedLane& lane : decoded.lanes) {
    events_ += lane.claimed;
    if (events_ > event_limit_) {
      return problem("more events than a file of this size can hold; the rest was skipped");
    }
    if (lane.wrong) {
      problem(fmt::format("a lane {}; it was skipped", lane.wrong));
    } else {
      s.add_lane(trace_.shapes, lane, shapes, stacks);
    }
  }
  for (int i = 0; i < events.ring_chunk_size(); ++i) {
    const uint32_t records = i < events.ring_records_size() ? events.ring_records(i)
                                                            : std::numeric_limits<uint32_t>::max();
    uint32_t& known = ring_chunks_[events.ring_chunk(i)];
    known = std::max(known, records);
  }
}

void TraceBuilder::on_steps(const dump::Steps& steps, uint64_t) {
  if (segment_ && segment_->process.has_summary && !segment_->process.recovered) end_segment();
  TraceSegment& s = segment();
  uint64_t time = 0, index = steps.first();
  for (const int64_t delta : steps.boundary()) {
    if (s.boundaries.size() >= event_limit_) break;
    time += static_cast<uint64_t>(delta);
    s.boundaries.emplace(index++, time);
  }
}

void TraceBuilder::on_modules(const dump::Modules& modules, uint64_t) {
  if (segment_ && segment_->process.has_summary && !segment_->process.recovered) end_segment();
  for (const dump::Module& in : modules.module()) {
    if (segment().process.stacks.modules().size() >= kMostModules) break;
    segment().process.stacks.add_module({in.begin(), in.end(), in.bias(), in.path(), in.build_id(),
                                         in.file_bytes(), in.modified_ns()});
  }
}

void TraceBuilder::on_summary(const dump::Summary& summary, uint64_t) {
  Process& p = segment().process;
  p.summary = summary;
  p.has_summary = true;
}

void TraceBuilder::on_nvtx_names(const dump::NvtxNames& names, uint64_t) {
  if (segment_ && segment_->process.has_summary && !segment_->process.recovered) end_segment();
  segment().nvtx_names.add(names, kMostNvtxNames);
}

void TraceBuilder::on_budget(const dump::Budget& budget, uint64_t) {
  if (segment_ && segment_->process.has_summary && !segment_->process.recovered) end_segment();
  segment().budget = budget;
}

void TraceBuilder::on_cuda(const dump::Header& cuda, uint64_t) {
  if (segment_ && segment_->process.has_summary && !segment_->process.recovered) end_segment();
  dump::Header& header = segment().process.header;
  header.set_driver_version(cuda.driver_version());
  header.set_runtime_version(cuda.runtime_version());
  header.set_cupti_version(cuda.cupti_version());
  header.set_nccl_version(cuda.nccl_version());
  *header.mutable_device() = cuda.device();
}

void TraceBuilder::on_damage(const Problem&) { damaged_ = true; }

void TraceBuilder::mark_recovered(int64_t looked_at) {
  recovered_ = true;
  looked_at_ = looked_at;
  if (!segment_) return;
  segment_->process.recovered = true;
  segment_->process.looked_at = looked_at;
}

bool TraceBuilder::has_summary() const { return segment_ && segment_->process.has_summary; }

uint32_t TraceBuilder::window() const { return segment_ ? segment_->process.header.window() : 0; }

size_t TraceBuilder::finish() {
  end_segment();
  return appended_;
}

}  // namespace gpuprof
