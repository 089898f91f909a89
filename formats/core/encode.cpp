// SPDX-License-Identifier: Apache-2.0
#include "formats/core/encode.h"

#include <algorithm>
#include <new>
#include <type_traits>

#include "formats/core/columns.h"
#include "formats/core/interned.h"
#include "formats/core/own_time.h"
#include "formats/core/packed_column.h"
#include "formats/core/python_codes.h"
#include "formats/core/ring_file.h"
#include "formats/core/shape_fields.h"
#include "formats/core/wire.h"

namespace gpuprof {
namespace {

// Field numbers of gpuprof.proto.
namespace events_field {
enum : uint32_t {
  string = 1,
  shape = 2,
  lane = 3,
  base_time = 4,
  window = 5,
  ring_chunk = 6,
  ring_records = 7,
  stack_depth = 8,
  stack_frame = 9,
  code_function = 10,
  code_file = 11
};
}
namespace lane_field {
enum : uint32_t {
  type = 1,
  thread_id = 2,
  thread_name = 3,
  device = 4,
  context = 5,
  stream = 6,
  shape = 7,
  begin = 8,
  duration = 9,
  correlation = 10,
  bytes = 11,
  address = 12,
  address2 = 13,
  value = 14,
  stack = 15
};
}
enum LaneType : uint32_t { kThread = 1, kStream = 2, kDevice = 3, kOverhead = 4, kRanges = 5 };

uint64_t hash_words(const uint64_t* words, int count) {
  uint64_t hash = 0x9e3779b97f4a7c15u;
  for (int i = 0; i < count; ++i) {
    hash = (hash ^ words[i]) * 0xd1b54a32d192ed03u;
    hash ^= hash >> 29;
  }
  return hash;
}

// The bits of a record that make its Shape: the record itself with all that varies set to 0.
struct ShapeKey {
  uint64_t words[6];
  bool operator==(const ShapeKey& other) const = default;
};
uint64_t hash_of(const ShapeKey& key) { return hash_words(key.words, 6); }

ShapeKey key_of(const Record& record, const KindLayout& layout) {
  ShapeKey key;
  key.words[0] =
      uint64_t{record.api} << 16 | uint64_t{static_cast<uint8_t>(record.kind)} << 8 | record.flags;
  for (int i = 0; i < 5; ++i) key.words[i + 1] = record.words[i] & layout.shape_mask[i];
  return key;
}

struct LaneKey {
  uint64_t type;
  uint64_t id;  // thread id, or device | context << 16 | stream << 32
  bool operator==(const LaneKey& other) const = default;
};

template <typename Payload, typename... Others>
concept OneOf = (std::is_same_v<Payload, Others> || ...);
// Of a host thread's own lane.
template <typename Payload>
concept OfThread = OneOf<Payload, NoPayload, CallPayload, LaunchPayload, CopyPayload, SetPayload,
                         MemoryPayload, SyncPayload, CollectivePayload, FrameworkPayload,
                         TensorPayload, StackPayload, HeapPayload>;

// An overload for each payload.
struct LaneOf {
  uint32_t thread_id;

  static LaneKey stream_lane(uint64_t device, uint64_t context, uint64_t stream) {
    return {kStream, device | context << 16 | stream << 32};
  }
  template <OfThread Payload>
  LaneKey operator()(const Payload&) const {
    return {kThread, thread_id};
  }
  LaneKey operator()(const NvtxPayload& p) const {
    return p.started_on ? LaneKey{kRanges, 0} : LaneKey{kThread, thread_id};
  }
  LaneKey operator()(const SamplePayload& p) const { return {kThread, p.thread}; }
  LaneKey operator()(const GpuKernelPayload& p) const {
    return stream_lane(p.device, p.context, p.stream);
  }
  LaneKey operator()(const GpuCopyPayload& p) const {
    return stream_lane(p.device, p.context, p.stream);
  }
  LaneKey operator()(const GpuSyncPayload& p) const { return {kDevice, p.device}; }
  LaneKey operator()(const GpuMemoryPayload& p) const { return {kDevice, p.device}; }
  LaneKey operator()(const OverheadPayload&) const { return {kOverhead, 0}; }
};

LaneKey lane_of(const Record& record, uint32_t thread_id) {
  return with_payload(record, LaneOf{thread_id});
}

// One lane for each key.
struct Lane {
  LaneKey key;
  char thread_name[16];
  uint32_t name_length;
  uint32_t count;
  uint32_t first;  // in the order array, once the batch is laid out
  // Of a thread: what its call stacks took since the last record that says so, and until when.
  uint64_t stack_ticks, stacks_until;
  bool operator==(const Lane& other) const { return key == other.key; }
};
uint64_t hash_of(const Lane& lane) { return hash_words(&lane.key.type, 2); }

struct Entry {
  uint64_t begin, end;  // clock units
  uint32_t lane;
  uint32_t shape;
  uint32_t correlation;
  uint32_t columns : 8;
  uint32_t stack : 24;  // number in the batch + 1; 0: none
  ColumnValues values;
};

bool before(const Entry& a, const Entry& b) {
  return a.begin != b.begin ? a.begin < b.begin : a.end > b.end;
}

// What call stacks take is written in pieces of at least this length: some 3 us.
constexpr uint64_t kStackTicks = 1 << 13;

}  // namespace

struct BatchEncoder::State {
  explicit State(const NameResolver& resolver) : names(resolver) {}

