// SPDX-License-Identifier: Apache-2.0
// What `gpuprof parse` prints of each kind of record, and that its help tells all of it.
#include "tools/record_fields.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <regex>

#include "tests/unit/support/dump_maker.h"

namespace gpuprof::test {
namespace {

// The arguments of the only record of a dump, as a JSON object.
nlohmann::json arguments(const MemoryNames& names, const Record& record) {
  BatchEncoder encoder(names);
  encoder.begin(0, 0);
  EXPECT_TRUE(encoder.add(record, 7, "worker"));
  ByteBuffer bytes;
  append(bytes, ChunkKind::header, make_header());
  append_events(bytes, encoder);
  append(bytes, ChunkKind::summary, make_summary(4'000'000));
  const Trace trace = load(view(bytes));
  const Process& process = trace.processes.at(0);
  std::string out = "{\"first\":0";
  FieldWriter writer(FieldWriter::Style::json, out);
  write_arguments(trace, process, process.events.at(0), writer);
  auto json = nlohmann::json::parse(out + "}");
  json.erase("first");
  return json;
}

Record some_record(Kind kind) { return make_record(kind, 2'000'000, 2'002'000); }

TEST(RecordFields, launch) {
  MemoryNames names;
  Record r = some_record(Kind::launch);
  r.launch.function = 0x1234;
  r.launch.stream = 0xffff'ffff'ffff'fff0;
  r.launch.grid_x = 70000;
  r.launch.grid_y = 2;
  r.launch.grid_z = 3;
  r.launch.block_x = 128;
  r.launch.block_y = 4;
  r.launch.block_z = 5;
  r.launch.shared_bytes = 1024;
  r.launch.result = 98;
  names.name_function(0x1234, "_Z4gemmIfEvPT_i");
  nlohmann::json expected = nlohmann::json::parse(R"json({
    "kernel": "_Z4gemmIfEvPT_i", "kernel_label": "void gemm<float>(float*, int)", "function": 4660,
    "grid": [70000, 2, 3], "block": [128, 4, 5], "shared_bytes": 1024,
    "stream_handle": 18446744073709551600, "result": 98
})json");
  EXPECT_EQ(arguments(names, r), expected);
}

TEST(RecordFields, copies) {
  MemoryNames names;
  Record r = some_record(Kind::copy);
  r.copy.bytes = 4096;
  r.copy.destination = 0x7000;
  r.copy.source = 0x100;
  r.copy.direction = 2;
  r.copy.stream = 5;
  nlohmann::json expected = nlohmann::json::parse(R"json({"bytes": 4096, "address": 28672,
    "source": 256, "direction": "DtoH", "stream_handle": 5, "result": 0})json");
  EXPECT_EQ(arguments(names, r), expected);
  r = some_record(Kind::gpu_copy);
  r.gpu_copy.bytes = 4096;
  r.gpu_copy.direction = 1;
  r.gpu_copy.source_kind = 2;
  r.gpu_copy.destination_kind = 3;
  r.gpu_copy.peer_source = r.gpu_copy.peer_destination = 0xffff;
  expected = nlohmann::json::parse(R"json({"bytes": 4096, "direction": "HtoD",
    "source_kind": "Pinned", "destination_kind": "Device"})json");
  EXPECT_EQ(arguments(names, r), expected);
}

TEST(RecordFields, collective) {
  MemoryNames names;
  Record r = some_record(Kind::collective);
  r.api = names.api("ncclAllReduce", 3);
  r.collective.communicator = 0xc0;
  r.collective.count = 1u << 20;
  r.collective.stream = 9;
  r.collective.sequence = 3;
  r.collective.peer = -1;
  r.collective.rank_count = 8;
  r.collective.rank = 5;
  r.collective.data_type = 7;
  r.collective.operation = 0;
  nlohmann::json expected = nlohmann::json::parse(R"json({"communicator": 192, "count": 1048576,
    "data_type": 7, "operation": 0, "rank": 5, "rank_count": 8, "sequence": 3, "stream_handle": 9,
    "result": 0})json");
  EXPECT_EQ(arguments(names, r), expected);
}

TEST(RecordFields, nvtx_text_may_be_anything) {
  MemoryNames names;
  Record r = some_record(Kind::nvtx_range);
  r.nvtx.message = names.intern("a\"b\\c\nd\x01\xff");
  r.nvtx.domain = names.intern("trainer");
  r.nvtx.depth = 2;
  r.nvtx.color = 0xff00ff00;
  const nlohmann::json json = arguments(names, r);
  EXPECT_EQ(json["message"], "a\"b\\c\nd\x01\xef\xbf\xbd");
  EXPECT_EQ(json["domain"], "trainer");
  EXPECT_EQ(json["depth"], 2);
  EXPECT_EQ(json["color"], 0xff00ff00u);
}

TEST(RecordFields, text_has_the_same_keys) {
  std::string out;
  FieldWriter writer(FieldWriter::Style::text, out);
  writer.number("bytes", uint64_t{12});
  writer.number("result", int64_t{-1});
  writer.address("address", 0xff);
  writer.list("grid", {4, 2, 1});
  writer.text("message", "x\ny");
  EXPECT_EQ(out, " bytes=12 result=-1 address=0xff grid=4x2x1 message=\"x\\ny\"");
}

TEST(RecordFields, help_names_every_key) {
  const std::string help = kRecordKeys;
  for (const Kind kind :
       {Kind::call, Kind::launch, Kind::copy, Kind::set, Kind::alloc, Kind::dealloc, Kind::sync,
        Kind::event, Kind::stream, Kind::collective, Kind::nvtx_range, Kind::nvtx_mark,
        Kind::gpu_kernel, Kind::gpu_copy, Kind::gpu_set, Kind::gpu_sync, Kind::gpu_event,
        Kind::gpu_memory, Kind::overhead}) {
    MemoryNames names;
    Record r = some_record(kind);
    for (uint64_t& word : r.words) word = 0x0001'0001'0001'0001;
    EXPECT_TRUE(std::regex_search(help, std::regex("\\b" + std::string(kind_name(kind)) + "\\b")));
    const nlohmann::json json = arguments(names, r);
    EXPECT_FALSE(json.empty());
    for (const auto& [key, value] : json.items()) {
      EXPECT_TRUE(std::regex_search(help, std::regex("\\b" + key + "\\b"))) << key;
    }
  }
}

}  // namespace
}  // namespace gpuprof::test
