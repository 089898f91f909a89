// SPDX-License-Identifier: Apache-2.0
#include "formats/writers/perfetto/perfetto_stacks.h"

#include <fmt/format.h>

#include <algorithm>

namespace gpuprof::perfetto {

// Events have no TrackEvent.callstack_iid: Perfetto before version 53 does not know that field, and
// reports each as an import error (unknown_extension_fields).
uint64_t Stacks::text(StackIndex stack) {
  std::string text;
  for (const std::string& line : table_.lines(stack)) text += (text.empty() ? "" : "\n") + line;
  return out_.value(text);
}

uint64_t Stacks::callstack(StackIndex stack) {
  std::vector<uint64_t> outermost_first;
  const std::span<const uint64_t> addresses = table_[stack];
  for (auto address = addresses.rbegin(); address != addresses.rend(); ++address) {
    const std::vector<uint64_t>& frames = frames_at(*address);
    outermost_first.insert(outermost_first.end(), frames.begin(), frames.end());
  }
  if (outermost_first.empty()) {
    CallFrame not_recorded;
    not_recorded.function = "call stack not recorded";
    not_recorded.mapping = no_file();
    outermost_first.push_back(out_.define_frame(not_recorded));
  }
  return out_.define_callstack(outermost_first);
}

uint64_t Stacks::no_file() {
  if (!no_file_) no_file_ = out_.define_mapping({0, 0, "no known file", {}});
  return no_file_;
}

const std::vector<uint64_t>& Stacks::frames_at(uint64_t address) {
  const auto [known, fresh] = frames_.try_emplace(address);
  if (!fresh) return known->second;
  CallFrame out;
  if (const Module* const module = table_.module_of(address)) {
    const auto [mapping, first] = mappings_.try_emplace(module);
    if (first) {
      mapping->second =
          out_.define_mapping({module->bias, module->end, module->path, module->build_id});
    }
    out.mapping = mapping->second;
    out.offset = address - module->bias;
  } else {
    out.mapping = no_file();
    out.offset = address;
  }
  const std::span<const Frame> frames = table_.frames(address);
  for (auto frame = frames.rbegin(); frame != frames.rend(); ++frame) {
    std::string with_line;
    if (frame->python) {
      // Frames of one function are one to viewers unless their places differ, and lines are not
      // shown.
      if (!python_) python_ = out_.define_mapping({0, 0, "Python", {}});
      out.mapping = python_;
      out.offset = frame->line;
      with_line = fmt::format("{} ({}:{})", frame->function,
                              std::string_view(frame->file).substr(frame->file.rfind('/') + 1),
                              frame->line);
    }
    out.function = frame->python ? std::string_view(with_line) : frame->function;
    out.file = frame->file;
    out.line = frame->line;
    known->second.push_back(out_.define_frame(out));
  }
  if (frames.empty()) {
    const std::string place = table_.place(address);
    out.function = place;
    known->second.push_back(out_.define_frame(out));
  }
  return known->second;
}

}  // namespace gpuprof::perfetto
