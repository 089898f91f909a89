// SPDX-License-Identifier: Apache-2.0
// The ground truth: what ran, where, from when to when; one JSON object a line.
//
// The file is a shared mapping that grows in windows filled with newlines, so that what was written
// survives _exit and SIGKILL; readers skip blank lines. An orderly exit cuts the file to size.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <mutex>
#include <string>
#include <string_view>

namespace gpuprof::simcuda {

class TruthLog {
 public:
  // Never destroyed: calls arrive before constructors and after destructors.
  static TruthLog& instance();

  bool enabled() const { return enabled_; }

  // Gets memory for a call's lines, so that it takes its time (up to some ms) here and not in
  // `append`, after the call's end; `ahead`: for those of many calls, where the host has long to
  // wait. Thread safe.
  void make_room(bool ahead = false);

  // Appends `line` and a newline. Thread safe.
  void append(std::string_view line);

  // Cuts the file to what was written; later lines are written one by one.
  void finish();

  // Around fork: the child starts a file of its own.
  void before_fork() { mutex_.lock(); }
  void after_fork_parent() { mutex_.unlock(); }
  void after_fork_child();

 private:
  TruthLog();
  bool open_file();
  bool map_next_window();
  void unmap();
  void write_through(std::string_view text);

  std::mutex mutex_;
  bool enabled_ = false;
  bool write_through_ = false;
  std::string directory_;
  int fd_ = -1;
  char* window_ = nullptr;
  off_t window_offset_ = 0;
  size_t used_ = 0;  // bytes of the window
};

// `text` with what JSON forbids in a string escaped.
std::string json_escape(std::string_view text);

}  // namespace gpuprof::simcuda
