// SPDX-License-Identifier: Apache-2.0
// Writes the seeds of the fuzz targets: make_corpus tests/fuzz/corpus.
#include <cstdio>
#include <string>

#include "formats/file_bytes.h"
#include "tests/unit/ring_maker.h"

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
  ByteBuffer events, steps, whole;
  if (!encoder.finish(events)) return false;
  append(whole, ChunkKind::header, make_header(1));
  if (!append_chunk(whole, ChunkKind::events, events.data(), events.size(), 0)) return false;
  append_steps(whole, {2'000'000, 3'000'000, 4'000'000}, 0, 1);
  append(whole, ChunkKind::summary, make_summary(5'000'000, 0, 1));
  const uint64_t boundaries[] = {2'000'000, 3'000'000};
  if (!encode_steps(steps, boundaries, 2, 0, 1, "sync:1")) return false;
  return write(folder + "/whole.gpuprof", view(whole)) &&
         write(folder + "/events.body", view(events)) &&
         write(folder + "/steps.body", view(steps)) &&
         write(folder + "/header.body", body_of(make_header(1)));
}

// Without trailing zeros: the target puts them back.
bool write_ring(const std::string& folder) {
  RingMaker ring(1, 2048);
  const ApiId api = ring.add_api("cudaLaunchKernel");
  ring.add_function(0x400100, "_Z4gemmPf");
  Record call = make_record(Kind::launch, 3'000'000, 3'010'000, api);
  call.launch.function = 0x400100;
  ring.fill(0, 1, 10, {call, call, call});
  ring.add_step(2'000'000);
  ring.add_step(3'000'000);
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
