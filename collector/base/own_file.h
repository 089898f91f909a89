// SPDX-License-Identifier: Apache-2.0
// A file of ours in a process that may close descriptors it does not know (daemons do) and reuse
// their numbers: kept above the numbers that programs use, and checked before each write.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>

namespace gpuprof {

class OwnFile {
 public:
  // Creates `path` (O_EXCL, O_NOFOLLOW, O_CLOEXEC, 0600). False: errno tells.
  bool create(const char* path);
  // Appends all bytes. Where the descriptor is no longer this file's, opens the path again, if that
  // still is the file. 0, or an errno value.
  int append(const void* data, size_t size);
  // 0, or an errno value of close.
  int close();
  bool is_open() const { return file_ >= 0; }
  int descriptor() const { return file_; }

 private:
  bool is_ours(int file) const;
  bool reopen();

  int file_ = -1;
  uint64_t device_ = 0, inode_ = 0;
  const char* path_ = nullptr;  // the caller's, which outlives this
};

}  // namespace gpuprof
