// SPDX-License-Identifier: Apache-2.0
#include "collector/record/ring.h"

#include <pthread.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <new>

#include "collector/base/fork.h"
#include "collector/base/os.h"
#include "collector/record/own_time.h"
#include "collector/record/ring_place.h"
#include "collector/record/session.h"
#include "collector/sources/nvtx.h"
#include "collector/torch/open_ranges.h"

namespace gpuprof {

constinit thread_local ThreadState t_state __attribute__((tls_model("initial-exec"))) = {};

namespace {

constexpr uint64_t kKiB = 1024, kMiB = 1024 * kKiB;

Ring g_ring;
std::atomic<Ring*> g_published{nullptr};
std::atomic<uint32_t> g_free{0};
std::atomic<uint32_t> g_full{0};
pthread_key_t g_thread_key;
bool g_have_key = false;
std::atomic<bool> g_whole{false};
bool g_header_kept = false;  // by a forked child that is about to forget the ring

// Runs when a thread ends: its buffer goes to the drain thread. A hook called by a later
// thread-local destructor simply takes a fresh one (and sets the key again).
void on_thread_exit(void*) {
  Record* const cursors[] = {t_state.next, t_state.gpu_next};
  t_state.next = t_state.gpu_next = nullptr;
  for (Record* const cursor : cursors) {
    if (cursor) retire_chunk(chunk_of(cursor));
  }
  if (void* const ranges = t_state.nvtx) {
    t_state.nvtx = nullptr;
    ::munmap(ranges, kNvtxThreadBytes);
  }
  if (void* const ranges = t_state.ranges) {
    t_state.ranges = nullptr;
    ::munmap(ranges, kRangeThreadBytes);
  }
}

void push_free(uint32_t index) {
  RingHeader& header = *g_ring.header;
  RingChunk* chunk = g_ring.chunk(index);
  uint64_t head = header.first_free.load(std::memory_order_acquire);
  uint64_t next;
  do {
    __atomic_store_n(&chunk->next_free, static_cast<uint32_t>(head), __ATOMIC_RELAXED);
    next = ((head >> 32) + 1) << 32 | (index + 1);  // the tag defeats ABA
  } while (!header.first_free.compare_exchange_weak(head, next, std::memory_order_acq_rel));
  g_free.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace

Ring* ring() { return g_published.load(std::memory_order_acquire); }

namespace {
StringTable make_table(RingRegion& region, uint64_t bytes_per_text) {
  void* const memory = g_ring.region<void>(region);
  StringTable::format(memory, region.bytes, bytes_per_text);
  return StringTable(memory, region.bytes, &region.used);
}

// What only windows use, as it is before the first one.
void format_window_tables() {
  RingHeader& header = *g_ring.header;
  for (size_t i = 0; i < 2; ++i)
    g_ring.texts[i] = make_table(header.texts[i], StringTable::kBytesPerText);
  ShapeTable::format(g_ring.region<void>(header.shapes), header.shapes.bytes);
  g_ring.shapes =
      ShapeTable(g_ring.region<void>(header.shapes), header.shapes.bytes, &header.shapes.used);
  header.chunk_count = static_cast<uint32_t>(header.chunks.bytes / kChunkBytes);
  for (uint32_t i = header.chunk_count; i-- > 0;) push_free(i);
  g_ring.strings.limit(header.strings.bytes);
  g_ring.stacks.limit(header.stacks.bytes);
  g_whole.store(true, std::memory_order_release);
}
}  // namespace

bool create_ring(const char* path, const RingSizes& sizes, const ClockChoice& clock,
                 uint64_t start_ticks, char* why, size_t why_size) {
  RingHeader places{};
  const uint64_t bytes = lay_out(places, sizes);
  std::snprintf(g_ring.path, sizeof g_ring.path, "%s", path);
  void* const place = reserve_aligned(bytes);
  if (place == MAP_FAILED) return false;
  void* memory = map_ring_file(g_ring.path, place, places, sizes.waits, g_ring.file, why, why_size);
  if (memory == MAP_FAILED) {
    memory = map_ring_memory(place, bytes);
    if (memory == MAP_FAILED) return false;
    g_ring.path[0] = '\0';
  }
  g_ring.bytes = bytes;

  RingHeader& header = *new (memory) RingHeader{};
  lay_out(header, sizes);
  header.version = kRingVersion;
  header.header_bytes = sizeof(RingHeader);
  header.record_bytes = sizeof(Record);
  header.chunk_bytes = kChunkBytes;
  header.clock_source = static_cast<uint32_t>(clock.source);
  header.clock_shift = clock.shift;
  header.process_id = current_pid();
  header.start_ticks = start_ticks;
  header.next_sequence = 1;
  header.anchors[0] = read_anchor();
  header.anchor_count = 1;
  g_ring.header = &header;
  g_ring.strings = make_table(header.strings, kBytesPerName);
  g_ring.stacks = make_table(header.stacks, kBytesPerStack);
  if (sizes.memory_log) format_live_table(g_ring.region<void>(header.live));
  if (sizes.waits) {
    g_ring.strings.limit(names_before_windows(header));
    g_ring.stacks.limit(stacks_before_windows(header));
  } else {
    format_window_tables();
  }
  if (!g_have_key) g_have_key = ::pthread_key_create(&g_thread_key, on_thread_exit) == 0;
  std::atomic_thread_fence(std::memory_order_release);
  header.magic = kRingMagic;
  return true;
}

bool ring_is_whole() { return g_whole.load(std::memory_order_acquire); }

bool make_ring_whole(char* why, size_t why_size) {
  if (ring_is_whole()) return true;
  const char* const shown = g_ring.path[0] ? g_ring.path : "the buffers' file, which has no name";
  if (g_ring.file.is_open() &&
      !allocate_ring_file(shown, g_ring.file, 0, g_ring.bytes, why, why_size)) {
    return false;
  }
  format_window_tables();
  return true;
}

void ring_store_apis(const ApiRow* rows, size_t count) {
  RingRegion& region = g_ring.header->api_names;
  ApiName* names = g_ring.region<ApiName>(region);
  for (size_t i = 0; i < count && (i + 1) * sizeof(ApiName) <= region.bytes; ++i) {
    names[i].name = g_ring.strings.intern(rows[i].name);
    names[i].domain = domain_of(rows[i].library);
    region.used = (i + 1) * sizeof(ApiName);
  }
}

// Page by page and not by madvise(MADV_POPULATE_WRITE), which keeps the lock of the address space:
// a thread of the program that maps memory, or starts another thread, waits until this one has had
// a processor again. A fault of one page needs that lock only before Linux 6.7. The blocks are
// allocated, so a write is safe; adding nothing leaves what other threads write there.
[[gnu::no_sanitize("thread")]] static void touch_pages(uint8_t* begin, uint64_t bytes) {
  constexpr uint64_t kPage = 4 * kKiB;
  for (uint64_t at = 0; at < bytes; at += kPage) __atomic_fetch_or(begin + at, 0, __ATOMIC_RELAXED);
}

bool populate_more() {
  constexpr uint64_t kPiece = 4 * kMiB;  // a few ms
  constexpr uint64_t kFirstTexts = 256 * kKiB;
  const RingHeader& header = *g_ring.header;
  const RingRegion& chunks = header.chunks;
  if (!ring_is_whole() || g_ring.populated >= chunks.bytes) return false;
  // What a long run would come to touch is resident from its first window on.
  if (g_ring.populated == 0) {
    for (const RingRegion* table : {&header.steps, &header.strings, &header.stacks, &header.shapes})
      touch_pages(g_ring.region<uint8_t>(*table), table->bytes);
    // Texts fill up in order; the slots before them are met anywhere.
    for (const RingRegion& texts : header.texts) {
      const uint64_t slots = StringTable::slot_bytes(texts.bytes);
      touch_pages(g_ring.region<uint8_t>(texts), std::min(texts.bytes, slots + kFirstTexts));
    }
  }
  const uint64_t bytes = std::min(kPiece, uint64_t{chunks.bytes} - g_ring.populated);
  touch_pages(g_ring.region<uint8_t>(chunks) + g_ring.populated, bytes);
  __atomic_store_n(&g_ring.populated, g_ring.populated + bytes, __ATOMIC_RELAXED);
  return true;
}

static bool is_populated(const RingChunk* chunk) {
  const uint64_t index = static_cast<uint64_t>(chunk - g_ring.chunk(0));
  return index * kChunkBytes < __atomic_load_n(&g_ring.populated, __ATOMIC_RELAXED);
}

// A buffer that a thread has before populate_more() has come to it. Its page faults are taken here,
// at once, where they count as what gpuprof takes of the thread's time.
static void populate(RingChunk* chunk) {
  const uint64_t ran = thread_cpu_ns();  // no time that others had the processor
  touch_pages(reinterpret_cast<uint8_t*>(chunk), kChunkBytes);
  // Not in the buffers of CUPTI's records, which are known by their first one.
  if (t_state.blocked != 0) return;
  const uint64_t end = now_ticks();
  const double took = static_cast<double>(thread_cpu_ns() - ran) * session().clock.ticks_per_ns;
  note_own_time(OwnTime::buffer, end - static_cast<uint64_t>(took), end);
}

bool few_populated_chunks_are_left() {
  constexpr uint64_t kFew = 2 * kMiB / kChunkBytes;
  // Those that are given back are used again before others.
  return g_ring.populated / kChunkBytes < g_ring.header->next_sequence.load() + kFew;
}

void store_function_in_ring(const void* function, std::string_view name) {
  if (!g_ring.header || name.empty()) return;
  RingRegion& region = g_ring.header->functions;
  const StringId id = g_ring.strings.intern(name);
  const uint64_t at = region.used.fetch_add(sizeof(FunctionName), std::memory_order_relaxed);
  if (id == 0 || at + sizeof(FunctionName) > region.bytes)
    return;  // readers do not look past the end
  FunctionName& row = g_ring.region<FunctionName>(region)[at / sizeof(FunctionName)];
  row.function = reinterpret_cast<uint64_t>(function);
  row.name = id;
  __atomic_store_n(&row.ready, 1, __ATOMIC_RELEASE);
}

void store_graph_node_in_ring(const GraphNodeRow& row) {
  Ring* const current = ring();
  if (!current) return;
  RingRegion& region = current->header->graph_nodes;
  const uint64_t used = region.used.load(std::memory_order_relaxed);
  const uint64_t slots = region.bytes / sizeof row;
  current->region<GraphNodeRow>(region)[used / sizeof row % slots] = row;
  region.used.store(used + sizeof row, std::memory_order_release);
}

void ring_store_stem(const char* stem) {
  RingRegion& region = g_ring.header->stem;
  const size_t length = ::strnlen(stem, region.bytes);
  std::memcpy(g_ring.region<char>(region), stem, length);
  region.used.store(length, std::memory_order_release);
}

void publish_ring() { g_published.store(&g_ring, std::memory_order_release); }

void link_ring(const char* name) {
  if (!name[0] || !g_ring.path[0] ||
      ::symlinkat(g_ring.path, run_directory().descriptor(), name_in_directory(name)) != 0) {
    return;
  }
  std::snprintf(g_ring.link, sizeof g_ring.link, "%s", name);
}

void remove_ring_name() {
  if (g_ring.path[0]) unlink_ring(g_ring.path);
  if (g_ring.link[0]) ::unlinkat(run_directory().descriptor(), name_in_directory(g_ring.link), 0);
  g_ring.path[0] = g_ring.link[0] = '\0';
}

void remove_ring_file() {
  g_ring.file.close();
  remove_ring_name();
}

// What is kept ends at a page, which may be larger than the header's part of the file.
uint64_t kept_header_bytes() {
  const auto page = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  return page > kRingHeaderPage ? page : kRingHeaderPage;
}

const RingHeader* keep_ring_header() {
  if (!g_ring.header || !g_ring.path[0]) return nullptr;
  g_header_kept = ::mprotect(g_ring.header, kept_header_bytes(), PROT_READ) == 0;
  return g_header_kept ? g_ring.header : nullptr;
}

namespace {
// The parent's: without touching the file.
void forget_ring() {
  g_published.store(nullptr, std::memory_order_release);
  g_ring.file.close();
  if (g_ring.header) {
    const uint64_t kept = g_header_kept ? kept_header_bytes() : 0;
    ::munmap(reinterpret_cast<uint8_t*>(g_ring.header) + kept, g_ring.bytes - kept);
  }
  g_header_kept = false;
  g_whole = false;
  g_ring = Ring{};
  g_free = g_full = 0;
  t_state.next = t_state.gpu_next = nullptr;
}
GPUPROF_FORGET_IN_CHILD(forget_ring);
}  // namespace

RingChunk* acquire_chunk() {
  Ring* const current = ring();
  if (!current) return nullptr;
  RingHeader& header = *current->header;
  uint64_t head = header.first_free.load(std::memory_order_acquire);
  uint64_t next;
  do {
    const uint32_t index = static_cast<uint32_t>(head);
    if (index == 0) return nullptr;
    const uint32_t after = __atomic_load_n(&current->chunk(index - 1)->next_free, __ATOMIC_RELAXED);
    next = ((head >> 32) + 1) << 32 | after;
  } while (!header.first_free.compare_exchange_weak(head, next, std::memory_order_acq_rel));
  g_free.fetch_sub(1, std::memory_order_relaxed);
  RingChunk* const chunk = current->chunk(static_cast<uint32_t>(head) - 1);
  chunk->committed.store(0, std::memory_order_relaxed);
  chunk->sequence = header.next_sequence.fetch_add(1, std::memory_order_relaxed);
  chunk->thread_id = current_tid();
  chunk->window = header.window.load(std::memory_order_relaxed);
  std::memset(chunk->thread_name, 0, sizeof chunk->thread_name);
  ::prctl(PR_GET_NAME, chunk->thread_name);
  chunk->state.store(static_cast<uint32_t>(ChunkState::open), std::memory_order_release);
  return chunk;
}

void release_chunk(RingChunk* chunk) {
  g_full.fetch_sub(1, std::memory_order_relaxed);
  chunk->state.store(static_cast<uint32_t>(ChunkState::free), std::memory_order_release);
  push_free(static_cast<uint32_t>(chunk - g_ring.chunk(0)));
}

uint32_t free_chunks() { return g_free.load(std::memory_order_relaxed); }
uint32_t full_chunks() { return g_full.load(std::memory_order_relaxed); }

void retire_chunk(RingChunk* chunk) {
  g_full.fetch_add(1, std::memory_order_relaxed);
  chunk->state.store(static_cast<uint32_t>(ChunkState::full), std::memory_order_release);
}

// The value only has to be other than null for the key's destructor to run.
void release_at_thread_exit() {
  if (g_have_key) ::pthread_setspecific(g_thread_key, &g_ring);
}

Record* reserve_record_slow() {
  const ErrnoGuard keep_errno;
  if (Record* const end = t_state.next) {
    t_state.next = nullptr;
    retire_chunk(chunk_of(end));
  }
  RingChunk* const chunk = acquire_chunk();
  if (!chunk) {
    count_loss(Loss::buffer_full);
    return nullptr;
  }
  {
    const BlockedScope blocked;  // libc may allocate for it, which is a sample of the heap at times
    release_at_thread_exit();
  }
  t_state.next = &chunk->records[0];
  if (!is_populated(chunk)) populate(chunk);
  return t_state.next;
}

void count_loss(Loss cause, uint64_t count) {
  if (Ring* const current = ring()) {
    loss_counter(*current->header, static_cast<uint32_t>(cause))
        .fetch_add(count, std::memory_order_relaxed);
  }
}

static void count_lost_name(std::string_view text, StringId id) {
  if (id == 0) count_loss(Loss::string_table_full);
  if (text.size() > StringTable::kMaxText) count_loss(Loss::name_cut);
}

StringId intern_string(std::string_view text) {
  Ring* const current = ring();
  if (!current || text.empty()) return 0;
  const StringId id = current->strings.intern(text);
  count_lost_name(text, id);
  return id;
}

StringId intern_text(std::string_view text) {
  Ring* const current = ring();
  if (!current || text.empty() || !ring_is_whole()) return 0;
  const uint32_t turn = current->header->texts_turn.load(std::memory_order_acquire) & 1;
  if (!current->texts[turn].has_room()) return intern_string(text);
  const StringId id = current->texts[turn].intern(text);
  count_lost_name(text, id);
  return id == 0 ? 0 : id | kTextId | (turn ? kTextTurn : 0);
}

void turn_texts() {
  const uint32_t next = 1 - (g_ring.header->texts_turn.load(std::memory_order_relaxed) & 1);
  g_ring.texts[next].clear();
  g_ring.header->texts_turn.store(next, std::memory_order_release);
}

uint32_t intern_shape(const LaunchShape& shape) {
  Ring* const current = ring();
  if (!current || !ring_is_whole()) return 0;
  const uint32_t id = current->shapes.intern(shape);
  if (id == 0) count_loss(Loss::shape_table_full);
  return id;
}

}  // namespace gpuprof
