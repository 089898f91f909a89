// SPDX-License-Identifier: Apache-2.0
#include "collector/window/dump_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "collector/base/log.h"
#include "collector/base/os.h"
#include "collector/record/recorder.h"

namespace gpuprof {
namespace {

// libdeflate's level 6: about 4 bytes an event, 60 ns an event, on a thread of its own.
constexpr int kCompressionLevel = 6;
constexpr const char* kPartSuffix = ".part";

}  // namespace

bool DumpFile::open(const char* stem, uint32_t window) {
  std::snprintf(path_, sizeof path_, "%s_w%u.gpuprof", stem, window);
  bytes_ = newest_ticks_ = 0;
  keeps_all_ = false;
  pieces_.clear();
  std::snprintf(part_, sizeof part_, "%s%s", path_, kPartSuffix);
  error_ = 0;
  has_chunks_ = false;
  if (!file_.create(run_directory(), name_in_directory(part_))) fail("create", part_, errno);
  return error_ == 0;
}

void DumpFile::write(ChunkKind kind, const ByteBuffer& body) {
  if (error_) {
    count_loss(Loss::write_error);
    return;
  }
  chunk_.clear();
  const int error = append_chunk(chunk_, kind, body.data(), body.size(), kCompressionLevel)
                        ? file_.append(chunk_.data(), chunk_.size())
                        : ENOMEM;
  if (error == 0) {
    has_chunks_ = true;
    const uint64_t newest = kind == ChunkKind::events ? newest_ticks_ : 0;
    if (!pieces_.push_back({bytes_, chunk_.size(), newest})) keeps_all_ = true;
    bytes_ += chunk_.size();
    return;
  }
  count_loss(Loss::write_error);
  fail("write", part_, error);
}

void DumpFile::fail(const char* what, const char* path, int error) {
  error_ = error ? error : EIO;
  if (said_) return;
  said_ = true;
  log_line(LogLevel::error,
           "cannot %s %s: %s; the program goes on, windows are lost while this lasts", what, path,
           std::strerror(error_));
}

DumpOutcome DumpFile::left_behind() const {
  struct stat info {};
  const bool there = ::syscall(SYS_newfstatat, run_directory().descriptor(),
                               name_in_directory(part_), &info, AT_SYMLINK_NOFOLLOW) == 0;
  return has_chunks_ && there ? DumpOutcome::cut : DumpOutcome::lost;
}

namespace {
bool rename_in_run(const char* from, const char* to) {
  const int directory = run_directory().descriptor();
  return directory >= 0 &&
         ::renameat(directory, name_in_directory(from), directory, name_in_directory(to)) == 0;
}

void remove_in_run(const char* path) {
  const int directory = run_directory().descriptor();
  if (directory >= 0) ::unlinkat(directory, name_in_directory(path), 0);
}
}  // namespace

void DumpFile::publish() {
  if (file_.is_open()) rename_in_run(part_, path_);
}

void DumpFile::unpublish() {
  if (file_.is_open()) rename_in_run(path_, part_);
}

// Copies all chunks but the oldest ones of events, of `excess` bytes together.
uint64_t DumpFile::copy_newer(OwnFile& to, uint64_t excess) {
  const int from = ::openat(run_directory().descriptor(), name_in_directory(part_),
                            O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
  uint64_t dropped = 0, newest = 0, end = 0;
  bool good = from >= 0;
  for (Piece* piece = pieces_.begin(); good && piece != pieces_.end(); ++piece) {
    if (piece->newest_ticks != 0 && dropped < excess) {
      dropped += piece->bytes;
      newest = std::max(newest, piece->newest_ticks);
      piece->bytes = 0;
      continue;
    }
    chunk_.clear();
    good = chunk_.resize(piece->bytes) &&
           ::pread(from, chunk_.data(), piece->bytes, static_cast<off_t>(piece->offset)) ==
               static_cast<ssize_t>(piece->bytes) &&
           to.append(chunk_.data(), piece->bytes) == 0;
    piece->offset = end;
    end += piece->bytes;
  }
  if (from >= 0) ::close(from);
  return good ? newest : 0;
}

uint64_t DumpFile::drop_oldest(uint64_t bytes) {
  if (error_ || keeps_all_) return 0;
  char fresh[sizeof part_ + 4];
  std::snprintf(fresh, sizeof fresh, "%s~", part_);
  OwnFile file;
  if (!file.create(run_directory(), name_in_directory(fresh))) return 0;
  const uint64_t newest = copy_newer(file, bytes_ - bytes / 2);
  if (newest == 0 || !rename_in_run(fresh, part_)) {
    (void)file.close();
    remove_in_run(fresh);
    keeps_all_ = true;
    return 0;
  }
  (void)file_.close();
  file_ = file;
  file_.renamed(name_in_directory(part_));
  size_t kept = 0;
  bytes_ = 0;
  for (const Piece& piece : pieces_) {
    if (piece.bytes == 0) continue;
    bytes_ += piece.bytes;
    pieces_[kept++] = piece;
  }
  (void)pieces_.resize(kept);
  return newest;
}

void DumpFile::discard() {
  if (!file_.is_open()) return;
  remove_in_run(part_);
  (void)file_.close();
}

DumpOutcome DumpFile::finish() {
  if (!file_.is_open()) return DumpOutcome::lost;
  const int error = file_.close();
  if (error && !error_) fail("close", part_, error);
  if (!error_ && !rename_in_run(part_, path_)) fail("rename", part_, errno);
  return error_ ? left_behind() : DumpOutcome::complete;
}

}  // namespace gpuprof
