// SPDX-License-Identifier: Apache-2.0
#include "tests/simcuda/core/truth_log.h"

#include <errno.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "tests/simcuda/core/settings.h"

namespace gpuprof::simcuda {
namespace {

constexpr size_t kWindowBytes = 256 * 1024;
constexpr size_t kCallBytes = 4 * 1024;  // more than most calls write

__attribute__((destructor)) void finish_at_exit() {
  if (!settings().truth_directory.empty()) TruthLog::instance().finish();
}

}  // namespace

TruthLog& TruthLog::instance() {
  static TruthLog& log = *new TruthLog();
  return log;
}

TruthLog::TruthLog() : directory_(settings().truth_directory) {
  enabled_ = !directory_.empty();
  write_through_ = settings().truth_sync;
  if (!enabled_) return;
  ::mkdir(directory_.c_str(), 0700);
  pthread_atfork([] { instance().before_fork(); }, [] { instance().after_fork_parent(); },
                 [] { instance().after_fork_child(); });
}

bool TruthLog::open_file() {
  const std::string path = fmt::format("{}/truth_{}.jsonl", directory_, ::getpid());
  // A program that execs itself keeps its pid: the new image goes on where the old one stopped.
  fd_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd_ < 0) {
    fmt::print(stderr, "simcuda: cannot write the truth log {}: {}\n", path, ::strerror(errno));
    enabled_ = false;
    return false;
  }
  struct stat info {};
  if (::fstat(fd_, &info) == 0 && info.st_size > 0) {
    const auto window = static_cast<off_t>(kWindowBytes);
    window_offset_ = (info.st_size + window - 1) / window * window;
    const std::string pad(static_cast<size_t>(window_offset_ - info.st_size), '\n');
    if (::pwrite(fd_, pad.data(), pad.size(), info.st_size) < 0) return false;
  }
  return true;
}

bool TruthLog::map_next_window() {
  if (window_ != nullptr) {
    unmap();
    window_offset_ += static_cast<off_t>(kWindowBytes);
  }
  used_ = 0;
  if (::ftruncate(fd_, window_offset_ + static_cast<off_t>(kWindowBytes)) != 0) return false;
  void* memory =
      ::mmap(nullptr, kWindowBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd_, window_offset_);
  if (memory == MAP_FAILED) return false;
  window_ = static_cast<char*>(memory);
  ::memset(window_, '\n', kWindowBytes);
  return true;
}

void TruthLog::unmap() {
  ::munmap(window_, kWindowBytes);
  window_ = nullptr;
}

void TruthLog::write_through(std::string_view text) {
  while (!text.empty()) {
    const ssize_t n =
        ::pwrite(fd_, text.data(), text.size(), window_offset_ + static_cast<off_t>(used_));
    if (n <= 0) return;
    used_ += static_cast<size_t>(n);
    text.remove_prefix(static_cast<size_t>(n));
  }
}

void TruthLog::make_room(bool ahead) {
  if (!enabled_) return;
  const std::lock_guard<std::mutex> lock(mutex_);
  if (write_through_ || (fd_ < 0 && !open_file())) return;
  const size_t least = ahead ? kWindowBytes / 2 : kCallBytes;
  if (window_ == nullptr || kWindowBytes - used_ < least) map_next_window();
}

void TruthLog::append(std::string_view line) {
  if (!enabled_) return;
  const std::lock_guard<std::mutex> lock(mutex_);
  if (fd_ < 0 && !open_file()) return;
  if (write_through_) {
    write_through(line);
    write_through("\n");
    return;
  }
  for (size_t done = 0; done <= line.size();) {
    if ((window_ == nullptr || used_ == kWindowBytes) && !map_next_window()) return;
    if (done == line.size()) {  // the window's filling is the newline
      ++used_;
      return;
    }
    const size_t n = std::min(line.size() - done, kWindowBytes - used_);
    ::memcpy(window_ + used_, line.data() + done, n);
    used_ += n;
    done += n;
  }
}

void TruthLog::finish() {
  const std::lock_guard<std::mutex> lock(mutex_);
  write_through_ = true;
  if (fd_ < 0 || window_ == nullptr) return;
  unmap();
  if (::ftruncate(fd_, window_offset_ + static_cast<off_t>(used_)) != 0) enabled_ = false;
}

void TruthLog::after_fork_child() {
  if (window_ != nullptr) unmap();
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
  window_offset_ = 0;
  used_ = 0;
  mutex_.unlock();
}

std::string json_escape(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    const auto u = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (u < 0x20) {
      out += fmt::format("\\u{:04x}", u);
    } else {
      out += c;
    }
  }
  return out;
}

}  // namespace gpuprof::simcuda
