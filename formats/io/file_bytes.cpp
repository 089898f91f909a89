// SPDX-License-Identifier: Apache-2.0
#include "formats/io/file_bytes.h"

#include <fcntl.h>
#include <libdeflate.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <memory>
#include <new>

namespace gpuprof {
namespace {

constexpr size_t kBufferBytes = 1 << 20;
constexpr size_t kWorthACall = 1 << 16;  // bytes that are not gathered with others first
constexpr int kGzipLevel = 1;            // traces repeat themselves so much that more buys little

}  // namespace

const char* why_not_read(const struct stat& info) {
  if (S_ISFIFO(info.st_mode)) {
    return "is not a regular file but a pipe; - in its place reads standard input";
  }
  if (!S_ISREG(info.st_mode)) return "is not a regular file";
  // File systems that compress store some tenth of a trace.
  constexpr uint64_t kSector = 512, kThinnest = 256, kAlways = 64 << 20;
  const auto stored = static_cast<uint64_t>(info.st_blocks) * kSector;
  return static_cast<uint64_t>(info.st_size) > kAlways + stored * kThinnest
             ? "is a sparse file, of which less than a 256th is stored, as of no dump or trace"
             : nullptr;
}

bool read_file(const std::string& path, std::string& bytes, std::string& reason) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (file < 0) {
    reason = std::string("cannot be opened: ") + std::strerror(errno);
    return false;
  }
  struct stat info {};
  const char* const refused = ::fstat(file, &info) != 0 ? std::strerror(errno) : why_not_read(info);
  if (refused) {
    reason = refused;
    ::close(file);
    return false;
  }
  bytes.resize(static_cast<size_t>(info.st_size));
  size_t have = 0;
  while (have < bytes.size()) {
    const ssize_t got = ::read(file, bytes.data() + have, bytes.size() - have);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) {
      reason = std::string("cannot be read: ") + std::strerror(errno);
      ::close(file);
      return false;
    }
    if (got == 0) break;  // it became shorter while we read
    have += static_cast<size_t>(got);
  }
  bytes.resize(have);
  ::close(file);
  return true;
}

namespace {

struct FreeCompressor {
  void operator()(libdeflate_compressor* c) const { libdeflate_free_compressor(c); }
};

// Of the names that say "what is open already"; -1: it is none of them.
int descriptor_of(const std::string& path) {
  if (path == "/dev/stdout") return STDOUT_FILENO;
  if (path == "/dev/stderr") return STDERR_FILENO;
  for (const std::string_view folder : {"/dev/fd/", "/proc/self/fd/"}) {
    int number = -1;
    if (!path.starts_with(folder)) continue;
    const char* const end = path.data() + path.size();
    const auto [at, error] = std::from_chars(path.data() + folder.size(), end, number);
    return error == std::errc() && at == end ? number : -1;
  }
  return -1;
}

}  // namespace

void gzip_member(std::string_view bytes, std::string& out) {
  thread_local const std::unique_ptr<libdeflate_compressor, FreeCompressor> compressor(
      libdeflate_alloc_compressor(kGzipLevel));
  if (!compressor) throw std::bad_alloc();
  do {
    const std::string_view part = bytes.substr(0, kBufferBytes);
    const size_t before = out.size();
    out.resize(before + libdeflate_gzip_compress_bound(compressor.get(), part.size()));
    out.resize(before + libdeflate_gzip_compress(compressor.get(), part.data(), part.size(),
                                                 out.data() + before, out.size() - before));
    bytes.remove_prefix(part.size());
  } while (!bytes.empty());
}

OutputFile::OutputFile(std::string path, Compression compression, Links links)
    : compression_(compression), path_(std::move(path)), target_(path_) {
  buffer_.reserve(kBufferBytes);
  if (links == Links::replaced) {
    struct stat info {};
    if (::lstat(path_.c_str(), &info) == 0 && !S_ISREG(info.st_mode) && !S_ISLNK(info.st_mode)) {
      error_ = path_ + ": is neither a file nor a link, and only these are replaced; remove it";
      return;
    }
  } else if (write_where_it_is()) {
    return;
  }
  const size_t slash = target_.rfind('/');
  const std::string folder = slash == std::string::npos ? "" : target_.substr(0, slash + 1);
  const std::string name = slash == std::string::npos ? target_ : target_.substr(slash + 1);
  temporary_ = folder + "." + name + "." + std::to_string(::getpid()) + ".tmp";
  open_beside_target();
}

