// SPDX-License-Identifier: Apache-2.0
#include "formats/kineto_reader/byte_source.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "formats/io/file_bytes.h"
#include "formats/trace/input_limits.h"

namespace gpuprof::kineto {
namespace {

constexpr size_t kInputBytes = 1 << 18;

}  // namespace

ByteSource::ByteSource(const std::string& path) : input_(kInputBytes) {
  file_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (file_ < 0) {
    error_ = std::string("cannot be opened: ") + std::strerror(errno);
    return;
  }
  struct stat info {};
  const char* const refused =
      ::fstat(file_, &info) != 0 ? std::strerror(errno) : why_not_read(info);
  if (refused) {
    error_ = refused;
    return;
  }
  file_bytes_ = static_cast<uint64_t>(info.st_size);
  fill();
  gzip_ = stream_.avail_in >= 2 && input_[0] == 0x1f && input_[1] == 0x8b;
  if (gzip_ && inflateInit2(&stream_, 15 + 16) != Z_OK) error_ = "no memory to decompress it";
}

ByteSource::~ByteSource() {
  if (gzip_) inflateEnd(&stream_);
  if (file_ >= 0) ::close(file_);
}

// More of the file into input_, which is used up. False: there is no more.
bool ByteSource::fill() {
  while (!file_ended_) {
    const ssize_t got = ::read(file_, input_.data(), input_.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) error_ = std::string("cannot be read: ") + std::strerror(errno);
    if (got <= 0) {
      file_ended_ = true;
      break;
    }
    file_offset_ += static_cast<uint64_t>(got);
    stream_.next_in = input_.data();
    stream_.avail_in = static_cast<uInt>(got);
    return true;
  }
  return false;
}

size_t ByteSource::inflate_some(char* into, size_t size) {
  stream_.next_out = reinterpret_cast<unsigned char*>(into);
  stream_.avail_out = static_cast<uInt>(std::min<size_t>(size, 1u << 30));
  const uInt room = stream_.avail_out;
  while (stream_.avail_out == room && error_.empty()) {
    if (stream_.avail_in == 0 && !fill()) {
      if (!member_ended_ && error_.empty()) error_ = "the compressed data ends early";
      break;
    }
    if (member_ended_) {  // another member, or what has nothing to do with it
      if (stream_.next_in[0] != 0x1f) {
        file_ended_ = true;
        stream_.avail_in = 0;
        break;
      }
      inflateReset2(&stream_, 15 + 16);
      member_ended_ = false;
    }
    const int result = inflate(&stream_, Z_NO_FLUSH);
    if (result == Z_STREAM_END) {
      member_ended_ = true;
    } else if (result != Z_OK && result != Z_BUF_ERROR) {
      error_ = std::string("the compressed data is damaged: ") +
               (stream_.msg ? stream_.msg : "no deflate stream");
    }
  }
  text_bytes_ += room - stream_.avail_out;
  if (text_bytes_ > unpacked_limit(file_bytes_) && error_.empty()) {
    error_ = "the compressed data is " + std::to_string(kMostCompression) +
             " times the file's size or more, which no trace is; decompress it if it is one";
  }
  return room - stream_.avail_out;
}

size_t ByteSource::read(char* into, size_t size) {
  size_t have = 0;
  while (have < size && file_ >= 0) {
    if (gzip_) {
      if (!error_.empty()) break;
      const size_t got = inflate_some(into + have, size - have);
      if (got == 0) break;
      have += got;
      continue;
    }
    if (stream_.avail_in) {  // what was read to see what the file is
      const size_t part = std::min<size_t>(stream_.avail_in, size - have);
      std::memcpy(into + have, stream_.next_in, part);
      stream_.next_in += part;
      stream_.avail_in -= static_cast<uInt>(part);
      have += part;
      continue;
    }
    const ssize_t got = file_ended_ ? 0 : ::read(file_, into + have, size - have);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) error_ = std::string("cannot be read: ") + std::strerror(errno);
    if (got <= 0) {
      file_ended_ = true;
      break;
    }
    file_offset_ += static_cast<uint64_t>(got);
    have += static_cast<size_t>(got);
  }
  return have;
}

}  // namespace gpuprof::kineto
