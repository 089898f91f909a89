// SPDX-License-Identifier: Apache-2.0
#include "formats/writers/xplane/xplane_writer.h"

#include <algorithm>

#include "formats/io/utf8.h"

namespace gpuprof::xplane {
namespace {

constexpr size_t kMuch = 1 << 20;
// Of a length that is filled in: a varint may have more bytes than it needs. 2^35 bytes are more
// than a message can have.
constexpr size_t kLengthBytes = 5;

enum Space : uint32_t { planes = 1, hostnames = 4 };
enum PlaneField : uint32_t {
  plane_id = 1,
  plane_name = 2,
  lines = 3,
  event_metadata = 4,
  stat_metadata = 5,
  plane_stats = 6
};
enum Line : uint32_t { line_id = 1, line_name = 2, timestamp_ns = 3, line_events = 4 };
enum EventField : uint32_t { metadata_id = 1, offset_ps = 2, duration_ps = 3, event_stats = 4 };
enum Stat : uint32_t { stat_metadata_id = 1, int64_value = 4, str_value = 5, ref_value = 7 };
enum Metadata : uint32_t { map_key = 1, map_value = 2, meta_id = 1, meta_name = 2, meta_shown = 4 };

void metadata(WireWriter& wire, uint32_t field, uint64_t id, std::string_view name,
              std::string_view shown) {
  const size_t entry = wire.open(field);
  wire.uint(map_key, id);
  const size_t value = wire.open(map_value);
  wire.uint(meta_id, id);
  wire.text(meta_name, valid_utf8(name));
  wire.text(meta_shown, valid_utf8(shown));
  wire.close(value);
  wire.close(entry);
}

uint64_t picoseconds(int64_t ns) {
  constexpr int64_t kMost = INT64_MAX / 1000;
  return static_cast<uint64_t>(std::clamp<int64_t>(ns, 0, kMost) * 1000);
}

}  // namespace

Plane::Plane(OutputFile& file, int64_t id, std::string_view name, int64_t origin)
    : file_(file), origin_(origin) {
  plane_ = open(planes);
  wire_.int_field(plane_id, id);
  wire_.text(plane_name, name);
}

uint64_t Plane::open(uint32_t field) {
  flush();
  const uint8_t head[1 + kLengthBytes] = {static_cast<uint8_t>(field << 3 | 2)};
  file_.write(head, sizeof head);
  return file_.place();
}

void Plane::close(uint64_t mark) {
  flush();
  uint64_t size = file_.place() - mark;
  uint8_t length[kLengthBytes];
  for (uint8_t& byte : length) {
    byte = static_cast<uint8_t>(size & 0x7f) | 0x80;
    size >>= 7;
  }
  length[kLengthBytes - 1] &= 0x7f;
  file_.overwrite(mark - kLengthBytes, length, kLengthBytes);
}

void Plane::flush() {
  file_.write(body_.data(), body_.size());
  body_.clear();
}

uint64_t Plane::event_id(std::string_view name, std::string_view shown) {
  const std::string_view key = shown.empty() ? name : shown;
  const auto known = events_.find(key);
  if (known != events_.end()) return known->second;
  const uint64_t id = events_.size() + 1;
  events_.emplace(key, id);
  metadata(names_wire_, event_metadata, id, name, shown);
  return id;
}

uint64_t Plane::stat_id(std::string_view name) {
  const auto known = stats_.find(name);
  if (known != stats_.end()) return known->second;
  const uint64_t id = stats_.size() + 1;
  stats_.emplace(name, id);
  metadata(names_wire_, stat_metadata, id, name, {});
  return id;
}

void Plane::begin_line(int64_t id, std::string_view name) {
  line_ = open(lines);
  wire_.int_field(line_id, id);
  wire_.text(line_name, valid_utf8(name));
  wire_.int_field(timestamp_ns, std::max<int64_t>(origin_, 0));
}

void Plane::end_line() { close(line_); }

void Plane::begin_event(std::string_view name, std::string_view shown, int64_t begin, int64_t end) {
  event_ = wire_.open(line_events);
  wire_.uint(metadata_id, event_id(name, shown == name ? std::string_view() : shown));
  wire_.uint_always(offset_ps, picoseconds(begin - origin_));
  wire_.uint(duration_ps, picoseconds(end - begin));
}

void Plane::end_event() {
  wire_.close(event_);
  if (body_.size() >= kMuch) flush();
}

void Plane::stat(std::string_view key, int64_t value) {
  const size_t mark = wire_.open(event_stats);
  wire_.uint(stat_metadata_id, stat_id(key));
  wire_.uint_always(int64_value, static_cast<uint64_t>(value));
  wire_.close(mark);
}

void Plane::stat(std::string_view key, std::string_view text) {
  const size_t mark = wire_.open(event_stats);
  wire_.uint(stat_metadata_id, stat_id(key));
  wire_.uint(ref_value, stat_id(text));
  wire_.close(mark);
}

void Plane::plane_stat(std::string_view key, int64_t value) {
  const size_t mark = wire_.open(plane_stats);
  wire_.uint(stat_metadata_id, stat_id(key));
  wire_.uint_always(int64_value, static_cast<uint64_t>(value));
  wire_.close(mark);
}

void Plane::plane_stat(std::string_view key, std::string_view text) {
  const size_t mark = wire_.open(plane_stats);
  wire_.uint(stat_metadata_id, stat_id(key));
  wire_.bytes(str_value, valid_utf8(text));
  wire_.close(mark);
}

bool Plane::finish() {
  flush();
  file_.write(names_.data(), names_.size());
  close(plane_);
  return wire_.ok() && names_wire_.ok();
}

void write_hostname(OutputFile& file, std::string_view name) {
  const std::string text = valid_utf8(name);
  uint8_t head[1 + kMaxVarintBytes] = {hostnames << 3 | 2};
  const uint8_t* const end = put_varint(head + 1, text.size());
  file.write(head, static_cast<size_t>(end - head));
  file.write(text);
}

}  // namespace gpuprof::xplane
