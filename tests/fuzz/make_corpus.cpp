// SPDX-License-Identifier: Apache-2.0
// Writes the seeds of the fuzz targets: make_corpus tests/fuzz/corpus.
#include <cstdio>
#include <string>

#include "formats/core/graph_node.h"
#include "formats/core/live_memory.h"
#include "formats/io/file_bytes.h"
#include "tests/unit/support/ring_maker.h"

namespace gpuprof::test {
namespace {

bool write(const std::string& path, std::string_view bytes) {
  OutputFile file(path);
  file.write(bytes);
  if (file.commit()) return true;
  std::fprintf(stderr, "%s\n", file.error().c_str());
  return false;
}

std::string body_of(const dump::Header& message) { return message.SerializeAsString(); }

// A stack of a native frame and one of Python.
StringId stack_of(MemoryNames& names) {
  const PythonCodeName code{names.intern("train.py"), names.intern("main")};
  const StringId id = names.intern({reinterpret_cast<const char*>(&code), sizeof code});
  return names.intern_stack({0x1010, kPythonFrame | uint64_t{12} << 32 | id});
}

LiveRow live_row(uint64_t address, ApiId api, StringId stack) {
  return {address, 4096, 2'500'000, 0, 10, stack, api, 0, {}};
}

bool encode_memory(ByteBuffer& out, MemoryNames& names) {
  const LiveRow rows[] = {live_row(0x8000, names.api("cudaMalloc"), 0),
                          live_row(0x8200, kNoApi, stack_of(names))};
  FailedAllocationRow failed{};
  failed.ticks = 4'000'000, failed.bytes = 1 << 20, failed.number = 1, failed.api = kNoApi;
  AllocatorRow allocators[kMostAllocators]{};
  allocators[0].peak = 4096;
  return encode_live_memory(
      out, {LiveMoment::out_of_memory, 4'000'000, rows, 2, &failed, allocators}, names, 1);
}

bool encode_graphs(ByteBuffer& out, MemoryNames& names) {
  WireWriter wire(out);
  PythonCodes codes;
  const GraphNodeRow row{100, 2'500'000, 7, 3, 10, stack_of(names), names.api("cudaLaunchKernel"),
                         {}};
  if (!write_graph_node(wire, row, "cudaLaunchKernel", names.stack(row.stack), 1, codes))
    return false;
  write_graph_codes(wire, codes, [&](StringId id) { return names.string(id); });
  return wire.ok();
}

bool write_dumps(const std::string& folder) {
  MemoryNames names;
  BatchEncoder encoder(names);
  encoder.begin(0, 1);
  for (uint32_t i = 0; i < 20; ++i) {
    Record call = make_record(Kind::launch, 3'000'000 + i * 1000, 3'000'500 + i * 1000,
                              names.api("cudaLaunchKernel"));
    call.correlation = i + 1;
    call.launch.function = names.intern("_Z4gemmPf");
    call.flags = kFlagNamed;
    Record work = make_record(Kind::gpu_kernel, 3'100'000 + i * 1000, 3'100'900 + i * 1000);
    work.correlation = i + 1;
    work.gpu_kernel.name = static_cast<StringId>(call.launch.function);
    if (!encoder.add(call, 10, "main") || !encoder.add(work, 10, "main")) return false;
  }
  for (const bool released : {false, true}) {
    Record stack = make_record(Kind::stack, 3'200'000, 3'200'000);
    stack.stack.stack = stack_of(names);
    Record heap = make_record(Kind::heap, 3'200'000, 3'200'000);
    heap.heap = {0x7000, 4096, 1024, names.intern(released ? "free" : "malloc"), released};
    if (!released && !encoder.add(stack, 10, "main")) return false;
    if (!encoder.add(heap, 10, "main")) return false;
  }
  ByteBuffer events, steps, whole, live, graphs;
  if (!encoder.finish(events)) return false;
  append(whole, ChunkKind::header, make_header(1));
  if (!append_chunk(whole, ChunkKind::events, events.data(), events.size(), 0)) return false;
  append_steps(whole, {2'000'000, 3'000'000, 4'000'000}, 0, 1);
  append(whole, ChunkKind::summary, make_summary(5'000'000, 0, 1));
  const uint64_t boundaries[] = {2'000'000, 3'000'000};
  if (!encode_steps(steps, boundaries, 2, 0, 1, "sync:1")) return false;
  if (!encode_memory(live, names) || !encode_graphs(graphs, names)) return false;
  return write(folder + "/whole.gpuprof", view(whole)) &&
         write(folder + "/live_memory.body", view(live)) &&
         write(folder + "/graphs.body", view(graphs)) &&
         write(folder + "/events.body", view(events)) &&
         write(folder + "/steps.body", view(steps)) &&
         write(folder + "/header.body", body_of(make_header(1)));
}

// Without trailing zeros: the target puts them back.
bool write_ring(const std::string& folder) {
  RingMaker ring(1, 2048, true);
  const ApiId api = ring.add_api("cudaLaunchKernel");
  ring.add_function(0x400100, "_Z4gemmPf");
  Record call = make_record(Kind::launch, 3'000'000, 3'010'000, api);
  call.launch.function = 0x400100;
  ring.fill(0, 1, 10, {call, call, call});
  ring.add_step(2'000'000);
  ring.add_step(3'000'000);
  const StringId stack = ring.add_stack({0x1010, 0x2020});
  ring.add_graph_node({100, 2'500'000, 7, 3, 10, stack, api, {}});
  if (!ring.add_live(live_row(0x8000, api, stack))) return false;
  ring.add_live_at_begin(live_row(0x9000, api, stack));
  std::string bytes = ring.bytes();
  bytes.resize(bytes.find_last_not_of('\0') + 1);
  return write(folder + "/small.gpuprof.ring", bytes);
}

}  // namespace
}  // namespace gpuprof::test

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: make_corpus DIR\n");
    return 2;
  }
  const std::string folder = argv[1];
  const bool written =
      gpuprof::test::write_dumps(folder + "/dump") && gpuprof::test::write_ring(folder + "/ring");
  return written ? 0 : 1;
}
