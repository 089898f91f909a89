// SPDX-License-Identifier: Apache-2.0
#include "collector/python/frame_layout.h"

#include <cstdlib>
#include <cstring>

namespace gpuprof {
namespace {

constexpr PythonLayout kTo310{
    .thread_previous = 0,
    .thread_interpreter = 16,
    .thread_id = 176,
    .native = false,
    .frame = 24,
    .cframe_frame = kNoField,
    .frame_previous = 24,
    .frame_code = 32,
    .frame_instruction = 104,
    .frame_state = 116,
    .executing = 1,
    .frame_owner = kNoField,
    .frame_entry = kNoField,
    .first_foreign = kNoForeign,
    .instruction_is_int = true,
    .code_file = 104,
    .code_name = 112,
    .code_first_line = 40,
    .code_line_table = 120,
    .code_bytes = kNoField,
    .lines = LineTable::lnotab,
    .ascii_text = 48,
    .other_text = 72,
};

constexpr PythonLayout layout_310() {
  PythonLayout out = kTo310;
  out.frame_instruction = 96;
  out.frame_state = 108;
  out.executing = 0;
  out.lines = LineTable::ranges;
  return out;
}

constexpr PythonLayout layout_311() {
  PythonLayout out = kTo310;
  out.thread_id = 160;
  out.native = true;
  out.frame = 56;
  out.cframe_frame = 8;
  out.frame_previous = 48;
  out.frame_code = 32;
  out.frame_instruction = 56;
  out.frame_state = kNoField;
  out.frame_owner = 69;
  out.frame_entry = 68;
  out.instruction_is_int = false;
  out.code_file = 112;
  out.code_name = 128;  // co_qualname
  out.code_first_line = 72;
  out.code_line_table = 136;
  out.code_bytes = 184;
  out.lines = LineTable::locations;
  return out;
}

constexpr PythonLayout layout_312() {
  PythonLayout out = layout_311();
  out.thread_id = 144;
  out.cframe_frame = 0;
  out.frame_previous = 8;
  out.frame_code = 0;
  out.frame_owner = 70;
  out.frame_entry = kNoField;
  out.first_foreign = 3;  // FRAME_OWNED_BY_CSTACK; from 3.14 on FRAME_OWNED_BY_INTERPRETER
  out.code_first_line = 68;
  out.code_bytes = 192;
  out.ascii_text = 40;
  out.other_text = 56;
  return out;
}

// Places of the offsets in _Py_DebugOffsets, in words of 8 bytes; the structure has grown in its
// middle from release to release.
struct DebugOffsets {
  uint8_t thread_previous, thread_interpreter, thread_frame, thread_native_id;
  uint8_t frame_previous, frame_code, frame_instruction, frame_owner;
  uint8_t code_file, code_qualified_name, code_line_table, code_first_line, code_bytes;
};
constexpr DebugOffsets kOffsets313{20, 22, 23, 25, 29, 30, 31, 33, 35, 37, 38, 39, 43};
constexpr DebugOffsets kOffsets314{23, 25, 26, 28, 32, 33, 34, 36, 40, 42, 43, 44, 48};
constexpr DebugOffsets kOffsets315{23, 25, 26, 31, 40, 41, 42, 44, 48, 50, 51, 52, 56};
constexpr uint8_t kFreeThreadedWord = 2;

bool from_debug_offsets(const DebugOffsets& places, const void* runtime, PythonLayout& out,
                        const char*& why) {
  uint64_t words[64];
  std::memcpy(words, runtime, sizeof words);
  if (std::memcmp(words, "xdebugpy", 8) != 0) {
    why = "it does not publish where it keeps its frames";
    return false;
  }
  if (words[kFreeThreadedWord] != 0) {
    why = "it is a free-threaded build, whose frames are not read";
    return false;
  }
  out = layout_312();
  bool fits = true;
  const auto take = [&](uint8_t place, uint16_t& field) {
    fits = fits && words[place] < 4096;
    field = static_cast<uint16_t>(words[place]);
  };
  take(places.thread_previous, out.thread_previous);
  take(places.thread_interpreter, out.thread_interpreter);
  take(places.thread_frame, out.frame);
  take(places.thread_native_id, out.thread_id);
  take(places.frame_previous, out.frame_previous);
  take(places.frame_code, out.frame_code);
  take(places.frame_instruction, out.frame_instruction);
  take(places.frame_owner, out.frame_owner);
  take(places.code_file, out.code_file);
  take(places.code_qualified_name, out.code_name);
  take(places.code_line_table, out.code_line_table);
  take(places.code_first_line, out.code_first_line);
  take(places.code_bytes, out.code_bytes);
  out.cframe_frame = kNoField;
  if (!fits) why = "where it says that it keeps its frames cannot be";
  return fits;
}

uint16_t beyond(uint16_t offset, uint16_t bytes) {
  return offset == kNoField ? 0 : static_cast<uint16_t>(offset + bytes);
}

template <typename... Ends>
uint16_t largest(uint16_t first, Ends... rest) {
  uint16_t out = first;
  ((out = rest > out ? rest : out), ...);
  return out;
}

}  // namespace

uint16_t PythonLayout::frame_bytes() const {
  return largest(beyond(frame_previous, 8), beyond(frame_code, 8), beyond(frame_instruction, 8),
                 beyond(frame_state, 1), beyond(frame_owner, 1), beyond(frame_entry, 1));
}

uint16_t PythonLayout::code_object_bytes() const {
  return largest(beyond(code_file, 8), beyond(code_name, 8), beyond(code_line_table, 8),
                 beyond(code_first_line, 4));
}

bool find_python_layout(const char* version, const void* runtime, PythonLayout& out,
                        const char*& why) {
  const int minor = std::strncmp(version, "3.", 2) == 0 ? std::atoi(version + 2) : 0;
  const DebugOffsets* published = nullptr;
  switch (minor) {
    case 8:
    case 9: out = kTo310; return true;
    case 10: out = layout_310(); return true;
    case 11: out = layout_311(); return true;
    case 12: out = layout_312(); return true;
    case 13: published = &kOffsets313; break;
    case 14: published = &kOffsets314; break;
    case 15: published = &kOffsets315; break;
    default: break;
  }
  if (published && runtime) return from_debug_offsets(*published, runtime, out, why);
  why = "how it keeps its frames is not known";
  return false;
}

}  // namespace gpuprof
