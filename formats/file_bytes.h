// SPDX-License-Identifier: Apache-2.0
// Reading input files and writing output files that are complete or absent.
#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>

namespace gpuprof {

// The whole of a regular file. On failure returns false and sets `reason` (without the file's
// name).
bool read_file(const std::string& path, std::string& bytes, std::string& reason);

enum class Compression { none, gzip };

// Writes to a temporary file beside `path` (mode 0600 less the umask's bits) and renames it in
// commit(); without a successful commit nothing is left behind. Errors are kept until commit().
// gzip: a member for each megabyte (RFC 1952, section 2.2), which every reader of the format takes.
// Not thread-safe.
class OutputFile {
 public:
  explicit OutputFile(std::string path, Compression compression = Compression::none);
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;
  ~OutputFile();

  bool ok() const { return error_.empty(); }
  void write(const void* data, size_t size);
  void write(std::string_view text) { write(text.data(), text.size()); }
  uint64_t bytes_written() const { return written_; }  // to disk
  // False when anything failed; error() then says what, naming the file.
  bool commit();
  const std::string& error() const { return error_; }

 private:
  class Gzip;
  void flush();
  void put(const char* data, size_t size);
  void fail(const char* what);

  std::string path_, temporary_, error_;
  std::string buffer_;
  std::unique_ptr<Gzip> gzip_;  // null: not compressed
  uint64_t written_ = 0;
  int file_ = -1;
};

}  // namespace gpuprof
