// SPDX-License-Identifier: Apache-2.0
#include "formats/dump/dump_reader.h"

#include <fmt/format.h>
#include <libdeflate.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>

#include "formats/core/chunk.h"
#include "formats/core/crc32c.h"
#include "formats/dump/events_decoder.h"
#include "formats/io/contents.h"
#include "formats/io/ordered_jobs.h"
#include "formats/trace/input_limits.h"

namespace gpuprof {
namespace {

constexpr size_t kFixedBytes = 9 + 5 + 5;  // magic, size, crc: the head of every chunk message
constexpr size_t kFirstBytes = 4096;       // that tell what a file is
constexpr uint8_t kChunkTag = 1 << 3 | 2;

// A cursor over protobuf wire format that never reads past its end.
class Cursor {
 public:
  explicit Cursor(std::string_view bytes) : bytes_(bytes) {}
  bool empty() const { return bytes_.empty(); }
  size_t left() const { return bytes_.size(); }

  std::optional<uint64_t> varint() {
    uint64_t value = 0;
    for (unsigned i = 0; i < 10 && i < bytes_.size(); ++i) {
      const auto byte = static_cast<uint8_t>(bytes_[i]);
      value |= uint64_t{byte & 0x7fu} << (7 * i);
      if (byte < 0x80) {
        bytes_.remove_prefix(i + 1);
        return value;
      }
    }
    return std::nullopt;
  }
  std::optional<std::string_view> take(uint64_t size) {
    if (size > bytes_.size()) return std::nullopt;
    const std::string_view taken = bytes_.substr(0, size);
    bytes_.remove_prefix(size);
    return taken;
  }
  // Skips the value of a field of wire type `type`.
  bool skip(uint64_t type) {
    switch (type) {
      case 0: return varint().has_value();
      case 1: return take(8).has_value();
      case 2: {
        const auto size = varint();
        return size && take(*size);
      }
      case 5: return take(4).has_value();
      default: return false;
    }
  }

