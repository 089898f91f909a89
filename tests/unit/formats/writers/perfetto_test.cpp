// SPDX-License-Identifier: Apache-2.0
// The Perfetto file, decoded by protoc's classes and held to the format's rules.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <set>

#include "formats/io/file_bytes.h"
#include "formats/io/utf8.h"
#include "formats/trace/names.h"
#include "formats/views/gpu_curves.h"
#include "formats/views/left_out_text.h"
#include "formats/views/step_subset.h"
#include "formats/writers/exporter.h"
#include "perfetto_test.pb.h"
#include "tests/unit/support/hostile_trace.h"
#include "tests/unit/support/trace_maker.h"

namespace gpuprof::test {
namespace {

namespace pf = perfetto_test;

struct DecodedSlice {
  std::string name, category;
  uint64_t track = 0;
  int64_t begin = 0, end = -1;
  std::vector<uint64_t> flows, terminating;
  std::map<std::string, std::string> args;
};

// Reads the file as trace_processor would: packet by packet, state by state.
class Decoder {
 public:
  explicit Decoder(const Trace& trace) {
    const std::string path = std::filesystem::temp_directory_path() /
                             ("gpuprof_perfetto_test_" + std::to_string(::getpid()) + ".pftrace");
    std::string error, bytes;
    EXPECT_TRUE(find_exporter("perfetto")->write(trace, path, {}, error)) << error;
    EXPECT_TRUE(read_file(path, bytes, error)) << error;
    std::filesystem::remove(path);
    pf::Trace file;
    EXPECT_TRUE(file.ParseFromString(bytes));
    for (const pf::TracePacket& packet : file.packet()) {
      EXPECT_TRUE(packet.unknown_fields().empty());
      take(packet);
    }
    for (const auto& [track, open] : open_)
      EXPECT_TRUE(open.empty()) << "unfinished slice on " << track;
  }

  std::vector<const DecodedSlice*> named(std::string_view name) const {
    std::vector<const DecodedSlice*> found;
    for (const DecodedSlice& slice : slices) {
      if (slice.name == name) found.push_back(&slice);
    }
    return found;
  }
  std::string track_name(uint64_t uuid) const { return tracks.at(uuid).name(); }

  std::map<uint64_t, pf::TrackDescriptor> tracks;
  std::vector<DecodedSlice> slices;
  std::vector<DecodedSlice> instants;
  std::map<uint64_t, std::vector<int64_t>> counters;
  struct Stage {
    std::string name, queue;
    int64_t begin, duration;
    int32_t gpu, pid;
  };
  std::vector<Stage> stages;
  std::vector<std::vector<std::string>> samples;  // outermost first
  bool snapshot = false;

 private:
  using Pool = std::map<uint64_t, std::string>;

  static void define(Pool& pool,
                     const google::protobuf::RepeatedPtrField<pf::InternedString>& entries) {
    for (const pf::InternedString& entry : entries) {
      EXPECT_GT(entry.iid(), 0u);
      EXPECT_TRUE(pool.emplace(entry.iid(), entry.name()).second) << "defined twice";
      EXPECT_TRUE(is_valid_utf8(entry.name()));
    }
  }
  static std::string look_up(const Pool& pool, uint64_t iid) {
    EXPECT_TRUE(pool.contains(iid)) << "used before it is defined: " << iid;
    return pool.contains(iid) ? pool.at(iid) : std::string();
  }

  static constexpr uint32_t kRealtime = 1, kWallClock = 6;

  // Unix time.
  int64_t time_of(const pf::TracePacket& packet) const {
    const uint32_t clock = packet.has_timestamp_clock_id()            ? packet.timestamp_clock_id()
                           : packet.trusted_packet_sequence_id() == 1 ? clock_
                                                                      : kWallClock;
    EXPECT_TRUE(clocks_.contains(clock)) << "no snapshot has clock " << clock;
    EXPECT_LT(packet.timestamp(), uint64_t{1} << 62) << "no clock runs backwards";
    if (!clocks_.contains(clock)) return 0;
    return static_cast<int64_t>(packet.timestamp() - clocks_.at(clock) + clocks_.at(kWallClock));
  }

