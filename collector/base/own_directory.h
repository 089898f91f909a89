// SPDX-License-Identifier: Apache-2.0
// A directory of ours, held open. Files in it are named relative to its descriptor. So nobody who
// may rename a directory on the way to it, or put a link in its place, chooses where we write.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>

namespace gpuprof {

class OwnDirectory {
 public:
  enum class Kind {
    run,      // made with what leads to it (0700); of this user, writable by nobody else
    scratch,  // there already, and maybe everybody's, as /tmp
  };

  // Opens the absolute `path` part by part. A symbolic link is followed where it belongs to root or
  // to this user, but not as the last part of a run's. What is entered from a sticky directory that
  // others may write to must belong to them, too. `path` outlives this. False: `why` says what is
  // wrong with which part, errno too (ENOENT: it went meanwhile), and nothing can be made in it.
  bool open(const char* path, Kind kind, char* why, size_t why_size);
  // For openat and the like; programs close descriptors that they do not know: then it is opened
  // again, if the path still leads to the same directory. -1: it leads nowhere, as errno says, or
  // elsewhere (ESTALE).
  int descriptor();
  bool is_open() const { return path_ != nullptr; }
  // Whether open() made the directory itself, which was not there before.
  bool was_made() const { return made_; }
  // Whether the path leads to it now: somebody may have removed it, or put another in its place.
  bool is_at_its_path() const;
  // In a forked child: the parent's is not ours.
  void forget();

 private:
  bool is_ours(int file) const;

  int walk_again() const;

  int file_ = -1;
  bool made_ = false;
  uint64_t device_ = 0, inode_ = 0;
  Kind kind_ = Kind::run;
  const char* path_ = nullptr;
};

// What stands behind the last slash: the name in the directory.
const char* name_in_directory(const char* path);

// Of this process. The ring's is the run's but with GPUPROF_SCRATCH or on a network file system.
OwnDirectory& run_directory();
OwnDirectory& scratch_directory();

}  // namespace gpuprof
