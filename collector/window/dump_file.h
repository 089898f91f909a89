// SPDX-License-Identifier: Apache-2.0
// The dump of one window: names, `.part` while it is written, renamed when complete. Drain thread
// only.
#pragma once

#include <cstddef>
#include <cstdint>

#include "collector/base/own_file.h"
#include "formats/core/byte_buffer.h"
#include "formats/core/chunk.h"

namespace gpuprof {

// A dump that is complete and has not its final name, since a better one may make it needless.
struct KeptDump {
  char path[1600];
  bool exists;
  bool publish();  // gives it its name
  void discard();
};

class DumpFile {
 public:
  // Creates `<stem>_w<window>.gpuprof.part`, of an early window `<stem>_early<number>...` (O_EXCL, 0600). False: said why once, writes go
  // nowhere.
  bool open(const char* stem, uint32_t window);
  // Compresses and appends one chunk. A failed write is counted (Loss::write_error) and said once.
  void write(ChunkKind kind, const ByteBuffer& body);
  // Renames to `<stem>_w<window>.gpuprof`; with write errors the `.part` stays, which readers
  // recover.
  bool finish();
  // Removes it.
  void discard();
  // Complete, but not to have its final name yet. False: there is nothing to keep.
  bool keep(KeptDump& kept);
  uint64_t bytes() const { return bytes_; }
  // Gives the file its final name though more may come, and takes that back.
  void publish();
  void unpublish();
  const char* path() const { return path_; }

 private:
  OwnFile file_;
  bool failed_ = false;
  uint64_t bytes_ = 0;
  char path_[1600] = {};  // the final name
  char part_[1608] = {};
  ByteBuffer chunk_;
};

}  // namespace gpuprof