  void take(const pf::TracePacket& packet) {
    if (packet.has_clock_snapshot()) {
      snapshot = true;
      EXPECT_EQ(packet.trusted_packet_sequence_id(), 1u);
      for (const pf::Clock& clock : packet.clock_snapshot().clocks()) {
        EXPECT_TRUE(clocks_.emplace(clock.clock_id(), clock.timestamp()).second);
      }
      EXPECT_EQ(clocks_.at(kWallClock), clocks_.at(kRealtime));
    }
    if (packet.has_trace_packet_defaults()) {
      EXPECT_EQ(packet.sequence_flags() & 1, 1u) << "they hold until the state is cleared";
      clock_ = packet.trace_packet_defaults().timestamp_clock_id();
    }
    if (packet.has_interned_data()) {
      define(categories_, packet.interned_data().event_categories());
      define(names_, packet.interned_data().event_names());
      define(keys_, packet.interned_data().debug_annotation_names());
      define(specifications_, packet.interned_data().gpu_specifications());
      for (const pf::GraphicsContext& context : packet.interned_data().graphics_contexts()) {
        EXPECT_EQ(context.api(), 4u) << "CUDA";
        contexts_[context.iid()] = context.pid();
      }
      define(values_, packet.interned_data().debug_annotation_string_values());
      define_stacks(packet.interned_data());
    }
    if (packet.has_track_descriptor()) {
      const pf::TrackDescriptor& track = packet.track_descriptor();
      EXPECT_TRUE(tracks.emplace(track.uuid(), track).second) << "declared twice: " << track.name();
      EXPECT_TRUE(!track.has_parent_uuid() || tracks.contains(track.parent_uuid()));
      EXPECT_TRUE(!track.has_parent_uuid() || (!track.has_thread() && !track.has_process()));
    }
    cleared_ = cleared_ || (packet.sequence_flags() & 1);
    if (packet.has_perf_sample()) {
      const uint64_t stack = packet.perf_sample().callstack_iid();
      EXPECT_TRUE(stacks_.contains(stack)) << "used before it is defined";
      samples.push_back(stacks_[stack]);
    }
    if (packet.has_gpu_render_stage_event()) take(packet.gpu_render_stage_event(), packet);
    if (!packet.has_track_event()) return;
    EXPECT_TRUE(cleared_) << "the sequence must begin with its state cleared";
    EXPECT_EQ(packet.trusted_packet_sequence_id(), 1u);
    EXPECT_EQ(packet.sequence_flags(), 2u);
    const pf::TrackEvent& event = packet.track_event();
    EXPECT_TRUE(tracks.contains(event.track_uuid()));
    const int64_t time = time_of(packet);
    EXPECT_GE(time, last_time_[event.track_uuid()])
        << "order on " << track_name(event.track_uuid());
    if (event.type() != pf::TrackEvent::INSTANT) last_time_[event.track_uuid()] = time;
    switch (event.type()) {
      case pf::TrackEvent::SLICE_BEGIN:
        open_[event.track_uuid()].push_back(slices.size());
        slices.push_back(contents(event, time));
        break;
      case pf::TrackEvent::SLICE_END: {
        auto& open = open_[event.track_uuid()];
        ASSERT_FALSE(open.empty()) << "an end without a begin";
        slices[open.back()].end = time;
        EXPECT_FALSE(event.has_name_iid());
        open.pop_back();
        break;
      }
      case pf::TrackEvent::INSTANT: instants.push_back(contents(event, time)); break;
      case pf::TrackEvent::COUNTER:
        counters[event.track_uuid()].push_back(event.counter_value());
        break;
      default: ADD_FAILURE() << "event type " << event.type();
    }
  }

