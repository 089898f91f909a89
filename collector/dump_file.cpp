// SPDX-License-Identifier: Apache-2.0
#include "collector/dump_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "collector/log.h"
#include "collector/recorder.h"

namespace gpuprof {
namespace {

// libdeflate's level 6: about 4 bytes an event, 60 ns an event, on a thread of its own.
constexpr int kCompressionLevel = 6;
constexpr const char* kPartSuffix = ".part";

}  // namespace

bool DumpFile::open(const char* stem, uint32_t window) {
  std::snprintf(path_, sizeof path_, "%s_w%u.gpuprof", stem, window);
  char part[sizeof path_ + 8];
  std::snprintf(part, sizeof part, "%s%s", path_, kPartSuffix);
  bytes_ = 0;
  failed_ = false;
  file_ = ::open(part, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (file_ < 0) {
    log_line(LogLevel::error, "cannot create %s: %s; window %u is lost", part, std::strerror(errno),
             window);
  }
  return file_ >= 0;
}

void DumpFile::write(ChunkKind kind, const ByteBuffer& body) {
  if (file_ < 0 || failed_) {
    count_loss(Loss::write_error);
    return;
  }
  chunk_.clear();
  int error = 0;
  if (!append_chunk(chunk_, kind, body.data(), body.size(), kCompressionLevel)) error = ENOMEM;
  for (size_t sent = 0; !error && sent < chunk_.size();) {
    const ssize_t wrote = ::write(file_, chunk_.data() + sent, chunk_.size() - sent);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) {
      error = wrote < 0 ? errno : EIO;
      break;
    }
    sent += static_cast<size_t>(wrote);
  }
  if (!error) {
    bytes_ += chunk_.size();
    return;
  }
  failed_ = true;
  count_loss(Loss::write_error);
  log_line(LogLevel::error, "cannot write %s%s: %s; what was written before can be read", path_,
           kPartSuffix, std::strerror(error));
}

bool DumpFile::finish() {
  if (file_ < 0) return false;
  const bool closed = ::close(file_) == 0;
  file_ = -1;
  if (failed_ || !closed) return false;
  char part[sizeof path_ + 8];
  std::snprintf(part, sizeof part, "%s%s", path_, kPartSuffix);
  if (::rename(part, path_) == 0) return true;
  log_line(LogLevel::error, "cannot rename %s to %s: %s", part, path_, std::strerror(errno));
  return false;
}

}  // namespace gpuprof
