// SPDX-License-Identifier: Apache-2.0
// Writes the golden dump of the current format version: make_golden tests/golden/versionN.gpuprof.
// Run once when a version is released; the file is then kept for ever, so that it can be seen that
// later readers still load it.
#include <cstdio>
#include <iterator>

#include "formats/io/file_bytes.h"
#include "tests/unit/support/dump_maker.h"

namespace gpuprof::test {
namespace {

constexpr uint64_t us(uint64_t microseconds) { return 10'000'000 + microseconds * kTicksPerUs; }

dump::Header golden_header() {
  dump::Header header = make_header(1);
  header.set_host("golden");
  header.clear_command();
  header.add_command("python");
  header.add_command("train.py");
  header.set_executable("/usr/bin/python3");
  header.set_run("20260101-000000-1");
  header.set_schedule("skip_first=10,wait=0,warmup=2,active=2,repeat=1");
  dump::Setting* const setting = header.add_setting();
  setting->set_name("GPUPROF_SCHEDULE");
  setting->set_value(header.schedule());
  setting->set_source("environment");
  header.set_driver_version(13000);
  header.set_runtime_version(13000);
  header.set_cupti_version(130000);
  header.set_nccl_version(22809);
  return header;
}

void add(BatchEncoder& encoder, Record record, uint32_t correlation = 0) {
  record.correlation = correlation;
  if (!encoder.add(record, 4242, "main")) throw std::bad_alloc();
}

void add_calls(BatchEncoder& encoder, MemoryNames& names) {
  Record r = make_record(Kind::call, us(1), us(2), names.api("cudaFuncSetAttribute"));
  r.call.handle = 0x1234;
  add(encoder, r);
  r = make_record(Kind::nvtx_range, us(0), us(900));
  r.nvtx.message = names.intern("step");
  r.nvtx.domain = names.intern("train");
  add(encoder, r);
  r = make_record(Kind::nvtx_mark, us(5), us(5));
  r.nvtx.message = names.intern("mark");
  add(encoder, r);
  r = make_record(Kind::alloc, us(10), us(20), names.api("cudaMalloc"));
  r.memory.address = 0x7f0000000000;
  r.memory.bytes = 1 << 20;
  add(encoder, r, 1);
  r.kind = Kind::dealloc;
  r.begin = us(800), r.end = us(810), r.api = names.api("cudaFree");
  add(encoder, r, 2);
  for (const Kind kind : {Kind::sync, Kind::event, Kind::stream}) {
    r = make_record(kind, us(100 + 10 * static_cast<uint64_t>(kind)),
                    us(105 + 10 * static_cast<uint64_t>(kind)), names.api("cudaStreamSynchronize"));
    r.sync.stream = 0x5000;
    r.sync.event = 0x6000;
    add(encoder, r, 10 + static_cast<uint32_t>(kind));
  }
}

void add_work(BatchEncoder& encoder, MemoryNames& names) {
  Record r = make_record(Kind::collective, us(300), us(320), names.api("ncclAllReduce", 3));
  r.collective.communicator = 0x9000;
  r.collective.count = 1024;
  r.collective.stream = 0x5000;
  r.collective.peer = -1;
  r.collective.rank_count = 2;
  r.collective.data_type = 7;
  add(encoder, r);
  r = make_record(Kind::launch, us(305), us(312), names.api("cudaLaunchKernel"));
  r.launch.function = 0x400100;
  r.launch.stream = 0x5000;
  r.launch.grid_x = 128, r.launch.grid_y = r.launch.grid_z = 1;
  r.launch.block_x = 256, r.launch.block_y = r.launch.block_z = 1;
  names.name_function(0x400100, "_Z4gemmPf");
  add(encoder, r, 30);
  r = make_record(Kind::gpu_kernel, us(330), us(370));
  r.gpu_kernel.name = names.intern("_Z4gemmPf");
  r.gpu_kernel.shape = names.shape({{128, 1, 1}, {256, 1, 1}, 1024, 2048, 40, 1, 1, 1, 0, 0});
  r.gpu_kernel.stream = 13, r.gpu_kernel.context = 1;
  add(encoder, r, 30);
  r = make_record(Kind::copy, us(400), us(410), names.api("cudaMemcpyAsync"));
  r.copy.destination = 0x7f0000000000, r.copy.source = 0x7e0000000000, r.copy.bytes = 4096;
  r.copy.direction = 1, r.copy.stream = 0x5000;
  add(encoder, r, 31);
  r = make_record(Kind::set, us(420), us(425), names.api("cudaMemsetAsync"));
  r.set.address = 0x7f0000000000, r.set.bytes = 4096, r.set.value = 255;
  add(encoder, r, 32);
  r = make_record(Kind::gpu_copy, us(430), us(440));
  r.gpu_copy.bytes = 4096, r.gpu_copy.stream = 13, r.gpu_copy.context = 1;
  r.gpu_copy.direction = 1, r.gpu_copy.source_kind = 2, r.gpu_copy.destination_kind = 3;
  r.gpu_copy.peer_source = r.gpu_copy.peer_destination = 0xffff;
  add(encoder, r, 31);
  r.kind = Kind::gpu_set;
  r.begin = us(441), r.end = us(445), r.gpu_copy.value = 255;
  add(encoder, r, 32);
  for (const Kind kind : {Kind::gpu_sync, Kind::gpu_event}) {
    r = make_record(kind, us(500), us(520));
    r.gpu_sync.type = 3, r.gpu_sync.stream = 13, r.gpu_sync.context = 1, r.gpu_sync.event_id = 4;
    add(encoder, r, 17);
  }
  r = make_record(Kind::gpu_memory, us(15), us(15));
  r.gpu_memory.address = 0x7f0000000000, r.gpu_memory.bytes = 1 << 20;
  r.gpu_memory.operation = 1, r.gpu_memory.memory_kind = 3;
  add(encoder, r, 1);
  r = make_record(Kind::overhead, us(600), us(640));
  r.overhead.type = 1 << 16, r.overhead.object_kind = 2, r.overhead.object = 4243;
  add(encoder, r);
}

ByteBuffer golden_dump() {
  MemoryNames names;
  ByteBuffer out;
  append(out, ChunkKind::header, golden_header());
  BatchEncoder encoder(names);
  encoder.begin(0, 1);
  add_calls(encoder, names);
  add_work(encoder, names);
  if (!encoder.add_ring_chunk(1, kRecordsPerChunk) || !encoder.add_ring_chunk(2, kRecordsPerChunk))
    throw std::bad_alloc();
  append_events(out, encoder);
  append_steps(out, {us(0), us(450), us(900)}, 12, 1);
  dump::Summary summary = make_summary(us(900), 12, 13);
  dump::LossCount* const loss = summary.add_loss();
  loss->set_cause(static_cast<uint32_t>(Loss::cupti_dropped));
  loss->set_count(3);
  append(out, ChunkKind::summary, summary);
  return out;
}

}  // namespace
}  // namespace gpuprof::test

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: make_golden FILE\n");
    return 2;
  }
  const gpuprof::ByteBuffer dump = gpuprof::test::golden_dump();
  gpuprof::OutputFile file(argv[1]);
  file.write(dump.data(), dump.size());
  if (file.commit()) return 0;
  std::fprintf(stderr, "%s\n", file.error().c_str());
  return 1;
}
