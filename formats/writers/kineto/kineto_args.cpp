// SPDX-License-Identifier: Apache-2.0
#include "formats/writers/kineto/kineto_args.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <set>

#include "formats/trace/collective_calls.h"
#include "formats/trace/communicators.h"
#include "formats/trace/names.h"
#include "formats/views/gpu_annotations.h"
#include "formats/views/occupancy.h"
#include "formats/views/slices.h"

namespace gpuprof {
namespace {

constexpr int32_t kMostRanks = 30;

// "[0, 1, 2, 3]", shortened as PyTorch does where there are many.
std::string rank_list(int32_t count) {
  std::string list = "[";
  for (int32_t rank = 0; rank < std::min(count, kMostRanks); ++rank) {
    list += fmt::format("{}{}", rank ? ", " : "", rank);
  }
  return list + (count > kMostRanks ? ", ...]" : "]");
}

// Likewise shortened, of such a list.
std::string shortened(std::string_view list) {
  size_t at = 0;
  for (int commas = 0; at < list.size(); ++at) {
    if (list[at] == ',' && ++commas == kMostRanks)
      return fmt::format("{}, ...]", list.substr(0, at));
  }
  return std::string(list);
}

// The nth of "[0, 2]".
std::optional<int64_t> rank_in_list(std::string_view list, uint32_t n) {
  for (const char* at = list.data(); at != list.data() + list.size(); ++at) {
    int64_t rank = 0;
    const auto [end, error] = std::from_chars(at, list.data() + list.size(), rank);
    if (error != std::errc()) continue;
    if (n-- == 0) return rank;
    at = end - 1;
  }
  return std::nullopt;
}

// Whether the peer of a collective is where the data come from.
bool has_source(std::string_view function) {
  return function == "ncclRecv" || function == "ncclScatter" || function.starts_with("ncclB");
}

}  // namespace

// An args object under construction.
class ChromeArgs::Object {
 public:
  explicit Object(JsonText& json) : json_(json) { json_.raw("{"); }
  ~Object() { json_.raw("}"); }
  Object(const Object&) = delete;
  Object& operator=(const Object&) = delete;

  JsonText& key(std::string_view name) { return next().raw("\"").raw(name).raw("\":"); }
  template <typename Int>
  void number(std::string_view name, Int value) {
    key(name).number(value);
  }
  // What is JSON already; nothing where it is not there.
  void json(std::string_view name, std::string_view value) {
    if (!value.empty()) key(name).raw(value);
  }
  void text(std::string_view name, std::string_view value) { key(name).string(value); }
  // Members of another object, without its braces.
  void members(std::string_view json) {
    if (!json.empty()) next().raw(json);
  }
  // Those of an event of an outside trace.
  void own_members(std::string_view json, const ExternalIdMap& ids) {
    if (!json.empty()) ids.write_args(json, next());
  }
  void hex(std::string_view name, uint64_t value) { text(name, fmt::format("{:#x}", value)); }
  void dim(std::string_view name, const Dim3& d) {
    key(name).raw("[").number(d.x).raw(",").number(d.y).raw(",").number(d.z).raw("]");
  }

 private:
  JsonText& next() {
    json_.raw(first_ ? "" : ",");
    first_ = false;
    return json_;
  }

