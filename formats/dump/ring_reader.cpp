// SPDX-License-Identifier: Apache-2.0
#include "formats/dump/ring_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <unordered_map>

#include "formats/core/chunk.h"
#include "formats/core/columns.h"
#include "formats/core/encode.h"
#include "formats/core/graph_node.h"
#include "formats/core/live_memory.h"
#include "formats/core/modules.h"
#include "formats/core/ring_file.h"
#include "formats/core/string_table.h"

namespace gpuprof {
namespace {

constexpr size_t kBatchRecords = 64 * 1024;
constexpr int kLevel = 3;

// The ring's own tables as the encoder asks for them.
class RingNames : public NameResolver {
 public:
  StringTable strings;
  StringTable texts[2];
  ShapeTable shapes;
  StringTable stacks;
  std::vector<ApiName> apis;
  std::unordered_map<uint64_t, StringId> functions;

  std::string_view string(StringId id) const override {
    if (!(id & kTextId)) return strings.get(id);
    return texts[id & kTextTurn ? 1 : 0].get(id & ~(kTextId | kTextTurn));
  }
  std::string_view api_name(ApiId api) const override {
    return api < apis.size() ? strings.get(apis[api].name) : std::string_view();
  }
  uint32_t api_domain(ApiId api) const override { return api < apis.size() ? apis[api].domain : 0; }
  std::string_view function_name(uint64_t function) const override {
    const auto found = functions.find(function);
    return found == functions.end() ? std::string_view() : strings.get(found->second);
  }
  const LaunchShape* launch_shape(uint32_t id) const override { return shapes.get(id); }
  std::string_view stack(StringId id) const override { return stacks.get(id); }
};

// Copies Steps chunks on: those that the drain thread moved to the ring's tail.
class StepsCopier : public ChunkVisitor {
 public:
  explicit StepsCopier(ByteBuffer& out) : out_(out) {}
  void on_steps(const dump::Steps& steps, uint64_t) override {
    const std::string body = steps.SerializeAsString();
    append_chunk(out_, ChunkKind::steps, reinterpret_cast<const uint8_t*>(body.data()), body.size(),
                 kLevel);
  }

 private:
  ByteBuffer& out_;
};

template <typename T>
T load(const std::atomic<T>& value) {
  return value.load(std::memory_order_relaxed);
}

}  // namespace

bool is_ring(std::string_view bytes) {
  uint64_t magic = 0;
  if (bytes.size() < sizeof magic) return false;
  std::memcpy(&magic, bytes.data(), sizeof magic);
  return magic == kRingMagic;
}

struct RingReader::Parts {
  std::string_view bytes;
  std::string file;
  std::vector<Problem>& problems;
  std::string aligned;  // a copy, where `bytes` does not lie on 8 bytes
  alignas(RingHeader) unsigned char head_bytes[sizeof(RingHeader)] = {};
  std::atomic<uint64_t> strings_used{0}, shapes_used{0}, stacks_used{0}, texts_used[2]{};
  RingNames names;
  dump::Header identity;
  bool ok = false;
  std::array<uint64_t, kLossKinds> lost{};  // what records in the buffers tell of

  Parts(std::string_view view, std::string name, std::vector<Problem>& list)
      : bytes(view), file(std::move(name)), problems(list) {}
  const RingHeader& head() const { return *reinterpret_cast<const RingHeader*>(head_bytes); }
  void problem(uint64_t offset, std::string reason) {
    problems.push_back({file, offset, std::move(reason)});
  }

  bool check_head();
  std::string_view region(const RingRegion& region, const char* what);
  std::string_view filled(const RingRegion& region, const char* what);
  void open_tables();
  size_t chunk_count() const;
  const RingChunk& chunk(size_t index) const;
  bool wanted(const RingChunk& chunk, const KnownChunks& known) const;
  uint32_t taken(const RingChunk& chunk, const KnownChunks& known) const;
  uint32_t last_call() const;
  bool in_window(const Record& record, const RingChunk& chunk, uint32_t last_call) const;

