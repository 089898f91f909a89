// SPDX-License-Identifier: Apache-2.0
// The text of a file, piece by piece, decompressed where it is gzip (of any number of members).
#pragma once

#include <zlib.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace gpuprof::kineto {

class ByteSource {
 public:
  explicit ByteSource(const std::string& path);
  ~ByteSource();
  ByteSource(const ByteSource&) = delete;
  ByteSource& operator=(const ByteSource&) = delete;

  // The next bytes of the text; fewer than `size` only at its end, or where it can be read no
  // further: error() then says why. Compressed text is read up to unpacked_limit() of the file.
  size_t read(char* into, size_t size);

  // Empty: none. Without the file's name.
  const std::string& error() const { return error_; }
  bool is_gzip() const { return gzip_; }
  uint64_t file_bytes() const { return file_bytes_; }
  // In the file: where reading stopped.
  uint64_t file_offset() const { return file_offset_ - stream_.avail_in; }

 private:
  bool fill();
  size_t inflate_some(char* into, size_t size);

  int file_ = -1;
  bool gzip_ = false, file_ended_ = false, member_ended_ = false;
  uint64_t file_bytes_ = 0, file_offset_ = 0;
  uint64_t text_bytes_ = 0;  // decompressed
  std::string error_;
  std::vector<unsigned char> input_;
  z_stream stream_{};
};

}  // namespace gpuprof::kineto
