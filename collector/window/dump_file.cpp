// SPDX-License-Identifier: Apache-2.0
#include "collector/window/dump_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "collector/base/log.h"
#include "collector/record/recorder.h"
#include "formats/core/ring_file.h"

namespace gpuprof {
namespace {

// libdeflate's level 6: about 4 bytes an event, 60 ns an event, on a thread of its own.
constexpr int kCompressionLevel = 6;
constexpr const char* kPartSuffix = ".part";

}  // namespace

bool DumpFile::open(const char* stem, uint32_t window) {
  const bool early = is_early_window(window);
  std::snprintf(path_, sizeof path_, "%s_%s%u.gpuprof", stem, early ? "early" : "w",
                early ? window - kFirstEarlyWindow : window);
  bytes_ = newest_ticks_ = 0;
  pieces_.clear();
  std::snprintf(part_, sizeof part_, "%s%s", path_, kPartSuffix);
  failed_ = !file_.create(part_);
  if (failed_) {
    log_line(LogLevel::error, "cannot create %s: %s; window %u is lost", part_,
             std::strerror(errno), window);
  }
  return !failed_;
}

void DumpFile::write(ChunkKind kind, const ByteBuffer& body) {
  if (failed_) {
    count_loss(Loss::write_error);
    return;
  }
  chunk_.clear();
  const int error = append_chunk(chunk_, kind, body.data(), body.size(), kCompressionLevel)
                        ? file_.append(chunk_.data(), chunk_.size())
                        : ENOMEM;
  if (error == 0) {
    (void)pieces_.push_back({bytes_, chunk_.size(), kind == ChunkKind::events ? newest_ticks_ : 0});
    bytes_ += chunk_.size();
    return;
  }
  failed_ = true;
  count_loss(Loss::write_error);
  log_line(LogLevel::error, "cannot write %s: %s; what was written before can be read", part_,
           std::strerror(error));
}

void DumpFile::publish() {
  if (file_.is_open()) ::rename(part_, path_);
}

void DumpFile::unpublish() {
  if (file_.is_open()) ::rename(path_, part_);
}

// Copies all chunks but the oldest ones of events, of `excess` bytes together.
uint64_t DumpFile::copy_newer(OwnFile& to, uint64_t excess) {
  const int from = ::open(part_, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
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
  if (failed_ || pieces_.size() == 0) return 0;
  char fresh[sizeof part_ + 4];
  std::snprintf(fresh, sizeof fresh, "%s~", part_);
  OwnFile file;
  if (!file.create(fresh)) return 0;
  const uint64_t newest = copy_newer(file, bytes_ - bytes / 2);
  if (newest == 0 || ::rename(fresh, part_) != 0) {
    (void)file.close();
    ::unlink(fresh);
    failed_ = true;  // the places of chunks are no longer known
    return 0;
  }
  (void)file_.close();
  file_ = file;
  file_.renamed(part_);
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
  ::unlink(part_);
  (void)file_.close();
}

bool DumpFile::keep(KeptDump& kept) {
  if (!file_.is_open()) return false;
  if (file_.close() != 0 || failed_) return false;  // the `.part` stays, which readers recover
  std::snprintf(kept.path, sizeof kept.path, "%s", path_);
  return kept.exists = true;
}

bool KeptDump::publish() {
  char part[sizeof path + 8];
  std::snprintf(part, sizeof part, "%s%s", path, kPartSuffix);
  if (!exists) return false;
  exists = false;
  return ::rename(part, path) == 0;
}

void KeptDump::discard() {
  char part[sizeof path + 8];
  std::snprintf(part, sizeof part, "%s%s", path, kPartSuffix);
  if (exists) ::unlink(part);
  exists = false;
}

bool DumpFile::finish() {
  if (!file_.is_open()) return false;
  const int error = file_.close();
  if (failed_ || error) return false;
  if (::rename(part_, path_) == 0) return true;
  log_line(LogLevel::error, "cannot rename %s to %s: %s", part_, path_, std::strerror(errno));
  return false;
}

}  // namespace gpuprof
