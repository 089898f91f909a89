// SPDX-License-Identifier: Apache-2.0
// XProf's trace format (xplane.proto of OpenXLA) on the level of messages: planes of lines of
// events, with names interned in each plane.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "formats/core/byte_buffer.h"
#include "formats/core/wire.h"
#include "formats/file_bytes.h"

namespace gpuprof::xplane {

// One plane under construction: lines one after the other, events of a line in order of begin,
// stats of an event between begin_event() and end_event(). Times are ns; `origin` is subtracted, to
// the benefit of picoseconds that must fit 63 bits.
class Plane {
 public:
  Plane(int64_t id, std::string_view name, int64_t origin);

  void begin_line(int64_t id, std::string_view name);
  void end_line();
  // `shown`: what a viewer prints instead of `name`, where that is another.
  void begin_event(std::string_view name, std::string_view shown, int64_t begin, int64_t end);
  void end_event();
  void stat(std::string_view key, int64_t value);
  void stat(std::string_view key, std::string_view text);  // interned

  // Of the plane; after its lines.
  void plane_stat(std::string_view key, int64_t value);
  void plane_stat(std::string_view key, std::string_view text);

  // Writes it as a field of the file's message. False: memory ran out.
  bool write(OutputFile& file);

 private:
  struct TextHash {
    using is_transparent = void;
    size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
  };
  using Ids = std::unordered_map<std::string, uint64_t, TextHash, std::equal_to<>>;
  uint64_t event_id(std::string_view name, std::string_view shown);
  uint64_t stat_id(std::string_view name);

  ByteBuffer body_, names_;  // lines; metadata
  WireWriter wire_{body_}, names_wire_{names_};
  const int64_t origin_;
  size_t line_ = 0, event_ = 0;
  Ids events_, stats_;
};

// The host that the file is about, after its planes.
void write_hostname(OutputFile& file, std::string_view name);

}  // namespace gpuprof::xplane
