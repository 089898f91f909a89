// SPDX-License-Identifier: Apache-2.0
// A file of ours in a process that may close descriptors it does not know and reuse their numbers
// (daemons do). Its number lies above those that programs use, and is checked before each write.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>

#include "collector/base/own_directory.h"

namespace gpuprof {

// The same open file above the numbers that programs use; `file` is closed.
int move_up(int file);

class OwnFile {
 public:
  // Creates `name` in `directory` (O_EXCL, O_NOFOLLOW, O_CLOEXEC, 0600); both outlive this. False:
  // errno tells.
  bool create(OwnDirectory& directory, const char* name);
  // Appends all bytes. Where the descriptor is no longer this file's, opens the name again, if that
  // still is the file. 0, or an errno value.
  int append(const void* data, size_t size);
  // Blocks on the disk for bytes `from` to `to`, never those of a file that has this one's number
  // now. 0, or an errno value.
  int allocate(uint64_t from, uint64_t to);
  // Gives back all bytes from `size` on. 0, or an errno value.
  int truncate(uint64_t size);
  // At most `size` bytes; how many, 0 where there are none or they cannot be read.
  size_t read(uint64_t offset, void* out, size_t size);
  // It has this name in its directory now, which outlives this, too.
  void renamed(const char* name) { name_ = name; }
  // It is open and lies in some directory, though maybe where this process may not look any more.
  bool is_on_disk();
  // 0, or an errno value of close.
  int close();
  bool is_open() const { return file_ >= 0; }
  int descriptor() const { return file_; }

 private:
  bool is_ours(int file) const;
  bool reopen();

  int file_ = -1;
  uint64_t device_ = 0, inode_ = 0;
  OwnDirectory* directory_ = nullptr;
  const char* name_ = nullptr;
};

}  // namespace gpuprof
