// SPDX-License-Identifier: Apache-2.0
#include "collector/window/batch.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "collector/cupti/cupti_callback.h"
#include "collector/cupti/cupti_session.h"
#include "collector/record/names.h"
#include "collector/record/ring.h"
#include "collector/record/session.h"
#include "collector/sources/event_times.h"
#include "collector/sources/graphs.h"
#include "collector/window/metrics/metrics.h"
#include "formats/core/own_time.h"
#include "formats/core/ring_file.h"

namespace gpuprof {
namespace {

// Larger batches compress better; the records stay in the ring until theirs is written.
constexpr size_t kBatchRecords = 256 * 1024;

// A window's ids lie within this of each other: one bit each is 32 MiB at most.
constexpr uint32_t kMaxCorrelationSpan = 1u << 28;

// Of two ids less than half the range apart.
bool later(uint32_t a, uint32_t b) { return static_cast<int32_t>(a - b) > 0; }

// Of the kinds that CUPTI was asked for.
bool expects_gpu_work(const Record& record) {
  if (record.flags & kFlagCaptured) return false;
  const bool seen_by_cupti = record.flags & kFlagFromCallback;
  switch (record.kind) {
    case Kind::launch: return activity_on(Activity::kernel) && record.launch.result == 0;
    case Kind::copy:
      return activity_on(Activity::memcpy) && record.copy.result == 0 &&
             (record.copy.bytes != 0 || seen_by_cupti);
    case Kind::set:
      return activity_on(Activity::memset) && record.set.result == 0 &&
             (record.set.bytes != 0 || seen_by_cupti);
    default: return false;
  }
}

// Of GPU work. The graph's id, where it is a graph's node.
bool is_graph_node(const Record& record, uint32_t& graph) {
  if (record.kind == Kind::gpu_graph) return false;
  const bool kernel = record.kind == Kind::gpu_kernel;
  graph = kernel ? record.gpu_kernel.graph : record.gpu_copy.graph;
  return (kernel ? record.gpu_kernel.graph_node : record.gpu_copy.graph_node) != 0;
}

bool is_gpu_work(Kind kind) {
  return is_stream_work(kind) || kind == Kind::launch || kind == Kind::copy || kind == Kind::set ||
         kind == Kind::collective;
}

bool test(const PodVector<uint64_t>& bits, uint32_t bit) {
  return bit / 64 < bits.size() && (bits[bit / 64] >> (bit % 64) & 1);
}

void set(PodVector<uint64_t>& bits, uint32_t bit) {
  if (bit / 64 >= bits.size() && !bits.resize(bit / 64 + 64)) return;
  bits[bit / 64] |= uint64_t{1} << (bit % 64);
}

}  // namespace

bool is_cupti_buffer(const RingChunk& chunk, uint32_t committed) {
  if (committed == 0) return false;
  return is_gpu_kind(chunk.records[0].kind) && !is_own_time(chunk.records[0]);
}

WindowCollector::WindowCollector() : encoder_(*this) {
  for (size_t api = 0; api < api_count(); ++api) {
    launches_graph_[api] = api_rows()[api].role == ApiRole::graph_launch;
  }
}

bool WindowCollector::make_room() {
  // All that there will be: an armed process has none until a window is asked for.
  return taken_.resize(ring()->header->chunks.bytes / kChunkBytes);
}

void WindowCollector::begin(uint32_t window, uint64_t begin_ticks) {
  window_ = window;
  begin_ticks_ = begin_ticks;
  called_.clear();
  expected_.clear();
  untimed_.clear();
  uncertain_.clear();
  seen_.clear();
  graph_launches_.clear();
  have_base_ = have_gpu_work_ = false;
  first_called_ = 0;
  expected_without_id_ = seen_without_id_ = 0;
  work_ = events_ = hook_records_ = stacks_ = 0;
  costs_ = {};
  const size_t chunks = ring()->header->chunk_count;
  // A quarter of a small ring, so that hooks never wait for room.
  batch_records_ = chunks * kRecordsPerChunk / 4;
  if (batch_records_ > kBatchRecords) batch_records_ = kBatchRecords;
  encoder_.begin(window, ring()->header->clock_shift);
  adds_up_use_ = metrics_wanted();
  if (adds_up_use_) use_.begin();
}

void WindowCollector::add_up_use(const Record& record) {
  std::string_view name;
  if (record.kind == Kind::gpu_kernel) name = string(record.gpu_kernel.name);
  if (record.kind == Kind::annotation) name = string(record.framework.name);
  use_.add(record, name);
}

// Correlation ids grow (and wrap at 32 bits), but records of several threads come in any order: ids
// a little below the first one seen must have a place too.
bool WindowCollector::in_base(uint32_t correlation) {
  if (correlation == 0) return false;
  if (!have_base_) {
    base_ = (correlation - 65536) & ~63u;
    have_base_ = true;
  }
  return correlation - base_ < kMaxCorrelationSpan;
}

void WindowCollector::note(const Record& record) {
  if (!is_gpu_kind(record.kind) && record.kind != Kind::stack && record.kind != Kind::sample) {
    ++hook_records_;
  }
  have_gpu_work_ |= is_stream_work(record.kind);
  if (record.correlation == 0) return note_launch_without_id(record);
  if (!in_base(record.correlation)) return;
  const uint32_t bit = record.correlation - base_;
  if (is_stream_work(record.kind)) {
    set(seen_, bit);
    graph_launches_.note_work(record.correlation);
    uint32_t graph = 0;
    if (is_graph_node(record, graph)) graph_launches_.add_record(record.correlation, graph);
  } else if (!is_gpu_kind(record.kind)) {
    set(called_, bit);
    note_call(record.correlation);
    if (expects_gpu_work(record)) note_launch(record, bit);
  }
}

// What is waited for when the window ends, and what is missed if it never comes.
void WindowCollector::note_launch(const Record& record, uint32_t bit) {
  const bool graph =
      record.kind == Kind::launch && record.api < kMaxApis && launches_graph_[record.api];
  if (!graph || event_times_wanted()) return set(expected_, bit);
  uint32_t nodes = 0;
  const NodeRecords records = node_records_of(record.launch.function, nodes);
  if (cupti_has_no_graph_times() && records != NodeRecords::nothing) return set(untimed_, bit);
  // Of graphs older than CUPTI's being on there is no record as a whole.
  if (cupti_times_graphs()) return set(records == NodeRecords::likely ? untimed_ : expected_, bit);
  switch (records) {
    case NodeRecords::uncertain: return set(uncertain_, bit);
    case NodeRecords::nothing: return;
    case NodeRecords::likely: break;
    case NodeRecords::some: set(expected_, bit);
  }
  graph_launches_.add(record.correlation, record.launch.function, nodes, test(expected_, bit));
}

void WindowCollector::note_launch_without_id(const Record& record) {
  if (is_gpu_kind(record.kind) || !calls_lack_ids() || !expects_gpu_work(record)) return;
  uint64_t records = 1;
  if (record.kind == Kind::launch && record.api < kMaxApis && launches_graph_[record.api]) {
    uint32_t nodes = 0;
    const NodeRecords known = node_records_of(record.launch.function, nodes);
    const bool some = known == NodeRecords::likely || known == NodeRecords::some;
    records = cupti_times_graphs() ? known == NodeRecords::some : some ? std::max(nodes, 1u) : 0;
    if (cupti_has_no_graph_times()) records = 0;
  }
  expected_without_id_ += records;
}

// It is counted already, and not missed a second time.
void WindowCollector::note_lost(uint32_t correlation) {
  if (in_base(correlation)) set(seen_, correlation - base_);
}

uint64_t WindowCollector::not_seen(const PodVector<uint64_t>& wanted) const {
  uint64_t count = 0;
  for (size_t i = 0; i < wanted.size(); ++i) {
    const uint64_t seen = i < seen_.size() ? seen_[i] : 0;
    count += static_cast<uint64_t>(std::popcount(wanted[i] & ~seen));
  }
  return count;
}

WindowCollector::Missing WindowCollector::missing() {
  const GraphLaunches::Missing graphs = graph_launches_.missing();
  const uint64_t expected =
      not_seen(expected_) + expected_without_id_ - std::min(expected_without_id_, seen_without_id_);
  const uint64_t perhaps = not_seen(uncertain_);
  return {expected + graphs.awaited, expected + graphs.unfinished,
          not_seen(untimed_) + graphs.untimed + perhaps, perhaps};
}

bool WindowCollector::expects(uint32_t correlation) const {
  return have_base_ && test(expected_, correlation - base_);
}

size_t WindowCollector::launches_without_records(uint64_t from, uint64_t before) {
  if (have_gpu_work_) return 0;
  from = std::max(from, begin_ticks_);
  size_t launches = 0;
  Ring& buffers = *ring();
  for (uint32_t i = 0; i < buffers.header->chunk_count; ++i) {
    const RingChunk& chunk = *buffers.chunk(i);
    if (chunk.state.load(std::memory_order_acquire) == static_cast<uint32_t>(ChunkState::free)) {
      continue;
    }
    const uint32_t committed = chunk.committed.load(std::memory_order_acquire);
    for (uint32_t r = 0; r < committed; ++r) {
      const Record& record = chunk.records[r];
      have_gpu_work_ |= is_stream_work(record.kind);
      launches += record.begin >= from && record.begin < before && expects_gpu_work(record);
    }
  }
  return have_gpu_work_ ? 0 : launches;
}

void WindowCollector::note_call(uint32_t correlation) {
  if (!first_called_ || later(first_called_, correlation)) first_called_ = correlation;
}

// Of calls whose buffers are still in use: ids grow within each.
void WindowCollector::look_for_first_call() {
  looked_for_first_ = true;
  Ring& buffers = *ring();
  for (uint32_t i = 0; i < buffers.header->chunk_count; ++i) {
    const RingChunk& chunk = *buffers.chunk(i);
    const uint32_t committed = chunk.committed.load(std::memory_order_acquire);
    if (chunk.state.load(std::memory_order_acquire) == static_cast<uint32_t>(ChunkState::free) ||
        is_cupti_buffer(chunk, committed)) {
      continue;
    }
    for (uint32_t r = 0; r < committed; ++r) {
      const Record& record = chunk.records[r];
      if (record.kind == Kind::stack || record.begin < begin_ticks_ || !record.correlation)
        continue;
      note_call(record.correlation);
      break;
    }
  }
}

// Host records begin in the window. GPU records were launched in it or ran during it: work launched
// in the last warm-up step still keeps the GPU busy.
bool WindowCollector::belongs(const Record& record, uint64_t end_ticks) {
  if (!is_gpu_kind(record.kind)) {
    return record.begin >= begin_ticks_ && (end_ticks == 0 || record.begin < end_ticks);
  }
  if (have_base_ && record.correlation != 0 && test(called_, record.correlation - base_)) {
    return true;
  }
  if (record.flags & kFlagNoTime) {
    if (!looked_for_first_) look_for_first_call();
    return end_ticks == 0 && first_called_ != 0 && later(record.correlation, first_called_);
  }
  // Events are recorded around calls in the window alone.
  const bool called_here = event_times_wanted();
  return record.end > begin_ticks_ && (end_ticks == 0 || record.begin < end_ticks || called_here);
}

WindowCollector::Taken& WindowCollector::taken(uint32_t index, const RingChunk& chunk) {
  Taken& entry = taken_[index];
  if (entry.sequence != chunk.sequence) entry = Taken{chunk.sequence, 0, 0, 0};
  return entry;
}

void WindowCollector::note_costs(const RingChunk& chunk, Taken& entry, uint32_t committed) {
  for (; entry.costed < committed; ++entry.costed) {
    const Record& record = chunk.records[entry.costed];
    if (record.begin < begin_ticks_) continue;
    const bool has_next = entry.costed + 1 < committed;
    costs_.add(record, chunk.records[has_next ? entry.costed + 1 : entry.costed]);
  }
}

void WindowCollector::note_costs() {
  Ring& buffers = *ring();
  for (uint32_t i = 0; i < buffers.header->chunk_count; ++i) {
    const RingChunk& chunk = *buffers.chunk(i);
    if (chunk.state.load(std::memory_order_acquire) == static_cast<uint32_t>(ChunkState::free))
      continue;
    note_costs(chunk, taken(i, chunk), chunk.committed.load(std::memory_order_acquire));
  }
}

size_t WindowCollector::take(uint32_t index, uint32_t committed, DumpFile& file,
                             uint64_t end_ticks) {
  const RingChunk& chunk = *ring()->chunk(index);
  // It may have ended since this look at the buffers began, and the program gone on.
  if (end_ticks == 0) {
    end_ticks = ring()->header->window_end_ticks.load(std::memory_order_acquire);
  }
  Taken& entry = taken(index, chunk);
  note_costs(chunk, entry, committed);
  size_t count = 0;
  uint32_t i = entry.records;
  for (; i < committed; ++i) {
    const Record& record = chunk.records[i];
    const bool of_gpu = is_gpu_kind(record.kind);
    if (leaves_later_ && !of_gpu && record.begin >= end_ticks) break;
    const bool here = belongs(record, leaves_later_ && of_gpu ? 0 : end_ticks);
    if (here || of_gpu) note(record);
    if (!here) continue;
    count_losses_of(record, [](Loss loss) { count_loss(loss); });
    if (is_gpu_work(record.kind)) ++work_;
    if (adds_up_use_) add_up_use(record);
    if (is_stream_work(record.kind) && record.correlation == 0) ++seen_without_id_;
    if (record.kind == Kind::stack) {  // part of the record after it
      ++stacks_;
      (void)encoder_.add(record, chunk.thread_id, {});
      continue;
    }
    if (encoder_.add(record, chunk.thread_id, std::string_view(chunk.thread_name))) {
      if (record.kind != Kind::sample) ++count;
    } else {
      count_loss(Loss::buffer_full);
    }
  }
  entry.records = i;
  encoder_.add_ring_chunk(chunk.sequence, i);
  events_ += count;
  if (encoder_.size() >= batch_records_) flush(file);
  return count;
}

size_t WindowCollector::collect(DumpFile& file, bool everything, uint64_t end_ticks,
                                void (*between)(void*), void* context) {
  Ring& buffers = *ring();
  const uint32_t chunks = buffers.header->chunk_count;
  size_t count = 0;
  looked_for_first_ = false;
  event_times_take_lost(
      [](void* collector, uint32_t id) { static_cast<WindowCollector*>(collector)->note_lost(id); },
      this);
  // Host records first: they tell which GPU records belong to the window.
  for (const bool gpu_pass : {false, true}) {
    for (uint32_t i = 0; i < chunks; ++i) {
      const RingChunk& chunk = *buffers.chunk(i);
      const uint32_t state = chunk.state.load(std::memory_order_acquire);
      const bool full = state == static_cast<uint32_t>(ChunkState::full);
      const bool open = state == static_cast<uint32_t>(ChunkState::open);
      if (!full && !(open && everything)) continue;
      const uint32_t committed = chunk.committed.load(std::memory_order_acquire);
      if (is_cupti_buffer(chunk, committed) != gpu_pass) continue;
      count += take(i, committed, file, end_ticks);
      if (between && encoder_.size() == 0) between(context);
    }
  }
  return count;
}

void WindowCollector::flush(DumpFile& file) {
  if (const size_t events = encoder_.size(); events != 0) {
    body_.clear();
    if (encoder_.finish(body_)) {
      file.write(ChunkKind::events, body_, events);
    } else {
      count_loss(Loss::write_error);
    }
    encoder_.begin(window_, ring()->header->clock_shift);
  }
  // What is written (or was empty) may be used again.
  const uint32_t chunks = ring()->header->chunk_count;
  for (uint32_t i = 0; i < chunks; ++i) {
    RingChunk* const chunk = ring()->chunk(i);
    if (chunk->state.load(std::memory_order_acquire) != static_cast<uint32_t>(ChunkState::full)) {
      continue;
    }
    const Taken& taken = taken_[i];
    if (taken.sequence == chunk->sequence &&
        taken.records == chunk->committed.load(std::memory_order_acquire)) {
      release_chunk(chunk);
    }
  }
}

void WindowCollector::store_function_name(uint64_t function) {
  constexpr size_t kSlots = 65536;  // twice the rows that the ring has room for
  if (named_.empty() && !named_.resize(kSlots)) return;
  size_t slot = (function * 0x9e3779b97f4a7c15ull >> 40) % kSlots;
  while (named_[slot] != 0 && named_[slot] != function) slot = (slot + 1) % kSlots;
  // The ring has room for no more.
  if (named_[slot] == function || named_count_ >= kSlots / 2) return;
  const std::string_view name = lookup_function(reinterpret_cast<const void*>(function));
  if (name.empty()) return;
  named_[slot] = function;
  ++named_count_;
  store_function_in_ring(reinterpret_cast<const void*>(function), name);
}

void WindowCollector::note_function_names() {
  Ring& buffers = *ring();
  uint64_t last = 0;
  for (uint32_t i = 0; i < buffers.header->chunk_count; ++i) {
    const RingChunk& chunk = *buffers.chunk(i);
    if (chunk.state.load(std::memory_order_acquire) == static_cast<uint32_t>(ChunkState::free))
      continue;
    Taken& entry = taken(i, chunk);
    const uint32_t committed = chunk.committed.load(std::memory_order_acquire);
    for (; entry.named < committed; ++entry.named) {
      const Record& record = chunk.records[entry.named];
      if (record.kind != Kind::launch || record.launch.function == last ||
          (record.flags & kFlagNamed)) {
        continue;
      }
      last = record.launch.function;
      store_function_name(last);
    }
  }
}

std::string_view WindowCollector::string(StringId id) const { return ring()->text(id); }

std::string_view WindowCollector::api_name(ApiId api) const {
  return api < api_count() ? std::string_view(api_rows()[api].name) : std::string_view();
}

uint32_t WindowCollector::api_domain(ApiId api) const {
  if (api >= api_count()) return 4;
  return domain_of(api_rows()[api].library);
}

std::string_view WindowCollector::function_name(uint64_t function) const {
  return lookup_function(reinterpret_cast<const void*>(function));
}

std::string_view WindowCollector::stack(StringId id) const { return ring()->stacks.get(id); }

const LaunchShape* WindowCollector::launch_shape(uint32_t id) const {
  return ring()->shapes.get(id);
}

}  // namespace gpuprof