  dump::Clock clock() const;
  void append(ByteBuffer& out, ChunkKind kind, const google::protobuf::MessageLite& message);
  void append_header(ByteBuffer& out, uint32_t window);
  void append_steps(ByteBuffer& out);
  void append_modules(ByteBuffer& out);
  void append_graphs(ByteBuffer& out);
  void append_live_memory(ByteBuffer& out, uint32_t window);
  void append_summary(ByteBuffer& out, uint32_t window, uint64_t records);
  uint64_t append_events(ByteBuffer& out, uint32_t window, const KnownChunks& known);
};

bool RingReader::Parts::check_head() {
  // The file's name comes first, then its size, and its head's first word when all else is in
  // place.
  if (bytes.substr(0, sizeof(uint64_t)).find_first_not_of('\0') == std::string_view::npos) {
    return problem(0, std::string(kNothingInRing)), false;
  }
  if (!is_ring(bytes)) return problem(0, "this is not a gpuprof ring"), false;
  if (bytes.size() < sizeof(RingHeader)) return problem(0, "the ring's head is cut"), false;
  std::memcpy(head_bytes, bytes.data(), sizeof(RingHeader));
  const RingHeader& h = head();
  // Of an older writer's, the fields that it did not have yet.
  if (h.header_bytes >= kSmallestRingHeader && h.header_bytes < sizeof(RingHeader)) {
    std::memset(head_bytes + h.header_bytes, 0, sizeof(RingHeader) - h.header_bytes);
  }
  if (h.version > kRingVersion) {
    problem(8, fmt::format("ring version {} is newer than this gpuprof reads, which is version {}; "
                           "use a newer gpuprof",
                           h.version, kRingVersion));
    return false;
  }
  if (h.version == 0 || h.header_bytes < kSmallestRingHeader || h.header_bytes > 4096 ||
      h.record_bytes != sizeof(Record) || h.chunk_bytes != kChunkBytes || h.clock_shift > 32) {
    problem(8, "the ring's head is damaged");
    return false;
  }
  return true;
}

// The bytes of a region, empty (and a problem) where it does not lie within the file.
std::string_view RingReader::Parts::region(const RingRegion& region, const char* what) {
  if (region.offset % 8 != 0 || region.offset > bytes.size() ||
      region.bytes > bytes.size() - region.offset) {
    problem(region.offset, fmt::format("the ring's {} does not lie within the file", what));
    return {};
  }
  return bytes.substr(region.offset, region.bytes);
}

std::string_view RingReader::Parts::filled(const RingRegion& r, const char* what) {
  const std::string_view all = region(r, what);
  return all.substr(0, std::min<uint64_t>(load(r.used), all.size()));
}

void RingReader::Parts::open_tables() {
  const RingHeader& h = head();
  const auto table = [](std::string_view region) { return const_cast<char*>(region.data()); };
  const std::string_view strings = region(h.strings, "string table");
  const std::string_view shapes = region(h.shapes, "shape table");
  strings_used = std::min<uint64_t>(load(h.strings.used), strings.size());
  shapes_used = std::min<uint64_t>(load(h.shapes.used), shapes.size());
  names.strings = StringTable(table(strings), strings.size(), &strings_used);
  names.shapes = ShapeTable(table(shapes), shapes.size(), &shapes_used);
  for (size_t i = 0; i < 2; ++i) {
    const std::string_view texts = region(h.texts[i], "table of texts");
    texts_used[i] = std::min<uint64_t>(load(h.texts[i].used), texts.size());
    names.texts[i] = StringTable(table(texts), texts.size(), &texts_used[i]);
  }
  const std::string_view stacks = region(h.stacks, "stack table");
  stacks_used = std::min<uint64_t>(load(h.stacks.used), stacks.size());
  names.stacks = StringTable(table(stacks), stacks.size(), &stacks_used);

  const std::string_view apis = filled(h.api_names, "table of API names");
  names.apis.resize(std::min<size_t>(apis.size() / sizeof(ApiName), kNoApi));
  if (!names.apis.empty()) {
    std::memcpy(names.apis.data(), apis.data(), names.apis.size() * sizeof(ApiName));
  }

  const std::string_view functions = filled(h.functions, "table of functions");
  for (size_t at = 0; at + sizeof(FunctionName) <= functions.size(); at += sizeof(FunctionName)) {
    FunctionName row;
    std::memcpy(&row, functions.data() + at, sizeof row);
    if (row.ready == 1) names.functions[row.function] = row.name;
  }

  const std::string_view identity_bytes = filled(h.identity, "identity");
  const bool parsed =
      identity.ParseFromArray(identity_bytes.data(), static_cast<int>(identity_bytes.size()));
  if (!parsed) problem(h.identity.offset, "the ring's identity cannot be parsed");
  if (!parsed || identity_bytes.empty()) {
    identity.Clear();
    identity.set_rank(-1);
    identity.set_local_rank(-1);
  }
}

size_t RingReader::Parts::chunk_count() const {
  const RingHeader& h = head();
  if (h.chunks.offset % alignof(RingChunk) != 0 || h.chunks.offset > bytes.size()) return 0;
  const uint64_t there = (bytes.size() - h.chunks.offset) / kChunkBytes;
  return std::min<uint64_t>({h.chunk_count, there, h.chunks.bytes / kChunkBytes});
}

const RingChunk& RingReader::Parts::chunk(size_t index) const {
  return *reinterpret_cast<const RingChunk*>(bytes.data() + head().chunks.offset +
                                             index * kChunkBytes);
}

bool RingReader::Parts::wanted(const RingChunk& chunk, const KnownChunks& known) const {
  const uint32_t state = load(chunk.state);
  const bool written = state == static_cast<uint32_t>(ChunkState::open) ||
                       state == static_cast<uint32_t>(ChunkState::full);
  return written && load(chunk.committed) > taken(chunk, known);
}

// Records of a chunk that are in a dump already.
uint32_t RingReader::Parts::taken(const RingChunk& chunk, const KnownChunks& known) const {
  const auto found = known.find(chunk.sequence);
  return found == known.end() ? 0 : found->second;
}

// The newest call of the window: work on the GPU that was launched later is not the window's,
// though CUPTI was still on. Also calls that a dump has, as far as their chunks are still in use.
uint32_t RingReader::Parts::last_call() const {
  uint32_t last = 0;
  for (size_t i = 0; i < chunk_count(); ++i) {
    const RingChunk& c = chunk(i);
    if (load(c.state) == static_cast<uint32_t>(ChunkState::free)) continue;
    const uint32_t committed = std::min(load(c.committed), kRecordsPerChunk);
    for (uint32_t r = 0; r < committed; ++r) {
      const Record& record = c.records[r];
      if (is_gpu_kind(record.kind) || record.correlation == 0 || !in_window(record, c, 0)) continue;
      if (last == 0 || static_cast<int32_t>(record.correlation - last) > 0) {
        last = record.correlation;
      }
    }
  }
  return last;
}

// Threads keep their chunks from one window to the next, and earlier windows are on disk before a
// new one begins. So every chunk belongs to the newest window, and times tell which of its records
// do.
bool RingReader::Parts::in_window(const Record& record, const RingChunk& chunk,
                                  uint32_t last_call) const {
  const uint32_t window = load(head().window);
  if (record.flags & kFlagNoTime) return chunk.window == window;  // of which window is not known
  const uint64_t begin = load(head().window_begin_ticks), end = load(head().window_end_ticks);
  const bool before_end = end == 0 || record.begin < end;
  if (!is_gpu_kind(record.kind)) return record.begin >= begin && before_end;
  const bool launched_in_it =
      last_call == 0 ||
      (record.correlation != 0 && static_cast<int32_t>(record.correlation - last_call) <= 0);
  return record.end > begin && (before_end || launched_in_it);
}

dump::Clock RingReader::Parts::clock() const {
  const RingHeader& h = head();
  dump::Clock clock;
  switch (static_cast<ClockSource>(h.clock_source)) {
    case ClockSource::tsc: clock.set_source(dump::CLOCK_SOURCE_TSC); break;
    case ClockSource::monotonic: clock.set_source(dump::CLOCK_SOURCE_MONOTONIC); break;
    case ClockSource::cntvct: clock.set_source(dump::CLOCK_SOURCE_CNTVCT); break;
  }
  clock.set_shift(h.clock_shift);
  clock.set_ticks_per_second(identity.clock().ticks_per_second());
  const uint32_t count = std::min<uint32_t>(load(h.anchor_count), kMaxAnchors);
  for (uint32_t i = 0; i < count; ++i) {
    dump::ClockAnchor* const anchor = clock.add_anchor();
    anchor->set_ticks(h.anchors[i].ticks);
    anchor->set_monotonic_ns(h.anchors[i].monotonic_ns);
    anchor->set_realtime_ns(h.anchors[i].realtime_ns);
  }
  return clock;
}

void RingReader::Parts::append(ByteBuffer& out, ChunkKind kind,
                               const google::protobuf::MessageLite& message) {
  const std::string body = message.SerializeAsString();
  append_chunk(out, kind, reinterpret_cast<const uint8_t*>(body.data()), body.size(), kLevel);
}

void RingReader::Parts::append_header(ByteBuffer& out, uint32_t window) {
  const RingHeader& h = head();
  dump::Header header = identity;
  if (header.format_version() == 0) header.set_format_version(kFormatVersion);
  if (header.pid() == 0) header.set_pid(h.process_id);
  header.set_window(window);
  *header.mutable_clock() = clock();
  if (window == load(h.window)) header.set_window_begin_ticks(load(h.window_begin_ticks));
  append(out, ChunkKind::header, header);
}

uint64_t RingReader::Parts::append_events(ByteBuffer& out, uint32_t window,
                                          const KnownChunks& known) {
  BatchEncoder encoder(names);
  uint64_t records = 0;
  const auto flush = [&] {
    ByteBuffer body;
    if (encoder.size() == 0) return;
    if (encoder.finish(body)) {
      append_chunk(out, ChunkKind::events, body.data(), body.size(), kLevel);
    }
  };
  // Hooks record a moment before the head says that the first window has begun.
  if (window != load(head().window) || load(head().window_begin_ticks) == 0) return 0;
  const uint32_t last = last_call();
  encoder.begin(window, head().clock_shift);
  for (size_t i = 0; i < chunk_count(); ++i) {
    const RingChunk& c = chunk(i);
    if (!wanted(c, known)) continue;
    if (encoder.size() + kRecordsPerChunk > kBatchRecords) {
      flush();
      encoder.begin(window, head().clock_shift);
    }
    const std::string_view thread_name(c.thread_name, strnlen(c.thread_name, sizeof c.thread_name));
    const uint32_t committed = std::min(load(c.committed), kRecordsPerChunk);
    for (uint32_t r = taken(c, known); r < committed; ++r) {
      if (!in_window(c.records[r], c, last)) continue;
      if (layout_of(c.records[r].kind)) ++records;
      count_losses_of(c.records[r], [this](Loss loss) { ++lost[static_cast<size_t>(loss)]; });
      encoder.add(c.records[r], c.thread_id, thread_name);
    }
    encoder.add_ring_chunk(c.sequence, committed);
  }
  flush();
  return records;
}

void RingReader::Parts::append_steps(ByteBuffer& out) {
  const RingHeader& h = head();
  if (h.tail_offset && h.tail_offset < bytes.size()) {
    std::string_view tail = bytes.substr(h.tail_offset);
    tail = tail.substr(0, tail.find_last_not_of('\0') + 1);
    StepsCopier copier(out);
    read_chunks(tail, file, {h.tail_offset}, copier, problems);
  }
  // A ring of slots: boundary i is in slot i % slots.
  const uint64_t slots = h.steps.bytes / sizeof(uint64_t);
  const uint64_t end = load(h.steps.used) / sizeof(uint64_t), base = load(h.steps_base);
  if (slots == 0 || end <= base) return;
  if (h.steps.offset > bytes.size() || h.steps.bytes > bytes.size() - h.steps.offset ||
      end - base > slots) {
    problem(h.steps.offset, "the ring's step log does not fit into the file");
    return;
  }
  std::vector<uint64_t> boundaries(end - base);
  for (uint64_t i = base; i < end; ++i) {
    std::memcpy(&boundaries[i - base], bytes.data() + h.steps.offset + i % slots * sizeof(uint64_t),
                sizeof(uint64_t));
  }
  ByteBuffer body;
  if (encode_steps(body, boundaries.data(), boundaries.size(), base, h.clock_shift,
                   identity.step_source())) {
    append_chunk(out, ChunkKind::steps, body.data(), body.size(), kLevel);
  }
}

void RingReader::Parts::append_modules(ByteBuffer& out) {
  const std::string_view filled_rows = filled(head().modules, "table of modules");
  std::vector<ModuleRow> rows(filled_rows.size() / sizeof(ModuleRow));
  if (rows.empty()) return;
  std::memcpy(rows.data(), filled_rows.data(), rows.size() * sizeof(ModuleRow));
  ByteBuffer body;
  if (encode_modules(body, rows.data(), rows.size(), names.strings)) {
    append_chunk(out, ChunkKind::modules, body.data(), body.size(), kLevel);
  }
}

// Nodes that are in no dump yet; older ones whose slots were used again are.
void RingReader::Parts::append_graphs(ByteBuffer& out) {
  const RingHeader& h = head();
  const std::string_view rows = region(h.graph_nodes, "table of graph nodes");
  const uint64_t slots = rows.size() / sizeof(GraphNodeRow);
  const uint64_t end = load(h.graph_nodes.used) / sizeof(GraphNodeRow);
  uint64_t at = load(h.graph_nodes_written);
  if (slots == 0 || end <= at) return;
  if (end - at > slots) at = end - slots;
  ByteBuffer body;
  WireWriter wire(body);
  PythonCodes codes;
  for (; at < end; ++at) {
    GraphNodeRow row;
    std::memcpy(&row, rows.data() + at % slots * sizeof row, sizeof row);
    if (!write_graph_node(wire, row, names.api_name(row.api), names.stack(row.stack), h.clock_shift,
                          codes)) {
      return;
    }
  }
  write_graph_codes(wire, codes, [&](StringId id) { return names.string(id); });
  if (wire.ok()) append_chunk(out, ChunkKind::graphs, body.data(), body.size(), kLevel);
}

// What was allocated when the window began, when an allocation failed, and at the end. The dump may
// have the first two: readers take one of each.
void RingReader::Parts::append_live_memory(ByteBuffer& out, uint32_t window) {
  const RingHeader& h = head();
  if (h.live.bytes == 0 || window < load(h.window)) return;
  const auto append_moment = [&](LiveMoment moment, uint64_t ticks,
                                 const std::vector<LiveRow>& rows, const AllocatorRow* totals) {
    const bool failed = moment == LiveMoment::out_of_memory;
    const LiveMemoryParts what{
        moment, ticks, rows.data(), rows.size(), failed ? &h.failed : nullptr, totals};
    ByteBuffer body;
    if (encode_live_memory(body, what, names, h.clock_shift)) {
      append_chunk(out, ChunkKind::live_memory, body.data(), body.size(), kLevel);
    }
  };
  // A copy of the table, with one of the allocators' totals at its end.
  const auto append_copy = [&](LiveMoment moment, uint64_t ticks, const RingRegion& r) {
    const std::string_view all = region(r, "copy of live memory");
    if (all.size() < sizeof h.allocators || all.size() % alignof(AllocatorRow) != 0) return;
    const size_t room = all.size() - sizeof h.allocators;
    std::vector<LiveRow> rows(std::min<uint64_t>(load(r.used), room) / sizeof(LiveRow));
    if (!rows.empty()) std::memcpy(rows.data(), all.data(), rows.size() * sizeof(LiveRow));
    append_moment(moment, ticks, rows, reinterpret_cast<const AllocatorRow*>(all.data() + room));
  };
  if (load(h.live_window) == window + 1) {
    append_copy(LiveMoment::window_begins, load(h.live_begin_ticks), h.live_at_begin);
  }
  if (load(h.failed.ticks) != 0) {
    append_copy(LiveMoment::out_of_memory, load(h.failed.ticks), h.live_at_failure);
  }
  const std::string_view table = region(h.live, "table of live memory");
  std::vector<LiveRow> rows;
  uint64_t last = 0;
  LiveTable(const_cast<char*>(table.data()), table.size()).each([&](const LiveRow& row) {
    last = std::max(last, row.ticks);
    rows.push_back(row);
  });
  append_moment(LiveMoment::left, last, rows, h.allocators);
}

void RingReader::Parts::append_summary(ByteBuffer& out, uint32_t window, uint64_t records) {
  const RingHeader& h = head();
  dump::Summary summary;
  *summary.mutable_clock() = clock();
  if (window == load(h.window)) {
    summary.set_window_begin_ticks(load(h.window_begin_ticks));
    summary.set_window_end_ticks(load(h.window_end_ticks));
    summary.set_window_ready_ticks(load(h.window_ready_ticks));
    summary.set_first_step(load(h.window_first_step));
    summary.set_last_step(load(h.window_last_step));
  }
  if (summary.window_begin_ticks() == 0) summary.set_last_step(summary.first_step() - 1);
  summary.set_partial(true);
  summary.set_end_reason("recovered");
  summary.set_events(records);
  summary.set_gpu_times_missing(identity.gpu_times_missing());
  for (uint32_t cause = 0; cause < kLossKinds; ++cause) {
    const uint64_t count = load(loss_counter(h, cause)) + lost[cause];
    if (!count) continue;
    dump::LossCount* const loss = summary.add_loss();
    loss->set_cause(cause);
    loss->set_count(count);
  }
  append(out, ChunkKind::summary, summary);
}

RingReader::RingReader(std::string_view bytes, std::string file, std::vector<Problem>& problems)
    : parts_(std::make_unique<Parts>(bytes, std::move(file), problems)) {
  Parts& p = *parts_;
  if (!p.check_head()) return;
  if (reinterpret_cast<uintptr_t>(bytes.data()) % alignof(uint64_t) != 0) {
    p.aligned.assign(bytes);
    p.bytes = p.aligned;
  }
  p.open_tables();
  p.ok = true;
}

RingReader::~RingReader() = default;

bool RingReader::ok() const { return parts_->ok; }

RingInfo RingReader::info() const {
  const RingHeader& h = parts_->head();
  RingInfo info;
  info.process_id = h.process_id;
  info.window = load(h.window);
  info.phase = load(h.phase);
  info.memory_log = h.live.bytes != 0;
  info.window_open = info.phase == static_cast<uint32_t>(SessionPhase::active) ||
                     info.phase == static_cast<uint32_t>(SessionPhase::closing);
  info.had_window = load(h.window_begin_ticks) != 0;
  info.boundaries = load(h.steps.used) / sizeof(uint64_t);
  return info;
}

uint64_t RingReader::recover(const Wanted& wanted, const KnownChunks& known, ByteBuffer& out) {
  if (wanted.header) parts_->append_header(out, wanted.window);
  const uint64_t records = parts_->append_events(out, wanted.window, known);
  parts_->append_modules(out);
  parts_->append_graphs(out);
  parts_->append_live_memory(out, wanted.window);
  parts_->append_steps(out);
  parts_->append_summary(out, wanted.window, records);
  return records;
}

}  // namespace gpuprof
