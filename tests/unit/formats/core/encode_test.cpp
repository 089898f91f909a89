// SPDX-License-Identifier: Apache-2.0
// Records in, dump bytes, trace out: every kind, every field.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>

#include "tests/unit/support/dump_maker.h"

namespace gpuprof::test {
namespace {

constexpr uint32_t kThread = 77;

// Encodes `records` as one batch and reads them back.
struct RoundTrip {
  explicit RoundTrip(const MemoryNames& names, const std::vector<Record>& records, uint32_t shift) {
    BatchEncoder encoder(names);
    encoder.begin(3, shift);
    for (const Record& record : records) EXPECT_TRUE(encoder.add(record, kThread, "worker"));
    EXPECT_EQ(encoder.size(), records.size());
    append(bytes, ChunkKind::header, make_header(shift));
    append_events(bytes, encoder);
    append(bytes, ChunkKind::summary, make_summary(4'000'000));
    trace = load(view(bytes));
    EXPECT_TRUE(trace.problems.empty());
    EXPECT_EQ(trace.processes.size(), 1u);
  }
  const Process& process() const { return trace.processes.at(0); }
  Event event(size_t i) const { return process().events.at(i); }
  const Shape& shape(size_t i) const { return trace.shape(event(i)); }
  const EventExtra& extra(size_t i) const { return process().extra(event(i)); }
  std::string_view name(size_t i) const { return trace.text(shape(i).name); }
  std::string_view detail(size_t i) const { return trace.text(shape(i).detail); }
  const Lane& lane(size_t i) const { return process().lane(event(i)); }

