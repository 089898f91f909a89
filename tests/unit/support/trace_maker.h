// SPDX-License-Identifier: Apache-2.0
// A trace with something of everything that exporters draw, on two ranks.
#pragma once

#include <string>

#include "tests/unit/support/dump_maker.h"

namespace gpuprof::test {

// Ticks of `us` microseconds into the window.
inline uint64_t ticks_at(uint64_t us) { return 10'000'000 + us * kTicksPerUs; }

inline std::string busy_dump(int rank) {
  MemoryNames names;
  BatchEncoder encoder(names);
  encoder.begin(0, 1);
  const auto thread = static_cast<uint32_t>(4242 + rank);
  const auto add = [&](Record r, uint32_t correlation = 0, uint32_t on = 0) {
    r.correlation = correlation;
    if (!encoder.add(r, on ? on : thread, "python\xff")) throw std::bad_alloc();
  };
  const auto launch = [&](uint64_t us, uint32_t correlation, std::string_view api,
                          std::string_view kernel) {
    Record r = make_record(Kind::launch, ticks_at(us), ticks_at(us + 4), names.api(api));
    r.launch.function = names.intern(kernel);
    r.flags = kFlagNamed;
    r.launch.stream = 0x5000;
    r.launch.grid_x = 64, r.launch.grid_y = r.launch.grid_z = 1;
    r.launch.block_x = 128, r.launch.block_y = r.launch.block_z = 1;
    add(r, correlation);
  };
  const auto kernel = [&](uint64_t us, uint64_t length, uint32_t correlation, std::string_view name,
                          uint32_t stream = 7) {
    Record r = make_record(Kind::gpu_kernel, ticks_at(us), ticks_at(us + length));
    r.gpu_kernel.name = names.intern(name);
    r.gpu_kernel.shape = names.shape({{64, 1, 1}, {128, 1, 1}, 0, 1024, 40, 1, 1, 1, 0, 0});
    r.gpu_kernel.stream = stream;
    r.gpu_kernel.context = 1;
    add(r, correlation);
  };
  // NVTX: a nested pair, one that overlaps calls, a start/end range, a mark with an awkward name.
  const auto range = [&](uint64_t begin, uint64_t end, std::string_view text, uint64_t id = 0) {
    Record r = make_record(Kind::nvtx_range, ticks_at(begin), ticks_at(end));
    r.nvtx.message = names.intern(text);
    r.nvtx.range_id = id;
    add(r);
  };
  range(1, 480, "forward");
  range(5, 200, "layer \"0\"\n\x01 \xff");
  range(2, 600, "async a", 1);
  range(300, 900, "async b", 2);
  Record open = make_record(Kind::nvtx_range, ticks_at(930), ticks_at(990));
  open.nvtx.message = names.intern("validate");
  open.flags = kFlagOpenEnd;
  add(open);
  Record mark = make_record(Kind::nvtx_mark, ticks_at(7), ticks_at(7));
  mark.nvtx.message = names.intern("mark\t\"x\"");
  add(mark);

  launch(10, 1, "cudaLaunchKernel", "_Z4gemmPf");
  Record inner =
      make_record(Kind::launch, ticks_at(11), ticks_at(13), names.api("cuLaunchKernel", 2));
  inner.flags = kFlagFromCallback | kFlagDriver;
  add(inner, 1);  // the same launch once more, below the runtime
  launch(20, 2, "cudaLaunchKernel", "_Z4reluPf");
  kernel(30, 100, 1, "_Z4gemmPf");
  kernel(90, 100, 2, "_Z4reluPf");  // overlaps the first on its stream
  launch(40, 3, "cudaGraphLaunch", "");
  kernel(200, 10, 3, "_Z5node1v");
  kernel(212, 10, 3, "_Z5node2v");

  Record copy = make_record(Kind::copy, ticks_at(50), ticks_at(60), names.api("cudaMemcpyAsync"));
  copy.copy.bytes = 1 << 20, copy.copy.stream = 0x5000, copy.copy.direction = 1;
  add(copy, 4);
  Record moved = make_record(Kind::gpu_copy, ticks_at(230), ticks_at(250));
  moved.gpu_copy.bytes = 1 << 20, moved.gpu_copy.stream = 7, moved.gpu_copy.context = 1;
  moved.gpu_copy.direction = 1, moved.gpu_copy.source_kind = 2, moved.gpu_copy.destination_kind = 3;
  moved.gpu_copy.peer_source = moved.gpu_copy.peer_destination = 0xffff;
  add(moved, 4);
  Record set = make_record(Kind::set, ticks_at(62), ticks_at(64), names.api("cudaMemsetAsync"));
  set.set.bytes = 4096;
  add(set, 5);
  moved.kind = Kind::gpu_set;
  moved.begin = ticks_at(251), moved.end = ticks_at(252);
  add(moved, 5);

  Record collective =
      make_record(Kind::collective, ticks_at(300), ticks_at(310), names.api("ncclAllReduce", 3));
  collective.collective.communicator = ~uint64_t{0};
  collective.collective.count = 1024, collective.collective.data_type = 7;
  collective.collective.peer = -1, collective.collective.rank_count = 2;
  collective.collective.rank = static_cast<uint16_t>(rank);
  add(collective);
  launch(302, 6, "cudaLaunchKernelExC", "ncclDevKernel_AllReduce");
  kernel(320, 60, 6, "ncclDevKernel_AllReduce", 20);

  Record record =
      make_record(Kind::event, ticks_at(400), ticks_at(401), names.api("cudaEventRecord"));
  record.sync.event = 0x77, record.sync.stream = 0x5000;
  add(record, 7);
  Record wait =
      make_record(Kind::stream, ticks_at(402), ticks_at(403), names.api("cudaStreamWaitEvent"));
  wait.sync.event = 0x77;
  add(wait, 8);
  const auto gpu_sync = [&](uint64_t begin, uint64_t end, uint32_t type, uint32_t stream,
                            uint32_t correlation) {
    Record r = make_record(Kind::gpu_sync, ticks_at(begin), ticks_at(end));
    r.gpu_sync.type = type, r.gpu_sync.stream = stream, r.gpu_sync.context = 1,
    r.gpu_sync.event_id = 3;
    add(r, correlation);
  };
  gpu_sync(402, 403, 2, 7, 8);
  Record sync =
      make_record(Kind::sync, ticks_at(410), ticks_at(450), names.api("cudaDeviceSynchronize"));
  add(sync, 9);
  gpu_sync(411, 449, 4, 0xffffffff, 9);

  Record memory = make_record(Kind::alloc, ticks_at(460), ticks_at(465), names.api("cudaMalloc"));
  memory.memory.address = 0x7f0000000000, memory.memory.bytes = 4096;
  add(memory, 10);
  memory.kind = Kind::dealloc, memory.api = names.api("cudaFree");
  memory.begin = ticks_at(470), memory.end = ticks_at(475), memory.memory.bytes = 0;
  add(memory, 11);

  Record driver =
      make_record(Kind::call, ticks_at(480), ticks_at(700), names.api("cuModuleLoad", 2));
  driver.flags = kFlagDriver;
  add(driver);  // crosses the step boundary at 500
  add(make_record(Kind::dealloc, ticks_at(20), ticks_at(25), names.api("cudaFree")), 12,
      thread + 50);
  Record overhead = make_record(Kind::overhead, ticks_at(600), ticks_at(640));
  overhead.overhead.type = 1 << 16;
  add(overhead);
  Record untimed = make_record(Kind::gpu_kernel, 0, 0);
  untimed.flags = kFlagNoTime;
  untimed.gpu_kernel.name = names.intern("_Z4lostv");
  untimed.gpu_kernel.stream = 7, untimed.gpu_kernel.context = 1;
  add(untimed, 13);

  ByteBuffer bytes;
  append(bytes, ChunkKind::header, make_header(1, rank));
  append_events(bytes, encoder);
  append_steps(bytes, {ticks_at(0), ticks_at(500), ticks_at(1000)}, 12, 1);
  append(bytes, ChunkKind::summary, make_summary(ticks_at(1000), 12, 13));
  return std::string(view(bytes));
}

// Three launches, two of them with stacks, in a program at 0x1000 and a library at 0x2000, and a
// call without; 0x9000 is in no file.
inline dump::Events stacks_events() {
  MemoryNames names;
  BatchEncoder encoder(names);
  encoder.begin(0, 1);
  const StringId first = names.intern_stack({0x1010, 0x2020, 0x1030, 0x9000});
  const StringId second = names.intern_stack({0x1018, 0x1030});
  const auto add = [&](Record r) {
    if (!encoder.add(r, 4242, "python")) throw std::bad_alloc();
  };
  const auto launch = [&](uint64_t us, StringId stack, uint64_t stack_us) {
    if (stack) {
      Record r = make_record(Kind::stack, ticks_at(stack_us), ticks_at(stack_us + 4));
      r.stack.stack = stack;
      add(r);
    }
    add(make_record(Kind::launch, ticks_at(us), ticks_at(us + 4), names.api("cudaLaunchKernel")));
  };
  launch(10, first, 10);
  launch(20, second, 20);
  launch(30, first, 30);
  launch(40, second, 39);  // a stack whose call is missing
  launch(50, 0, 0);
  ByteBuffer body;
  dump::Events events;
  if (!encoder.finish(body) || !events.ParseFromArray(body.data(), static_cast<int>(body.size()))) {
    throw std::bad_alloc();
  }
  return events;
}

inline std::string stacks_dump() {
  ByteBuffer bytes;
  append(bytes, ChunkKind::header, make_header(1));
  append(bytes, ChunkKind::events, stacks_events());
  dump::Modules modules;
  const auto module = [&](uint64_t begin, std::string path, std::string id) {
    dump::Module& m = *modules.add_module();
    m.set_begin(begin), m.set_end(begin + 0x100), m.set_bias(begin - 0x40);
    m.set_path(std::move(path)), m.set_build_id(std::move(id));
  };
  module(0x1000, "/opt/train", "\x12\xab");
  module(0x2000, "/usr/lib/libx.so", "");
  append(bytes, ChunkKind::modules, modules);
  append(bytes, ChunkKind::modules, modules);  // each names all
  append(bytes, ChunkKind::summary, make_summary(ticks_at(1000)));
  return std::string(view(bytes));
}

inline Trace busy_trace(int ranks) {
  std::string bytes;
  for (int rank = 0; rank < ranks; ++rank) bytes += busy_dump(rank);
  return load(bytes);
}

}  // namespace gpuprof::test
