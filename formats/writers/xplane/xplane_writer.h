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
#include "formats/io/file_bytes.h"

namespace gpuprof::xplane {

// One plane, which goes to the file as it grows; its length is filled in afterwards. Lines come one
// after the other, a line's events in order of begin, an event's stats between begin_event() and
// end_event(). Times are ns; `origin` is subtracted, to the benefit of picoseconds that must fit 63
// bits.
class Plane {
 public:
  // `file` is not compressed.
  Plane(OutputFile& file, int64_t id, std::string_view name, int64_t origin);

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

  // The end of it. False: memory ran out, and the file is to be thrown away.
  bool finish();

 private:
  struct TextHash {
    using is_transparent = void;
    size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
  };
  using Ids = std::unordered_map<std::string, uint64_t, TextHash, std::equal_to<>>;
  // A field of the file, or of the plane, whose length is not known yet.
  uint64_t open(uint32_t field);
  void close(uint64_t mark);
  void flush();
  uint64_t event_id(std::string_view name, std::string_view shown);
  uint64_t stat_id(std::string_view name);

  OutputFile& file_;
  ByteBuffer body_, names_;  // what is not in the file yet; metadata
  WireWriter wire_{body_}, names_wire_{names_};
  const int64_t origin_;
  uint64_t plane_ = 0, line_ = 0;  // where they begin in the file
  size_t event_ = 0;               // in `body_`
  Ids events_, stats_;
};

// The host that the file is about, after its planes.
void write_hostname(OutputFile& file, std::string_view name);

}  // namespace gpuprof::xplane