  void define_stacks(const pf::InternedData& data) {
    define(functions_, data.function_names());
    define(build_ids_, data.build_ids());
    define(paths_, data.mapping_paths());
    define(files_, data.source_paths());
    for (const pf::Mapping& mapping : data.mappings()) {
      std::string text = "/" + look_up(paths_, mapping.path_string_ids(0));
      if (mapping.build_id()) text += "(" + look_up(build_ids_, mapping.build_id()) + ")";
      EXPECT_EQ(mapping.start() < mapping.end(), text != "/no known file") << text;
      EXPECT_TRUE(mappings_.emplace(mapping.iid(), text).second) << "defined twice";
    }
    for (const pf::Frame& frame : data.frames()) {
      std::string text = look_up(functions_, frame.function_name_id());
      if (frame.source_path_iid()) {
        text +=
            fmt::format(" {}:{}", look_up(files_, frame.source_path_iid()), frame.line_number());
      }
      text += fmt::format(" {}+{:#x}", look_up(mappings_, frame.mapping_id()), frame.rel_pc());
      EXPECT_TRUE(frames_.emplace(frame.iid(), text).second) << "defined twice";
    }
    for (const pf::Callstack& stack : data.callstacks()) {
      std::vector<std::string>& lines = stacks_[stack.iid()];
      EXPECT_TRUE(lines.empty()) << "defined twice";
      EXPECT_GT(stack.frame_ids_size(), 0) << "an import error";
      for (const uint64_t frame : stack.frame_ids()) lines.push_back(look_up(frames_, frame));
    }
  }

  void take(const pf::GpuRenderStageEvent& event, const pf::TracePacket& packet) {
    EXPECT_EQ(packet.sequence_flags(), 2u);
    EXPECT_TRUE(stage_ids_.insert(event.event_id()).second);
    EXPECT_TRUE(contexts_.contains(event.context()));
    stages.push_back({look_up(specifications_, event.stage_iid()),
                      look_up(specifications_, event.hw_queue_iid()), time_of(packet),
                      static_cast<int64_t>(event.duration()), event.gpu_id(),
                      contexts_[event.context()]});
  }

  DecodedSlice contents(const pf::TrackEvent& event, int64_t time) {
    DecodedSlice slice;
    slice.name = look_up(names_, event.name_iid());
    EXPECT_EQ(event.category_iids_size(), 1);
    slice.category = look_up(categories_, event.category_iids(0));
    slice.track = event.track_uuid();
    slice.begin = time;
    slice.flows.assign(event.flow_ids().begin(), event.flow_ids().end());
    slice.terminating.assign(event.terminating_flow_ids().begin(),
                             event.terminating_flow_ids().end());
    EXPECT_FALSE(event.has_callstack_iid()) << "an import error before version 53";
    for (const pf::DebugAnnotation& a : event.debug_annotations()) {
      std::string& value = slice.args[look_up(keys_, a.name_iid())];
      if (a.has_string_value_iid()) value = look_up(values_, a.string_value_iid());
      if (a.has_uint_value()) value = std::to_string(a.uint_value());
      if (a.has_int_value()) value = std::to_string(a.int_value());
      if (a.has_pointer_value()) value = "0x" + std::to_string(a.pointer_value());
    }
    return slice;
  }

