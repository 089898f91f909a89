// SPDX-License-Identifier: Apache-2.0
// A trace that is valid and as awkward as they come: names with quotes, control characters, bytes
// that are not UTF-8, 64 KB of them and none; work that takes no time or ends before it begins; ids
// above 2^53; 64 GPUs and 10,000 threads.
#pragma once

#include <string>

#include "tests/unit/support/dump_maker.h"
#include "tests/unit/support/trace_maker.h"

namespace gpuprof::test {

inline constexpr uint32_t kHostileGpus = 64, kHostileThreads = 10'000;

inline Trace hostile_trace() {
  MemoryNames names;
  BatchEncoder encoder(names);
  encoder.begin(0, 1);
  constexpr char kControls[] = "control \x01\x1f\x7f \n\r\t zero \0 end";
  const std::string awkward[] = {"quote \" backslash \\ slash /",
                                 std::string(kControls, sizeof kControls - 1),
                                 "\xff\xfe\xc3\x28 \xed\xa0\x80 \xf4\x90\x80\x80 \xe2\x82",
                                 std::string(65'536, 'x') + "\xe2",
                                 "",
                                 "</script><script>",
                                 "ProfilerStep#not a number",
                                 "nccl:all_reduce",
                                 "{\"name\": [1, 2"};
  uint32_t correlation = 0xffff'ff00;
  const auto add = [&](Record r, uint32_t thread) {
    if (!encoder.add(r, thread, "worker\xff\"\n")) throw std::bad_alloc();
  };
  for (uint32_t i = 0; i < kHostileThreads; ++i) {
    const uint64_t at = ticks_at(i % 900);
    const size_t kind = i % std::size(awkward);
    const std::string& name = awkward[kind == 3 && i > 100 ? 0 : kind];  // the long one ten times
    Record range = make_record(Kind::nvtx_range, at, i % 3 ? at + 10'000 : at);
    range.nvtx.message = names.intern(name);
    range.nvtx.payload = ~uint64_t{0} - i;
    add(range, 100'000 + i);
    Record launch = make_record(Kind::launch, at + 1, at + 1, names.api("cudaLaunchKernel"));
    launch.launch.function = names.intern(name);
    launch.flags = kFlagNamed;
    launch.launch.stream = ~uint64_t{0} - i % 7;
    launch.correlation = ++correlation ? correlation : ++correlation;
    add(launch, 100'000 + i);
    Record kernel = make_record(Kind::gpu_kernel, at + 2, i % 5 ? at + 5'000 : at + (i % 2));
    kernel.gpu_kernel.name = launch.launch.function;
    kernel.gpu_kernel.device = static_cast<uint8_t>(i % kHostileGpus);
    kernel.gpu_kernel.stream = i % 11 ? i % 11 : 0xfffffff0;
    kernel.gpu_kernel.context = i % 3;
    kernel.correlation = launch.correlation;
    add(kernel, 100'000 + i);
    Record memory = make_record(Kind::alloc, at + 3, at + 3, names.api("cudaMalloc"));
    memory.memory.address = ~uint64_t{0} - i * 4096;
    memory.memory.bytes = i % 2 ? uint64_t{1} << 50 : 0;
    add(memory, 100'000 + i);
  }
  ByteBuffer bytes;
  dump::Header header = make_header(1, 0);
  header.set_host("host \"\x01\xff/../" + std::string(300, 'h'));
  header.add_command("program \xff \"x\"");
  append(bytes, ChunkKind::header, header);
  append_events(bytes, encoder);
  append_steps(bytes, {ticks_at(0), ticks_at(500), ticks_at(500), ticks_at(1000)}, 12, 1);
  append(bytes, ChunkKind::summary, make_summary(ticks_at(1000), 12, 14));
  return load(view(bytes));
}

}  // namespace gpuprof::test
