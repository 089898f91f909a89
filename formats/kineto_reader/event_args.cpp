// SPDX-License-Identifier: Apache-2.0
#include "formats/kineto_reader/event_args.h"

#include <algorithm>

#include "formats/io/utf8.h"
#include "formats/kineto_reader/categories.h"
#include "formats/kineto_reader/numbers.h"
#include "formats/trace/collective_calls.h"
#include "formats/trace/names.h"

namespace gpuprof::kineto {
namespace {

bool is_number(const Value& value) {
  return value.type == ValueType::number || value.type == ValueType::string;
}

// Sets `out` where the value is a whole number that fits.
template <typename Out>
bool set(const Value& value, Out& out) {
  if (!is_number(value)) return false;
  const std::optional<uint64_t> number = whole_or_hex(value.text);
  if (!number || *number > std::numeric_limits<Out>::max()) return false;
  out = static_cast<Out>(*number);
  return true;
}

template <typename Number>
bool set(const Value& value, std::optional<Number>& out) {
  Number number = 0;
  if (!set(value, number)) return false;
  out = number;
  return true;
}

bool set_plus_1(const Value& value, uint64_t& out) {
  uint64_t number = 0;
  if (!set(value, number) || number == ~uint64_t{0}) return false;
  out = number + 1;
  return true;
}

// -1 is "none", which the absent value of a field stands for.
bool set_or_absent(const Value& value, uint32_t& out) {
  if (is_number(value) && value.text == "-1") {
    out = Shape::kAbsent;
    return true;
  }
  return set(value, out) && out != Shape::kAbsent;
}

// A number of CUPTI's, or the name of one.
bool set_kind(const Value& value, uint32_t (*number_of)(std::string_view), uint32_t& out) {
  if (value.type == ValueType::number) return set(value, out);
  if (value.type != ValueType::string) return false;
  out = number_of(value.text);
  return out != 0;
}

// [x, y, z]
bool set(const Value& value, Dim3& out) {
  if (value.type != ValueType::array) return false;
  uint32_t numbers[3];
  const char* at = value.text.data() + 1;
  const char* const end = value.text.data() + value.text.size();
  for (int i = 0; i < 3; ++i) {
    Value each;
    at = read_value(skip_space(at, end), end, each);
    if (!at || !set(each, numbers[i])) return false;
    at = skip_space(at, end);
    if (at == end || *at++ != (i < 2 ? ',' : ']')) return false;
  }
  out = {numbers[0], numbers[1], numbers[2]};
  return at == end;
}

bool set_result(const Value& value, Shape& shape) {
  const std::optional<int64_t> result = signed_whole(value.text);
  if (!result || *result != static_cast<int32_t>(*result)) return false;
  shape.result = static_cast<int32_t>(*result);
  return true;
}

// What all launches of a kernel's shape, and all calls of a function, have alike.
bool is_of_shape(const Member& member, Kind kind) {
  if (!is_number(member.value)) return false;
  if (member.key == "cbid") return is_call_kind(kind);
  return kind == Kind::gpu_kernel && (member.key != "queued" || member.value.text == "0");
}

uint32_t sync_type(std::string_view name) {
  for (uint32_t type = 1; type <= 4; ++type) {
    if (sync_type_name(type) == name) return type;
  }
  return Shape::kAbsent;
}

}  // namespace

uint32_t ArgReader::text(const Value& value) {
  bool fresh = false;
  uint32_t index = 0;
  if (value.escaped) {
    scratch_.clear();
    unescape(value.text, scratch_, faults_);
    index = block_.texts.intern(scratch_, fresh);
  } else {
    index = block_.texts.intern(value.text, fresh);
  }
  if (fresh && !is_valid_utf8(block_.texts[index])) ++faults_.utf8;
  return index;
}

// A value that is kept as JSON text.
bool ArgReader::json(const Value& value, StringIndex& out) {
  if (value.type != ValueType::array) return false;
  bool fresh = false;
  const uint32_t raw = raw_json_.intern(value.text, fresh);
  if (fresh) {
    scratch_.assign("\"\":").append(value.text);
    scratch_ = sound_members(scratch_, faults_);
    scratch_.erase(0, std::min<size_t>(scratch_.size(), 3));
    sound_json_.resize(std::max<size_t>(sound_json_.size(), raw + 1));
    sound_json_[raw] = block_.texts.intern(scratch_);
  }
  out = static_cast<StringIndex>(sound_json_[raw]);
  return true;
}

uint32_t ArgReader::args_text(std::string_view members) {
  if (members.empty()) return 0;
  bool fresh = false;
  const uint32_t raw = raw_args_.intern(members, fresh);
  if (fresh) {
    sound_args_.resize(raw + 1);
    sound_args_[raw] = block_.texts.intern(sound_members(members, faults_));
  }
  return sound_args_[raw];
}

bool ArgReader::take_of_gpu(ArgKey key, const Value& value, Shape& shape, EventExtra& extra,
                            Placement& out) {
  switch (key) {
    case ArgKey::device: return set(value, out.device);
    case ArgKey::context: return set(value, out.context);
    case ArgKey::stream:
      out.no_stream = is_number(value) && value.text == "-1";
      return out.no_stream || set(value, out.stream);
    case ArgKey::original_stream: return set(value, out.stream);
    case ArgKey::correlation: return set(value, out.correlation);
    case ArgKey::derived: return out.derived = true;
    case ArgKey::external_id:
      return set(value, shape.kind == Kind::gpu_annotation ? extra.value : out.external_id);
    case ArgKey::graph_id: return set(value, shape.graph);
    case ArgKey::graph_node: return set(value, extra.value);
    default: break;
  }
  switch (shape.kind) {
    case Kind::gpu_kernel:
      switch (key) {
        case ArgKey::registers: return set(value, shape.registers_per_thread);
        case ArgKey::shared_memory: return set(value, shape.dynamic_shared_bytes);
        case ArgKey::static_shared:  // part of the shared memory, which comes before it
          if (!set(value, shape.static_shared_bytes)) return false;
          shape.dynamic_shared_bytes -=
              std::min(shape.dynamic_shared_bytes, shape.static_shared_bytes);
          return true;
        case ArgKey::cluster: {
          Dim3 cluster{};
          if (!set(value, cluster)) return false;
          shape.cluster_x = cluster.x, shape.cluster_y = cluster.y, shape.cluster_z = cluster.z;
          return true;
        }
        case ArgKey::local_memory: return set(value, shape.local_bytes_per_thread);
        case ArgKey::grid: return set(value, shape.grid);
        case ArgKey::block: return set(value, shape.block);
        case ArgKey::channel: return set(value, shape.channel);
        case ArgKey::channel_type: return set(value, shape.channel_type);
        case ArgKey::derived_of_collective:  // which stays among the arguments
          if (value.type == ValueType::string) shape.detail = static_cast<StringIndex>(text(value));
          return false;
        default: return false;
      }
    case Kind::gpu_copy:
    case Kind::gpu_set:
      if (key == ArgKey::bytes) return set(value, extra.bytes);
      switch (key) {
        case ArgKey::copy_direction: return set_kind(value, copy_direction_of, shape.direction);
        case ArgKey::source_kind: return set_kind(value, memory_kind_of, shape.source_kind);
        case ArgKey::memory_kind:
        case ArgKey::destination_kind:
          return set_kind(value, memory_kind_of, shape.destination_kind);
        default: break;
      }
      if (key == ArgKey::from_device) return set(value, shape.peer_source);
      return key == ArgKey::to_device && set(value, shape.peer_destination);
    case Kind::gpu_sync:
      if (key == ArgKey::event_id) return set(value, extra.value);
      if (key != ArgKey::sync_kind || value.type != ValueType::string) return false;
      shape.cupti_type = sync_type(value.text);
      return shape.cupti_type != Shape::kAbsent;
    default: return false;
  }
}

bool ArgReader::take_of_call(ArgKey key, const Value& value, Shape& shape, EventExtra& extra,
                             Placement& out) {
  switch (key) {
    case ArgKey::correlation:
    case ArgKey::inner_correlation: return set(value, out.correlation);
    case ArgKey::copy_kind: return set(value, shape.direction);
    case ArgKey::callback: shape.flags |= kFlagFromCallback; return true;
    case ArgKey::of_range: shape.flags |= kFlagFromNvtx; return true;
    case ArgKey::source:
    case ArgKey::event_handle: return set(value, extra.address2);
    case ArgKey::external_id: return set(value, out.external_id);
    case ArgKey::requested_bytes: return set(value, extra.bytes);
    case ArgKey::pointer: return set(value, extra.address);
    case ArgKey::stream_handle: return set(value, shape.stream_handle);
    case ArgKey::kernel:
      if (value.type != ValueType::string) return false;
      shape.detail = static_cast<StringIndex>(text(value));
      return true;
    case ArgKey::result: return set_result(value, shape);
    default: return false;
  }
}

bool ArgReader::take_of_operator(ArgKey key, const Value& value, Shape& shape, EventExtra& extra,
                                 Placement& out) {
  switch (key) {
    case ArgKey::external_id: return set(value, extra.value);
    case ArgKey::number_: return set_plus_1(value, extra.bytes);
    case ArgKey::input_dims: return json(value, shape.input_dims);
    case ArgKey::input_types: return json(value, shape.input_types);
    case ArgKey::call_stack:
      if (value.type != ValueType::string) return false;
      shape.call_stack = static_cast<StringIndex>(text(value));
      return true;
    case ArgKey::hierarchy:
      if (value.type != ValueType::string) return false;
      shape.hierarchy = static_cast<StringIndex>(text(value));
      return true;
    case ArgKey::step_ns: return set(value, out.step_ns);
    default: return take_origin(key, value, shape);
  }
}

// What our own exports say first: the event is no operator or annotation, though it goes as one.
bool ArgReader::take_origin(ArgKey key, const Value& value, Shape& shape) {
  if (value.type != ValueType::string) return false;
  const auto name = [&] { return static_cast<StringIndex>(text(value)); };
  switch (key) {
    case ArgKey::domain:
      shape.kind = shape.kind == Kind::instant ? Kind::nvtx_mark : Kind::nvtx_range;
      shape.detail = name();
      shape.value = 0;
      return true;
    case ArgKey::nccl_call:
    case ArgKey::nccl_function:
      shape.kind = key == ArgKey::nccl_call ? Kind::call : Kind::collective;
      shape.domain = ApiDomain::nccl;
      shape.name = shape.label = name();
      return true;
    default: return false;
  }
}

bool ArgReader::take_of_nvtx(ArgKey key, const Value& value, Shape& shape, EventExtra& extra) {
  switch (key) {
    case ArgKey::external_id: return true;  // of what it went as
    case ArgKey::payload: return set(value, extra.value);
    case ArgKey::range_id: return set(value, extra.address);
    case ArgKey::category: return set(value, shape.category);
    case ArgKey::color: return set(value, shape.color);
    case ArgKey::depth: return set(value, shape.depth);
    default: return false;
  }
}

// "[0, 2]"; not one that was shortened.
static bool is_rank_list(std::string_view text) {
  if (text.size() < 3 || text.front() != '[' || text.back() != ']') return false;
  bool digit = false;
  for (const char c : text.substr(1, text.size() - 2)) {
    if (c == ',' && !digit) return false;
    if (c >= '0' && c <= '9') {
      digit = true;
    } else if (c == ',') {
      digit = false;
    } else if (c != ' ' || digit) {
      return false;
    }
  }
  return digit;
}

// What a process group is called; one without a name goes by its handle.
bool ArgReader::take_of_group(ArgKey key, const Value& value, Shape& shape) {
  if (value.type != ValueType::string) return false;
  switch (key) {
    case ArgKey::group_name:
      if (!value.text.starts_with("0x")) shape.group = static_cast<StringIndex>(text(value));
      return true;
    case ArgKey::group_description:
      shape.group_description = static_cast<StringIndex>(text(value));
      return true;
    case ArgKey::group_ranks:
      if (shape.group != StringIndex::empty && is_rank_list(value.text)) {
        shape.group_ranks = static_cast<StringIndex>(text(value));
      }
      return true;
    default: return false;
  }
}

// Elements: of a scatter the output, else the input, is what NCCL counts; where both are for all
// ranks, as of an exchange, a rank's part.
bool ArgReader::take_of_collective(ArgKey key, const Value& value, Shape& shape,
                                   EventExtra& extra) {
  const std::string_view function = block_.texts[number(shape.name)];
  const PerRankBuffers per_rank = per_rank_buffers(function);
  const bool scatters = per_rank.input && !per_rank.output;
  switch (key) {
    case ArgKey::derived_of_collective:
    case ArgKey::input_dims:
    case ArgKey::input_types:
    case ArgKey::external_id: return true;
    case ArgKey::of_range:  // stands before the size, if there is one
      shape.flags |= kFlagFromNvtx;
      extra.bytes = CollectivePayload::kUnknownCount;
      return true;
    case ArgKey::message_bytes: return set(value, extra.bytes);
    case ArgKey::in_elements: return scatters || set(value, extra.bytes);
    case ArgKey::out_elements: return !scatters || set(value, extra.bytes);
    case ArgKey::group_size:  // stands behind the elements
      if (!set(value, shape.rank_count)) return false;
      if (per_rank.input && per_rank.output && !(shape.flags & kFlagFromNvtx)) {
        extra.bytes /= std::max(1u, uint32_t{shape.rank_count});
      }
      return true;
    case ArgKey::rank: return set(value, shape.rank);
    case ArgKey::peer: return set(value, shape.peer);  // stands before the next
    case ArgKey::peer_in_job: return shape.peer != Shape::kAbsent || set(value, shape.peer);
    case ArgKey::communicator: return set(value, shape.communicator);
    case ArgKey::sequence_of_collective: return set(value, extra.value);
    case ArgKey::nccl_operation: return set(value, shape.operation);
    case ArgKey::stream_handle: return set(value, shape.stream_handle);
    case ArgKey::result: return set_result(value, shape);
    case ArgKey::dtype:
      for (uint32_t type = 0; nccl_type(type).bytes; ++type) {
        if (nccl_type(type).scalar == value.text) shape.data_type = type;
      }
      return shape.data_type != Shape::kAbsent;
    default: return take_of_group(key, value, shape);
  }
}

bool ArgReader::take_of_python(ArgKey key, const Value& value, EventExtra& extra) {
  switch (key) {
    case ArgKey::python_id: return set_plus_1(value, extra.value);
    case ArgKey::python_parent: return set_plus_1(value, extra.address);
    case ArgKey::python_module: return set_plus_1(value, extra.address2);
    default: return false;
  }
}

// CUPTI's record of an allocation, which our own exports write as PyTorch's of a tensor; what that
// has comes before it.
bool ArgReader::make_memory_record(const Value& value, Shape& shape, EventExtra& extra,
                                   Placement& out) {
  if (!set(value, shape.cupti_type)) return false;
  shape.kind = Kind::gpu_memory;
  shape.name = StringIndex::empty;
  shape.label =
      static_cast<StringIndex>(block_.texts.intern(memory_operation_name(shape.cupti_type)));
  out.device = shape.device_id;
  shape.device_id = shape.device_type = Shape::kAbsent;
  extra.address2 = extra.value = 0;
  const auto change = static_cast<int64_t>(extra.bytes);
  if (change < 0) extra.bytes = ~extra.bytes + 1;
  return true;
}

bool ArgReader::take_of_memory(ArgKey key, const Value& value, Shape& shape, Placement& out) {
  switch (key) {
    case ArgKey::memory_kind: return set(value, shape.memory_kind);
    case ArgKey::context: return set(value, shape.context);
    case ArgKey::stream: return set(value, shape.stream);
    case ArgKey::inner_correlation: return set(value, out.correlation);
    default: return false;
  }
}

bool ArgReader::take_of_tensor(ArgKey key, const Value& value, Shape& shape, EventExtra& extra,
                               Placement& out) {
  switch (key) {
    case ArgKey::derived: return out.derived = true;
    case ArgKey::tensor_bytes: {
      const std::optional<int64_t> change =
          is_number(value) ? signed_whole(value.text) : std::nullopt;
      if (change) extra.bytes = static_cast<uint64_t>(*change);
      return change.has_value();
    }
    case ArgKey::address: return set(value, extra.address);
    case ArgKey::total_allocated: return set(value, extra.address2);
    case ArgKey::total_reserved: return set(value, extra.value);
    case ArgKey::memory_operation: return make_memory_record(value, shape, extra, out);
    case ArgKey::device_id: return set_or_absent(value, shape.device_id);
    case ArgKey::device_type: return set_or_absent(value, shape.device_type);
    default: return false;
  }
}

bool ArgReader::take(ArgKey key, const Value& value, Shape& shape, EventExtra& extra,
                     Placement& out) {
  if (key == ArgKey::open_end && !is_gpu_kind(shape.kind)) {
    shape.flags |= kFlagOpenEnd;
    return true;
  }
  switch (shape.kind) {
    case Kind::op:
    case Kind::annotation: return take_of_operator(key, value, shape, extra, out);
    case Kind::module:
    case Kind::python_function: return take_of_python(key, value, extra);
    case Kind::nvtx_range:
    case Kind::nvtx_mark: return take_of_nvtx(key, value, shape, extra);
    case Kind::collective: return take_of_collective(key, value, shape, extra);
    case Kind::tensor: return take_of_tensor(key, value, shape, extra, out);
    case Kind::gpu_memory: return take_of_memory(key, value, shape, out);
    case Kind::instant:
      if (key != ArgKey::derived) return take_origin(key, value, shape);
      return out.derived = true;
    case Kind::other:
    case Kind::overhead: return false;
    default:
      return is_gpu_kind(shape.kind) ? take_of_gpu(key, value, shape, extra, out)
                                     : take_of_call(key, value, shape, extra, out);
  }
}

void ArgReader::keep(const Member& member, std::string& in) {
  if (!in.empty()) in += ',';
  in += '"';
  in.append(member.key).append("\":").append(member.text);
}

// Sequence number and thread have one field together: they are taken where both are there.
void ArgReader::keep_sequence(const std::vector<Member>& args, EventExtra& extra) {
  const Member *sequence = nullptr, *thread = nullptr;
  for (const Member& member : args) {
    const ArgKey key = arg_key(member.key);
    if (key == ArgKey::sequence) sequence = &member;
    if (key == ArgKey::forward_thread) thread = &member;
  }
  if (sequence && thread && set_plus_1(sequence->value, extra.address)) {
    if (set(thread->value, extra.address2)) return;
    extra.address = 0;
  }
  for (const Member* member : {sequence, thread}) {
    if (member) keep(*member, rest_);
  }
}

void ArgReader::read(const std::vector<Member>& args, Shape& shape, EventExtra& extra,
                     Placement& placement) {
  rest_.clear();
  rest_of_shape_.clear();
  bool sequence = false;
  for (const Member& member : args) {
    if (member.value.type == ValueType::wrong) continue;  // noted by the caller
    const ArgKey key = arg_key(member.key);
    const bool of_pair = key == ArgKey::sequence || key == ArgKey::forward_thread;
    if (of_pair && (shape.kind == Kind::op || shape.kind == Kind::annotation)) {
      sequence = true;
      continue;
    }
    if (key != ArgKey::none && take(key, member.value, shape, extra, placement)) continue;
    keep(member,
         key == ArgKey::of_shape && is_of_shape(member, shape.kind) ? rest_of_shape_ : rest_);
  }
  if (sequence) keep_sequence(args, extra);
  extra.args = static_cast<StringIndex>(args_text(rest_));
  shape.args = static_cast<StringIndex>(args_text(rest_of_shape_));
}

}  // namespace gpuprof::kineto
