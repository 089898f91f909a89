// SPDX-License-Identifier: Apache-2.0
// Makes dumps for tests: names in memory instead of a ring, records with known contents.
#pragma once

#include <map>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "formats/core/chunk.h"
#include "formats/core/encode.h"
#include "formats/dump/trace_builder.h"
#include "formats/gpuprof.pb.h"
#include "formats/trace/trace.h"

namespace gpuprof::test {

class MemoryNames : public NameResolver {
 public:
  StringId intern(std::string_view text) {
    for (size_t i = 0; i < strings_.size(); ++i) {
      if (strings_[i] == text) return static_cast<StringId>(i + 1);
    }
    strings_.emplace_back(text);
    return static_cast<StringId>(strings_.size());
  }
  ApiId api(std::string_view name, uint32_t domain = 1) {
    for (size_t i = 0; i < apis_.size(); ++i) {
      if (apis_[i].first == name) return static_cast<ApiId>(i);
    }
    apis_.emplace_back(name, domain);
    return static_cast<ApiId>(apis_.size() - 1);
  }
  void name_function(uint64_t function, std::string_view name) { functions_[function] = name; }
  uint32_t shape(const LaunchShape& shape) {
    shapes_.push_back(shape);
    return static_cast<uint32_t>(shapes_.size());
  }
  StringId intern_stack(const std::vector<uint64_t>& frames) {
    stacks_.emplace_back(reinterpret_cast<const char*>(frames.data()),
                         frames.size() * sizeof(uint64_t));
    return static_cast<StringId>(stacks_.size());
  }

  std::string_view string(StringId id) const override {
    return id == 0 || id > strings_.size() ? std::string_view() : strings_[id - 1];
  }
  std::string_view api_name(ApiId api) const override {
    return api < apis_.size() ? std::string_view(apis_[api].first) : std::string_view();
  }
  uint32_t api_domain(ApiId api) const override {
    return api < apis_.size() ? apis_[api].second : 0;
  }
  std::string_view function_name(uint64_t function) const override {
    const auto found = functions_.find(function);
    return found == functions_.end() ? std::string_view() : std::string_view(found->second);
  }
  const LaunchShape* launch_shape(uint32_t id) const override {
    return id == 0 || id > shapes_.size() ? nullptr : &shapes_[id - 1];
  }
  std::string_view stack(StringId id) const override {
    return id == 0 || id > stacks_.size() ? std::string_view() : stacks_[id - 1];
  }

 private:
  std::vector<std::string> strings_, stacks_;
  std::vector<std::pair<std::string, uint32_t>> apis_;
  std::map<uint64_t, std::string> functions_;
  std::vector<LaunchShape> shapes_;
};

// 2 ticks are 1 ns; tick 2'000'000 is monotonic 1 s and the Unix time below.
inline constexpr int64_t kEpochNs = 1'700'000'000'000'000'000;
inline constexpr uint64_t kTicksPerUs = 2000;

inline dump::Header make_header(uint32_t shift = 0, int rank = 0) {
  dump::Header header;
  header.set_format_version(kFormatVersion);
  header.set_tool_version("0.1.0");
  header.set_host("node1");
  header.set_pid(4242 + static_cast<uint32_t>(rank));
  header.set_rank(rank);
  header.set_world_size(2);
  header.set_local_rank(rank);
  header.add_command("train");
  header.set_step_source("nvtx:step");
  header.mutable_clock()->set_source(dump::CLOCK_SOURCE_TSC);
  header.mutable_clock()->set_shift(shift);
  for (uint64_t i = 0; i < 2; ++i) {
    dump::ClockAnchor* const anchor = header.mutable_clock()->add_anchor();
    anchor->set_ticks(2'000'000 + i * 2'000'000'000);
    anchor->set_monotonic_ns(1'000'000'000 + i * 1'000'000'000);
    anchor->set_realtime_ns(kEpochNs + i * 1'000'000'000);
  }
  header.set_window_begin_ticks(2'000'000);
  dump::Device* const device = header.add_device();
  device->set_name("Test GPU");
  device->set_multiprocessors(132);
  device->set_total_memory_bytes(uint64_t{80} << 30);
  device->set_compute_major(9);
  device->set_max_threads_per_multiprocessor(2048);
  return header;
}

inline void append(ByteBuffer& out, ChunkKind kind, const google::protobuf::MessageLite& message) {
  const std::string body = message.SerializeAsString();
  if (!append_chunk(out, kind, reinterpret_cast<const uint8_t*>(body.data()), body.size(), 6)) {
    throw std::bad_alloc();
  }
}

inline void append_events(ByteBuffer& out, BatchEncoder& encoder) {
  ByteBuffer body;
  if (!encoder.finish(body) || !append_chunk(out, ChunkKind::events, body.data(), body.size(), 6)) {
    throw std::bad_alloc();
  }
}

// Boundaries in ticks, the first being boundary `first`.
inline void append_steps(ByteBuffer& out, const std::vector<uint64_t>& ticks, uint64_t first,
                         uint32_t shift, const char* source = "nvtx:step") {
  ByteBuffer body;
  if (!encode_steps(body, ticks.data(), ticks.size(), first, shift, source) ||
      !append_chunk(out, ChunkKind::steps, body.data(), body.size(), 6)) {
    throw std::bad_alloc();
  }
}

inline dump::Summary make_summary(uint64_t end_ticks, uint32_t first_step = 0,
                                  uint32_t last_step = 0) {
  dump::Summary summary;
  *summary.mutable_clock() = make_header().clock();
  summary.set_window_begin_ticks(2'000'000);
  summary.set_window_end_ticks(end_ticks);
  summary.set_first_step(first_step);
  summary.set_last_step(last_step);
  summary.set_end_reason("schedule");
  return summary;
}

inline std::string_view view(const ByteBuffer& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Reads a whole dump; its problems are in the trace.
inline Trace load(std::string_view bytes, ReadResult* result = nullptr) {
  Trace trace;
  TraceBuilder builder(trace, "test.gpuprof", bytes.size());
  const ReadResult read = read_chunks(bytes, "test.gpuprof", {}, builder, trace.problems);
  builder.finish();
  if (result) *result = read;
  return trace;
}

inline Record make_record(Kind kind, uint64_t begin, uint64_t end, ApiId api = kNoApi) {
  Record record{};
  record.kind = kind;
  record.begin = begin;
  record.end = end;
  record.api = api;
  return record;
}

}  // namespace gpuprof::test
