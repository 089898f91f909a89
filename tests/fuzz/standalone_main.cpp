// SPDX-License-Identifier: Apache-2.0
// Runs a fuzz target without libFuzzer: every file of the corpus as it is, then seeded mutations.
// usage: TARGET ITERATIONS CORPUS_DIR
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include "formats/io/file_bytes.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

using Random = std::mt19937_64;

void run(const std::string& bytes) {
  LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
}

size_t pick(Random& random, size_t limit) { return limit ? random() % limit : 0; }

void mutate(std::string& bytes, const std::vector<std::string>& corpus, Random& random) {
  if (bytes.empty()) bytes.push_back('\0');
  const size_t at = pick(random, bytes.size());
  switch (random() % 7) {
    case 0: bytes[at] = static_cast<char>(bytes[at] ^ 1 << random() % 8); break;
    case 1: bytes[at] = static_cast<char>(random()); break;
    case 2: bytes.resize(at); break;
    case 3: bytes.erase(at, pick(random, 64)); break;
    case 4: bytes.insert(at, std::string(pick(random, 16), static_cast<char>(random()))); break;
    case 5: {  // a number that is extreme
      const uint64_t extreme[] = {0, 1, 0x7f, 0x80, 0xffff, 0x7fffffff, 0xffffffff, ~uint64_t{0}};
      const uint64_t value = extreme[random() % std::size(extreme)];
      for (size_t i = 0; i < 8 && at + i < bytes.size(); ++i) {
        bytes[at + i] = static_cast<char>(value >> (8 * i));
      }
      break;
    }
    default: {  // a part of another input
      const std::string& other = corpus[random() % corpus.size()];
      const size_t from = pick(random, other.size());
      bytes.insert(at, other.substr(from, pick(random, 400)));
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: %s ITERATIONS CORPUS_DIR\n", argv[0]);
    return 2;
  }
  std::vector<std::string> corpus;
  for (const auto& entry : std::filesystem::directory_iterator(argv[2])) {
    std::string reason;
    if (!gpuprof::read_file(entry.path().string(), corpus.emplace_back(), reason)) {
      std::fprintf(stderr, "%s: %s\n", entry.path().c_str(), reason.c_str());
      return 2;
    }
  }
  if (corpus.empty()) {
    std::fprintf(stderr, "%s: no inputs\n", argv[2]);
    return 2;
  }
  for (const std::string& input : corpus) run(input);
  const long iterations = std::atol(argv[1]);
  for (long i = 0; i < iterations; ++i) {
    Random random(static_cast<uint64_t>(i));
    std::string input = corpus[random() % corpus.size()];
    for (uint64_t times = 1 + random() % 6; times > 0; --times) mutate(input, corpus, random);
    run(input);
  }
  std::printf("%zu inputs, %ld mutations\n", corpus.size(), iterations);
  return 0;
}
