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

enum class DumpOutcome {
  complete,
  cut,   // the `.part` lies there, with what was written before a failure
  lost,  // nothing lies there
};

// A dump that is complete and has not its final name, since a better one may make it needless.
struct KeptDump {
  char path[1600];
  bool exists;
  int publish();  // gives it its name; 0, or an errno value
  void discard();
};

class DumpFile {
 public:
  // Creates `<stem>_w<window>.gpuprof.part`, of an early window `<stem>_early<number>...` (O_EXCL,
  // 0600). False: writes go nowhere. What fails first in a run gets a line; the closing line has
  // the rest.
  bool open(const char* stem, uint32_t window);
  // Compresses and appends one chunk. A failed write is counted (Loss::write_error).
  // `events`: how many it holds.
  void write(ChunkKind kind, const ByteBuffer& body, uint64_t events = 0);
  // Appends chunks that are complete already: from memory, and `size` bytes of another file.
  void write_chunks(const uint8_t* chunks, size_t size);
  void copy(OwnFile& from, uint64_t offset, uint64_t size);
  struct LeftOut {
    uint64_t events;
    uint64_t ticks;  // all that ended later is still there
  };
  // Makes room: the oldest chunks of events go, until those that stay take `keep` bytes at most.
  // The file is whole at any moment. No events: the disk refuses, or there is nothing to leave out.
  LeftOut leave_out_oldest(uint64_t keep);
  // Renames to `<stem>_w<window>.gpuprof`; with write errors the `.part` stays, which readers
  // recover.
  DumpOutcome finish();
  int error() const { return error_; }  // errno of this dump's first failure; 0: none
  // Removes it.
  void discard();
  // Complete, but not to have its final name yet; with write errors as finish().
  DumpOutcome keep(KeptDump& kept);
  // In a forked child: the files are the parent's.
  void forget() { (void)file_.close(), (void)copy_.close(); }
  uint64_t bytes() const { return bytes_; }
  // Gives the file its final name though more may come, and takes that back, with the summary.
  void publish();
  void unpublish();
  // If it was the last that was written.
  void withdraw_summary();
  const char* path() const { return path_; }

 private:
  void fail(const char* what, const char* path, int error);
  // Closes the file, of which a failure is noted. Whether something of it lies on disk.
  bool close_file();
  // A chunk of events of the file.
  struct EventChunk {
    uint64_t offset, bytes, events, ticks;  // ticks: when it was written
  };
  bool copy_without(size_t first_kept);

  OwnFile file_;
  OwnFile copy_;  // while leave_out_oldest() writes it
  int error_ = 0;
  bool has_chunks_ = false;
  bool said_ = false;  // a failure, of any window
  uint64_t bytes_ = 0;
  uint64_t summary_at_ = 0;  // 0: it is not the last chunk
  char path_[1600] = {};     // the final name
  char part_[1608] = {};
  char shorter_[1608] = {};
  PodVector<EventChunk> event_chunks_;
  ByteBuffer chunk_;
};

}  // namespace gpuprof