  const NameResolver& names;
  uint32_t window = 0;
  uint32_t shift = 0;
  uint64_t base_time = 0;
  PodVector<Entry> entries;
  Interned<Lane> lanes;
  uint32_t last_lane = kNoPosition;
  Interned<ShapeKey> shapes;
  PodVector<uint64_t> ring_chunks;
  PodVector<uint32_t> ring_records;    // parallel to ring_chunks
  Interned<std::string_view> strings;  // views into the tables behind `names`
  PodVector<uint32_t> order, late, merged;
  Interned<StringId> stacks;
  PythonCodes codes;              // of frames in `stacks`
  StringId next_stack = 0;        // of the record to be added next
  uint64_t next_stack_begin = 0;  // which begins then
  PackedColumn shape, begin, duration, correlation, bytes, address, address2, value, stack;

  uint32_t lane_for(const LaneKey& key, std::string_view thread_name);
  uint32_t string_for(std::string_view text);
  uint32_t stack_for(const Record& record);
  bool add(const Record& record, const LaneKey& key, std::string_view thread_name, uint32_t stack);
  bool note_stack(const Record& record, uint32_t thread_id);
  bool write_stack_time(uint32_t lane);
  bool add_code_names();
  bool write_codes(WireWriter& wire);
  bool write_stacks(WireWriter& wire);
  bool write_shape(WireWriter& wire, const ShapeKey& key);
  bool lay_out();
  bool sort_lane(const Lane& lane);
  bool fill_columns(const Lane& lane);
  void write_lane(WireWriter& wire, const Lane& lane);
  bool write(WireWriter& wire);
};

uint32_t BatchEncoder::State::lane_for(const LaneKey& key, std::string_view thread_name) {
  if (last_lane != kNoPosition && lanes[last_lane].key == key &&
      (key.type != kThread || lanes[last_lane].name_length)) {
    return last_lane;
  }
  Lane wanted{};
  wanted.key = key;
  last_lane = lanes.position_of(wanted);
  // A thread's samples may come before its first call, which knows its name.
  if (last_lane != kNoPosition && key.type == kThread && !thread_name.empty()) {
    Lane& lane = lanes[last_lane];
    if (lane.name_length) return last_lane;
    lane.name_length = static_cast<uint32_t>(std::min(thread_name.size(), sizeof lane.thread_name));
    std::memcpy(lane.thread_name, thread_name.data(), lane.name_length);
  }
  return last_lane;
}

// Position in Events.string; 0 for the empty one. kNoPosition when memory could not be had.
uint32_t BatchEncoder::State::string_for(std::string_view text) {
  if (text.empty()) return 0;
  const uint32_t position = strings.position_of(text);
  return position == kNoPosition ? position : position + 1;
}

// Number + 1 of the stack that was announced for this record; 0: none, or no room for it.
uint32_t BatchEncoder::State::stack_for(const Record& record) {
  StringId id = record.begin == next_stack_begin ? next_stack : 0;
  next_stack = 0;
  if (record.kind == Kind::sample) id = record.sample.stack;
  constexpr uint32_t kMost = (1u << 24) - 1;
  if (id == 0 || stacks.size() >= kMost) return 0;
  return stacks.position_of(id) + 1;  // kNoPosition + 1: 0
}

bool BatchEncoder::State::add(const Record& record, const LaneKey& key,
                              std::string_view thread_name, uint32_t stack) {
  const KindLayout* const layout = layout_of(record.kind);
  if (!layout) return true;
  const uint32_t lane = lane_for(key, thread_name);
  const uint32_t shape_number = shapes.position_of(key_of(record, *layout));
  if (lane == kNoPosition || shape_number == kNoPosition) return false;
  Entry entry;
  entry.begin = record.begin >> shift;
  entry.end = std::max(record.end, record.begin) >> shift;
  entry.lane = lane;
  entry.shape = shape_number;
  entry.correlation = record.correlation;
  entry.columns = layout->columns;
  entry.stack = stack & 0xffffff;
  entry.values = column_values(record, shift);
  if (!entries.push_back(entry)) return false;
  if (entries.size() == 1) base_time = entry.begin;
  ++lanes[lane].count;
  return true;
}

// Of the record to be added next; it was taken right before that begins.
bool BatchEncoder::State::note_stack(const Record& record, uint32_t thread_id) {
  next_stack = record.stack.stack;
  next_stack_begin = record.begin;
  if (record.stack.ticks == 0) return true;
  const uint32_t number = lane_for({kThread, thread_id}, {});
  if (number == kNoPosition) return false;
  Lane& lane = lanes[number];
  lane.stack_ticks += record.stack.ticks;
  lane.stacks_until = record.begin;
  return lane.stack_ticks < kStackTicks || write_stack_time(number);
}

bool BatchEncoder::State::write_stack_time(uint32_t number) {
  Lane& lane = lanes[number];
  const Record record = own_time_record(
      OwnTime::stack, static_cast<uint32_t>(lane.key.id),
      lane.stacks_until - std::min(lane.stacks_until, lane.stack_ticks), lane.stacks_until);
  lane.stack_ticks = 0;
  return add(record, {kOverhead, 0}, {}, 0);
}

// Splits the entries into lanes: order[lane.first ...) are the entries of a lane in begin order.
bool BatchEncoder::State::lay_out() {
  if (!order.resize(entries.size())) return false;
  uint32_t first = 0;
  for (Lane& lane : lanes) {
    lane.first = first;
    first += lane.count;
    lane.count = 0;
  }
  for (uint32_t i = 0; i < entries.size(); ++i) {
    Lane& lane = lanes[entries[i].lane];
    order[lane.first + lane.count++] = i;
  }
  for (const Lane& lane : lanes) {
    if (!sort_lane(lane)) return false;
  }
  return true;
}

// Calls are recorded when they end, so most entries are in order and outer calls come late: the
// late ones are sorted by themselves and merged in.
bool BatchEncoder::State::sort_lane(const Lane& lane) {
  uint32_t* const items = order.data() + lane.first;
  late.clear();
  uint32_t kept = 0;
  for (uint32_t i = 0; i < lane.count; ++i) {
    if (kept && before(entries[items[i]], entries[items[kept - 1]])) {
      if (!late.push_back(items[i])) return false;
    } else {
      items[kept++] = items[i];
    }
  }
  if (late.empty()) return true;
  const auto less = [this](uint32_t a, uint32_t b) {
    const Entry &x = entries[a], &y = entries[b];
    if (x.begin != y.begin) return x.begin < y.begin;
    if (x.end != y.end) return x.end > y.end;
    return a < b;
  };
  std::sort(late.begin(), late.end(), less);
  if (!merged.resize(lane.count)) return false;
  std::merge(items, items + kept, late.begin(), late.end(), merged.begin(), less);
  std::copy(merged.begin(), merged.end(), items);
  return true;
}

bool BatchEncoder::State::fill_columns(const Lane& lane) {
  for (PackedColumn* column :
       {&shape, &begin, &duration, &correlation, &bytes, &address, &address2, &value, &stack}) {
    if (!column->start(lane.count)) return false;
  }
  uint64_t last_end = base_time, last_address = 0, last_address2 = 0;
  uint32_t last_correlation = 0;
  for (uint32_t i = 0; i < lane.count; ++i) {
    const Entry& entry = entries[order[lane.first + i]];
    shape.put(entry.shape);
    begin.put(zigzag(static_cast<int64_t>(entry.begin - last_end)));
    duration.put(entry.end - entry.begin);
    last_end = entry.end;
    if (entry.correlation) {
      const int64_t step = int64_t{entry.correlation} - last_correlation;
      correlation.put(zigzag(step >= 0 ? step + 1 : step));
      last_correlation = entry.correlation;
    } else {
      correlation.put(0);
    }
    if (entry.columns & kColumnBytes) bytes.put(entry.values.bytes);
    if (entry.columns & kColumnAddress) {
      address.put(zigzag(static_cast<int64_t>(entry.values.address - last_address)));
      last_address = entry.values.address;
    }
    if (entry.columns & kColumnAddress2) {
      address2.put(zigzag(static_cast<int64_t>(entry.values.address2 - last_address2)));
      last_address2 = entry.values.address2;
    }
    if (entry.columns & kColumnValue) value.put(entry.values.value);
    stack.put(entry.stack);
  }
  return true;
}

void BatchEncoder::State::write_lane(WireWriter& wire, const Lane& lane) {
  namespace f = lane_field;
  const size_t mark = wire.open(events_field::lane);
  wire.uint(f::type, lane.key.type);
  if (lane.key.type == kThread) {
    wire.uint(f::thread_id, lane.key.id);
    wire.text(f::thread_name, {lane.thread_name, lane.name_length});
  } else {
    wire.uint(f::device, lane.key.id & 0xffff);
    wire.uint(f::context, lane.key.id >> 16 & 0xffff);
    wire.uint(f::stream, lane.key.id >> 32);
  }
  shape.write_always(wire, f::shape);
  begin.write_always(wire, f::begin);
  duration.write_always(wire, f::duration);
  correlation.write(wire, f::correlation);
  bytes.write(wire, f::bytes);
  address.write(wire, f::address);
  address2.write(wire, f::address2);
  value.write(wire, f::value);
  stack.write(wire, f::stack);
  wire.close(mark);
}

namespace {

Record record_of(const ShapeKey& key) {
  Record record{};
  record.flags = static_cast<uint8_t>(key.words[0]);
  record.kind = static_cast<Kind>(static_cast<uint8_t>(key.words[0] >> 8));
  record.api = static_cast<ApiId>(key.words[0] >> 16);
  std::memcpy(record.words, key.words + 1, sizeof record.words);
  return record;
}

}  // namespace

bool BatchEncoder::State::write_shape(WireWriter& wire, const ShapeKey& key) {
  const Record r = record_of(key);
  const std::string_view name =
      r.api != kNoApi ? names.api_name(r.api) : names.string(payload_name(r));
  std::string_view detail;
  if (r.kind == Kind::launch) {
    detail = r.flags & kFlagNamed ? names.string(static_cast<StringId>(r.launch.function))
                                  : names.function_name(r.launch.function);
  } else if (r.kind == Kind::nvtx_range || r.kind == Kind::nvtx_mark) {
    detail = names.string(r.nvtx.domain);
  }
  const uint32_t name_index = string_for(name), detail_index = string_for(detail);
  const bool op = r.kind == Kind::op || r.kind == Kind::annotation;
  const uint32_t dims_index = op ? string_for(names.string(r.framework.input_dims)) : 0;
  const uint32_t types_index = op ? string_for(names.string(r.framework.input_types)) : 0;
  for (const uint32_t index : {name_index, detail_index, dims_index, types_index}) {
    if (index == kNoPosition) return false;
  }
  const size_t mark = wire.open(events_field::shape);
  wire.uint(1, static_cast<uint8_t>(r.kind));
  wire.uint(2, name_index);
  wire.uint(3, r.flags & ~uint32_t{kFlagNamed});  // the name is written, not its id
  wire.uint(5, detail_index);
  if (r.api != kNoApi) wire.uint(42, names.api_domain(r.api));
  wire.uint(47, dims_index);
  wire.uint(48, types_index);
  if (r.kind == Kind::gpu_kernel) {
    const LaunchShape* const launch = names.launch_shape(r.gpu_kernel.shape);
    if (launch) write_launch_shape(wire, *launch);
  }
  write_shape_numbers(wire, r);
  wire.close(mark);
  return wire.ok();
}

// Before strings are written.
bool BatchEncoder::State::add_code_names() {
  for (const StringId id : stacks) {
    if (!each_frame(names.stack(id), [&](uint64_t frame) { return codes.number(frame); })) {
      return false;
    }
  }
  const auto string = [this](StringId id) { return names.string(id); };
  return codes.each(string, [&](const PythonCodeName& code) {
    return string_for(names.string(code.function)) != kNoPosition &&
           string_for(names.string(code.file)) != kNoPosition;
  });
}

bool BatchEncoder::State::write_codes(WireWriter& wire) {
  if (!shape.start(codes.size()) || !begin.start(codes.size())) return false;
  const auto string = [this](StringId id) { return names.string(id); };
  codes.each(string, [&](const PythonCodeName& code) {
    shape.put(string_for(names.string(code.function)));
    begin.put(string_for(names.string(code.file)));
    return true;
  });
  shape.write_always(wire, events_field::code_function);
  begin.write_always(wire, events_field::code_file);
  return wire.ok();
}

// Frames of all stacks one after the other, each as difference to the one before.
bool BatchEncoder::State::write_stacks(WireWriter& wire) {
  if (stacks.empty()) return true;
  if (!shape.start(stacks.size())) return false;
  size_t total = 0;
  for (const StringId id : stacks) {
    const size_t depth = names.stack(id).size() / sizeof(uint64_t);
    shape.put(depth);
    total += depth;
  }
  shape.write_always(wire, events_field::stack_depth);
  if (!shape.start(total)) return false;
  uint64_t last = 0;
  for (const StringId id : stacks) {
    each_frame(names.stack(id), [&](uint64_t frame) {
      (void)codes.number(frame);  // it has one
      shape.put(zigzag(static_cast<int64_t>(frame - last)));
      last = frame;
      return true;
    });
  }
  shape.write_always(wire, events_field::stack_frame);
  return wire.ok();
}

bool BatchEncoder::State::write(WireWriter& wire) {
  for (uint32_t i = 0, count = static_cast<uint32_t>(lanes.size()); i < count; ++i) {
    if (lanes[i].stack_ticks && !write_stack_time(i)) return false;
  }
  if (!lay_out()) return false;
  for (const ShapeKey& key : shapes) {
    if (!write_shape(wire, key)) return false;
  }
  if (!add_code_names()) return false;
  wire.bytes(events_field::string, std::string_view{});
  for (const std::string_view text : strings) wire.bytes(events_field::string, text);
  for (const Lane& lane : lanes) {
    if (!fill_columns(lane)) return false;
    write_lane(wire, lane);
  }
  wire.uint(events_field::base_time, base_time);
  wire.uint(events_field::window, window);
  if (!shape.start(ring_chunks.size())) return false;
  for (const uint64_t sequence : ring_chunks) shape.put(sequence);
  shape.write_always(wire, events_field::ring_chunk);
  if (!shape.start(ring_records.size())) return false;
  for (const uint32_t records : ring_records) shape.put(records);
  shape.write_always(wire, events_field::ring_records);
  return write_stacks(wire) && write_codes(wire);
}

BatchEncoder::BatchEncoder(const NameResolver& names) : state_(nullptr) {
  void* const memory =
      ::mmap(nullptr, sizeof(State), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory != MAP_FAILED) state_ = new (memory) State(names);
}

BatchEncoder::~BatchEncoder() {
  if (!state_) return;
  state_->~State();
  ::munmap(state_, sizeof(State));
}

void BatchEncoder::begin(uint32_t window, uint32_t clock_shift) {
  if (!state_) return;
  State& s = *state_;
  s.window = window;
  s.shift = clock_shift;
  s.base_time = 0;
  s.entries.clear();
  s.lanes.clear();
  s.last_lane = kNoPosition;
  s.shapes.clear();
  s.ring_chunks.clear();
  s.ring_records.clear();
  s.strings.clear();
  s.stacks.clear();
  s.codes.clear();
  s.next_stack = 0;
}

bool BatchEncoder::add(const Record& record, uint32_t thread_id, std::string_view thread_name) {
  if (!state_) return false;
  State& s = *state_;
  if (record.kind == Kind::stack) return s.note_stack(record, thread_id);
  const uint32_t stack = s.stack_for(record);
  if (record.kind == Kind::sample) thread_name = {};  // it is the sampling thread's
  return s.add(record, lane_of(record, thread_id), thread_name, stack);
}

bool BatchEncoder::add_ring_chunk(uint64_t sequence, uint32_t records) {
  if (!state_ || !state_->ring_records.push_back(records)) return false;
  if (state_->ring_chunks.push_back(sequence)) return true;
  state_->ring_records.truncate(state_->ring_chunks.size());
  return false;
}

size_t BatchEncoder::size() const { return state_ ? state_->entries.size() : 0; }

bool BatchEncoder::finish(ByteBuffer& out) {
  if (!state_) return false;
  const size_t start = out.size();
  WireWriter wire(out);
  const bool written = state_->write(wire);
  if (!written) out.truncate(start);
  begin(state_->window, state_->shift);
  return written;
}

bool encode_steps(ByteBuffer& out, const uint64_t* boundaries, size_t count, uint64_t first,
                  uint32_t clock_shift, std::string_view source) {
  const size_t start = out.size();
  WireWriter wire(out);
  PackedColumn column;
  if (!column.start(count)) return false;
  uint64_t last = 0;
  for (size_t i = 0; i < count; ++i) {
    const uint64_t now = boundaries[i] >> clock_shift;
    column.put(zigzag(static_cast<int64_t>(now - last)));
    last = now;
  }
  wire.uint(1, first);
  column.write_always(wire, 2);
  wire.text(3, source);
  if (!wire.ok()) out.truncate(start);
  return wire.ok();
}

}  // namespace gpuprof
