// SPDX-License-Identifier: Apache-2.0
#include "collector/python/code_names.h"

#include "collector/base/redact.h"
#include "collector/record/ring.h"

namespace gpuprof {
namespace {

constexpr size_t kTextState = 32;

// Text of `units` characters of `width` bytes; returns the bytes written. What os.fsdecode() made
// of bytes that are no UTF-8 becomes those bytes again.
size_t to_utf8(const uint8_t* text, size_t units, unsigned width, char* out, size_t size) {
  size_t at = 0;
  for (size_t i = 0; i < units && at + 4 <= size; ++i) {
    uint32_t c = 0;
    std::memcpy(&c, text + i * width, width);
    const auto put = [&](uint32_t byte) { out[at++] = static_cast<char>(byte); };
    if (c < 0x80) {
      put(c);
    } else if (c < 0x800) {
      put(0xc0 | c >> 6), put(0x80 | (c & 63));
    } else if (c >= 0xdc80 && c <= 0xdcff) {
      put(c - 0xdc00);
    } else if (c < 0x10000) {
      put(0xe0 | c >> 12), put(0x80 | (c >> 6 & 63)), put(0x80 | (c & 63));
    } else {
      put(0xf0 | (c >> 18 & 7)), put(0x80 | (c >> 12 & 63)), put(0x80 | (c >> 6 & 63)),
          put(0x80 | (c & 63));
    }
  }
  return at;
}

bool read_text(const PythonLayout& layout, const ObjectMemory& memory, uint64_t object, char* out,
               size_t size, size_t& length) {
  constexpr size_t kMostUnits = 1024;
  uint8_t head[40], units[kMostUnits * 4];
  if (!memory.copy(object, head, sizeof head)) return false;
  const auto state = load<uint32_t>(head + kTextState);
  const uint32_t width = state >> 2 & 7;
  const bool compact = state >> 5 & 1, ascii = state >> 6 & 1;
  if (!compact || (width != 1 && width != 2 && width != 4)) return false;
  auto count = load<uint64_t>(head + kObjectSize);
  if (count > kMostUnits) count = kMostUnits;
  const uint64_t begin = object + (ascii ? layout.ascii_text : layout.other_text);
  if (count && !memory.copy(begin, units, count * width)) return false;
  length = to_utf8(units, count, width, out, size);
  return true;
}

}  // namespace

bool instruction_offset(const PythonLayout& layout, uint64_t place, const uint8_t* code,
                        uint64_t instruction, int32_t& offset) {
  if (layout.instruction_is_int) {
    const auto index = static_cast<int32_t>(instruction);
    offset = layout.lines == LineTable::ranges ? index * 2 : index;
    return index >= -1 && index < 1 << 28;
  }
  const auto distance = static_cast<int64_t>(instruction - place - layout.code_bytes);
  const auto size = load<int64_t>(code + kObjectSize) * 2;
  offset = static_cast<int32_t>(distance);
  return distance >= -8 && distance <= size && size < 1 << 28;
}

bool is_source(const PythonLayout& layout, const uint8_t* code) {
  return load<uint64_t>(code + layout.code_file) != load<uint64_t>(code + layout.code_name);
}

bool read_names(const PythonLayout& layout, const ObjectMemory& memory, const uint8_t* code,
                int32_t offset, CodeNames& out) {
  if (!read_text(layout, memory, load<uint64_t>(code + layout.code_file), out.file, sizeof out.file,
                 out.file_bytes) ||
      !read_text(layout, memory, load<uint64_t>(code + layout.code_name), out.function,
                 sizeof out.function, out.function_bytes)) {
    return false;
  }
  out.line = static_cast<int>(load<uint32_t>(code + layout.code_first_line));
  const auto table = load<uint64_t>(code + layout.code_line_table);
  uint64_t bytes = 0;
  if (!memory.copy(table + kObjectSize, &bytes, sizeof bytes)) return false;
  if (offset < 0 || bytes == 0 || bytes > 1 << 28) return true;
  const auto* lines = reinterpret_cast<const uint8_t*>(table + kBytesText);
  if (memory.scratch) {
    if (bytes > memory.scratch_bytes) return true;
    if (!memory.copy(table + kBytesText, memory.scratch, bytes)) return false;
    lines = memory.scratch;
  }
  const int line = line_at(layout.lines, lines, bytes, out.line, offset);
  if (line > 0) out.line = line;
  return true;
}

uint64_t intern_frame(const CodeNames& names) {
  const PythonCodeName code{intern_string(shown_path({names.file, names.file_bytes})),
                            intern_string({names.function, names.function_bytes})};
  const StringId id = intern_string({reinterpret_cast<const char*>(&code), sizeof code});
  if (id == 0) return 0;
  return kPythonFrame | uint64_t{static_cast<uint32_t>(names.line) & 0x7fffffff} << 32 | id;
}

}  // namespace gpuprof