  ByteBuffer bytes;
  Trace trace;
};

// Time of tick `ticks` as make_header() defines it, in whole units.
int64_t time_of(uint64_t ticks, uint32_t shift = 0) {
  const uint64_t whole = ticks >> shift << shift;
  const auto delta = static_cast<int64_t>(whole) - 2'000'000;
  return kEpochNs + (delta >= 0 ? (delta + 1) / 2 : -((-delta + 1) / 2));
}

// A record of `kind` with random bits everywhere.
Record random_record(Kind kind, std::mt19937_64& random, MemoryNames& names) {
  Record r = make_record(kind, 0, 0);
  for (uint64_t& word : r.words) word = random() >> (random() % 64);
  r.begin = 2'000'000 + random() % 2'000'000'000;
  r.end = r.begin + (random() >> (34 + random() % 30));
  r.correlation = random() % 3 ? static_cast<uint32_t>(random()) : 0;
  r.flags = static_cast<uint8_t>(random() & 15);
  const StringId name = names.intern("name" + std::to_string(random() % 5));
  switch (kind) {
    case Kind::call: r.call.name = name; break;
    case Kind::launch:
      r.launch.function = name;
      r.flags |= kFlagNamed;
      break;
    case Kind::copy: r.copy.name = name; break;
    case Kind::set: r.set.name = name; break;
    case Kind::alloc:
    case Kind::dealloc: r.memory.name = name; break;
    case Kind::sync:
    case Kind::event:
    case Kind::stream: r.sync.name = name; break;
    case Kind::nvtx_range:
    case Kind::nvtx_mark:
      r.nvtx.message = name;
      r.nvtx.domain = names.intern("domain");
      break;
    case Kind::collective: r.api = names.api("ncclAllReduce", 3); break;
    case Kind::op:
      r.framework.input_dims = names.intern("[[2,3]]");
      r.framework.input_types = names.intern("[\"float\"]");
      [[fallthrough]];
    case Kind::annotation:
    case Kind::module: r.framework.name = name; break;
    case Kind::tensor: r.tensor.released &= 1; break;
    case Kind::gpu_graph:
      r.gpu_kernel.name = name;
      r.gpu_kernel.shape = 0;
      break;
    case Kind::gpu_kernel: {
      r.gpu_kernel.name = name;
      LaunchShape shape{};
      auto* const words = reinterpret_cast<uint32_t*>(&shape);
      for (size_t i = 0; i + 1 < sizeof shape / 4; ++i) words[i] = static_cast<uint32_t>(random());
      r.gpu_kernel.shape = names.shape(shape);
      break;
    }
    default: break;
  }
  return r;
}

void expect_dim(const Dim3& got, uint32_t x, uint32_t y, uint32_t z) {
  EXPECT_EQ(got.x, x);
  EXPECT_EQ(got.y, y);
  EXPECT_EQ(got.z, z);
}

uint32_t device_or_absent(uint16_t device) { return device == 0xffff ? Shape::kAbsent : device; }

void expect_host(const Record& r, const Shape& s, const EventExtra& x, const RoundTrip& t, size_t i,
                 const MemoryNames& names) {
  switch (r.kind) {
    case Kind::call:
      EXPECT_EQ(x.address, r.call.handle);
      EXPECT_EQ(s.result, r.call.result);
      EXPECT_EQ(t.name(i), names.string(r.call.name));
      break;
    case Kind::launch:
      EXPECT_EQ(s.function, 0u);
      EXPECT_EQ(s.stream_handle, r.launch.stream);
      expect_dim(s.grid, r.launch.grid_x, r.launch.grid_y, r.launch.grid_z);
      expect_dim(s.block, r.launch.block_x, r.launch.block_y, r.launch.block_z);
      EXPECT_EQ(s.result, r.launch.result);
      EXPECT_EQ(s.dynamic_shared_bytes, r.launch.shared_bytes);
      EXPECT_EQ(t.detail(i), names.string(static_cast<StringId>(r.launch.function)));
      break;
    case Kind::copy:
      EXPECT_EQ(x.address, r.copy.destination);
      EXPECT_EQ(x.address2, r.copy.source);
      EXPECT_EQ(x.bytes, r.copy.bytes);
      EXPECT_EQ(s.stream_handle, r.copy.stream);
      EXPECT_EQ(s.direction, r.copy.direction);
      EXPECT_EQ(s.result, r.copy.result);
      EXPECT_EQ(t.name(i), names.string(r.copy.name));
      break;
    case Kind::set:
      EXPECT_EQ(x.address, r.set.address);
      EXPECT_EQ(x.bytes, r.set.bytes);
      EXPECT_EQ(s.stream_handle, r.set.stream);
      EXPECT_EQ(s.value, r.set.value);
      EXPECT_EQ(s.result, r.set.result);
      EXPECT_EQ(t.name(i), names.string(r.set.name));
      break;
    case Kind::alloc:
    case Kind::dealloc:
      EXPECT_EQ(x.address, r.memory.address);
      EXPECT_EQ(x.bytes, r.memory.bytes);
      EXPECT_EQ(s.stream_handle, r.memory.stream);
      EXPECT_EQ(s.pool, r.memory.pool);
      EXPECT_EQ(s.result, r.memory.result);
      EXPECT_EQ(t.name(i), names.string(r.memory.name));
      break;
    case Kind::sync:
    case Kind::event:
    case Kind::stream:
      EXPECT_EQ(s.stream_handle, r.sync.stream);
      EXPECT_EQ(x.address2, r.sync.event);
      EXPECT_EQ(s.result, r.sync.result);
      EXPECT_EQ(s.value, r.sync.flags);
      EXPECT_EQ(t.name(i), names.string(r.sync.name));
      break;
    case Kind::collective:
      EXPECT_EQ(s.communicator, r.collective.communicator);
      EXPECT_EQ(x.bytes, r.collective.count);
      EXPECT_EQ(s.stream_handle, r.collective.stream);
      EXPECT_EQ(x.value, r.collective.sequence);
      EXPECT_EQ(s.peer, static_cast<uint32_t>(r.collective.peer));
      EXPECT_EQ(s.rank_count, r.collective.rank_count);
      EXPECT_EQ(s.rank, r.collective.rank_count ? r.collective.rank : Shape::kAbsent);
      EXPECT_EQ(s.data_type,
                r.collective.data_type == 0xff ? Shape::kAbsent : r.collective.data_type);
      EXPECT_EQ(s.operation,
                r.collective.operation == 0xff ? Shape::kAbsent : r.collective.operation);
      EXPECT_EQ(s.result, r.collective.result);
      EXPECT_EQ(t.name(i), "ncclAllReduce");
      EXPECT_EQ(s.domain, ApiDomain::nccl);
      break;
    case Kind::nvtx_range:
    case Kind::nvtx_mark:
      EXPECT_EQ(t.name(i), names.string(r.nvtx.message));
      EXPECT_EQ(t.detail(i), names.string(r.nvtx.domain));
      EXPECT_EQ(s.category, r.nvtx.category);
      EXPECT_EQ(s.color, r.nvtx.color);
      EXPECT_EQ(x.value, r.nvtx.payload);
      EXPECT_EQ(x.address, r.nvtx.range_id);
      EXPECT_EQ(s.depth, r.nvtx.depth);
      EXPECT_EQ(s.data_type, r.nvtx.payload_type ? r.nvtx.payload_type : Shape::kAbsent);
      EXPECT_EQ(s.started_on, r.nvtx.started_on);
      EXPECT_EQ(s.ended_on, r.nvtx.ended_on);
      EXPECT_EQ(t.lane(i).type, r.nvtx.started_on ? LaneType::other : LaneType::thread);
      break;
    case Kind::op:
      EXPECT_EQ(s.value, r.framework.backward);
      EXPECT_EQ(t.trace.text(s.input_dims), "[[2,3]]");
      EXPECT_EQ(t.trace.text(s.input_types), "[\"float\"]");
      [[fallthrough]];
    case Kind::annotation:
      EXPECT_EQ(t.name(i), names.string(r.framework.name));
      EXPECT_EQ(x.address, r.framework.sequence);
      EXPECT_EQ(x.value, x.bytes);  // their number in the process
      EXPECT_GT(x.value, 0u);
      break;
    case Kind::module:
      EXPECT_EQ(t.name(i), names.string(r.framework.name));
      EXPECT_EQ(x.address2, r.framework.sequence);  // the number of the object
      EXPECT_GT(x.value, 0u);                       // of the call in the process
      break;
    case Kind::tensor:
      EXPECT_EQ(x.address, r.tensor.address);
      EXPECT_EQ(s.value, r.tensor.released);
      EXPECT_EQ(x.bytes, r.tensor.released ? 0 - r.tensor.bytes : r.tensor.bytes);
      EXPECT_EQ(x.address2, r.tensor.allocated);
      EXPECT_EQ(x.value, r.tensor.kept);
      EXPECT_EQ(s.device_type, r.tensor.device_type);
      EXPECT_EQ(s.device_id, device_or_absent(r.tensor.device));
      break;
    default: FAIL() << "kind " << static_cast<int>(r.kind);
  }
}

void expect_stream_lane(const Lane& lane, uint32_t device, uint32_t context, uint32_t stream) {
  EXPECT_EQ(lane.type, LaneType::stream);
  EXPECT_EQ(lane.device, device);
  EXPECT_EQ(lane.context, context);
  EXPECT_EQ(lane.stream, stream);
}

void expect_gpu(const Record& r, const Shape& s, const EventExtra& x, const RoundTrip& t, size_t i,
                const MemoryNames& names, uint32_t shift) {
  switch (r.kind) {
    case Kind::gpu_kernel: {
      const LaunchShape& l = *names.launch_shape(r.gpu_kernel.shape);
      EXPECT_EQ(t.name(i), names.string(r.gpu_kernel.name));
      expect_dim(s.grid, l.grid.x, l.grid.y, l.grid.z);
      expect_dim(s.block, l.block.x, l.block.y, l.block.z);
      EXPECT_EQ(s.static_shared_bytes, l.static_shared_bytes);
      EXPECT_EQ(s.dynamic_shared_bytes, l.dynamic_shared_bytes);
      EXPECT_EQ(s.registers_per_thread, l.registers_per_thread);
      EXPECT_EQ(s.local_bytes_per_thread, l.local_bytes_per_thread);
      EXPECT_EQ(s.cluster_x, l.cluster_x);
      EXPECT_EQ(s.cluster_y, l.cluster_y);
      EXPECT_EQ(s.cluster_z, l.cluster_z);
      expect_stream_lane(t.lane(i), r.gpu_kernel.device, r.gpu_kernel.context, r.gpu_kernel.stream);
      EXPECT_EQ(x.value, r.gpu_kernel.graph_node);
      EXPECT_EQ(s.graph, r.gpu_kernel.graph);
      EXPECT_EQ(s.channel, r.gpu_kernel.channel);
      EXPECT_EQ(s.channel_type, r.gpu_kernel.channel_type);
      break;
    }
    case Kind::gpu_graph:
      EXPECT_EQ(t.name(i), names.string(r.gpu_kernel.name));
      expect_stream_lane(t.lane(i), r.gpu_kernel.device, r.gpu_kernel.context, r.gpu_kernel.stream);
      EXPECT_EQ(x.value, r.gpu_kernel.graph_node);
      EXPECT_EQ(s.graph, r.gpu_kernel.graph);
      break;
    case Kind::gpu_copy:
    case Kind::gpu_set:
      EXPECT_EQ(x.bytes, r.gpu_copy.bytes);
      expect_stream_lane(t.lane(i), r.gpu_copy.device, r.gpu_copy.context, r.gpu_copy.stream);
      EXPECT_EQ(s.direction, r.gpu_copy.direction);
      EXPECT_EQ(s.source_kind, r.gpu_copy.source_kind);
      EXPECT_EQ(s.destination_kind, r.gpu_copy.destination_kind);
      EXPECT_EQ(s.cupti_flags, r.gpu_copy.flags);
      EXPECT_EQ(s.value, r.gpu_copy.value);
      EXPECT_EQ(x.value, r.gpu_copy.graph_node);
      EXPECT_EQ(s.graph, r.gpu_copy.graph);
      EXPECT_EQ(s.peer_source, device_or_absent(r.gpu_copy.peer_source));
      EXPECT_EQ(s.peer_destination, device_or_absent(r.gpu_copy.peer_destination));
      break;
    case Kind::gpu_sync:
    case Kind::gpu_event:
      EXPECT_EQ(s.cupti_type, r.gpu_sync.type);
      EXPECT_EQ(s.stream, r.gpu_sync.stream);
      EXPECT_EQ(t.lane(i).type, LaneType::device);
      EXPECT_EQ(t.lane(i).device, r.gpu_sync.device);
      EXPECT_EQ(s.context, r.gpu_sync.context);
      EXPECT_EQ(x.value, r.gpu_sync.event_id);
      EXPECT_EQ(x.address, r.gpu_sync.event_sync_id);
      if (r.gpu_sync.device_time >> shift) {
        EXPECT_EQ(static_cast<int64_t>(x.address2), time_of(r.gpu_sync.device_time, shift));
      }
      break;
    case Kind::gpu_memory:
      EXPECT_EQ(x.address, r.gpu_memory.address);
      EXPECT_EQ(x.bytes, r.gpu_memory.bytes);
      EXPECT_EQ(s.cupti_type, r.gpu_memory.operation);
      EXPECT_EQ(s.memory_kind, r.gpu_memory.memory_kind);
      EXPECT_EQ(t.lane(i).type, LaneType::device);
      EXPECT_EQ(t.lane(i).device, r.gpu_memory.device);
      EXPECT_EQ(s.context, r.gpu_memory.context);
      EXPECT_EQ(s.stream, r.gpu_memory.stream);
      EXPECT_EQ(s.pool, r.gpu_memory.pool);
      break;
    case Kind::overhead:
      EXPECT_EQ(s.cupti_type, r.overhead.type);
      EXPECT_EQ(s.object_kind, r.overhead.object_kind);
      EXPECT_EQ(x.address, r.overhead.object);
      EXPECT_EQ(t.lane(i).type, LaneType::overhead);
      break;
    default: FAIL() << "kind " << static_cast<int>(r.kind);
  }
}

// All that are in dumps, but for those that are no events there: python_stacks_test and heap_test
// have these.
constexpr bool is_event(Kind kind) { return kind != Kind::sample && kind != Kind::heap; }
constexpr auto kAllKinds = [] {
#define GPUPROF_RECORDED(name, ...) Kind::name,
#define GPUPROF_NOT(...)
  constexpr Kind kRecorded[] = {GPUPROF_KINDS(GPUPROF_RECORDED, GPUPROF_NOT, GPUPROF_NOT)};
#undef GPUPROF_NOT
#undef GPUPROF_RECORDED
  std::array<Kind, std::count_if(std::begin(kRecorded), std::end(kRecorded), is_event)> out{};
  std::copy_if(std::begin(kRecorded), std::end(kRecorded), out.begin(), is_event);
  return out;
}();

class EveryKind : public testing::TestWithParam<Kind> {};

TEST_P(EveryKind, ComesBackAsItWentIn) {
  const Kind kind = GetParam();
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    std::mt19937_64 random(seed * 1000 + static_cast<uint64_t>(kind));
    MemoryNames names;
    const auto shift = static_cast<uint32_t>(random() % 4);
    Record r = random_record(kind, random, names);
    if (kind == Kind::gpu_sync || kind == Kind::gpu_event) {
      r.gpu_sync.device_time = seed % 4 ? 2'000'000 + random() % 1'000'000'000 : 0;
    }
    const RoundTrip trip(names, {r}, shift);
    ASSERT_EQ(trip.process().events.size(), 1u);
    const Event& event = trip.event(0);
    EXPECT_EQ(event.begin, time_of(r.begin, shift));
    EXPECT_EQ(event.end, time_of(r.end, shift));
    EXPECT_EQ(event.correlation, r.correlation);
    EXPECT_EQ(trip.shape(0).kind, kind);
    EXPECT_EQ(trip.shape(0).flags, r.flags & ~kFlagNamed);
    if (is_gpu_kind(kind)) {
      expect_gpu(r, trip.shape(0), trip.extra(0), trip, 0, names, shift);
    } else {
      const bool ranges = kind == Kind::nvtx_range || kind == Kind::nvtx_mark;
      if (!ranges || r.nvtx.started_on == 0) {
        EXPECT_EQ(trip.lane(0).type, LaneType::thread);
        EXPECT_EQ(trip.lane(0).thread_id, kThread);
        EXPECT_EQ(trip.lane(0).thread_name, "worker");
      }
      expect_host(r, trip.shape(0), trip.extra(0), trip, 0, names);
    }
    if (testing::Test::HasFailure()) FAIL() << "seed " << seed;
  }
}

INSTANTIATE_TEST_SUITE_P(Encode, EveryKind, testing::ValuesIn(kAllKinds),
                         [](const auto& info) { return std::string(kind_name(info.param)); });

// Many records of all kinds on few lanes, in a shuffled order: found again by an id of their own.
TEST(Encode, MixedRecordsKeepTheirColumnsApart) {
  std::mt19937_64 random(7);
  MemoryNames names;
  std::vector<Record> records;
  for (uint32_t i = 0; i < 3000; ++i) {
    const Kind kind = kAllKinds[random() % std::size(kAllKinds)];
    Record r = random_record(kind, random, names);
    r.correlation = 1 + static_cast<uint32_t>((i * 2654435761u) >> 1);
    if (kind == Kind::gpu_kernel)
      r.gpu_kernel.stream %= 3, r.gpu_kernel.device = r.gpu_kernel.context = 0;
    if (kind == Kind::gpu_copy || kind == Kind::gpu_set) {
      r.gpu_copy.stream %= 3, r.gpu_copy.device = r.gpu_copy.context = 0;
    }
    if (kind == Kind::gpu_sync || kind == Kind::gpu_event) {
      r.gpu_sync.device %= 2;
      r.gpu_sync.device_time = 0;
    }
    if (kind == Kind::gpu_memory) r.gpu_memory.device %= 2;
    records.push_back(r);
  }
  const RoundTrip trip(names, records, 1);
  ASSERT_EQ(trip.process().events.size(), records.size());
  std::map<uint32_t, size_t> by_correlation;
  for (size_t i = 0; i < records.size(); ++i) by_correlation[trip.event(i).correlation] = i;
  for (const Record& r : records) {
    ASSERT_TRUE(by_correlation.count(r.correlation));
    const size_t i = by_correlation[r.correlation];
    ASSERT_EQ(trip.shape(i).kind, r.kind);
    EXPECT_EQ(trip.event(i).begin, time_of(r.begin, 1));
    EXPECT_EQ(trip.event(i).end, time_of(r.end, 1));
    if (is_gpu_kind(r.kind)) {
      expect_gpu(r, trip.shape(i), trip.extra(i), trip, i, names, 1);
    } else {
      expect_host(r, trip.shape(i), trip.extra(i), trip, i, names);
    }
    if (testing::Test::HasFailure()) FAIL() << kind_name(r.kind);
  }
  for (const Lane& lane : trip.process().lanes) {
    const auto events = trip.process().lane_events(lane);
    for (size_t i = 1; i < events.size(); ++i) EXPECT_LE(events[i - 1].begin, events[i].begin);
  }
}

TEST(Encode, OuterCallComesBeforeInnerOfTheSameBegin) {
  MemoryNames names;
  Record inner = make_record(Kind::call, 3'000'000, 3'000'100, names.api("inner"));
  Record outer = make_record(Kind::call, 3'000'000, 3'000'900, names.api("outer"));
  const RoundTrip trip(names, {inner, outer}, 0);
  EXPECT_EQ(trip.name(0), "outer");
  EXPECT_EQ(trip.name(1), "inner");
}

// As FORMAT.md has it, on the bytes: the reader would put them in order, too.
TEST(Encode, LanesAreInOrderOfBegin) {
  MemoryNames names;
  BatchEncoder encoder(names);
  encoder.begin(0, 0);
  std::mt19937_64 random(9);
  for (int i = 0; i < 1000; ++i) {
    const uint64_t begin = 3'000'000 + random() % 500;
    ASSERT_TRUE(encoder.add(make_record(Kind::call, begin, begin + random() % 500), 1, "main"));
  }
  ByteBuffer body;
  ASSERT_TRUE(encoder.finish(body));
  dump::Events events;
  ASSERT_TRUE(events.ParseFromArray(body.data(), static_cast<int>(body.size())));
  ASSERT_EQ(events.lane_size(), 1);
  const dump::Lane& lane = events.lane(0);
  ASSERT_EQ(lane.begin_size(), 1000);
  uint64_t last_begin = 0, last_end = events.base_time();
  for (int i = 0; i < 1000; ++i) {
    const uint64_t begin = last_end + static_cast<uint64_t>(lane.begin(i));
    const uint64_t end = begin + lane.duration(i);
    EXPECT_TRUE(begin > last_begin || (begin == last_begin && end <= last_end)) << i;
    last_begin = begin, last_end = end;
  }
}

TEST(Encode, LaunchNameComesFromTheFunctionWhereTheRecordHasNone) {
  MemoryNames names;
  Record r = make_record(Kind::launch, 3'000'000, 3'000'100, names.api("cudaLaunchKernel"));
  r.launch.function = 0xabcd;
  BatchEncoder encoder(names);
  encoder.begin(0, 0);
  ASSERT_TRUE(encoder.add(r, 1, "t"));
  names.name_function(0xabcd, "_Z4gemmPf");  // known only after the record
  ByteBuffer bytes;
  append(bytes, ChunkKind::header, make_header());
  append_events(bytes, encoder);
  const Trace trace = load(view(bytes));
  const Shape& shape = trace.shape(trace.processes.at(0).events.at(0));
  EXPECT_EQ(trace.text(shape.detail), "_Z4gemmPf");
  EXPECT_EQ(trace.text(shape.name), "cudaLaunchKernel");
}

TEST(Encode, ReversedTimesAndUnknownKindsDoNoHarm) {
  MemoryNames names;
  const Record reversed = make_record(Kind::call, 3'000'000, 2'000'000);
  Record unknown = make_record(static_cast<Kind>(200), 1, 2);
  BatchEncoder encoder(names);
  encoder.begin(0, 0);
  EXPECT_TRUE(encoder.add(reversed, 1, {}));
  EXPECT_TRUE(encoder.add(unknown, 1, {}));
  EXPECT_EQ(encoder.size(), 1u);
  ByteBuffer bytes;
  append(bytes, ChunkKind::header, make_header());
  append_events(bytes, encoder);
  const Trace trace = load(view(bytes));
  ASSERT_EQ(trace.processes.at(0).events.size(), 1u);
  EXPECT_EQ(trace.processes[0].events[0].begin, trace.processes[0].events[0].end);
}

TEST(Encode, AnEncoderIsReusedForManyBatches) {
  MemoryNames names;
  BatchEncoder encoder(names);
  ByteBuffer bytes;
  append(bytes, ChunkKind::header, make_header());
  for (uint64_t batch = 0; batch < 3; ++batch) {
    encoder.begin(0, 0);
    for (uint64_t i = 0; i < 10; ++i) {
      const uint64_t at = 3'000'000 + batch * 1000 + i * 10;
      ASSERT_TRUE(encoder.add(make_record(Kind::call, at, at + 5, names.api("f")), 1, "t"));
    }
    ASSERT_TRUE(encoder.add_ring_chunk(batch + 1, kRecordsPerChunk));
    append_events(bytes, encoder);
    EXPECT_EQ(encoder.size(), 0u);
  }
  const Trace trace = load(view(bytes));
  EXPECT_EQ(trace.processes.at(0).events.size(), 30u);
  EXPECT_EQ(trace.shapes.size(), 1u);
}

// Half launches, half kernels: 300 kernels with their usual durations in a fixed order per step;
// call durations log-normal around 5 us, gaps and kernels jittering.
std::vector<Record> training_stream(size_t count, MemoryNames& names) {
  std::mt19937_64 random(42);
  std::lognormal_distribution<double> call_us(std::log(5.0), 0.5), gap_us(std::log(3.0), 0.7);
  std::normal_distribution<double> jitter(1.0, 0.05);
  struct Kernel {
    StringId name;
    uint32_t shape;
    double us;
  };
  std::vector<Kernel> kernels;
  for (uint32_t i = 0; i < 300; ++i) {
    LaunchShape shape{
        {1 + i * 7 % 2000, 1, 1}, {256, 1, 1}, 0, i % 5 * 1024, 32 + i % 64, 1, 1, 1, 0, 0};
    const std::string name =
        "_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_" + std::to_string(i);
    names.name_function(0x400000 + i * 64, name);
    kernels.push_back({names.intern(name), names.shape(shape), 10 + 190.0 * (i * 37 % 300) / 300});
  }
  const ApiId launch = names.api("cudaLaunchKernel");
  std::vector<Record> records;
  double now = 2'000'000, free_at = 0;
  for (uint32_t i = 0; records.size() < count; ++i) {
    const Kernel& kernel = kernels[i % kernels.size()];
    now += gap_us(random) * kTicksPerUs;
    Record call = make_record(Kind::launch, static_cast<uint64_t>(now), 0, launch);
    now += call_us(random) * kTicksPerUs;
    call.end = static_cast<uint64_t>(now);
    call.correlation = 100 + i;
    call.launch.function = 0x400000 + i % kernels.size() * 64;
    call.launch.grid_x = kernel.shape;
    call.launch.block_x = 256;
    records.push_back(call);
    const double begin = std::max(now, free_at) + std::abs(jitter(random)) * kTicksPerUs;
    free_at = begin + kernel.us * jitter(random) * kTicksPerUs;
    Record work =
        make_record(Kind::gpu_kernel, static_cast<uint64_t>(begin), static_cast<uint64_t>(free_at));
    work.correlation = call.correlation;
    work.gpu_kernel.name = kernel.name;
    work.gpu_kernel.shape = kernel.shape;
    work.gpu_kernel.stream = 7;
    records.push_back(work);
  }
  return records;
}

TEST(Encode, TakesAtMostFiveBytesPerEvent) {
  constexpr size_t kEvents = 200'000, kBatch = 65'536;
  MemoryNames names;
  const std::vector<Record> records = training_stream(kEvents, names);
  BatchEncoder encoder(names);
  ByteBuffer file;
  double encode_seconds = 0, chunk_seconds = 0;
  using Clock = std::chrono::steady_clock;
  for (int round = 0; round < 2; ++round) {  // the second with warm memory is the one that counts
    file.clear();
    encode_seconds = chunk_seconds = 0;
    for (size_t first = 0; first < records.size(); first += kBatch) {
      ByteBuffer body;
      ASSERT_TRUE(body.reserve(4 << 20));
      const auto start = Clock::now();
      encoder.begin(0, 1);
      for (size_t i = first; i < std::min(records.size(), first + kBatch); ++i) {
        ASSERT_TRUE(encoder.add(records[i], 1, "main"));
      }
      ASSERT_TRUE(encoder.finish(body));
      const auto encoded = Clock::now();
      ASSERT_TRUE(append_chunk(file, ChunkKind::events, body.data(), body.size(), 3));
      encode_seconds += std::chrono::duration<double>(encoded - start).count();
      chunk_seconds += std::chrono::duration<double>(Clock::now() - encoded).count();
    }
  }
  const double bytes_per_event = static_cast<double>(file.size()) / kEvents;
  std::printf("%.2f bytes/event, encode %.1f ns/event, compress and check %.1f ns/event\n",
              bytes_per_event, encode_seconds / kEvents * 1e9, chunk_seconds / kEvents * 1e9);
  EXPECT_LE(bytes_per_event, 5.0);
}

}  // namespace
}  // namespace gpuprof::test