  Pool specifications_;
  std::map<uint64_t, int32_t> contexts_;
  std::set<uint64_t> stage_ids_;
  Pool categories_, names_, keys_, values_;
  Pool functions_, build_ids_, paths_, files_, mappings_, frames_;
  std::map<uint64_t, std::vector<std::string>> stacks_;
  std::map<uint64_t, std::vector<size_t>> open_;
  std::map<uint64_t, int64_t> last_time_;
  bool cleared_ = false;
  std::map<uint32_t, uint64_t> clocks_;  // their times at the snapshot
  uint32_t clock_ = kWallClock;          // of the sequence
};

int64_t time_at(int64_t us) { return kEpochNs + 4'000'000 + us * 1000; }

TEST(Perfetto, TracksAndSlices) {
  const Trace trace = busy_trace(1);
  ASSERT_TRUE(trace.problems.empty());
  const Decoder decoded(trace);
  EXPECT_TRUE(decoded.snapshot);
  const auto gemm = decoded.named("gemm(float*)");
  ASSERT_EQ(gemm.size(), 1u);
  EXPECT_EQ(gemm[0]->begin, time_at(30));
  EXPECT_EQ(gemm[0]->end, time_at(130));
  EXPECT_EQ(gemm[0]->category, "kernel");
  EXPECT_EQ(gemm[0]->args.at("correlation"), "1");
  EXPECT_EQ(gemm[0]->args.at("grid"), "[64, 1, 1]");
  EXPECT_EQ(gemm[0]->args.at("block"), "[128, 1, 1]");
  EXPECT_EQ(gemm[0]->args.at("registers per thread"), "40");
  const auto& stream = decoded.tracks.at(gemm[0]->track);
  EXPECT_EQ(stream.name(), "stream 7");
  const auto& gpu = decoded.tracks.at(stream.parent_uuid());
  EXPECT_EQ(gpu.name(), "GPU 0 Test GPU (rank 0)");
  EXPECT_FALSE(gpu.has_parent_uuid());
  const auto relu = decoded.named("relu(float*)");
  ASSERT_EQ(relu.size(), 1u);
  EXPECT_EQ(decoded.track_name(relu[0]->track), "stream 7 (2)")
      << "overlapping kernels lie side by side";
  EXPECT_EQ(decoded.named("lost()").size(), 0u) << "work without times cannot be drawn";
  const auto copy = decoded.named("Memcpy HtoD (Pinned -> Device)");
  ASSERT_EQ(copy.size(), 1u);
  EXPECT_EQ(copy[0]->args.at("bytes"), std::to_string(1 << 20));
  EXPECT_EQ(decoded.named("Memset (Device)").size(), 1u);
}

TEST(Perfetto, CallStacks) {
  Trace trace = load(stacks_dump());
  StackTable& stacks = trace.processes.at(0).stacks;
  stacks.set_frames(0x1010, {{"inner()", "a.cpp", 7, true}, {"outer()", "a.cpp", 9, false}});
  stacks.set_frames(0x1030, {{"main", "", 0, false}});
  const Decoder decoded(trace);
  const auto launches = decoded.named("cudaLaunchKernel");
  ASSERT_EQ(launches.size(), 5u);
  EXPECT_EQ(launches[0]->args.at("stack"),
            "inner() (a.cpp:7)\nouter() (a.cpp:9)\nlibx.so+0x60\nmain\n0x9000");
  EXPECT_EQ(launches[1]->args.at("stack"), "train+0x58\nmain");
  EXPECT_EQ(launches[2]->args.at("stack"), launches[0]->args.at("stack"));
  EXPECT_FALSE(launches[3]->args.contains("stack"));
}

// Perfetto drops a stack whole if one frame has no mapping, or if it has no frame.
TEST(Perfetto, SamplesWithFramesInNoFile) {
  Trace trace = load(stacks_dump());
  Process& process = trace.processes.at(0);
  process.stacks.set_frames(0x1030, {{"main", "", 0, false}});
  for (const uint32_t stack : {1, 2, 0}) {
    process.samples.push_back({process.window_begin, 0, static_cast<StackIndex>(stack)});
  }
  const Decoder decoded(trace);
  using Stack = std::vector<std::string>;
  ASSERT_EQ(decoded.samples.size(), 3u);
  EXPECT_EQ(decoded.samples[0],
            (Stack{"0x9000 /no known file+0x9000", "main /opt/train(12ab)+0x70",
                   "libx.so+0x60 /usr/lib/libx.so+0x60", "train+0x50 /opt/train(12ab)+0x50"}));
  EXPECT_EQ(decoded.samples[1],
            (Stack{"main /opt/train(12ab)+0x70", "train+0x58 /opt/train(12ab)+0x58"}));
  EXPECT_EQ(decoded.samples[2], (Stack{"call stack not recorded /no known file+0x0"}));
}

TEST(Perfetto, StepsRangesSyncsAndMemory) {
  const Decoder decoded(busy_trace(1));
  for (const int step : {12, 13}) {
    const auto found = decoded.named("step " + std::to_string(step));
    ASSERT_EQ(found.size(), 1u);
    EXPECT_EQ(found[0]->begin, time_at((step - 12) * 500));
    EXPECT_EQ(found[0]->end, time_at((step - 11) * 500));
    EXPECT_EQ(decoded.track_name(found[0]->track), "steps");
  }
  const auto forward = decoded.named("forward");
  ASSERT_EQ(forward.size(), 1u);
  EXPECT_EQ(forward[0]->category, "user_annotation");
  EXPECT_EQ(decoded.tracks.at(forward[0]->track).thread().tid(), 4242);
  const auto async = decoded.named("async b");
  ASSERT_EQ(async.size(), 1u);
  EXPECT_NE(async[0]->track, forward[0]->track);
  EXPECT_NE(async[0]->track, decoded.named("async a")[0]->track);
  EXPECT_EQ(decoded.named("Context Sync").size(), 1u);
  EXPECT_EQ(decoded.track_name(decoded.named("Context Sync")[0]->track), "synchronization");
  EXPECT_EQ(decoded.named("Buffer Flush").size(), 1u);
  ASSERT_EQ(decoded.instants.size(), 1u);
  EXPECT_EQ(decoded.instants[0].name, "mark\t\"x\"");
  const auto memory = std::find_if(
      decoded.counters.begin(), decoded.counters.end(),
      [&](const auto& entry) { return decoded.tracks.at(entry.first).counter().unit() == 3; });
  ASSERT_NE(memory, decoded.counters.end());
  EXPECT_EQ(memory->second, (std::vector<int64_t>{4096, 0}));
  std::set<std::string> names;
  for (const auto& [track, values] : decoded.counters) names.insert(decoded.track_name(track));
  EXPECT_EQ(names,
            (std::set<std::string>{"GPU memory allocated in the window", "GPU busy",
                                   "copy bandwidth", "queue of stream 7", "queue of stream 20"}));
}

// NVML counts all processes on the GPU.
TEST(Perfetto, SampledCountersAreApartFromCurvesOfTheirName) {
  Trace trace = busy_trace(1);
  Process& process = trace.processes.at(0);
  const int64_t time = process.window_begin;
  process.counters.push_back({0, Counter::gpu_busy, {{time + 10, 55}, {time + 20, 66}}});
  process.counters.push_back({0, Counter::sm_clock, {{time + 10, 1400}}});
  const Decoder decoded(trace);
  std::map<std::string, std::vector<int64_t>> sampled;
  size_t curves = 0;
  for (const auto& [track, values] : decoded.counters) {
    const std::string name = decoded.track_name(track);
    curves += name == "GPU busy";
    if (name == "GPU busy (NVML)" || name == "SM clock") sampled[name] = values;
  }
  EXPECT_EQ(curves, 1u);
  EXPECT_EQ(sampled, (std::map<std::string, std::vector<int64_t>>{{"GPU busy (NVML)", {55, 66}},
                                                                  {"SM clock", {1400}}}));
}

TEST(Perfetto, CountersOfOutsideTracesHaveTheUnitOfTheirName) {
  constexpr int kBytes = 3;
  Trace trace = busy_trace(1);
  Process& process = trace.processes.at(0);
  for (const char* name : {"SM Active (%)", "worker CPU %", "queue", "held bytes"}) {
    process.named_counters.push_back(
        {name, "", "", Shape::kAbsent, {{process.window_begin + 10, 5}}});
  }
  const Decoder decoded(trace);
  std::map<std::string, std::pair<int, std::string>> units;
  for (const auto& [uuid, track] : decoded.tracks) {
    if (!track.has_counter()) continue;
    units[decoded.track_name(uuid)] = {track.counter().unit(), track.counter().unit_name()};
  }
  using Unit = std::pair<int, std::string>;
  EXPECT_EQ(units.at("SM Active (%)"), Unit(0, "%"));
  EXPECT_EQ(units.at("worker CPU %"), Unit(0, "%"));
  EXPECT_EQ(units.at("queue"), Unit(0, ""));
  EXPECT_EQ(units.at("held bytes"), Unit(kBytes, ""));
}

TEST(Perfetto, TimesBeforeTheWindowAreRight) {
  Trace trace = busy_trace(1);
  Process& process = trace.processes.at(0);
  const auto begins_of = [](const Trace& t) {
    std::vector<int64_t> out;
    for (const DecodedSlice& slice : Decoder(t).slices) out.push_back(slice.begin);
    std::sort(out.begin(), out.end());
    return out;
  };
  const auto before = begins_of(trace);
  ASSERT_LT(before.front(), time_at(400));
  process.window_begin = time_at(400);
  EXPECT_EQ(begins_of(trace), before);
}

TEST(Perfetto, FlowsGoFromEachLaunchToItsKernels) {
  const Decoder decoded(busy_trace(2));
  std::map<uint64_t, int> begun, ended;
  std::map<uint64_t, std::string> correlation;
  for (const DecodedSlice& slice : decoded.slices) {
    for (const uint64_t id : slice.flows) {
      ++begun[id];
      correlation[id] = slice.args.at("correlation");
    }
  }
  for (const DecodedSlice& slice : decoded.slices) {
    for (const uint64_t id : slice.terminating) {
      ++ended[id];
      EXPECT_EQ(correlation[id], slice.args.at("correlation"));
    }
  }
  EXPECT_EQ(begun.size(), 14u) << "seven pieces of GPU work with a launch on each rank";
  EXPECT_EQ(begun, ended);
  for (const auto& [id, count] : begun) EXPECT_EQ(count, 1);
  ASSERT_EQ(decoded.named("cudaGraphLaunch").size(), 2u);
  EXPECT_EQ(decoded.named("cudaGraphLaunch")[0]->flows.size(), 2u);
}

TEST(Perfetto, SomeStepsAreAWholeTrace) {
  for (const uint64_t step : {12, 13}) {
    Trace trace = busy_trace(2);
    EXPECT_EQ(keep_steps(trace, [&](uint64_t each) { return each == step; }), 0u);
    const Decoder decoded(trace);
    std::multiset<uint64_t> begun, ended;
    for (const DecodedSlice& slice : decoded.slices) {
      begun.insert(slice.flows.begin(), slice.flows.end());
      ended.insert(slice.terminating.begin(), slice.terminating.end());
    }
    EXPECT_EQ(begun, ended);
    EXPECT_EQ(begun.size(), step == 12 ? 14u : 0u) << "all is launched in the first step";
    EXPECT_EQ(decoded.named(fmt::format("step {}", step)).size(), 2u);
    EXPECT_EQ(decoded.named(fmt::format("step {}", 25 - step)).size(), 0u);
  }
}

TEST(Perfetto, CollectivesAreKnownOnBothSides) {
  const Decoder decoded(busy_trace(1));
  const auto call = decoded.named("ncclAllReduce");
  ASSERT_EQ(call.size(), 1u);
  EXPECT_EQ(call[0]->category, "nccl");
  EXPECT_EQ(call[0]->args.at("message bytes"), "4096");
  const auto kernel = decoded.named("ncclDevKernel_AllReduce");
  ASSERT_EQ(kernel.size(), 1u);
  EXPECT_EQ(kernel[0]->args.at("collective"), "ncclAllReduce");
  EXPECT_EQ(kernel[0]->args.at("count"), "1024");
}

TEST(Perfetto, AllRanksInOneFile) {
  const Decoder decoded(busy_trace(3));
  std::set<std::string> gpus;
  std::set<int> pids;
  for (const auto& [uuid, track] : decoded.tracks) {
    if (track.name().starts_with("GPU 0")) gpus.insert(track.name());
    if (track.has_process()) pids.insert(track.process().pid());
  }
  EXPECT_EQ(gpus.size(), 3u);
  EXPECT_EQ(pids, (std::set<int>{4242, 4243, 4244}));
}

TEST(Perfetto, ContainersWithOneHostsNameAndTheSamePidsAreApart) {
  Trace trace = busy_trace(2);
  for (Process& process : trace.processes) process.header.set_pid(30);
  const Decoder decoded(trace);
  std::set<int> pids, pids_of_threads;
  for (const auto& [uuid, track] : decoded.tracks) {
    if (track.has_process()) pids.insert(track.process().pid());
    if (track.has_thread()) pids_of_threads.insert(track.thread().pid());
  }
  EXPECT_EQ(pids, (std::set<int>{30, (1 << 22) + 30}));
  EXPECT_EQ(pids_of_threads, pids);
}

TEST(Perfetto, EventsAreNeitherLostNorDoubled) {
  const Trace trace = busy_trace(2);
  const Decoder decoded(trace);
  size_t drawable = 0;
  for (const Process& p : trace.processes) {
    for (const Event& e : p.events) drawable += !(trace.shape(e).flags & kFlagNoTime);
    drawable += p.window_steps().size();
  }
  EXPECT_EQ(decoded.slices.size() + decoded.instants.size(), drawable);
}

TEST(Perfetto, GpuWorkIsInTheGpuPagesToo) {
  const Decoder out(busy_trace(2));
  EXPECT_EQ(out.stages.size(), 14u) << "five kernels, a copy, a set on each rank";
  std::set<std::pair<int32_t, int32_t>> gpus;
  for (const Decoder::Stage& stage : out.stages) {
    gpus.emplace(stage.gpu, stage.pid);
    EXPECT_TRUE(stage.queue.ends_with(" stream 7") || stage.queue.ends_with(" stream 20"));
  }
  EXPECT_EQ(gpus.size(), 2u);
  EXPECT_EQ(out.stages[0].name, "gemm(float*)");
  EXPECT_EQ(out.stages[0].duration, 100'000);
  EXPECT_EQ(out.stages[0].begin, out.named("gemm(float*)")[0]->begin);
}

// Each begins where a kind is left out, and lasts to the window's end.
TEST(Perfetto, WhatABudgetLeftOutIsARowOfSlices) {
  Trace trace = busy_trace(1);
  Process& process = trace.processes.front();
  process.budget.left_out = {{ShedKind::stacks, process.window_begin, 0},
                             {ShedKind::calls, process.window_begin + 600'000, 3}};
  const Decoder file(trace);
  for (const RecordingBudget::LeftOut& each : process.budget.left_out) {
    const auto found = file.named(left_out_words(each.kind));
    ASSERT_EQ(found.size(), 1u);
    EXPECT_EQ(found[0]->begin, each.since);
    EXPECT_EQ(found[0]->end, process.window_end);
    EXPECT_EQ(file.track_name(found[0]->track), "not recorded (GPUPROF_BUDGET)");
  }
  EXPECT_TRUE(Decoder(busy_trace(1)).named("call stacks").empty());
}

TEST(Perfetto, AnAwkwardTraceIsValid) {
  const Decoder out(hostile_trace());
  EXPECT_EQ(out.stages.size(), kHostileThreads);
  EXPECT_GE(out.slices.size(), 4 * kHostileThreads);
}

TEST(GpuCurves, BusyBandwidthAndQueues) {
  const Trace trace = busy_trace(1);
  const std::vector<GpuCurve> curves = gpu_curves(trace, trace.processes[0]);
  std::map<std::string, const GpuCurve*> named;
  for (const GpuCurve& curve : curves) named[curve.name] = &curve;
  ASSERT_EQ(named.size(), 4u);
  // Intervals are 10 us, from 10 us into the window: kernels from 30 to 190, a copy from 230 to
  // 250.
  const auto at = [&](const char* name, int64_t us) {
    double value = 0;
    for (const GpuCurve::Point& point : named.at(name)->points) {
      if (point.time <= kEpochNs + 4'000'000 + us * 1000) value = point.value;
    }
    return value;
  };
  EXPECT_EQ(at("GPU busy", 15), 0);
  EXPECT_NEAR(at("GPU busy", 35), 100, 0.01);
  EXPECT_NEAR(at("GPU busy", 185), 100, 0.01);
  EXPECT_EQ(at("GPU busy", 195), 0);
  EXPECT_NEAR(at("GPU busy", 325), 100, 0.01);
  EXPECT_EQ(at("GPU busy", 1000), 0);
  EXPECT_NEAR(at("copy bandwidth", 235), 52.4288, 0.01);
  EXPECT_EQ(at("copy bandwidth", 255), 0);
  EXPECT_EQ(at("queue of stream 7", 15), 1);
  EXPECT_EQ(at("queue of stream 7", 25), 2);
  EXPECT_EQ(at("queue of stream 7", 500), 0);
}

}  // namespace
}  // namespace gpuprof::test