 private:
  std::string_view bytes_;
};

template <typename T>
T load(std::string_view bytes, size_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

// Whether a chunk message may begin at `at`: the three fixed fields with the magic number.
bool looks_like_chunk(std::string_view bytes, size_t at) {
  return bytes.size() - at >= kFixedBytes && bytes[at] == 0x09 &&
         load<uint64_t>(bytes, at + 1) == kChunkMagic && bytes[at + 9] == 0x15 &&
         bytes[at + 14] == 0x1d;
}

struct ChunkView {
  size_t end = 0;            // offset after the chunk
  std::string_view checked;  // the bytes after the crc field
};

enum class Found { good, bad, cut };

// The chunk message at `at` (after tag and length).
Found examine(std::string_view bytes, size_t at, ChunkView& view) {
  if (bytes.size() - at < kFixedBytes) return Found::cut;
  if (!looks_like_chunk(bytes, at)) return Found::bad;
  const uint32_t size = load<uint32_t>(bytes, at + 10);
  if (size > bytes.size() - at - kFixedBytes) return Found::cut;
  view.checked = bytes.substr(at + kFixedBytes, size);
  view.end = at + kFixedBytes + size;
  const bool same = crc32c(view.checked.data(), size) == load<uint32_t>(bytes, at + 15);
  return same ? Found::good : Found::bad;
}

// The same for the field of Trace that begins at `at`. The length must agree with the chunk's own.
Found examine_field(std::string_view bytes, size_t at, ChunkView& view) {
  if (static_cast<uint8_t>(bytes[at]) != kChunkTag) return Found::bad;
  Cursor cursor(bytes.substr(at + 1));
  const auto length = cursor.varint();
  if (!length) return bytes.size() - at < 11 ? Found::cut : Found::bad;
  const size_t start = bytes.size() - cursor.left();
  const Found found = examine(bytes, start, view);
  if (found == Found::good && *length != view.end - start) return Found::bad;
  return found;
}

// The fields after the crc.
struct Body {
  uint64_t kind = 0, codec = 0, raw_size = 0;
  std::string_view data;
};

bool parse_body(std::string_view checked, Body& body) {
  Cursor cursor(checked);
  while (!cursor.empty()) {
    const auto tag = cursor.varint();
    if (!tag) return false;
    const uint64_t field = *tag >> 3, type = *tag & 7;
    if (field == 7 && type == 2) {
      const auto size = cursor.varint();
      const auto data = size ? cursor.take(*size) : std::nullopt;
      if (!data) return false;
      body.data = *data;
    } else if (type == 0) {
      const auto value = cursor.varint();
      if (!value) return false;
      if (field == 4) body.kind = *value;
      if (field == 5) body.codec = *value;
      if (field == 6) body.raw_size = *value;
    } else if (!cursor.skip(type)) {
      return false;
    }
  }
  return true;
}

// A few compressed bytes can stand for millions of empty messages, each of which costs a parser
// hundreds of bytes. Real ones have contents.
bool has_too_many_parts(std::string_view raw, size_t packed_size) {
  const uint64_t limit = 65536 + uint64_t{4} * packed_size;
  uint64_t count = 0;
  Cursor cursor(raw);
  while (!cursor.empty()) {
    const auto tag = cursor.varint();
    if (!tag || !cursor.skip(*tag & 7)) return false;  // the parser will refuse it
    if (++count > limit) return true;
  }
  return false;
}

// Of one thread; its buffer is used again and again.
class Inflater {
 public:
  // Null where the body can be used; views stay valid until the next call.
  std::string unpack(const Body& body, std::string_view& raw) {
    if (body.codec == static_cast<uint32_t>(Codec::none)) {
      raw = body.data;
    } else if (body.codec != static_cast<uint32_t>(Codec::deflate)) {
      return fmt::format("a chunk uses compression codec {}, which this gpuprof does not know",
                         body.codec);
    } else if (body.raw_size > kMaxBodyBytes || !inflate(body)) {
      return "a chunk cannot be decompressed";
    } else {
      raw = {raw_.data(), static_cast<size_t>(body.raw_size)};
    }
    if (has_too_many_parts(raw, body.data.size())) {
      return "a chunk has more parts than its size can hold";
    }
    return {};
  }

 private:
  // The buffer starts at what is likely and grows only while there really is more, so that a false
  // raw_size costs nothing.
  bool inflate(const Body& body) {
    if (!decompressor_) {
      prepare_libdeflate();
      decompressor_.reset(libdeflate_alloc_decompressor());
    }
    if (!decompressor_) return false;
    size_t room = std::min<uint64_t>(body.raw_size, body.data.size() * 4 + 4096);
    for (;;) {
      if (raw_.size() < room) raw_.resize(room);
      size_t got = 0;
      const libdeflate_result result = libdeflate_deflate_decompress(
          decompressor_.get(), body.data.data(), body.data.size(), raw_.data(), room, &got);
      if (result == LIBDEFLATE_SUCCESS) return got == body.raw_size;
      if (result != LIBDEFLATE_INSUFFICIENT_SPACE || room >= body.raw_size) return false;
      room = std::min<uint64_t>(body.raw_size, room * 4);
    }
  }

  struct FreeDecompressor {
    void operator()(libdeflate_decompressor* d) const { libdeflate_free_decompressor(d); }
  };
  std::string raw_;
  std::unique_ptr<libdeflate_decompressor, FreeDecompressor> decompressor_;
};

// What chunks that are decoded at the same time may have together; real ones have a megabyte.
constexpr uint64_t kMostWaiting = kMaxBodyBytes;

// A chunk on its way to the visitor, or the notice that bytes before the next one are damaged.
struct ChunkJob {
  size_t at = 0;
  Body body;
  uint64_t most_events = 0;
  std::string wrong;  // damage, or why the chunk cannot be used
  DecodedEvents events;

  void run() {
    thread_local Inflater inflater;
    std::string_view raw;
    wrong = inflater.unpack(body, raw);
    if (!wrong.empty()) return;
    events = decode_events(raw, most_events);
    if (!events.readable) wrong = "a chunk's body cannot be parsed";
  }
};

class Reader {
 public:
  Reader(std::string_view bytes, const std::string& file, const ReadOptions& options,
         ChunkVisitor& visitor, std::vector<Problem>& problems)
      : bytes_(bytes), file_(file), options_(options), visitor_(visitor), problems_(problems) {}

  ReadResult run() {
    size_t at = 0;
    while (at < bytes_.size()) {
      ChunkView view;
      const Found found = examine_field(bytes_, at, view);
      if (found == Found::good) {
        submit(at, view);
        at = view.end;
        continue;
      }
      const bool packed = at == 0 && options_.base_offset == 0 && is_packed(bytes_);
      const size_t next = packed ? std::string_view::npos : resynchronise(at + 1, view);
      if (next == std::string_view::npos) {
        deliver_all();
        lost_rest(at, found);
        break;
      }
      submit_damage(at, fmt::format("{} bytes are damaged and were skipped", next - at));
      submit(next, view);
      at = view.end;
    }
    deliver_all();
    return result_;
  }

 private:
  // Offset of the next whole chunk message from `at` on, npos when there is none. Candidates are
  // checked by their sum; the work for that is bounded, so that no input takes for ever.
  size_t resynchronise(size_t at, ChunkView& view) {
    std::string needle(9, '\x09');
    std::memcpy(needle.data() + 1, &kChunkMagic, 8);
    for (;; ++at) {
      at = bytes_.find(needle, at);
      if (at == std::string_view::npos) return at;
      if (!looks_like_chunk(bytes_, at)) continue;
      const uint64_t cost = std::min<uint64_t>(load<uint32_t>(bytes_, at + 10), bytes_.size());
      if (cost > budget_) return std::string_view::npos;
      budget_ -= cost;
      if (examine(bytes_, at, view) == Found::good) return at;
    }
  }

  void lost_rest(size_t at, Found found) {
    const size_t left = bytes_.size() - at;
    if (found == Found::cut) {
      result_.cut = true;
      // Not damage: a file that was cut, or is still being written, lacks its Summary and says so.
      problems_.push_back(
          {file_, options_.base_offset + at,
           fmt::format("the file ends inside a chunk; its last {} bytes are lost", left)});
    } else if (result_.chunks == 0 && !result_.damaged && !result_.refused) {
      damage(at, fmt::format("this is no gpuprof dump, but {}; {}",
                             contents_of(bytes_.substr(0, kFirstBytes)), kAllowedInput));
    } else {
      damage(at, fmt::format("the last {} bytes are damaged", left));
    }
  }

  void damage(size_t at, std::string reason) {
    result_.damaged = true;
    report(at, std::move(reason));
  }

  void report(size_t at, std::string reason) {
    problems_.push_back({file_, options_.base_offset + at, std::move(reason)});
    visitor_.on_damage(problems_.back());
  }

  void submit(size_t at, const ChunkView& view) {
    auto job = std::make_unique<ChunkJob>();
    job->at = at;
    if (!parse_body(view.checked, job->body)) {
      return submit_damage(at, "a chunk's fields cannot be parsed");
    }
    const bool events = job->body.kind == static_cast<uint32_t>(ChunkKind::events);
    const uint64_t raw_size = std::min<uint64_t>(job->body.raw_size, kMaxBodyBytes);
    const bool packed = job->body.codec != static_cast<uint32_t>(Codec::none);
    if (packed && raw_size > unpacked_left_) {
      return submit_damage(
          at, fmt::format("a chunk was not read: with it the file's contents are {} times its size "
                          "or more, which no dump's are",
                          kMostCompression));
    }
    if (packed) unpacked_left_ -= raw_size;
    while (!jobs_.has_room() || (raw_waiting_ + raw_size > kMostWaiting && !jobs_.empty())) {
      deliver_next();
    }
    raw_waiting_ += raw_size;
    job->most_events = events_left_;
    events ? jobs_.submit(std::move(job), view.end == bytes_.size())
           : jobs_.submit_done(std::move(job));
  }

  void submit_damage(size_t at, std::string reason) {
    auto job = std::make_unique<ChunkJob>();
    job->at = at;
    job->wrong = std::move(reason);
    if (!jobs_.has_room()) deliver_next();
    jobs_.submit_done(std::move(job));
  }

  void deliver_all() {
    while (!jobs_.empty()) deliver_next();
  }

  void deliver_next() {
    const std::unique_ptr<ChunkJob> job = jobs_.next();
    const Body& body = job->body;
    raw_waiting_ -= std::min(raw_waiting_, std::min<uint64_t>(body.raw_size, kMaxBodyBytes));
    const size_t at = job->at;
    const auto kind = static_cast<ChunkKind>(body.kind);
    if (body.kind == 0) {
      if (!job->wrong.empty()) damage(at, std::move(job->wrong));
      return;
    }
    if (refusing_ && kind != ChunkKind::header) return;
    if (body.kind > static_cast<uint32_t>(ChunkKind::cuda)) return;
    std::string_view raw;
    if (kind != ChunkKind::events) job->wrong = inflater_.unpack(body, raw);
    if (!job->wrong.empty()) return damage(at, std::move(job->wrong));
    switch (kind) {
      case ChunkKind::header: return header(at, raw);
      case ChunkKind::events:
        ++result_.chunks;
        for (const DecodedLane& lane : job->events.lanes) {
          events_left_ -= std::min(events_left_, lane.claimed);
        }
        return visitor_.on_events(job->events, options_.base_offset + at);
      case ChunkKind::steps: return message<dump::Steps>(at, raw, &ChunkVisitor::on_steps);
      case ChunkKind::modules: return message<dump::Modules>(at, raw, &ChunkVisitor::on_modules);
      case ChunkKind::summary: return message<dump::Summary>(at, raw, &ChunkVisitor::on_summary);
      case ChunkKind::graphs: return message<dump::Graphs>(at, raw, &ChunkVisitor::on_graphs);
      case ChunkKind::workers: return message<dump::Workers>(at, raw, &ChunkVisitor::on_workers);
      case ChunkKind::live_memory:
        return message<dump::LiveMemory>(at, raw, &ChunkVisitor::on_live_memory);
      case ChunkKind::nvtx_names:
        return message<dump::NvtxNames>(at, raw, &ChunkVisitor::on_nvtx_names);
      case ChunkKind::budget: return message<dump::Budget>(at, raw, &ChunkVisitor::on_budget);
      case ChunkKind::cuda: return message<dump::Header>(at, raw, &ChunkVisitor::on_cuda);
      case ChunkKind::counters: return message<dump::Counters>(at, raw, &ChunkVisitor::on_counters);
    }
  }

  template <typename Message>
  void message(size_t at, std::string_view raw,
               void (ChunkVisitor::*deliver)(const Message&, uint64_t)) {
    Message parsed;
    if (!parsed.ParseFromArray(raw.data(), static_cast<int>(raw.size()))) {
      return damage(at, "a chunk's body cannot be parsed");
    }
    ++result_.chunks;
    (visitor_.*deliver)(parsed, options_.base_offset + at);
  }

  void header(size_t at, std::string_view raw) {
    dump::Header parsed;
    if (!parsed.ParseFromArray(raw.data(), static_cast<int>(raw.size()))) {
      return damage(at, "the header cannot be parsed");
    }
    refusing_ = parsed.format_version() > kFormatVersion;
    if (refusing_) {
      result_.refused = true;
      report(at, fmt::format("format version {} (written by gpuprof {}) is newer than this gpuprof "
                             "reads, which is version {}; use a newer gpuprof",
                             parsed.format_version(),
                             parsed.tool_version().empty() ? "?" : parsed.tool_version(),
                             kFormatVersion));
      return;
    }
    ++result_.chunks;
    visitor_.on_header(parsed, options_.base_offset + at);
  }

  std::string_view bytes_;
  const std::string& file_;
  const ReadOptions& options_;
  ChunkVisitor& visitor_;
  std::vector<Problem>& problems_;
  ReadResult result_;
  bool refusing_ = false;
  uint64_t events_left_ = event_limit(bytes_.size());
  uint64_t unpacked_left_ = unpacked_limit(bytes_.size());
  uint64_t raw_waiting_ = 0;  // of the chunks that are being decoded
  uint64_t budget_ = bytes_.size() * 8 + (1 << 20);
  Inflater inflater_;
  OrderedJobs<ChunkJob> jobs_;
};

}  // namespace

ReadResult read_chunks(std::string_view bytes, const std::string& file, const ReadOptions& options,
                       ChunkVisitor& visitor, std::vector<Problem>& problems) {
  return Reader(bytes, file, options, visitor, problems).run();
}

}  // namespace gpuprof
