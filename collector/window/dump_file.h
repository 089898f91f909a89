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

class DumpFile {
 public:
  // Creates `<stem>_w<window>.gpuprof.part` (O_EXCL, 0600). False: said why once, writes go
  // nowhere.
  bool open(const char* stem, uint32_t window);
  // Compresses and appends one chunk. A failed write is counted (Loss::write_error) and said once.
  void write(ChunkKind kind, const ByteBuffer& body);
  // Renames to `<stem>_w<window>.gpuprof`; with write errors the `.part` stays, which readers
  // recover.
  bool finish();
  // Gives the file its final name though more may come, and takes that back.
  void publish();
  void unpublish();
  const char* path() const { return path_; }

 private:
  OwnFile file_;
  bool failed_ = false;
  char path_[1600] = {};  // the final name
  char part_[1608] = {};
  ByteBuffer chunk_;
};

}  // namespace gpuprof
