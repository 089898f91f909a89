// SPDX-License-Identifier: Apache-2.0
// Reads the Python frames of a thread while it runs, without the GIL and without stopping it. The
// kernel copies the memory (own_memory.h), so an address that is no longer mapped is an error and
// not a crash. A stack counts only if its frames are the same afterwards. One thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>

#include "collector/python/code_names.h"
#include "collector/python/frame_layout.h"
#include "collector/stacks/stacks.h"

namespace gpuprof {

class SampledFrames {
 public:
  enum class Outcome : uint8_t {
    read,
    none,     // the thread runs no Python code
    torn,     // its frames never were the same for long enough, or what was read cannot be
    no_room,  // for their names
  };
  struct RawFrame {
    uint64_t code;
    int32_t offset;  // of the instruction, in bytes; < 0: before the first
    uint16_t loop;   // which call of the evaluation loop runs it, counted from the innermost
  };
  struct ThreadPlace {
    uint64_t state;  // PyThreadState
    uint32_t tid;
  };

  // What a walk of a thread leaves for the next, kept by the caller; all zero at first.
  struct Seen {
    uint64_t outermost;  // frame, when the stack was last seen to stand still; 0: never
    uint64_t cframe;
    bool moved;  // its frames changed while the last walk was under way
    size_t unit_count;
    uint64_t units[kMaxStackFrames];  // where the memory is that was read
  };

  // Memory of its own is mapped. `code_type` is &PyCode_Type. False: no memory.
  bool begin(const PythonLayout& layout, uint64_t code_type);

  // The threads of the interpreter, `oldest` (its first thread's PyThreadState) and younger ones.
  // 0: `oldest` is not there any more.
  size_t threads(uint64_t oldest, uint64_t interpreter, ThreadPlace* out, size_t most) const;
  // Whether a thread that was there still is.
  bool is_there(const ThreadPlace& thread, uint64_t interpreter) const;
  // The state of the oldest thread of the interpreter of `state`; with the GIL.
  uint64_t oldest_of(uint64_t state, uint64_t& interpreter) const;

  // Innermost first, into raw(); `count` of them. Some calls come and go faster than frames can be
  // read. Such a stack counts if it ends where this thread's stack began when it last stood still.
  // Its inner frames may be of moments some microseconds apart. Up to 3.10 each frame is an object
  // that the next call gets: there the stack lacks inner frames that had returned when they were
  // read.
  Outcome walk(uint64_t state, Seen& seen, size_t& count);
  const RawFrame* raw() const { return raw_; }
  // From 3.12 on: the frame that a call of the evaluation loop has of its own, in its stack memory.
  // 0: there is none.
  uint64_t loop_frame(size_t loop) const;
  // Whether the last walk's stack stood still, and has not changed since.
  bool stands_still(uint64_t state, const Seen& seen);
  // The frames of the last walk, interned in the ring, as kPythonFrame in ring_file.h says. `torn`:
  // what was read cannot be; `no_room`: a table is full.
  Outcome name(size_t count, uint64_t* frames);
  // Names are looked up anew from here on: code may have gone whose place another has taken.
  void forget();

  // Of one frame of the last walk.
  bool names_of(const RawFrame& frame, CodeNames& out) const;

 private:
  bool look_at(uint64_t state, uint64_t interpreter, uint32_t& tid) const;
  static constexpr size_t kFrameBytes = 128, kCodeBytes = 256, kNoUnit = ~size_t{0};
  struct Known {
    uint64_t key, frame;
  };

  struct Top {
    uint64_t frame = 0;   // the innermost
    uint64_t cframe = 0;  // in releases that have one, the _PyCFrame that says so
  };

  // From 3.11 on the frames of a thread lie side by side: a page has many of them.
  bool frames_share_pages() const {
    return layout_.cframe_frame != kNoField || layout_.frame_owner != kNoField;
  }
  size_t unit_bytes() const;
  bool read_units(uint64_t state, const Seen& seen, uint8_t* out, Top& top);
  size_t find_unit(uint64_t address);
  size_t read_unit(uint64_t address);
  const uint8_t* frame_in(const uint8_t* reading, uint64_t address, bool more);
  const uint8_t* fetch(uint64_t address);
  bool begin_walk(uint64_t state, Seen& seen, Top& top);
  void end_walk(Seen& seen, const Top& top);
  Outcome walk_once(uint64_t state, Seen& seen, bool loose, size_t& count, uint64_t& last);
  enum class Memory : uint8_t { as_needed, already_read };
  bool runs(const uint8_t* frame) const;
  bool ends_loop(const uint8_t* frame, bool runs_code) const;
  bool follow(uint64_t innermost, Memory memory, size_t& count, uint64_t& last);
  bool follow_what_ran(size_t& count);
  bool unchanged(uint64_t state, const Seen& seen, const Top& top, size_t count);
  Outcome read_codes(size_t& count);
  uint64_t key_of(const RawFrame& frame, const uint8_t* code) const;

  PythonLayout layout_{};
  uint64_t code_type_ = 0;
  // In mapped memory.
  struct Buffers;
  Buffers* buffers_ = nullptr;
  RawFrame* raw_ = nullptr;
  size_t last_unit_ = 0;
  Top last_top_{};
  size_t last_links_ = 0;  // of a walk whose stack stood still; else 0
};

}  // namespace gpuprof
