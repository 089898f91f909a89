// SPDX-License-Identifier: Apache-2.0
// What a killed process left: read in full, paired with its dump, and never trusted.
#include "formats/dump/ring_reader.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <random>

#include "formats/input.h"
#include "tests/unit/support/recovered.h"
#include "tests/unit/support/ring_maker.h"

namespace gpuprof::test {
namespace {

int64_t unix_ns() {
  const auto since_epoch = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(since_epoch).count();
}

TEST(RingReader, RecordsNamesStepsAndLossesAreRead) {
  RingMaker ring = small_ring();
  const Recovered got = recover(ring.bytes());
  EXPECT_TRUE(got.problems.empty());
  EXPECT_TRUE(got.trace.problems.empty());
  ASSERT_EQ(got.trace.processes.size(), 1u);
  const Process& p = got.trace.processes[0];
  ASSERT_EQ(p.events.size(), 2u);
  const Event &call = p.events[0], &work = p.events[1];
  EXPECT_EQ(got.trace.text(got.trace.shape(call).name), "cudaLaunchKernel");
  EXPECT_EQ(got.trace.text(got.trace.shape(call).detail), "_Z4gemmPf") << "by its function";
  EXPECT_EQ(got.trace.shape(call).domain, ApiDomain::runtime);
  EXPECT_EQ(p.lane(call).thread_name, "worker");
  EXPECT_EQ(got.trace.text(got.trace.shape(work).label), "gemm(float*)");
  EXPECT_EQ(got.trace.shape(work).registers_per_thread, 32u);
  EXPECT_EQ(p.lane(work).stream, 7u);
  EXPECT_EQ(work.begin, kEpochNs + 510'000);
  EXPECT_EQ(call.partner, static_cast<EventIndex>(1));
  EXPECT_EQ(p.header.host(), "node1");
  EXPECT_EQ(p.losses[static_cast<size_t>(Loss::buffer_full)], 9u);
  EXPECT_EQ(p.summary.end_reason(), "recovered");
  EXPECT_TRUE(p.summary.partial());
  ASSERT_EQ(p.steps.size(), 2u);
  EXPECT_EQ(p.steps[0].step, 12u);
  EXPECT_EQ(p.window_steps().size(), 1u);
}

TEST(RingReader, GraphNodesThatNoDumpHasAreRead) {
  RingMaker ring = small_ring();
  const ApiId api = ring.add_api("cudaMemcpyAsync");
  for (uint64_t id = 100; id < 106; ++id) {  // two more than there is room for
    ring.add_graph_node({id, 2'500'000 + id, 7, 3, 4242, 0, api, {}});
  }
  const auto ids = [&ring] {
    const Recovered got = recover(ring.bytes());
    EXPECT_TRUE(got.trace.problems.empty());
    std::vector<uint64_t> out;
    for (const auto& [id, node] : got.trace.processes.at(0).graph_nodes) {
      EXPECT_EQ(node.api, "cudaMemcpyAsync");
      EXPECT_EQ(node.thread, 4242u);
      EXPECT_EQ(node.capture, 3u);
      out.push_back(id);
    }
    std::sort(out.begin(), out.end());
    return out;
  };
  EXPECT_EQ(ids(), (std::vector<uint64_t>{102, 103, 104, 105}));
  ring.head().graph_nodes_written = 5;
  EXPECT_EQ(ids(), std::vector<uint64_t>{105});
  ring.head().graph_nodes_written = 6;
  EXPECT_TRUE(ids().empty());
  ring.head().graph_nodes_written = 0;
  ring.head().graph_nodes.offset = 1ull << 40;
  EXPECT_EQ(recover(ring.bytes()).trace.processes.at(0).events.size(), 2u);
}

TEST(RingReader, OnlyCommittedRecordsOfChunksInUse) {
  RingMaker ring = small_ring(3);
  ring.fill(2, 3, 4242, {make_record(Kind::call, 1, 2)}, ChunkState::free);
  ring.chunk(0).records[1] = make_record(Kind::call, 3'000'000, 3'000'001);  // not committed
  const Recovered got = recover(ring.bytes());
  EXPECT_EQ(got.trace.processes.at(0).events.size(), 2u);
  ring.chunk(0).committed = 1'000'000;  // more than a chunk has
  EXPECT_EQ(recover(ring.bytes()).trace.processes.at(0).events.size(), 3u)
      << "the rest is Kind::none";
}

TEST(RingReader, ChunksThatADumpHasAreLeftOut) {
  RingMaker ring = small_ring();
  Recovered got = recover(ring.bytes(), {{1, kRecordsPerChunk}});
  ASSERT_EQ(got.trace.processes.at(0).events.size(), 1u);
  EXPECT_EQ(got.trace.shape(got.trace.processes[0].events[0]).kind, Kind::gpu_kernel);
}

TEST(RingReader, StepsInTheTailComeFirst) {
  RingMaker ring = small_ring();
  ByteBuffer tail;
  append_steps(tail, {1'000'000, 1'500'000}, 10, 1);
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(tail.push_back(0));  // allocated ahead
  ring.set_tail(tail);
  const Recovered got = recover(ring.bytes());
  EXPECT_TRUE(got.problems.empty());
  ASSERT_EQ(got.trace.processes.at(0).steps.size(), 4u);
  EXPECT_EQ(got.trace.processes[0].steps[0].step, 10u);
}

TEST(RingReader, StepSlotsAreUsedOverAgain) {
  RingMaker ring = small_ring();
  const uint64_t slots = ring.head().steps.bytes / sizeof(uint64_t);
  ring.start_steps(slots * 3 - 2);
  for (uint64_t i = 0; i < 5; ++i) ring.add_step(1'000'000 * (i + 1));  // over the last slot
  const Recovered got = recover(ring.bytes());
  EXPECT_TRUE(got.problems.empty());
  const auto& steps = got.trace.processes.at(0).steps;
  ASSERT_EQ(steps.size(), 4u);
  EXPECT_EQ(steps[0].step, slots * 3 - 2);
  for (const auto& step : steps)
    EXPECT_EQ(step.end - step.begin, 500'000) << "two ticks a nanosecond";
  ring.head().steps.used = (slots * 5) * sizeof(uint64_t);  // more than there are slots
  EXPECT_EQ(recover(ring.bytes()).problems.size(), 1u);
}

// A thread keeps its buffer from one window to the next: what the first window's dump has of it
// must not be read again, what came since must.
TEST(RingReader, AChunkThatIsPartlyInADumpGivesTheRest) {
  RingMaker ring = small_ring();
  ring.head().window = 1;
  ring.head().window_begin_ticks = 5'000'000;
  ring.head().phase = static_cast<uint32_t>(SessionPhase::active);
  ring.fill(
      0, 1, 4242,
      {make_record(Kind::call, 1'000'000, 1'000'001), make_record(Kind::call, 2'000'000, 2'000'001),
       make_record(Kind::call, 4'500'000, 4'500'001),  // between the windows
       make_record(Kind::call, 6'000'000, 6'000'001)});
  const Recovered got = recover(ring.bytes(), {{1, 2}, {2, kRecordsPerChunk}});
  ASSERT_TRUE(got.info.window_open);
  ASSERT_EQ(got.trace.processes.size(), 1u);
  ASSERT_EQ(got.trace.processes[0].events.size(), 1u);
  EXPECT_EQ(got.trace.processes[0].events[0].begin, kEpochNs + 2'000'000);
}

TEST(RingReader, WrongHeadsAreRefused) {
  const auto reason = [](const std::string& bytes) {
    const Recovered got = recover(bytes);
    EXPECT_FALSE(got.ok);
    return got.problems.size() == 1 ? got.problems[0].reason : std::string("?");
  };
  RingMaker ring = small_ring();
  EXPECT_EQ(reason(""), kNothingInRing);
  EXPECT_EQ(reason("some text that is no ring"), "this is not a gpuprof ring");
  EXPECT_EQ(reason(ring.bytes().substr(0, 100)), "the ring's head is cut");
  ring.head().record_bytes = 128;
  EXPECT_EQ(reason(ring.bytes()), "the ring's head is damaged");
  ring.head().record_bytes = 64;
  ring.head().version = 4;
  const std::string newer = reason(ring.bytes());
  EXPECT_NE(newer.find("version 4"), std::string::npos);
  EXPECT_NE(newer.find("version 1"), std::string::npos);
}

TEST(RingReader, HeadsOfOtherSizesAreRead) {
  // An older writer's was shorter, a newer one's may be longer: fields are added at the end.
  for (const uint32_t bytes : {kSmallestRingHeader, uint32_t{sizeof(RingHeader)} + 64}) {
    RingMaker ring = small_ring();
    ring.head().header_bytes = bytes;
    const Recovered got = recover(ring.bytes());
    EXPECT_TRUE(got.problems.empty()) << bytes;
    EXPECT_EQ(got.trace.processes.at(0).events.size(), 2u) << bytes;
  }
  for (const uint32_t bytes : {kSmallestRingHeader - 8, 8192u}) {
    RingMaker ring = small_ring();
    ring.head().header_bytes = bytes;
    EXPECT_FALSE(recover(ring.bytes()).problems.empty()) << bytes;
  }
}

TEST(RingReader, CutFileGivesTheChunksThatAreThere) {
  RingMaker ring = small_ring();
  const std::string bytes = ring.bytes();
  const Recovered got = recover(bytes.substr(0, bytes.size() - kChunkBytes / 2));
  EXPECT_EQ(got.trace.processes.at(0).events.size(), 1u);
}

TEST(RingReader, CorruptRegionsCostTheirContentsOnly) {
  RingMaker ring = small_ring();
  ring.head().strings.offset = ~uint64_t{0};
  const Recovered got = recover(ring.bytes());
  EXPECT_FALSE(got.problems.empty());
  EXPECT_EQ(got.trace.processes.at(0).events.size(), 2u);
  for (auto member : {&RingHeader::identity, &RingHeader::steps, &RingHeader::shapes,
                      &RingHeader::functions, &RingHeader::api_names, &RingHeader::chunks}) {
    for (const uint64_t bad : {uint64_t{3}, uint64_t{1} << 63, ~uint64_t{7}}) {
      RingMaker damaged = small_ring();
      (damaged.head().*member).offset = bad;
      EXPECT_TRUE(recover(damaged.bytes()).ok);
      RingMaker larger = small_ring();
      (larger.head().*member).bytes = bad;
      (larger.head().*member).used = bad;
      EXPECT_TRUE(recover(larger.bytes()).ok);
    }
  }
}

TEST(RingReader, RandomDamageNeverCrashes) {
  std::mt19937_64 random(11);
  RingMaker ring = small_ring();
  const std::string whole = ring.bytes();
  for (int round = 0; round < 2000; ++round) {
    std::string bytes = whole;
    for (uint64_t i = random() % 20; i-- > 0;) {
      const size_t limit = random() % 2 ? sizeof(RingHeader) : bytes.size();
      bytes[random() % limit] = static_cast<char>(random());
    }
    recover(bytes);
  }
}

class RingFiles : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() /
              ("gpuprof_ring_test_" + std::to_string(::getpid()));
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_ / "run1");
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string write(const std::string& name, std::string_view bytes) {
    const std::filesystem::path path = folder_ / name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << bytes;
    return path.string();
  }
  std::string folder() const { return folder_.string(); }

  // Header and the first ring chunk's event, as the drain thread wrote it before the end.
  static std::string part() {
    MemoryNames names;
    ByteBuffer bytes;
    append(bytes, ChunkKind::header, make_header(1));
    BatchEncoder encoder(names);
    encoder.begin(0, 1);
    Record call = make_record(Kind::launch, 3'000'000, 3'010'000, names.api("cudaLaunchKernel"));
    call.correlation = 5;
    EXPECT_TRUE(encoder.add(call, 4242, "worker"));
    EXPECT_TRUE(encoder.add_ring_chunk(1, kRecordsPerChunk));
    append_events(bytes, encoder);
    return std::string(view(bytes));
  }
  static std::string dump(int rank = 0) {
    ByteBuffer bytes;
    append(bytes, ChunkKind::header, make_header(1, rank));
    append(bytes, ChunkKind::summary, make_summary(5'000'000));
    return std::string(view(bytes));
  }

  std::filesystem::path folder_;
};

TEST_F(RingFiles, PartAndRingAreOneProcess) {
  const std::string part_path = write("run1/node1_r0_4242_1_w0.gpuprof.part", part());
  const std::string ring_path = write("run1/node1_r0_4242_1.gpuprof.ring", small_ring().bytes());
  for (const std::string& named : {folder(), part_path, ring_path}) {
    const int64_t before = unix_ns();
    const Input input = load_input({named});
    ASSERT_EQ(input.trace.processes.size(), 1u) << named;
    const Process& p = input.trace.processes[0];
    EXPECT_TRUE(p.recovered);
    EXPECT_TRUE(p.looked_at >= before && p.looked_at <= unix_ns()) << p.looked_at;
    EXPECT_EQ(p.completeness, Completeness::truncated);
    EXPECT_EQ(p.path, part_path);
    EXPECT_EQ(p.events.size(), 2u) << "one from each, none twice";
    EXPECT_EQ(p.summary.events(), 2u);
    EXPECT_EQ(p.events[0].partner, static_cast<EventIndex>(1)) << "joined over both";
    ASSERT_EQ(input.files.size(), 2u);
    for (const InputFile& file : input.files) {
      EXPECT_EQ(file.processes, file.path == part_path ? 1u : 0u) << file.path;
      EXPECT_EQ(file.completed_other, file.path == ring_path) << file.path;
    }
    EXPECT_TRUE(input.trace.problems.empty());
  }
}

// What a live process does to its files between the search and the reading of one of them.
Input load_while(const std::string& named, const std::string& read,
                 const std::function<void()>& done) {
  InputOptions options;
  options.progress = [&](const std::string& path, size_t, size_t) {
    if (path == read) done();
  };
  return load_input({named}, options);
}

TEST_F(RingFiles, AWindowThatIsClosedMeanwhileIsReadFromItsDump) {
  const std::string stem = folder() + "/run1/node1_r0_4242_1";
  for (const bool both : {false, true}) {  // a search that sees the old name and the new
    const std::string path = write("run1/node1_r0_4242_1_w0.gpuprof.part", part());
    write("run1/node1_r0_4242_1.gpuprof.ring", small_ring().bytes());
    if (both) write("run1/node1_r0_4242_1_w0.gpuprof", dump());
    const Input input = load_while(folder(), path, [&] {
      write("run1/node1_r0_4242_1_w0.gpuprof", dump());
      std::filesystem::remove(path);
    });
    ASSERT_EQ(input.trace.processes.size(), 1u) << both;
    EXPECT_EQ(input.trace.processes[0].path, stem + "_w0.gpuprof");
    EXPECT_EQ(input.trace.processes[0].completeness, Completeness::complete);
    EXPECT_TRUE(input.trace.processes[0].events.empty()) << "none of the ring";
    EXPECT_TRUE(input.trace.problems.empty());
  }
}

TEST_F(RingFiles, AWindowThatIsLeftOutMeanwhileIsNotReadFromTheRing) {
  const std::string path = write("run1/node1_r0_4242_1_w0.gpuprof.part", part());
  write("run1/node1_r0_4242_1.gpuprof.ring", small_ring().bytes());
  const Input input = load_while(folder(), path, [&] { std::filesystem::remove(path); });
  ASSERT_EQ(input.trace.processes.size(), 1u);
  EXPECT_TRUE(input.trace.processes[0].events.empty());
  EXPECT_TRUE(input.trace.processes[0].window_steps().empty());
  EXPECT_TRUE(input.trace.problems.empty());
}

TEST_F(RingFiles, AWindowThatBeginsMeanwhileIsReadFromItsPartToo) {
  const std::string ring = write("run1/node1_r0_4242_1.gpuprof.ring", small_ring().bytes());
  const Input input =
      load_while(folder(), ring, [&] { write("run1/node1_r0_4242_1_w0.gpuprof.part", part()); });
  ASSERT_EQ(input.trace.processes.size(), 1u);
  EXPECT_EQ(input.trace.processes[0].path, folder() + "/run1/node1_r0_4242_1_w0.gpuprof.part");
  EXPECT_EQ(input.trace.processes[0].events.size(), 2u) << "one from each, none twice";
}

// Its process has written the end, and renames it next.
TEST_F(RingFiles, APartWithItsEndNeedsNoRing) {
  write("run1/node1_r0_4242_1_w0.gpuprof.part", dump());
  write("run1/node1_r0_4242_1.gpuprof.ring", small_ring().bytes());
  const Input input = load_input({folder()});
  ASSERT_EQ(input.trace.processes.size(), 1u);
  EXPECT_FALSE(input.trace.processes[0].recovered);
  EXPECT_TRUE(input.trace.processes[0].events.empty());
  EXPECT_EQ(input.files.size(), 2u);
  EXPECT_EQ(input.files[1].path, folder() + "/run1/node1_r0_4242_1_w0.gpuprof.part");
  EXPECT_EQ(input.files[0].processes, 0u) << "of the ring";
}

TEST_F(RingFiles, RingAloneIsAProcess) {
  const int64_t before = unix_ns();
  const Input input =
      load_input({write("run1/node1_r0_4242_1.gpuprof.ring", small_ring().bytes())});
  ASSERT_EQ(input.trace.processes.size(), 1u);
  EXPECT_EQ(input.trace.processes[0].events.size(), 2u);
  EXPECT_GE(input.trace.processes[0].looked_at, before);
}

TEST_F(RingFiles, RingWithNothingNewAddsNothing) {
  write("run1/node1_r0_4242_1_w0.gpuprof", dump());
  RingMaker idle(1);
  idle.head().phase = static_cast<uint32_t>(SessionPhase::waiting);
  write("run1/node1_r0_4242_1.gpuprof.ring", idle.bytes());
  EXPECT_EQ(load_input({folder()}).trace.processes.size(), 1u);
}

// Its chunk holds records of all three windows; those of the first two are in complete dumps.
TEST_F(RingFiles, WindowsThatAreOnDiskAreNotReadAgain) {
  RingMaker ring = small_ring();
  ring.fill(
      0, 1, 4242,
      {make_record(Kind::call, 2'500'000, 2'500'001), make_record(Kind::call, 3'500'000, 3'500'001),
       make_record(Kind::call, 6'000'000, 6'000'001),
       make_record(Kind::call, 8'000'000, 8'000'001)});
  ring.chunk(0).window = 0;
  ring.fill(1, 2, 4300,
            {make_record(Kind::gpu_kernel, 2'600'000, 2'700'000),
             make_record(Kind::gpu_kernel, 6'100'000, 6'200'000)});
  ring.chunk(1).window = 1;
  ring.head().window = 2;
  ring.head().window_begin_ticks = 5'000'000;
  for (const uint64_t end : {0u, 7'000'000u}) {
    ring.head().window_end_ticks = end;
    const std::string path = write("run1/node1_r0_4242_1.gpuprof.ring", ring.bytes());
    const Input input = load_input({path});
    ASSERT_EQ(input.trace.processes.size(), 1u);
    EXPECT_EQ(input.trace.processes[0].header.window(), 2u);
    EXPECT_EQ(input.trace.processes[0].events.size(), end ? 2u : 3u);
  }
  ring.head().phase = static_cast<uint32_t>(SessionPhase::waiting);
  const std::string path = write("run1/node1_r0_4242_1.gpuprof.ring", ring.bytes());
  const Input between = load_input({path});
  ASSERT_EQ(between.trace.processes.size(), 1u);
  EXPECT_EQ(between.trace.processes[0].header.window(), 3u) << "which has not begun";
  EXPECT_EQ(between.trace.processes[0].steps.size(), 2u);
  EXPECT_TRUE(between.trace.processes[0].window_steps().empty());
  EXPECT_TRUE(between.trace.processes[0].events.empty());
}

// The ring says that the window is being written, and its dump is complete.
TEST_F(RingFiles, ADumpBesideARingIsNotReadAgain) {
  write("run1/node1_r0_4242_1_w0.gpuprof", dump());
  RingMaker ring = small_ring();
  ring.head().phase = static_cast<uint32_t>(SessionPhase::closing);
  const Input input = load_input({write("run1/node1_r0_4242_1.gpuprof.ring", ring.bytes())});
  ASSERT_EQ(input.trace.processes.size(), 1u);
  EXPECT_TRUE(input.trace.processes[0].events.empty());
  EXPECT_EQ(input.trace.processes[0].header.window(), 1u);
}

// GPU work that was launched after the window's end, while CUPTI was on, is not the window's.
TEST(RingReader, WorkThatWasLaunchedLaterIsLeftOut) {
  RingMaker ring = small_ring();
  ring.head().phase = static_cast<uint32_t>(SessionPhase::closing);
  ring.head().window_end_ticks = 3'015'000;
  Record later = make_record(Kind::gpu_kernel, 3'070'000, 3'080'000);
  later.correlation = 6;
  ring.chunk(1).records[1] = later;
  ring.chunk(1).committed = 2;
  const Recovered got = recover(ring.bytes());
  ASSERT_EQ(got.trace.processes.at(0).events.size(), 2u) << "the launch and its kernel";
}

TEST_F(RingFiles, ProcessKilledAsItsSessionStartsHasNothing) {
  for (const std::string& bytes : {std::string(), std::string(100'000, '\0')}) {
    const Input input = load_input({write("run1/node1_r0_4242_1.gpuprof.ring", bytes)});
    ASSERT_EQ(input.trace.problems.size(), 1u);
    EXPECT_NE(input.trace.problems[0].text().find("killed while the session started"),
              std::string::npos)
        << input.trace.problems[0].text();
  }
}

TEST_F(RingFiles, ProcessKilledBeforeItsWindowIsSeen) {
  RingMaker idle(1);
  idle.head().phase = static_cast<uint32_t>(SessionPhase::waiting);
  idle.head().window_begin_ticks = 0;
  idle.add_step(3'000'000);
  idle.add_step(4'000'000);
  idle.fill(0, 1, 4242, {make_record(Kind::call, 3'500'000, 3'500'001)});  // the window opens now
  write("run1/node1_r0_4242_1.gpuprof.ring", idle.bytes());
  const Input input = load_input({folder()});
  ASSERT_EQ(input.trace.processes.size(), 1u);
  EXPECT_TRUE(input.trace.processes[0].events.empty());
  EXPECT_EQ(input.trace.processes[0].steps.size(), 1u);
  EXPECT_TRUE(input.trace.processes[0].window_steps().empty());
}

TEST_F(RingFiles, NewestOfSeveralRunsIsTakenAndSaid) {
  write("run1/a_w0.gpuprof", dump(0));
  const std::string newer = write("run2/b_w0.gpuprof", dump(3));
  std::filesystem::last_write_time(
      newer, std::filesystem::file_time_type::clock::now() + std::chrono::hours(1));
  Input input = load_input({folder()});
  ASSERT_EQ(input.trace.processes.size(), 1u);
  EXPECT_EQ(input.trace.processes[0].header.rank(), 3);
  ASSERT_EQ(input.trace.notes.size(), 2u);
  EXPECT_NE(input.trace.notes[0].find("the newest, run2"), std::string::npos)
      << input.trace.notes[0];
  EXPECT_NE(input.trace.notes[1].find("missing"), std::string::npos) << input.trace.notes[1];

  std::filesystem::create_directory_symlink("run1", folder_ / "latest");
  input = load_input({folder()});
  ASSERT_EQ(input.trace.processes.size(), 1u);
  EXPECT_EQ(input.trace.processes[0].header.rank(), 0);
  EXPECT_NE(input.trace.notes[0].find("`latest`"), std::string::npos);
  EXPECT_EQ(load_input({folder() + "/latest"}).trace.processes.size(), 1u);
  for (const std::string& note : load_input({folder() + "/latest"}).trace.notes) {
    EXPECT_NE(note.find("missing"), std::string::npos) << "nothing was chosen: " << note;
  }
}

TEST_F(RingFiles, RanksOfARunComeInOrderAndOtherFilesArePassedOver) {
  write("run1/z_r0_w0.gpuprof", dump(0));
  write("run1/a_r1_w0.gpuprof", dump(1));
  write("run1/host2/run1/c_r2_w0.gpuprof", dump(2));
  write("run1/notes.txt", "text");
  write("run1/trace.json", "{}");
  const Input input = load_input({folder(), folder() + "/run1/a_r1_w0.gpuprof"});
  ASSERT_EQ(input.trace.processes.size(), 3u) << "a file named twice is read once";
  for (int rank = 0; rank < 3; ++rank) EXPECT_EQ(input.trace.processes[rank].header.rank(), rank);
  EXPECT_TRUE(input.trace.problems.empty());
}

TEST_F(RingFiles, UnreadableInputsSayWhy) {
  const auto line = [](const std::string& path) {
    const Input input = load_input({path});
    EXPECT_FALSE(input.readable());
    return input.trace.problems.size() == 1 ? input.trace.problems[0].text() : std::string("?");
  };
  const std::string missing = folder() + "/none.gpuprof";
  EXPECT_EQ(line(missing), missing + ": no such file or directory");
  const std::string empty = write("empty.gpuprof", "");
  EXPECT_EQ(line(empty), empty + ": the file is empty");
  const std::string text = write("text.gpuprof", "hello, world, this is not a dump");
  EXPECT_EQ(line(text),
            text +
                ": this is no gpuprof dump, but text that is no JSON trace; it begins "
                "\"hello, world, this is no\"...; gpuprof reads its own dumps, and JSON "
                "traces of torch.profiler plain or in gzip");
  EXPECT_EQ(line(folder() + "/run1"),
            folder() + "/run1: no gpuprof dump and no JSON trace in this directory");
  EXPECT_NE(line("/dev/null").find("is not a regular file"), std::string::npos);
  const std::string ring = write("short.gpuprof.ring", small_ring().bytes().substr(0, 50));
  EXPECT_EQ(line(ring), ring + ": the ring's head is cut");

  const Input mixed = load_input({empty, write("good.gpuprof", dump())});
  EXPECT_TRUE(mixed.readable());
  EXPECT_EQ(mixed.trace.problems.size(), 1u);
}

}  // namespace
}  // namespace gpuprof::test
