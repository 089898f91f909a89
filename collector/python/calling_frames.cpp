// SPDX-License-Identifier: Apache-2.0
#include "collector/python/calling_frames.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <unistd.h>

#include <atomic>
#include <cstring>

#include "collector/base/libc.h"
#include "collector/base/libraries.h"
#include "collector/base/os.h"
#include "collector/python/code_names.h"
#include "collector/python/frame_check.h"
#include "collector/record/ring.h"
#include "collector/stacks/stacks.h"

namespace gpuprof {
namespace {

// Frames by what they run. Two words that are written together or are not taken: the key is kept as
// its exclusive or with the frame.
struct KnownFrame {
  std::atomic<uint64_t> key_xor_frame{0}, frame{0};
};
constexpr size_t kKnown = 4096;
constinit KnownFrame g_frames[kKnown];
constinit std::atomic<uint64_t> g_generation{0};

struct Code {
  uint64_t begin, end;
  bool has_call(uint64_t return_address) const {
    return return_address > begin && return_address <= end;
  }
};
// Set before frames are known.
constinit Code g_loop{};  // _PyEval_EvalFrameDefault, or as much of it as lies in one piece
constinit Code g_interpreter{};
using StateOfThread = void* (*)();
using IsFinalizing = int (*)();
constinit std::atomic<StateOfThread> g_state_of_thread{nullptr};
constinit std::atomic<IsFinalizing> g_is_finalizing{nullptr};

const uint8_t* at(uint64_t address) { return reinterpret_cast<const uint8_t*>(address); }
uint64_t word(uint64_t address) { return load<uint64_t>(at(address)); }

bool copy_own(uint64_t address, void* out, size_t bytes) {
  std::memcpy(out, at(address), bytes);
  return true;
}

// 0: what is there cannot be a frame's code, or a table is full.
uint64_t frame_of(const KnownInterpreter& python, uint64_t code, uint64_t instruction) {
  const PythonLayout& layout = python.layout;
  const uint8_t* const bytes = at(code);
  int32_t offset = 0;
  if (word(code + kObjectType) != python.code_type || !is_source(layout, bytes) ||
      !instruction_offset(layout, code, bytes, instruction, offset)) {
    return 0;
  }
  const auto table = load<uint64_t>(bytes + layout.code_line_table);
  const uint64_t words[] = {g_generation.load(std::memory_order_relaxed),
                            code,
                            static_cast<uint64_t>(int64_t{offset}),
                            load<uint64_t>(bytes + layout.code_file),
                            load<uint64_t>(bytes + layout.code_name),
                            table,
                            word(table + kObjectSize),
                            load<uint32_t>(bytes + layout.code_first_line)};
  const uint64_t key = hash_bytes(words, sizeof words);
  KnownFrame& known = g_frames[key % kKnown];
  uint64_t frame = known.frame.load(std::memory_order_relaxed);
  if (frame && (known.key_xor_frame.load(std::memory_order_relaxed) ^ frame) == key) return frame;
  CodeNames names;
  if (!read_names(layout, {copy_own, nullptr, 0}, bytes, offset, names)) return 0;
  frame = intern_frame(names);
  if (frame == 0) return 0;
  known.frame.store(frame, std::memory_order_relaxed);
  known.key_xor_frame.store(key ^ frame, std::memory_order_relaxed);
  return frame;
}

// From the innermost frame outwards, by calls of the evaluation loop.
class OwnFrames {
 public:
  OwnFrames(const KnownInterpreter& python, uint64_t state) : python_(python) {
    frame_ = word(state + python.layout.frame);
    if (frame_ && python.layout.cframe_frame != kNoField) {
      frame_ = word(frame_ + python.layout.cframe_frame);
    }
    find_loop();
  }

  bool at_end() const { return frame_ == 0; }

  // Whether the next frames run in this native one. From 3.12 on the frame that each call of the
  // loop has of its own lies in its stack memory, wherever a compiler has put its instructions.
  bool run_in(uint64_t return_address, uint64_t stack_begin, uint64_t stack_end) const {
    if (!python_.layout.loops_have_frames()) return g_loop.has_call(return_address);
    return loop_ != 0 && loop_ >= stack_begin && loop_ < stack_end;
  }

  // Adds the frames that one call of the loop runs.
  void take_loop(uint64_t* out, size_t& count, size_t size) {
    const PythonLayout& layout = python_.layout;
    while (frame_ != 0) {
      const uint64_t frame = frame_;
      frame_ = word(frame + layout.frame_previous);
      if (frame == loop_) return find_loop();
      if (count < size) {
        if (const uint64_t found = name_of(frame)) out[count++] = found;
      }
      if (layout.loops_have_frames()) continue;
      // In 3.11 the first frame of a call says that it is; before, each call has one frame.
      if (layout.frame_entry == kNoField || *at(frame + layout.frame_entry)) return;
    }
  }

 private:
  void find_loop() {
    const PythonLayout& layout = python_.layout;
    if (!layout.loops_have_frames()) return;
    loop_ = frame_;
    while (loop_ != 0 && *at(loop_ + layout.frame_owner) < layout.first_foreign) {
      loop_ = word(loop_ + layout.frame_previous);
    }
  }

  uint64_t name_of(uint64_t frame) const {
    const PythonLayout& layout = python_.layout;
    const uint64_t instruction = layout.instruction_is_int
                                     ? load<uint32_t>(at(frame + layout.frame_instruction))
                                     : word(frame + layout.frame_instruction);
    return frame_of(python_, word(frame + layout.frame_code) & ~uint64_t{7}, instruction);
  }