  JsonText& json_;
  bool first_ = true;
};

ChromeArgs::ChromeArgs(const Trace& trace, const Process& process, const ExternalIdMap& ids)
    : trace_(trace), process_(process), ids_(ids), by_kernel_(collectives_by_kernel(process)) {
  is_collective_.assign(by_kernel_.empty() ? 0 : process.events.size(), false);
  for (const auto& [kernel, pair] : by_kernel_) is_collective_[kernel] = true;
  const std::vector<bool> used = used_shapes();
  find_records();
  prepare_shapes(used);
}

std::vector<bool> ChromeArgs::used_shapes() const {
  std::vector<bool> used(trace_.shapes.size());
  for (uint32_t i = 0; i < process_.events.size(); ++i) {
    used[number(process_.events.shape_of(i))] = true;
  }
  return used;
}

void ChromeArgs::find_records() {
  std::vector<bool> records;
  for (const Shape& shape : trace_.shapes) {
    records.push_back(shape.kind == Kind::event &&
                      trace_.text(shape.name).starts_with("cudaEventRecord"));
  }
  const EventTable& events = process_.events;
  for (uint32_t i = 0; i < events.size(); ++i) {
    if (!records[number(events.shape_of(i))]) continue;
    const Event event = events[i];
    records_[process_.extra(event).address2].push_back(
        {event.begin, event.correlation, trace_.shape(event).stream_handle});
  }
  for (auto& [handle, list] : records_) {
    std::stable_sort(list.begin(), list.end(),
                     [](const EventRecord& a, const EventRecord& b) { return a.time < b.time; });
  }
}

// A million launches of a hundred shapes: what is the same is written once. The trace has the
// shapes of all its processes.
void ChromeArgs::prepare_shapes(const std::vector<bool>& used) {
  std::set<const dump::Device*> devices;
  for (const Lane& lane : process_.lanes) {
    if (lane.type == LaneType::stream) devices.insert(device_of(process_, lane.device));
  }
  const auto members = [](const auto& write) {
    std::string text;
    {
      JsonText json(text);
      Object args(json);
      write(args);
    }
    return text.substr(1, text.size() - 2);
  };
  launches_.resize(trace_.shapes.size());
  for (const dump::Device* device : devices) kernels_[device].resize(trace_.shapes.size());
  size_t i = 0;
  for (const Shape& shape : trace_.shapes) {
    if (!used[i]) {
      // another process's
    } else if (shape.kind == Kind::launch) {
      launches_[i] = members([&](Object& args) { launch(args, shape); });
    } else if (shape.kind == Kind::gpu_kernel) {
      for (auto& [device, texts] : kernels_) {
        texts[i] = members([&, d = device](Object& args) { kernel(args, shape, d); });
      }
    }
    ++i;
  }
}

bool ChromeArgs::shows_correlation(EventIndex event) const {
  return process_.events.correlation_of(number(event)) != 0 &&
         !std::binary_search(process_.shadowed.begin(), process_.shadowed.end(), event);
}

// Of a call or GPU work: the operator it belongs to, unless its own arguments name another thing.
void ChromeArgs::external_id(Object& args, const Event& event) const {
  const EventIndex op = process_.operator_of(event);
  if (op == EventIndex::none || ExternalIdMap::is_in(trace_.text(process_.extra(event).args))) {
    return;
  }
  const uint64_t id = process_.extra(process_.event(op)).value;
  if (id) args.number("External id", ids_.of_named(id));
}

void ChromeArgs::framework(Object& args, const Event& event) const {
  const Shape& shape = trace_.shape(event);
  const EventExtra& extra = process_.extra(event);
  switch (shape.kind) {
    case Kind::op:
    case Kind::annotation:
      if (extra.value) args.number("External id", ids_.of_named(extra.value));
      if (extra.bytes) args.number("Ev Idx", extra.bytes - 1);
      args.json("Input Dims", trace_.text(shape.input_dims));
      args.json("Input type", trace_.text(shape.input_types));
      if (extra.address) {
        args.number("Sequence number", extra.address - 1);
        args.number("Fwd thread id", extra.address2);
      }
      if (shape.call_stack != StringIndex::empty) {
        args.text("Call stack", trace_.text(shape.call_stack));
      }
      if (shape.hierarchy != StringIndex::empty) {
        args.text("Module Hierarchy", trace_.text(shape.hierarchy));
      }
      break;
    case Kind::module:
    case Kind::python_function:
      if (extra.value) args.number("Python id", extra.value - 1);
      if (extra.address) args.number("Python parent id", extra.address - 1);
      if (extra.address2) args.number("Python module id", extra.address2 - 1);
      break;
    case Kind::tensor:
      if (extra.value != EventExtra::kNotGiven) args.number("Total Reserved", extra.value);
      if (extra.address2 != EventExtra::kNotGiven) args.number("Total Allocated", extra.address2);
      args.number("Bytes", static_cast<int64_t>(extra.bytes));
      if (extra.address) args.number("Addr", extra.address);
      args.number("Device Id", static_cast<int32_t>(shape.device_id));
      args.number("Device Type", static_cast<int32_t>(shape.device_type));
      break;
    case Kind::gpu_annotation:
      if (extra.value) args.number("External id", ids_.of_named(extra.value));
      break;
    default: break;
  }
}

// What the event is where its category does not tell. First of all, for our own
// reader: the meaning of others depends on it.
void ChromeArgs::origin(Object& args, const Shape& shape) const {
  if (shape.kind == Kind::nvtx_range || shape.kind == Kind::nvtx_mark) {
    args.text("nvtx domain", trace_.text(shape.detail));
  } else if (shape.kind == Kind::collective) {
    args.text("nccl function", trace_.text(shape.name));
  } else if (shape.domain == ApiDomain::nccl) {
    args.text("nccl call", trace_.text(shape.name));
  }
  if (shape.flags & kFlagFromCallback) args.number("from callback", 1);
  if (shape.flags & kFlagFromNvtx) args.number("from NVTX", 1);
  if (shape.flags & kFlagOpenEnd) args.number("open at window end", 1);
}

void ChromeArgs::host(JsonText& json, const Event& event) const {
  const Shape& shape = trace_.shape(event);
  const EventExtra& extra = process_.extra(event);
  Object args(json);
  origin(args, shape);
  external_id(args, event);
  framework(args, event);
  // No `stream` here: with a correlation it would make readers take the row for
  // GPU work.
  if (shows_correlation(process_.index_of(event))) {
    args.number("correlation", event.correlation);
  } else if (event.correlation) {
    args.number("inner correlation", event.correlation);
  }
  if (shape.kind == Kind::launch) {
    args.members(launches_[number(event.shape)]);
    return args.own_members(trace_.text(extra.args), ids_);
  }
  if (shape.result) args.number("result", shape.result);
  switch (shape.kind) {
    case Kind::copy:
    case Kind::set:
    case Kind::alloc:
    case Kind::dealloc:
      if (extra.bytes) args.number("requested bytes", extra.bytes);
      if (extra.address) args.hex("address", extra.address);
      if (extra.address2) args.hex("source", extra.address2);
      if (shape.direction) args.number("cudaMemcpyKind", shape.direction);
      break;
    case Kind::sync:
    case Kind::event:
    case Kind::stream:
      if (extra.address2) args.hex("event handle", extra.address2);
      break;
    case Kind::collective:
      args.number("External id", ids_.of_event(event.index));
      collective(args, event, true);
      break;
    case Kind::nvtx_range:
    case Kind::nvtx_mark:
      // Goes as an operator: without an id it would get the calls that have none.
      if (const uint64_t id = ids_.of_event(event.index)) args.number("External id", id);
      if (const std::string payload = nvtx_payload(shape.data_type, extra.value);
          !payload.empty()) {
        args.json("nvtx payload", payload);
      }
      if (extra.address) args.number("nvtx range id", extra.address);
      if (shape.category) args.number("nvtx category", shape.category);
      if (shape.group != StringIndex::empty) {
        args.text("nvtx category name", trace_.text(shape.group));
      }
      if (shape.started_on) args.number("started on thread", shape.started_on);
      if (shape.ended_on) args.number("ended on thread", shape.ended_on);
      if (shape.color) args.hex("nvtx color", shape.color);
      if (shape.depth) args.number("nvtx depth", shape.depth);
      break;
    case Kind::none:
    case Kind::call:
    case Kind::launch:
    case Kind::op:
    case Kind::annotation:
    case Kind::module:
    case Kind::python_function:
    case Kind::tensor:
    case Kind::instant:
    case Kind::other:
    case Kind::sample:
    case Kind::heap:
    case Kind::stack:
    case Kind::gpu_kernel:
    case Kind::gpu_copy:
    case Kind::gpu_set:
    case Kind::gpu_sync:
    case Kind::gpu_event:
    case Kind::gpu_memory:
    case Kind::overhead:
    case Kind::gpu_graph:
    case Kind::gpu_annotation: break;
  }
  if (shape.stream_handle) args.hex("stream handle", shape.stream_handle);
  args.members(trace_.text(shape.args));
  args.own_members(trace_.text(extra.args), ids_);
}

void ChromeArgs::launch(Object& args, const Shape& shape) const {
  if (shape.result) args.number("result", shape.result);
  if (shape.detail != StringIndex::empty) {
    args.text("launched kernel", trace_.text(shape.detail));
  }
  if (shape.stream_handle) args.hex("stream handle", shape.stream_handle);
  args.members(trace_.text(shape.args));
}

void ChromeArgs::gpu(JsonText& json, const Event& event, const GpuPlace& where) const {
  const Shape& shape = trace_.shape(event);
  Object args(json);
  // Of an outside trace, or one read back, the kernel's own arguments say it.
  const std::optional<Event> call =
      process_.source == Source::dump ? collective_of(event) : std::nullopt;
  if (call) {
    args.number("External id", ids_.of_event(call->index));
  } else {
    external_id(args, event);
  }
  if (shape.kind == Kind::gpu_annotation) {
    framework(args, event);
  } else {
    work(args, event, where);
  }
  captured(args, event);
  if (call) collective(args, *call, false);
  args.own_members(trace_.text(process_.extra(event).args), ids_);
}

// A graph as a whole goes as a kernel, because it occupies the stream; without
// what only one has.
void ChromeArgs::work(Object& args, const Event& event, const GpuPlace& where) const {
  const Shape& shape = trace_.shape(event);
  const Lane& lane = *where.lane;
  const bool kernel_record = shape.kind == Kind::gpu_kernel;
  if (kernel_record && process_.source == Source::dump) args.number("queued", 0);
  args.number("device", where.gpu);
  args.number("context", lane.context);
  args.number("stream", where.stream);
  if (where.stream != lane.stream) args.number("original_stream", lane.stream);
  args.number("correlation", event.correlation);
  if (kernel_record) {
    args.members(kernels_.at(where.device)[number(event.shape)]);
  } else if (shape.kind != Kind::gpu_graph) {
    copy(args, event);
  }
  if (shape.graph) {
    args.number("graph id", shape.graph);
    if (shape.kind != Kind::gpu_graph) {
      args.number("graph node id", process_.extra(event).value);
    }
  }
  if (shape.channel_type) {
    args.number("channel", shape.channel);
    args.number("channel_type", shape.channel_type);
  }
}

void ChromeArgs::kernel(Object& args, const Shape& shape, const dump::Device* device) const {
  const bool ours = process_.source == Source::dump;  // else what is not a field is in its args
  if (ours || shape.registers_per_thread) {
    args.number("registers per thread", shape.registers_per_thread);
  }
  args.number("shared memory", uint64_t{shape.static_shared_bytes} + shape.dynamic_shared_bytes);
  if (shape.static_shared_bytes) args.number("static shared memory", shape.static_shared_bytes);
  if (shape.cluster_x) args.dim("cluster", {shape.cluster_x, shape.cluster_y, shape.cluster_z});
  if (shape.local_bytes_per_thread) {
    args.number("local memory per thread", shape.local_bytes_per_thread);
  }
  const Occupancy occupancy = ours && device ? occupancy_of(shape, *device) : Occupancy();
  if (occupancy.blocks_per_sm > 0) {
    args.key("blocks per SM").real(occupancy.blocks_per_sm, 6);
    args.key("warps per SM").real(occupancy.warps_per_sm, 6);
  }
  args.dim("grid", shape.grid);
  args.dim("block", shape.block);
  if (occupancy.percent > 0) args.number("est. achieved occupancy %", occupancy.percent);
  args.members(trace_.text(shape.args));
}

void ChromeArgs::captured(Object& args, const Event& event) const {
  const GraphNode* const node = process_.graph_node(trace_.shape(event), process_.extra(event));
  if (node) args.text("captured by", node->api);
}

void ChromeArgs::copy(Object& args, const Event& event) const {
  const Shape& shape = trace_.shape(event);
  const uint64_t bytes = process_.extra(event).bytes;
  args.number("bytes", bytes);
  if (process_.source == Source::dump && event.end > event.begin) {
    const auto ns = static_cast<double>(event.end - event.begin);
    args.key("memory bandwidth (GB/s)").real(static_cast<double>(bytes) / ns, 6);
  }
  if (shape.peer_source != Shape::kAbsent) args.number("fromDevice", shape.peer_source);
  if (shape.peer_destination != Shape::kAbsent) args.number("toDevice", shape.peer_destination);
}

void ChromeArgs::sync(JsonText& json, const Event& event, uint32_t gpu) const {
  const Shape& shape = trace_.shape(event);
  Object args(json);
  args.text("cuda_sync_kind", sync_type_name(shape.cupti_type));
  const auto record = process_.source == Source::dump ? record_waited_for(event) : std::nullopt;
  if (record) {
    const StreamLink* const stream = process_.stream_of(record->stream_handle);
    args.number("wait_on_stream", stream ? static_cast<int64_t>(stream->stream) : -1);
    args.number("wait_on_cuda_event_record_corr_id", record->correlation);
    args.number("wait_on_cuda_event_id", process_.extra(event).value);
  } else if (process_.source == Source::kineto && process_.extra(event).value) {
    args.number("wait_on_cuda_event_id", process_.extra(event).value);
  }
  args.number("stream", shape.stream == Shape::kAbsent ? -1 : static_cast<int64_t>(shape.stream));
  args.number("correlation", event.correlation);
  args.number("device", gpu);
  args.number("context", shape.context);
  args.own_members(trace_.text(process_.extra(event).args), ids_);
}

// The last record of the event before the call that waits for it.
std::optional<EventRecord> ChromeArgs::record_waited_for(const Event& sync) const {
  constexpr uint32_t kEventSync = 1, kStreamWaitEvent = 2;
  const uint32_t type = trace_.shape(sync).cupti_type;
  if ((type != kEventSync && type != kStreamWaitEvent) || sync.partner == EventIndex::none) {
    return std::nullopt;
  }
  const Event& call = process_.event(sync.partner);
  const auto found = records_.find(process_.extra(call).address2);
  if (found == records_.end()) return std::nullopt;
  const auto after =
      std::upper_bound(found->second.begin(), found->second.end(), call.begin,
                       [](int64_t time, const EventRecord& record) { return time < record.time; });
  if (after == found->second.begin() || after[-1].correlation == 0) return std::nullopt;
  // Between stretches of steps there may have been other records.
  const bool apart = std::any_of(
      process_.stretches.begin(), process_.stretches.end(), [&](const Stretch& stretch) {
        return after[-1].time < stretch.begin && stretch.begin <= call.begin;
      });
  if (apart) return std::nullopt;
  return after[-1];
}

std::optional<Event> ChromeArgs::collective_of(const Event& kernel) const {
  if (is_collective_.empty() || !is_collective_[number(kernel.index)]) return std::nullopt;
  const auto found = by_kernel_.find(number(kernel.index));
  if (found == by_kernel_.end()) return std::nullopt;
  return process_.event(process_.collective_kernels[found->second].collective);
}

void ChromeArgs::collective(Object& args, const Event& call, bool inputs) const {
  const Shape& shape = trace_.shape(call);
  const EventExtra& extra = process_.extra(call);
  const std::string_view function = trace_.text(shape.name);
  const uint64_t ranks = shape.rank_count ? shape.rank_count : 1;
  const PerRankBuffers per_rank = per_rank_buffers(function);
  const auto elements = collective_elements(shape, extra),
             bytes = collective_own_bytes(shape, extra);
  const uint64_t own = elements.value_or(0), in = per_rank.input ? own * ranks : own;
  const NcclTypeName& type = nccl_type(shape.data_type);
  args.text("Collective name", collective_name(function).kineto);
  if (elements) {
    args.number("In msg nelems", in);
    args.number("Out msg nelems", per_rank.output ? own * ranks : own);
  } else if (bytes) {
    args.number("message bytes", *bytes);
  }
  if (shape.rank_count) args.number("Group size", shape.rank_count);
  if (type.bytes) {
    args.text("dtype", type.scalar);
    // HTA takes a list among a kernel's arguments for an error.
    if (inputs) args.key("Input Dims").raw("[[").number(in).raw("]]");
    if (inputs) args.key("Input type").raw("[").string(type.cxx).raw("]");
  }
  if (shape.rank_count) args.number("Rank", shape.rank);
  const int32_t world = process_.header.world_size();
  const bool of_world = world > 0 && shape.rank_count == static_cast<uint32_t>(world);
  if (shape.peer != Shape::kAbsent) {
    args.number("Peer", shape.peer);
    // As PyTorch has them (saveNcclMeta() in torch/csrc/profiler/util.cpp): in the whole job.
    const std::string_view ranks = trace_.text(shape.group_ranks);
    const auto in_job = ranks.empty() && of_world ? std::optional<int64_t>(shape.peer)
                                                  : rank_in_list(ranks, shape.peer);
    if (in_job) args.number(has_source(function) ? "Src Rank" : "Dst Rank", *in_job);
  }
  // Equal on all ranks, where that is known: a handle is each process's own.
  const uint64_t identity = communicator_identity(process_, shape.communicator, call.begin);
  const uint64_t communicator = identity ? identity : shape.communicator;
  const bool named = shape.group != StringIndex::empty;
  if (named || communicator)
    args.text("Process Group Name",
              named ? std::string(trace_.text(shape.group)) : fmt::format("{:#x}", communicator));
  if (shape.group_description != StringIndex::empty) {
    args.text("Process Group Description", trace_.text(shape.group_description));
  }
  if (shape.group_ranks != StringIndex::empty) {
    args.text("Process Group Ranks", shortened(trace_.text(shape.group_ranks)));
  } else if (of_world) {
    args.text("Process Group Ranks", rank_list(world));
  }
  if (inputs && shape.operation != Shape::kAbsent) args.number("nccl operation", shape.operation);
  const auto sequence = collective_sequence(shape, extra);
  if (sequence) args.text("Comms Id", fmt::format("{}", shape.communicator));
  if (sequence) args.number("Seq", *sequence);
}

}  // namespace gpuprof