// Opens what must stay what it is, or fails. False: it is a file, which `target_` names now.
bool OutputFile::write_where_it_is() {
  if (const int open_already = descriptor_of(path_); open_already >= 0) {
    file_ = ::fcntl(open_already, F_DUPFD_CLOEXEC, 0);
    if (file_ < 0) fail("cannot be written");
    return true;
  }
  struct stat info {};
  const bool there = ::stat(path_.c_str(), &info) == 0;
  if (there && S_ISDIR(info.st_mode)) {
    errno = EISDIR;
    fail("cannot be written");
    return true;
  }
  if (there && !S_ISREG(info.st_mode)) {  // a pipe or a device
    file_ = ::open(path_.c_str(), O_WRONLY | O_NOCTTY | O_CLOEXEC);
    if (file_ < 0) fail("cannot be written");
    return true;
  }
  namespace fs = std::filesystem;  // what a link names, not the link
  std::error_code error;
  const fs::path named = there ? fs::canonical(path_, error) : fs::read_symlink(path_, error);
  if (!error) target_ = fs::path(path_).parent_path() / named;
  return false;
}

void OutputFile::open_beside_target() {
  const std::string folder = temporary_.substr(0, temporary_.rfind('/') + 1);
  ::unlink(temporary_.c_str());
  listed_.emplace(temporary_);
  // /proc is how such a file gets its name.
  if (::access("/proc/self/fd", X_OK) == 0) {
    file_ = ::open(folder.empty() ? "." : folder.c_str(), O_WRONLY | O_TMPFILE | O_CLOEXEC, 0666);
    nameless_ = file_ >= 0;
  }
  if (!nameless_) {
    file_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
  }
  if (file_ < 0) fail("cannot be written");
}

bool OutputFile::name_temporary() {
  const std::string open_file = "/proc/self/fd/" + std::to_string(file_);
  if (::linkat(AT_FDCWD, open_file.c_str(), AT_FDCWD, temporary_.c_str(), AT_SYMLINK_FOLLOW) != 0) {
    return false;
  }
  nameless_ = false;
  return true;
}

OutputFile::~OutputFile() {
  if (file_ < 0) return;
  ::close(file_);
  if (!temporary_.empty() && !nameless_) ::unlink(temporary_.c_str());
}

void OutputFile::fail(const char* what) {
  if (error_.empty()) error_ = path_ + ": " + what + ": " + std::strerror(errno);
}

void OutputFile::write(const void* data, size_t size) {
  auto from = static_cast<const char*>(data);
  while (size > 0) {
    if (size >= kWorthACall && compression_ == Compression::none) {
      flush();
      return put(from, size);
    }
    const size_t part = std::min(size, kBufferBytes - buffer_.size());
    buffer_.append(from, part);
    from += part;
    size -= part;
    if (buffer_.size() == kBufferBytes) flush();
  }
}

void OutputFile::overwrite(uint64_t place, const void* data, size_t size) {
  flush();
  auto from = static_cast<const char*>(data);
  while (ok() && size > 0) {
    const ssize_t put = ::pwrite(file_, from, size, static_cast<off_t>(place));
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return fail("cannot be written");
    from += put;
    place += static_cast<uint64_t>(put);
    size -= static_cast<size_t>(put);
  }
}

void OutputFile::write_members(std::string_view members) {
  flush();
  put(members.data(), members.size());
}

void OutputFile::flush() {
  if (compression_ == Compression::none) {
    put(buffer_.data(), buffer_.size());
  } else if (!buffer_.empty()) {
    members_.clear();
    gzip_member(buffer_, members_);
    put(members_.data(), members_.size());
  }
  buffer_.clear();
}

void OutputFile::put(const char* data, size_t size) {
  size_t done = 0;
  while (ok() && done < size) {
    const ssize_t put = ::write(file_, data + done, size - done);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return fail("cannot be written");
    done += static_cast<size_t>(put);
  }
  written_ += done;
}

bool OutputFile::commit() {
  flush();
  if (compression_ == Compression::gzip && written_ == 0) {  // a file of no member is none
    gzip_member({}, members_);
    put(members_.data(), members_.size());
  }
  if (ok() && nameless_ && !name_temporary()) fail("cannot be given its name");
  if (ok() && ::close(file_) != 0) fail("cannot be written");
  if (ok()) file_ = -1;
  if (temporary_.empty()) return ok();
  if (ok() && !put_in_place(temporary_, target_)) fail("cannot be renamed into place");
  if (!ok() && !nameless_) ::unlink(temporary_.c_str());
  return ok();
}

}  // namespace gpuprof
