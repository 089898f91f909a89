// SPDX-License-Identifier: Apache-2.0
// Dumps that are whole, cut, damaged, joined, newer, or not dumps at all.
#include "formats/dump/dump_reader.h"

#include <gtest/gtest.h>

#include <random>

#include "formats/core/crc32c.h"
#include "formats/core/names.h"
#include "formats/io/file_bytes.h"
#include "tests/unit/support/dump_maker.h"

namespace gpuprof::test {
namespace {

struct SmallDump {
  ByteBuffer bytes;
  std::vector<size_t> ends;  // of its chunks
  static constexpr size_t kBatches = 4, kPerBatch = 5;

  explicit SmallDump(int rank = 0, bool summary = true) {
    MemoryNames names;
    append(bytes, ChunkKind::header, make_header(1, rank));
    ends.push_back(bytes.size());
    BatchEncoder encoder(names);
    uint64_t at = 3'000'000;
    for (size_t batch = 0; batch < kBatches; ++batch) {
      encoder.begin(0, 1);
      for (size_t i = 0; i < kPerBatch; ++i, at += 5000) {
        Record r = make_record(Kind::alloc, at, at + 1000, names.api("cudaMalloc"));
        r.memory.address = 0x7f0000000000 + at;
        r.memory.bytes = 4096 * i;
        if (!encoder.add(r, 10, "main")) throw std::bad_alloc();
      }
      if (!encoder.add_ring_chunk(batch + 1, kRecordsPerChunk)) throw std::bad_alloc();
      append_events(bytes, encoder);
      ends.push_back(bytes.size());
    }
    append_steps(bytes, {2'000'000, 3'000'000, 4'000'000}, 0, 1);
    ends.push_back(bytes.size());
    if (!summary) return;
    append(bytes, ChunkKind::summary, make_summary(5'000'000, 0, 1));
    ends.push_back(bytes.size());
  }
  std::string text() const { return std::string(view(bytes)); }
};

size_t event_count(const Trace& trace) {
  size_t count = 0;
  for (const Process& process : trace.processes) count += process.events.size();
  return count;
}

TEST(DumpReader, WholeDump) {
  const SmallDump dump;
  const Trace trace = load(dump.text());
  EXPECT_TRUE(trace.problems.empty());
  ASSERT_EQ(trace.processes.size(), 1u);
  const Process& p = trace.processes[0];
  EXPECT_EQ(p.completeness, Completeness::complete);
  EXPECT_EQ(p.events.size(), SmallDump::kBatches * SmallDump::kPerBatch);
  EXPECT_EQ(p.header.host(), "node1");
  ASSERT_EQ(p.steps.size(), 2u);
  EXPECT_EQ(p.steps[1].step, 1u);
  EXPECT_EQ(p.steps[0].end, p.steps[1].begin);
  EXPECT_EQ(p.steps[0].begin, kEpochNs);
  EXPECT_EQ(p.steps[0].end, kEpochNs + 500'000);
  EXPECT_EQ(p.window_steps().size(), 2u);
}

TEST(DumpReader, CutAnywhereKeepsTheChunksBefore) {
  const SmallDump dump;
  const std::string text = dump.text();
  for (size_t size = 0; size < text.size(); ++size) {
    ReadResult result;
    const Trace trace = load(std::string_view(text).substr(0, size), &result);
    size_t whole = 0;
    while (whole < dump.ends.size() && dump.ends[whole] <= size) ++whole;
    ASSERT_EQ(result.chunks, whole) << "cut at " << size;
    const size_t batches = whole == 0 ? 0 : std::min(whole - 1, SmallDump::kBatches);
    ASSERT_EQ(event_count(trace), batches * SmallDump::kPerBatch) << "cut at " << size;
    const bool at_boundary = size == 0 || (whole && dump.ends[whole - 1] == size);
    ASSERT_EQ(result.cut, !at_boundary) << "cut at " << size;
    ASSERT_EQ(trace.problems.size(), at_boundary ? 0u : 1u);
    const size_t last_end = whole ? dump.ends[whole - 1] : 0;
    ASSERT_TRUE(at_boundary || trace.problems[0].offset == last_end);
    ASSERT_TRUE(!whole || trace.processes[0].completeness != Completeness::complete);
  }
}

TEST(DumpReader, OneFlippedBitCostsAtMostOneChunk) {
  const SmallDump dump;
  std::string text = dump.text();
  const size_t chunks = dump.ends.size();
  for (size_t at = 0; at < text.size(); ++at) {
    for (const int bit : {0, 3, 7}) {
      text[at] = static_cast<char>(text[at] ^ 1 << bit);
      ReadResult result;
      const Trace trace = load(text, &result);
      text[at] = static_cast<char>(text[at] ^ 1 << bit);
      ASSERT_GE(result.chunks + 1, chunks) << "byte " << at << " bit " << bit;
      ASSERT_LE(result.chunks, chunks);
      ASSERT_GE(event_count(trace) + SmallDump::kPerBatch,
                SmallDump::kBatches * SmallDump::kPerBatch);
      ASSERT_FALSE(trace.problems.empty()) << "byte " << at << " bit " << bit;
      ASSERT_TRUE(result.damaged || result.cut);
    }
  }
}

TEST(DumpReader, LostHeaderCostsTheHeaderOnly) {
  const SmallDump dump;
  std::string text = dump.text();
  text[30] ^= 1;
  const Trace trace = load(text);
  ASSERT_EQ(trace.processes.size(), 1u);
  const Process& p = trace.processes[0];
  EXPECT_FALSE(p.has_header);
  EXPECT_EQ(p.completeness, Completeness::damaged);
  EXPECT_TRUE(p.clock.usable()) << "the summary has the anchors too";
  EXPECT_EQ(p.header.rank(), -1);
  EXPECT_EQ(event_count(trace), SmallDump::kBatches * SmallDump::kPerBatch);
}

TEST(DumpReader, JoinedFilesAreSeveralDumps) {
  const std::string text = SmallDump(0).text() + SmallDump(1, false).text() + SmallDump(2).text();
  const Trace trace = load(text);
  EXPECT_TRUE(trace.problems.empty());
  ASSERT_EQ(trace.processes.size(), 3u);
  EXPECT_EQ(trace.processes[1].header.rank(), 1);
  EXPECT_EQ(trace.processes[1].completeness, Completeness::truncated);
  EXPECT_EQ(trace.processes[2].completeness, Completeness::complete);
  for (const Process& p : trace.processes) {
    EXPECT_EQ(p.events.size(), SmallDump::kBatches * SmallDump::kPerBatch);
  }
  EXPECT_EQ(trace.shapes.size(), 1u) << "names and shapes are interned over all of them";
}

TEST(DumpReader, RubbishBetweenDumpsIsSkippedAndReported) {
  const std::string text = SmallDump(0).text() + std::string(1000, 'z') + SmallDump(1).text();
  const Trace trace = load(text);
  ASSERT_EQ(trace.problems.size(), 1u);
  EXPECT_EQ(trace.problems[0].offset, SmallDump(0).bytes.size());
  EXPECT_NE(trace.problems[0].reason.find("skipped"), std::string::npos);
  EXPECT_EQ(trace.processes.size(), 2u);
}

TEST(DumpReader, NewerVersionIsRefusedNamingBoth) {
  dump::Header header = make_header();
  header.set_format_version(kFormatVersion + 6);
  header.set_tool_version("9.9");
  ByteBuffer bytes;
  append(bytes, ChunkKind::header, header);
  append(bytes, ChunkKind::summary, make_summary(5'000'000));
  ReadResult result;
  const Trace trace = load(view(bytes), &result);
  EXPECT_TRUE(result.refused);
  EXPECT_TRUE(trace.processes.empty());
  ASSERT_EQ(trace.problems.size(), 1u);
  const std::string text = trace.problems[0].text();
  EXPECT_NE(text.find("version 7"), std::string::npos) << text;
  EXPECT_NE(text.find("version 1"), std::string::npos) << text;
  EXPECT_NE(text.find("9.9"), std::string::npos) << text;
  EXPECT_NE(text.find("test.gpuprof: "), std::string::npos) << text;

  const std::string joined = std::string(view(bytes)) + SmallDump().text();
  EXPECT_EQ(load(joined).processes.size(), 1u) << "what follows and can be read is";
}

TEST(DumpReader, UnknownFieldsAndKindsAreIgnored) {
  ByteBuffer bytes;
  dump::Header header = make_header();
  std::string body = header.SerializeAsString();
  body += std::string("\xfa\x3f\x03new", 6);  // field 1023, which nobody has
  ASSERT_TRUE(append_chunk(bytes, ChunkKind::header, reinterpret_cast<const uint8_t*>(body.data()),
                           body.size(), 0));
  ASSERT_TRUE(append_chunk(bytes, static_cast<ChunkKind>(77),
                           reinterpret_cast<const uint8_t*>(body.data()), body.size(), 6));
  append(bytes, ChunkKind::summary, make_summary(5'000'000));
  const Trace trace = load(view(bytes));
  EXPECT_TRUE(trace.problems.empty());
  ASSERT_EQ(trace.processes.size(), 1u);
  EXPECT_EQ(trace.processes[0].completeness, Completeness::complete);
}

// Of a newer gpuprof: how much was lost is told, if not why.
TEST(DumpReader, LossesOfUnknownCausesCount) {
  ByteBuffer bytes;
  append(bytes, ChunkKind::header, make_header());
  dump::Summary summary = make_summary(5'000'000);
  for (const auto& [cause, count] :
       {std::pair(static_cast<uint32_t>(Loss::cupti_dropped), 3),
        std::pair(uint32_t{kLossKinds}, 5), std::pair(uint32_t{4'000'000'000}, 7)}) {
    dump::LossCount* const loss = summary.add_loss();
    loss->set_cause(cause), loss->set_count(static_cast<uint64_t>(count));
  }
  append(bytes, ChunkKind::summary, summary);
  const Trace trace = load(view(bytes));
  ASSERT_EQ(trace.processes.size(), 1u);
  uint64_t unknown = 0, all = 0;
  for (int cause = 0; cause < kLossKinds; ++cause) {
    const uint64_t count = trace.processes[0].losses[static_cast<size_t>(cause)];
    all += count;
    if (loss_name(static_cast<Loss>(cause)) == "unknown") unknown += count;
  }
  EXPECT_EQ(unknown, 12u);
  EXPECT_EQ(all, 15u);
}

TEST(DumpReader, EmptyAndRandomBytesAreNoDump) {
  EXPECT_TRUE(load("").processes.empty());
  std::mt19937_64 random(5);
  for (int round = 0; round < 300; ++round) {
    std::string noise(random() % 4000 + 1, '\0');
    for (char& c : noise) c = static_cast<char>(random());
    const Trace trace = load(noise);
    EXPECT_TRUE(trace.processes.empty());
    EXPECT_EQ(trace.problems.size(), 1u);
  }
}

// Sound check sums around contents that lie.
TEST(DumpReader, LyingContentsAreReportedAndSkipped) {
  const auto with = [](const dump::Events& events) {
    ByteBuffer bytes;
    append(bytes, ChunkKind::header, make_header());
    append(bytes, ChunkKind::events, events);
    append(bytes, ChunkKind::summary, make_summary(5'000'000));
    return load(view(bytes));
  };
  dump::Events good;
  good.add_string("");
  good.add_string("f");
  good.add_shape()->set_kind(1);
  dump::Lane* const lane = good.add_lane();
  lane->set_type(dump::Lane::THREAD);
  lane->add_shape(0);
  lane->add_begin(1);
  lane->add_duration(2);
  EXPECT_EQ(event_count(with(good)), 1u);
  EXPECT_TRUE(with(good).problems.empty());

  const auto expect_refused = [&](auto change) {
    dump::Events bad = good;
    change(bad);
    const Trace trace = with(bad);
    EXPECT_EQ(event_count(trace), 0u);
    ASSERT_EQ(trace.problems.size(), 1u);
    EXPECT_EQ(trace.processes.at(0).completeness, Completeness::damaged);
  };
  expect_refused([](dump::Events& e) { e.mutable_lane(0)->set_shape(0, 9); });
  expect_refused([](dump::Events& e) { e.mutable_lane(0)->add_begin(5); });
  expect_refused([](dump::Events& e) { e.mutable_lane(0)->add_bytes(5); });
  expect_refused([](dump::Events& e) {
    e.mutable_lane(0)->add_correlation(5), e.mutable_lane(0)->add_correlation(5);
  });
  expect_refused([](dump::Events& e) { e.mutable_shape(0)->set_name(9); });
  expect_refused([](dump::Events& e) { e.mutable_lane(0)->clear_type(); });
}

TEST(DumpReader, ExtremeNumbersDoNoHarm) {
  dump::Events events;
  events.set_base_time(~uint64_t{0});
  for (uint32_t kind = 0; kind < 256; ++kind) events.add_shape()->set_kind(kind);
  dump::Lane* const lane = events.add_lane();
  lane->set_type(dump::Lane::STREAM);
  for (uint32_t i = 0; i < 40; ++i) {
    lane->add_shape(2);
    lane->add_begin(i % 2 ? INT64_MAX : INT64_MIN);
    lane->add_duration(i % 3 ? ~uint64_t{0} : 0);
    lane->add_correlation(i % 2 ? INT64_MIN : INT64_MAX);
  }
  dump::Header header = make_header();
  header.mutable_clock()->set_shift(4'000'000'000);
  ByteBuffer bytes;
  append(bytes, ChunkKind::header, header);
  append(bytes, ChunkKind::events, events);
  const Trace trace = load(view(bytes));
  for (const Event& event : trace.processes.at(0).events) EXPECT_LE(event.begin, event.end);
}

TEST(DumpReader, FalseSizesAreRefused) {
  // A chunk that says it unpacks to far more than it does.
  std::string body;
  dump::Chunk chunk;
  chunk.set_kind(dump::CHUNK_EVENTS);
  chunk.set_codec(dump::CODEC_DEFLATE);
  chunk.set_raw_size(kMaxBodyBytes);
  chunk.set_body(std::string("\x03\x00", 2));  // an empty deflate stream
  body = chunk.SerializeAsString();
  chunk.set_magic(kChunkMagic);
  chunk.set_size(static_cast<uint32_t>(body.size()));
  chunk.set_crc32c(crc32c(body.data(), body.size()));
  dump::Trace file;
  *file.add_chunk() = chunk;
  const Trace trace = load(file.SerializeAsString());
  ASSERT_EQ(trace.problems.size(), 1u);
  EXPECT_NE(trace.problems[0].reason.find("decompressed"), std::string::npos);
}

TEST(DumpReader, ABombOfEmptyPartsIsRefused) {
  std::string body;
  for (int i = 0; i < 4'000'000; ++i) body += std::string("\x1a\x00", 2);  // empty lanes
  ByteBuffer bytes;
  append(bytes, ChunkKind::header, make_header());
  ASSERT_TRUE(append_chunk(bytes, ChunkKind::events, reinterpret_cast<const uint8_t*>(body.data()),
                           body.size(), 6));
  EXPECT_LT(bytes.size(), 20'000u);
  const Trace trace = load(view(bytes));
  ASSERT_EQ(trace.problems.size(), 1u);
  EXPECT_NE(trace.problems[0].reason.find("more parts"), std::string::npos);
}

// Every released format version has a dump in tests/golden/ that must always load.
TEST(DumpReader, GoldenDumpOfVersion1Loads) {
  std::string bytes, reason;
  ASSERT_TRUE(read_file(GPUPROF_SOURCE_DIR "/tests/golden/version1.gpuprof", bytes, reason))
      << reason;
  const Trace trace = load(bytes);
  EXPECT_TRUE(trace.problems.empty());
  ASSERT_EQ(trace.processes.size(), 1u);
  const Process& p = trace.processes[0];
  EXPECT_EQ(p.completeness, Completeness::complete);
  EXPECT_EQ(p.header.format_version(), 1u);
  EXPECT_EQ(p.header.host(), "golden");
  EXPECT_EQ(p.header.command(1), "train.py");
  EXPECT_EQ(p.losses[static_cast<size_t>(Loss::cupti_dropped)], 3u);
  ASSERT_EQ(p.window_steps().size(), 2u);
  EXPECT_EQ(p.window_steps()[0].step, 12u);
  std::map<Kind, int> kinds;
  for (const Event& event : p.events) ++kinds[trace.shape(event).kind];
  EXPECT_EQ(kinds.size(), 19u) << "one of each kind at least";
  std::optional<Event> kernel;
  for (const Event& event : p.events) {
    if (trace.shape(event).kind == Kind::gpu_kernel) kernel = event;
  }
  ASSERT_TRUE(kernel);
  const Shape& shape = trace.shape(*kernel);
  EXPECT_EQ(trace.text(shape.label), "gemm(float*)");
  EXPECT_EQ(shape.grid.x, 128u);
  EXPECT_EQ(shape.registers_per_thread, 40u);
  EXPECT_EQ(kernel->end - kernel->begin, 40'000);
  EXPECT_NE(kernel->partner, EventIndex::none);
  EXPECT_EQ(p.collective_kernels.size(), 1u);
}

TEST(DumpReader, AWindowBeginsWithItsFirstStepWhateverTheClocksUnit) {
  constexpr uint32_t kShift = 3;  // 4 ns: the bits below are in no step's time
  constexpr uint64_t kBegin = 4'000'007, kEnd = 8'000'006;
  ByteBuffer bytes;
  append(bytes, ChunkKind::header, make_header(kShift));
  append_steps(bytes, {kBegin, kEnd}, 5, kShift);
  dump::Summary summary = make_summary(kEnd, 5, 5);
  summary.mutable_clock()->set_shift(kShift);
  summary.set_window_begin_ticks(kBegin);
  append(bytes, ChunkKind::summary, summary);
  const Trace trace = load(view(bytes));
  const Process& p = trace.processes.at(0);
  ASSERT_EQ(p.window_steps().size(), 1u);
  EXPECT_EQ(p.window_begin, kEpochNs + 1'000'000);
  EXPECT_EQ(p.window_steps()[0].begin, p.window_begin);
  EXPECT_EQ(p.window_steps()[0].end, p.window_end);
}

TEST(DumpReader, TheFirstStepBeginsWhenItsThreadWentOn) {
  for (const uint64_t ready : {0, 5'000'000, 20'000'000}) {
    ByteBuffer bytes;
    append(bytes, ChunkKind::header, make_header(0));
    append_steps(bytes, {4'000'000, 8'000'000, 12'000'000}, 5, 0);
    dump::Summary summary = make_summary(12'000'000, 5, 6);
    summary.set_window_begin_ticks(4'000'000);
    summary.set_window_ready_ticks(ready);
    append(bytes, ChunkKind::summary, summary);
    const Trace trace = load(view(bytes));
    const auto steps = trace.processes.at(0).window_steps();
    ASSERT_EQ(steps.size(), 2u);
    // Later than the step's end: another thread's wait.
    const int64_t waited = ready == 5'000'000 ? 500'000 : 0;
    EXPECT_EQ(steps[0].end - steps[0].begin, 2'000'000 - waited);
    EXPECT_EQ(steps[1].end - steps[1].begin, 2'000'000);
  }
}

}  // namespace
}  // namespace gpuprof::test
