// SPDX-License-Identifier: Apache-2.0
// usage: bare_copy write|gzip FILE OUT [THREADS]. What nobody who writes such a file can do
// without: the same bytes written from memory that is warm, or compressed in members of a megabyte
// by libdeflate's fastest level. Prints the seconds; reading FILE is not counted.
#include <fcntl.h>
#include <libdeflate.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace {

constexpr size_t kPart = 1 << 20;
constexpr int kLevel = 1;

bool put(int file, const void* data, size_t size, off_t at) {
  const auto* bytes = static_cast<const char*>(data);
  while (size) {
    const ssize_t done = ::pwrite(file, bytes, size, at);
    if (done <= 0) return false;
    bytes += done, size -= static_cast<size_t>(done), at += done;
  }
  return true;
}

bool write_all(std::string_view bytes, int out) {
  for (size_t at = 0; at < bytes.size(); at += kPart) {
    if (!put(out, bytes.data() + at, std::min(kPart, bytes.size() - at), static_cast<off_t>(at)))
      return false;
  }
  return true;
}

// Members at the places that they would have uncompressed: only the work counts here.
bool compress_all(std::string_view bytes, int out, unsigned threads) {
  std::atomic<size_t> next{0};
  std::atomic<bool> good{true};
  const auto work = [&] {
    libdeflate_compressor* const compressor = libdeflate_alloc_compressor(kLevel);
    std::vector<char> member(libdeflate_gzip_compress_bound(compressor, kPart));
    for (size_t at; (at = next.fetch_add(kPart)) < bytes.size();) {
      const size_t size = libdeflate_gzip_compress(compressor, bytes.data() + at,
                                                   std::min(kPart, bytes.size() - at),
                                                   member.data(), member.size());
      if (!put(out, member.data(), size, static_cast<off_t>(at))) good = false;
    }
    libdeflate_free_compressor(compressor);
  };
  std::vector<std::thread> others;
  for (unsigned i = 1; i < threads; ++i) others.emplace_back(work);
  work();
  for (std::thread& thread : others) thread.join();
  return good;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) {
    std::fprintf(stderr, "usage: %s write|gzip FILE OUT [THREADS]\n", argv[0]);
    return 2;
  }
  const int in = ::open(argv[2], O_RDONLY | O_CLOEXEC);
  const int out = ::open(argv[3], O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  struct stat info {};
  if (in < 0 || out < 0 || ::fstat(in, &info) != 0) return std::perror(argv[0]), 1;
  const auto size = static_cast<size_t>(info.st_size);
  void* const map = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE | MAP_POPULATE, in, 0);
  if (map == MAP_FAILED) return std::perror(argv[0]), 1;
  const std::string_view bytes(static_cast<const char*>(map), size);
  const auto begin = std::chrono::steady_clock::now();
  const bool good =
      argv[1][0] == 'w'
          ? write_all(bytes, out)
          : compress_all(bytes, out, argc > 4 ? static_cast<unsigned>(std::atoi(argv[4])) : 1);
  if (!good) return std::perror(argv[0]), 1;
  std::printf("%.3f\n",
              std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  return 0;
}
