// SPDX-License-Identifier: Apache-2.0
#include "collector/window/dump_file.h"

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "collector/base/log.h"
#include "collector/record/recorder.h"

namespace gpuprof {
namespace {

// libdeflate's level 6: about 4 bytes an event, 60 ns an event, on a thread of its own.
constexpr int kCompressionLevel = 6;
constexpr const char* kPartSuffix = ".part";

}  // namespace

bool DumpFile::open(const char* stem, uint32_t window) {
  std::snprintf(path_, sizeof path_, "%s_w%u.gpuprof", stem, window);
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
  if (error == 0) return;
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

bool DumpFile::finish() {
  if (!file_.is_open()) return false;
  const int error = file_.close();
  if (failed_ || error) return false;
  if (::rename(part_, path_) == 0) return true;
  log_line(LogLevel::error, "cannot rename %s to %s: %s", part_, path_, std::strerror(errno));
  return false;
}

}  // namespace gpuprof
