// SPDX-License-Identifier: Apache-2.0
#include "collector/python/sampled_frames.h"

#include <sys/mman.h>

#include <cstring>

#include "collector/base/own_memory.h"
#include "collector/python/code_names.h"
#include "collector/record/ring.h"

namespace gpuprof {
namespace {

constexpr size_t kPage = 4096;
constexpr size_t kPages = 16;
constexpr size_t kKnown = 8192;
constexpr size_t kTableBytes = 256 * 1024;  // of longer tables, a frame has its code's first line
constexpr size_t kMostFrames = 4096;        // of a chain that is not broken
constexpr int kTries = 3, kLooseTries = 4;

uint64_t word(const uint8_t* at) { return load<uint64_t>(at); }
uint32_t half_word(const uint8_t* at) { return load<uint32_t>(at); }

bool copy_word(uint64_t address, uint64_t& out) {
  return copy_own_memory(address, &out, sizeof out);
}

}  // namespace

struct SampledFrames::Buffers {
  struct Link {
    uint64_t address, code, previous;
  };
  RawFrame raw[kMaxStackFrames];
  Link links[kMaxStackFrames];
  uint64_t instructions[kMaxStackFrames];
  uint16_t loop_of[kMaxStackFrames];          // by link
  uint64_t loop_frames[kMaxStackFrames + 1];  // by loop
  iovec to[kMaxStackFrames + 2], from[kMaxStackFrames + 2];
  // What frames are read in: pages, or single frames (frames_share_pages()).
  uint64_t units[kMaxStackFrames];
  bool used[kMaxStackFrames];
  size_t unit_count;
  uint8_t first[kPages * kPage], second[kPages * kPage];  // readings of the units
  uint8_t codes[kMaxStackFrames][kCodeBytes];
  uint16_t code_of[kMaxStackFrames];  // by frame, in `codes`: many frames run the same code
  uint8_t crossing[kFrameBytes];
  uint8_t table[kTableBytes];
  Known known[kKnown];
};

bool SampledFrames::begin(const PythonLayout& layout, uint64_t code_type) {
  layout_ = layout;
  code_type_ = code_type;
  if (layout.frame_bytes() > kFrameBytes || layout.code_object_bytes() > kCodeBytes) return false;
  if (!buffers_) {
    void* const memory = ::mmap(nullptr, sizeof(Buffers), PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return false;
    buffers_ = static_cast<Buffers*>(memory);
    raw_ = buffers_->raw;
  }
  forget();
  return true;
}

void SampledFrames::forget() { std::memset(buffers_->known, 0, sizeof buffers_->known); }

uint64_t SampledFrames::oldest_of(uint64_t state, uint64_t& interpreter) const {
  constexpr size_t kNext = 8;  // after `prev`, in every release
  if (!copy_word(state + layout_.thread_interpreter, interpreter)) return 0;
  for (size_t i = 0; i < kMostFrames; ++i) {
    uint64_t next = 0;
    if (!copy_word(state + layout_.thread_previous + kNext, next)) return 0;
    if (next == 0) return state;
    state = next;
  }
  return 0;
}

bool SampledFrames::look_at(uint64_t state, uint64_t interpreter, uint32_t& tid) const {
  // In glibc's struct pthread, whose head differs.
#if defined(__x86_64__)
  constexpr size_t kPthreadTid = 720;
#else
  constexpr size_t kPthreadTid = 208;
#endif
  uint64_t owner = 0, thread = 0;
  if (!copy_word(state + layout_.thread_interpreter, owner) || owner != interpreter ||
      !copy_word(state + layout_.thread_id, thread)) {
    return false;
  }
  tid = static_cast<uint32_t>(thread);
  return layout_.native || copy_own_memory(thread + kPthreadTid, &tid, sizeof tid);
}

bool SampledFrames::is_there(const ThreadPlace& thread, uint64_t interpreter) const {
  uint32_t tid = 0;
  return look_at(thread.state, interpreter, tid) && tid == thread.tid;
}

// Younger threads come before older ones in the interpreter's list.
size_t SampledFrames::threads(uint64_t oldest, uint64_t interpreter, ThreadPlace* out,
                              size_t most) const {
  size_t count = 0;
  for (uint64_t state = oldest; state != 0 && count < most;) {
    uint64_t previous = 0;
    uint32_t tid = 0;
    if (!look_at(state, interpreter, tid) ||
        !copy_word(state + layout_.thread_previous, previous)) {
      break;
    }
    out[count++] = {state, tid};
    state = previous;
  }
  return count;
}

size_t SampledFrames::unit_bytes() const {
  return frames_share_pages() ? kPage : layout_.frame_bytes();
}

// Reads where the innermost frame is and the units into `out`, all in one go.
bool SampledFrames::read_units(uint64_t state, const Seen& seen, uint8_t* out, Top& top) {
  Buffers& b = *buffers_;
  size_t pieces = 0, total = 0;
  const auto add = [&](void* to, uint64_t from, size_t bytes) {
    b.to[pieces] = {to, bytes};
    b.from[pieces] = {reinterpret_cast<void*>(from), bytes};
    ++pieces;
    total += bytes;
  };
  const bool indirect = layout_.cframe_frame != kNoField;
  add(indirect ? &top.cframe : &top.frame, state + layout_.frame, sizeof(uint64_t));
  if (indirect && seen.cframe) {
    add(&top.frame, seen.cframe + layout_.cframe_frame, sizeof(uint64_t));
  }
  for (size_t i = 0; i < b.unit_count; ++i) {
    add(out + i * unit_bytes(), b.units[i], unit_bytes());
  }
  if (!copy_own_memory(b.to, b.from, pieces, total)) return false;
  if (!indirect || top.cframe == seen.cframe) return true;
  return top.cframe != 0 && copy_word(top.cframe + layout_.cframe_frame, top.frame);
}

size_t SampledFrames::find_unit(uint64_t address) {
  Buffers& b = *buffers_;
  for (size_t i = 0; i < b.unit_count; ++i) {
    const size_t at = (last_unit_ + i) % b.unit_count;  // mostly the one before, or the next
    if (b.units[at] == address) return last_unit_ = at;
  }
  return kNoUnit;
}

// Adds a unit and takes its first reading.
size_t SampledFrames::read_unit(uint64_t address) {
  Buffers& b = *buffers_;
  const size_t most = frames_share_pages() ? kPages : kMaxStackFrames;
  const size_t at = b.unit_count;
  if (at == most || !copy_own_memory(address, b.first + at * unit_bytes(), unit_bytes()))
    return kNoUnit;
  b.units[at] = address;
  b.used[at] = false;
  ++b.unit_count;
  return last_unit_ = at;
}

// A frame in a reading of the units, which are read where they are not there if `more`; null: not
// to be had.
const uint8_t* SampledFrames::frame_in(const uint8_t* reading, uint64_t address, bool more) {
  Buffers& b = *buffers_;
  const size_t bytes = layout_.frame_bytes();
  const auto unit = [&](uint64_t at) -> const uint8_t* {
    size_t index = find_unit(at);
    if (index == kNoUnit && more) index = read_unit(at);
    if (index == kNoUnit) return nullptr;
    b.used[index] = true;
    return reading + index * unit_bytes();
  };
  if (!frames_share_pages()) return unit(address);
  const uint64_t offset = address % kPage;
  const uint8_t* const one = unit(address - offset);
  if (!one || offset + bytes <= kPage) return one ? one + offset : nullptr;
  const uint8_t* const two = unit(address - offset + kPage);
  if (!two) return nullptr;
  std::memcpy(b.crossing, one + offset, kPage - offset);
  std::memcpy(b.crossing + (kPage - offset), two, bytes - (kPage - offset));
  return b.crossing;
}

const uint8_t* SampledFrames::fetch(uint64_t address) {
  if (const uint8_t* const frame = frame_in(buffers_->first, address, true)) return frame;
  return copy_own_memory(address, buffers_->crossing, layout_.frame_bytes()) ? buffers_->crossing
                                                                             : nullptr;
}

// What says where a frame is and what it runs; where it is in its code changes all the time.
bool SampledFrames::unchanged(uint64_t state, const Seen& seen, const Top& top, size_t count) {
  Buffers& b = *buffers_;
  Top again;
  if (!read_units(state, seen, b.second, again) || again.cframe != top.cframe ||
      again.frame != top.frame) {
    return false;
  }
  for (size_t i = 0; i < count; ++i) {
    const Buffers::Link& link = b.links[i];
    const uint8_t* frame = frame_in(b.second, link.address, false);
    if (!frame) {
      if (!copy_own_memory(link.address, b.crossing, layout_.frame_bytes())) return false;
      frame = b.crossing;
    }
    if (word(frame + layout_.frame_previous) != link.previous ||
        (word(frame + layout_.frame_code) & ~uint64_t{7}) != link.code) {
      return false;
    }
  }
  return true;
}

// Reads what the last walk went along, in one go: mostly that is what this one needs.
bool SampledFrames::begin_walk(uint64_t state, Seen& seen, Top& top) {
  Buffers& b = *buffers_;
  last_unit_ = 0;
  b.unit_count = seen.unit_count;
  std::memcpy(b.units, seen.units, seen.unit_count * sizeof b.units[0]);
  std::memset(b.used, 0, sizeof b.used);
  if (read_units(state, seen, b.first, top)) return true;
  b.unit_count = 0;
  seen.cframe = 0;
  return read_units(state, seen, b.first, top);
}

void SampledFrames::end_walk(Seen& seen, const Top& top) {
  const Buffers& b = *buffers_;
  seen.cframe = top.cframe;
  seen.unit_count = 0;
  for (size_t i = 0; i < b.unit_count; ++i) {
    if (b.used[i]) seen.units[seen.unit_count++] = b.units[i];
  }
}

// To 3.10. A frame for which a trace function runs does not run yet.
bool SampledFrames::runs(const uint8_t* frame) const {
  return layout_.frame_state == kNoField || frame[layout_.frame_state] == layout_.executing;
}

// Whether the next frame outwards is run by another call of the evaluation loop.
bool SampledFrames::ends_loop(const uint8_t* frame, bool runs_code) const {
  if (layout_.loops_have_frames()) return !runs_code;
  return layout_.frame_entry == kNoField || frame[layout_.frame_entry] != 0;
}

// From a frame outwards, into `links`. `last`: the outermost.
bool SampledFrames::follow(uint64_t innermost, Memory memory, size_t& count, uint64_t& last) {
  Buffers& b = *buffers_;
  count = 0;
  uint16_t loop = 0;
  b.loop_frames[loop] = 0;
  bool inner_runs = true;
  for (size_t steps = 0; innermost != 0; ++steps) {
    if (steps == kMostFrames) return false;
    const uint8_t* const bytes =
        memory == Memory::as_needed ? fetch(innermost) : frame_in(b.first, innermost, false);
    if (!bytes) return false;
    const bool this_runs = runs(bytes);
    if (!inner_runs && !this_runs) return false;  // the list of free frames, which can be long
    inner_runs = this_runs;
    const uint64_t previous = word(bytes + layout_.frame_previous);
    const bool runs_code =
        layout_.frame_owner == kNoField || bytes[layout_.frame_owner] < layout_.first_foreign;
    if (runs_code && count < kMaxStackFrames) {
      const uint64_t code =
          word(bytes + layout_.frame_code) & ~uint64_t{7};  // low bits may be tags
      b.links[count] = {innermost, code, previous};
      b.instructions[count] = layout_.instruction_is_int
                                  ? half_word(bytes + layout_.frame_instruction)
                                  : word(bytes + layout_.frame_instruction);
      b.loop_of[count++] = loop;
    }
    if (ends_loop(bytes, runs_code) && loop < kMaxStackFrames) {
      b.loop_frames[loop++] = layout_.loops_have_frames() ? innermost : 0;
      b.loop_frames[loop] = 0;
    }
    last = innermost;
    innermost = previous;
  }
  return true;
}

// The innermost of the frames that were read in one go whose calls all ran when they were read. One
// that has returned does not run, and leads nowhere or into the list of free ones.
bool SampledFrames::follow_what_ran(size_t& count) {
  Buffers& b = *buffers_;
  const auto unit_runs = [&](size_t unit) { return runs(b.first + unit * unit_bytes()); };
  const auto try_from = [&](size_t unit) {
    uint64_t last = 0;
    if (!unit_runs(unit) || !follow(b.units[unit], Memory::already_read, count, last)) return false;
    for (size_t i = 0; i < count; ++i) {
      if (!unit_runs(find_unit(b.links[i].address))) return false;
    }
    return true;
  };
  size_t longest = 0, best = kNoUnit;
  for (size_t i = 0; i < b.unit_count; ++i) {
    if (try_from(i) && count > longest) longest = count, best = i;
  }
  return best != kNoUnit && try_from(best);
}

// `loose`: it need not stand still if it ends where it did.
SampledFrames::Outcome SampledFrames::walk_once(uint64_t state, Seen& seen, bool loose,
                                                size_t& count, uint64_t& last) {
  Top top;
  if (!begin_walk(state, seen, top)) return Outcome::torn;
  if (top.frame == 0) return Outcome::none;
  bool good = follow(top.frame, Memory::as_needed, count, last);
  if (!loose) {
    good = good && unchanged(state, seen, top, count);
  } else if (!good || last != seen.outermost) {
    good = layout_.frame_state != kNoField && follow_what_ran(count);
  }
  end_walk(seen, top);
  last_top_ = top;
  last_links_ = good && !loose ? count : 0;
  if (!good) return Outcome::torn;
  return count ? Outcome::read : Outcome::none;
}

SampledFrames::Outcome SampledFrames::walk(uint64_t state, Seen& seen, size_t& count) {
  Outcome outcome = Outcome::torn;
  uint64_t last = 0;
  const int tries = seen.moved ? 1 : kTries;
  for (int i = 0; i < tries && outcome == Outcome::torn; ++i) {
    outcome = walk_once(state, seen, false, count, last);
    if (outcome == Outcome::read) {
      outcome = read_codes(count);
      if (outcome == Outcome::read) seen.outermost = last;
    }
  }
  seen.moved = outcome == Outcome::torn;
  const bool can_tell = seen.outermost != 0 || layout_.frame_state != kNoField;
  for (int i = 0; can_tell && i < kLooseTries && outcome == Outcome::torn; ++i) {
    outcome = walk_once(state, seen, true, count, last);
    if (outcome == Outcome::read) outcome = read_codes(count);
  }
  return outcome;
}

uint64_t SampledFrames::loop_frame(size_t loop) const {
  return loop <= kMaxStackFrames ? buffers_->loop_frames[loop] : 0;
}

bool SampledFrames::stands_still(uint64_t state, const Seen& seen) {
  return last_links_ != 0 && unchanged(state, seen, last_top_, last_links_);
}

SampledFrames::Outcome SampledFrames::read_codes(size_t& count) {
  Buffers& b = *buffers_;
  const size_t bytes = layout_.code_object_bytes();
  size_t codes = 0;
  for (size_t i = 0; i < count; ++i) {
    void* const place = reinterpret_cast<void*>(b.links[i].code);
    size_t at = 0;
    while (at < codes && b.from[at].iov_base != place) ++at;
    b.code_of[i] = static_cast<uint16_t>(at);
    if (at < codes) continue;
    b.to[at] = {b.codes[at], bytes};
    b.from[at] = {place, bytes};
    ++codes;
  }
  if (!copy_own_memory(b.to, b.from, codes, codes * bytes)) return Outcome::torn;
  size_t kept = 0;
  for (size_t i = 0; i < count; ++i) {
    const uint8_t* const code = b.codes[b.code_of[i]];
    RawFrame& frame = raw_[kept];
    frame.code = b.links[i].code;
    if (word(code + kObjectType) != code_type_ ||
        !instruction_offset(layout_, frame.code, code, b.instructions[i], frame.offset)) {
      return Outcome::torn;
    }
    frame.loop = b.loop_of[i];
    b.code_of[kept] = b.code_of[i];
    if (is_source(layout_, code)) ++kept;
  }
  count = kept;
  return count ? Outcome::read : Outcome::none;
}

bool SampledFrames::names_of(const RawFrame& frame, CodeNames& out) const {
  uint8_t code[kCodeBytes];
  return copy_own_memory(frame.code, code, layout_.code_object_bytes()) &&
         load<uint64_t>(code + kObjectType) == code_type_ &&
         read_names(layout_, {copy_own_memory, buffers_->table, kTableBytes}, code, frame.offset,
                    out);
}

// Another code object at the same place, made since forget(), differs in at least one of these, or
// has its names and table where the one before had them and bears its name.
uint64_t SampledFrames::key_of(const RawFrame& frame, const uint8_t* code) const {
  const uint64_t words[] = {frame.code,
                            static_cast<uint64_t>(int64_t{frame.offset}),
                            word(code + layout_.code_file),
                            word(code + layout_.code_name),
                            word(code + layout_.code_line_table),
                            half_word(code + layout_.code_first_line)};
  const uint64_t key = hash_bytes(words, sizeof words);
  return key ? key : 1;
}

SampledFrames::Outcome SampledFrames::name(size_t count, uint64_t* frames) {
  Buffers& b = *buffers_;
  for (size_t i = 0; i < count; ++i) {
    const uint64_t key = key_of(raw_[i], b.codes[b.code_of[i]]);
    Known& known = b.known[key % kKnown];
    if (known.key != key) {
      CodeNames names;
      if (!names_of(raw_[i], names)) return Outcome::torn;
      const uint64_t frame = intern_frame(names);
      if (frame == 0) return Outcome::no_room;
      known = {key, frame};
    }
    frames[i] = known.frame;
  }
  return Outcome::read;
}

}  // namespace gpuprof
