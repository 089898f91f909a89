// SPDX-License-Identifier: Apache-2.0
#include "collector/window/dump_file.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "collector/base/clock.h"
#include "collector/base/log.h"
#include "collector/record/recorder.h"
#include "formats/core/early_window.h"

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
  bytes_ = summary_at_ = 0;
  std::snprintf(part_, sizeof part_, "%s%s", path_, kPartSuffix);
  std::snprintf(shorter_, sizeof shorter_, "%s.new", path_);
  error_ = 0;
  has_chunks_ = false;
  event_chunks_.clear();
  if (!file_.create(run_directory(), name_in_directory(part_))) fail("create", part_, errno);
  return error_ == 0;
}

void DumpFile::write(ChunkKind kind, const ByteBuffer& body, uint64_t events) {
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
    if (kind == ChunkKind::events) {
      (void)event_chunks_.push_back({bytes_, chunk_.size(), events, now_ticks()});
    }
    summary_at_ = kind == ChunkKind::summary ? bytes_ : 0;
    bytes_ += chunk_.size();
    return;
  }
  count_loss(Loss::write_error);
  fail("write", part_, error);
}

void DumpFile::write_chunks(const uint8_t* chunks, size_t size) {
  if (size == 0 || error_) return;
  if (const int error = file_.append(chunks, size)) {
    count_loss(Loss::write_error);
    return fail("write", part_, error);
  }
  has_chunks_ = true;
  bytes_ += size;
  summary_at_ = 0;
}

void DumpFile::copy(OwnFile& from, uint64_t offset, uint64_t size) {
  constexpr size_t kPiece = 16 * 1024;
  uint8_t piece[kPiece];
  for (uint64_t done = 0; done < size && !error_;) {
    const size_t got = from.read(offset + done, piece, std::min<uint64_t>(size - done, kPiece));
    if (got == 0) return count_loss(Loss::write_error);
    write_chunks(piece, got);
    done += got;
  }
}

void DumpFile::fail(const char* what, const char* path, int error) {
  error_ = error ? error : EIO;
  if (said_) return;
  said_ = true;
  log_line(LogLevel::error,
           "cannot %s %s: %s; the program goes on, windows are lost while this lasts", what, path,
           std::strerror(error_));
}

bool DumpFile::close_file() {
  const bool there = has_chunks_ && file_.is_on_disk();
  const int error = file_.close();
  if (error && !error_) fail("close", part_, error);
  return there;
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

bool DumpFile::copy_without(size_t first_kept) {
  constexpr size_t kPiece = 16 * 1024;
  uint8_t piece[kPiece];
  uint64_t at = 0;
  for (size_t i = 0; i <= first_kept; ++i) {
    const uint64_t end = i < first_kept ? event_chunks_[i].offset : bytes_;
    while (at < end) {
      const size_t got = file_.read(at, piece, std::min<uint64_t>(end - at, kPiece));
      if (got == 0 || copy_.append(piece, got) != 0) return false;
      at += got;
    }
    if (i < first_kept) at += event_chunks_[i].bytes;
  }
  return true;
}

DumpFile::LeftOut DumpFile::leave_out_oldest(uint64_t keep) {
  size_t first = event_chunks_.size();
  for (uint64_t kept = 0; first > 0; --first) {
    kept += event_chunks_[first - 1].bytes;
    if (kept > keep) break;
  }
  if (first == 0 || error_) return {};
  if (!copy_.create(run_directory(), name_in_directory(shorter_))) return {};
  if (!copy_without(first) || !rename_in_run(shorter_, part_)) {
    (void)copy_.close();
    remove_in_run(shorter_);
    return {};
  }
  (void)file_.close();
  file_ = copy_;
  copy_ = OwnFile();
  file_.renamed(name_in_directory(part_));
  LeftOut left{0, event_chunks_[first - 1].ticks};
  uint64_t bytes = 0;
  for (size_t i = 0; i < first; ++i) {
    left.events += event_chunks_[i].events;
    bytes += event_chunks_[i].bytes;
  }
  for (size_t i = first; i < event_chunks_.size(); ++i) {
    event_chunks_[i - first] = event_chunks_[i];
    // A chunk of another kind may lie between those that went.
    event_chunks_[i - first].offset -= bytes;
  }
  event_chunks_.truncate(event_chunks_.size() - first);
  bytes_ -= bytes;
  summary_at_ = 0;
  return left;
}

void DumpFile::publish() {
  if (file_.is_open()) rename_in_run(part_, path_);
}

void DumpFile::unpublish() {
  if (!file_.is_open()) return;
  rename_in_run(path_, part_);
  withdraw_summary();
}

void DumpFile::withdraw_summary() {
  if (summary_at_ == 0 || file_.truncate(summary_at_) != 0) return;
  bytes_ = summary_at_;
  summary_at_ = 0;
}

void DumpFile::discard() {
  if (!file_.is_open()) return;
  remove_in_run(part_);
  (void)file_.close();
}

DumpOutcome DumpFile::keep(KeptDump& kept) {
  if (!file_.is_open()) return DumpOutcome::lost;
  const bool there = close_file();
  if (error_) return there ? DumpOutcome::cut : DumpOutcome::lost;
  std::snprintf(kept.path, sizeof kept.path, "%s", path_);
  kept.exists = true;
  return DumpOutcome::complete;
}

int KeptDump::publish() {
  char part[sizeof path + 8];
  std::snprintf(part, sizeof part, "%s%s", path, kPartSuffix);
  exists = false;
  return rename_in_run(part, path) ? 0 : errno;
}

void KeptDump::discard() {
  char part[sizeof path + 8];
  std::snprintf(part, sizeof part, "%s%s", path, kPartSuffix);
  if (exists) remove_in_run(part);
  exists = false;
}

DumpOutcome DumpFile::finish() {
  if (!file_.is_open()) return DumpOutcome::lost;
  const bool there = close_file();
  if (!error_ && !rename_in_run(part_, path_)) fail("rename", part_, errno);
  if (!error_) return DumpOutcome::complete;
  return there ? DumpOutcome::cut : DumpOutcome::lost;
}

}  // namespace gpuprof
