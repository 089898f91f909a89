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
  // Creates `<stem>_w<window>.gpuprof.part`, of an early window `<stem>_early<number>...` (O_EXCL,
  // 0600). False: said why once, writes go nowhere.
  bool open(const char* stem, uint32_t window);
  // Compresses and appends one chunk. A failed write is counted (Loss::write_error) and said once.
  void write(ChunkKind kind, const ByteBuffer& body);
  // Renames to `<stem>_w<window>.gpuprof`; with write errors the `.part` stays, which readers
  // recover.
  bool finish();
  // Chunks of events from here on hold host events that begin up to then.
  void note_events(uint64_t newest_ticks) { newest_ticks_ = newest_ticks; }
  // Leaves out the oldest events, so that half of `bytes` remain; all that is not events stays. The
  // newest time of what was left out; 0: nothing was.
  uint64_t drop_oldest(uint64_t bytes);
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
  struct Piece {
    uint64_t offset, bytes, newest_ticks;  // 0: no events
  };
  uint64_t copy_newer(OwnFile& to, uint64_t excess);

  uint64_t bytes_ = 0, newest_ticks_ = 0;
  PodVector<Piece> pieces_;  // the chunks of the file
  char path_[1600] = {};     // the final name
  char part_[1608] = {};
  ByteBuffer chunk_;
};

}  // namespace gpuprof