  const KnownInterpreter& python_;
  uint64_t frame_;
  uint64_t loop_ = 0;  // the next frame that is a call's of the loop, where they have one
};

// Those of another thread, of a walk of the reader's.
class ReadFrames {
 public:
  ReadFrames(const PythonLayout& layout, const SampledFrames& reader, const uint64_t* named,
             size_t count)
      : layout_(layout), reader_(reader), named_(named), count_(count) {}

  bool at_end() const { return next_ == count_; }

  bool run_in(uint64_t return_address, uint64_t stack_begin, uint64_t stack_end) const {
    if (!layout_.loops_have_frames()) return g_loop.has_call(return_address);
    const uint64_t loop = reader_.loop_frame(loop_);
    return loop != 0 && loop >= stack_begin && loop < stack_end;
  }

  void take_loop(uint64_t* out, size_t& count, size_t size) {
    for (; next_ < count_ && reader_.raw()[next_].loop == loop_; ++next_) {
      if (count < size) out[count++] = named_[next_];
    }
    ++loop_;
  }

 private:
  const PythonLayout& layout_;
  const SampledFrames& reader_;
  const uint64_t* named_;
  size_t count_, next_ = 0, loop_ = 0;
};

// `python` has the frames of the thread whose native ones these are.
template <typename Python>
size_t merge(Python& python, uint64_t* frames, const uint64_t* stack_pointers, size_t count,
             size_t size) {
  uint64_t merged[kMaxStackFrames];
  size = size < kMaxStackFrames ? size : kMaxStackFrames;
  size_t out = 0;
  for (size_t i = 0; i < count && out < size; ++i) {
    const uint64_t stack_end = i + 1 < count ? stack_pointers[i + 1] : 0;
    if (python.run_in(frames[i], stack_pointers[i], stack_end)) {
      python.take_loop(merged, out, size);
    } else if (!g_interpreter.has_call(frames[i])) {
      merged[out++] = frames[i];
    }
  }
  // Of a loop that the unwinder did not get to.
  while (!python.at_end() && out < size) python.take_loop(merged, out, size);
  std::memcpy(frames, merged, out * sizeof merged[0]);
  return out;
}

// python3.11, libpython3.11.so.1.0; not a program that has an interpreter in it.
bool is_interpreter(const dl_phdr_info& object) {
  char program[1024] = "";
  const char* path = object.dlpi_name;
  if (!path || !path[0]) {
    const ssize_t bytes = ::readlink(OwnProcPath("exe").c_str(), program, sizeof program - 1);
    if (bytes > 0) program[bytes] = '\0';
    path = program;
  }
  const char* const slash = std::strrchr(path, '/');
  const char* const name = slash ? slash + 1 : path;
  return std::strncmp(name, "python", 6) == 0 || std::strncmp(name, "libpython", 9) == 0;
}

// The code of the object that the evaluation loop is in.
int find_interpreter(dl_phdr_info* object, size_t, void*) {
  for (size_t i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = object->dlpi_phdr[i];
    const Code code{object->dlpi_addr + segment.p_vaddr,
                    object->dlpi_addr + segment.p_vaddr + segment.p_memsz};
    if (segment.p_type != PT_LOAD || !(segment.p_flags & PF_X)) continue;
    if (!code.has_call(g_loop.begin + 1)) continue;
    if (is_interpreter(*object)) g_interpreter = code;
    return 1;
  }
  return 0;
}

}  // namespace

void calling_frames_session_begins(const PythonApi& python) {
  void* const loop = program_symbol("_PyEval_EvalFrameDefault");
  Dl_info info{};
  void* symbol = nullptr;
  if (loop && ::dladdr1 && ::dladdr1(loop, &info, &symbol, RTLD_DL_SYMENT) && symbol) {
    const auto begin = reinterpret_cast<uint64_t>(loop);
    g_loop = {begin, begin + static_cast<ElfW(Sym)*>(symbol)->st_size};
    list_objects(find_interpreter, nullptr);
  }
  g_is_finalizing.store(python.Py_IsFinalizing, std::memory_order_relaxed);
  g_state_of_thread.store(python.PyGILState_GetThisThreadState, std::memory_order_relaxed);
}

void forget_calling_frames() { g_generation.fetch_add(1, std::memory_order_relaxed); }

size_t merge_python_frames(uint64_t* frames, const uint64_t* stack_pointers, size_t count,
                           size_t size) {
  if (frames_state() != FramesState::known) return count;
  // At its end the interpreter takes away the states of threads that may still run other code.
  if (g_is_finalizing.load(std::memory_order_relaxed)()) return count;
  void* const state = g_state_of_thread.load(std::memory_order_relaxed)();
  if (!state) return count;
  OwnFrames own(known_interpreter(), reinterpret_cast<uint64_t>(state));
  return own.at_end() ? count : merge(own, frames, stack_pointers, count, size);
}

size_t merge_read_frames(uint64_t* frames, const uint64_t* stack_pointers, size_t count,
                         size_t size, const SampledFrames& reader, const uint64_t* named,
                         size_t named_count) {
  ReadFrames read(known_interpreter().layout, reader, named, named_count);
  return merge(read, frames, stack_pointers, count, size);
}

}  // namespace gpuprof
