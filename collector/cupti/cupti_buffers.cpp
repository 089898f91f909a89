// SPDX-License-Identifier: Apache-2.0
#include "collector/cupti/cupti_buffers.h"

#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <bit>
#include <cstring>

#include "collector/base/clock.h"
#include "collector/base/os.h"
#include "collector/cupti/cupti_graphs.h"
#include "collector/cupti/cupti_sharing.h"
#include "collector/record/own_time.h"
#include "collector/record/recorder.h"

namespace gpuprof {
namespace {

// About 150 kernel records each: CUPTI keeps a buffer back while one of its records is not
// complete. It keeps one or two per thread or stream in use; 64 MiB in all.
constexpr size_t kBufferBytes = 32 * 1024;
constexpr size_t kBuffers = 2048;
constexpr size_t kKeptBuffers = 512;  // of the others the memory goes back when they are not lent
// Before this version CUPTI may crash when it is refused a buffer (Kineto has met that).
constexpr uint32_t kBearsRefusal = 27;
// Thrown away: too many at once share memory that nobody reads.
constexpr size_t kDiscardBytes = 16 * 1024;
constexpr size_t kDiscardBuffers = 1024;

constexpr size_t kRegionBytes = kBufferBytes * kBuffers;
static_assert(kRegionBytes == kCuptiBufferBytes);
constexpr size_t kDiscardRegionBytes = kDiscardBytes * kDiscardBuffers;

const CuptiApi* g_api = nullptr;
CuptiRecordContext* g_context = nullptr;
Mutex g_clock_lock;  // guards the clock in it; nothing is called while it is held

Mutex g_lock;  // guards g_lent; a few words, never held while CUPTI runs
uint64_t g_lent[kBuffers / 64];
uint64_t g_lent_before[kBuffers / 64];  // when our subscriber came
std::atomic<CUpti_SubscriberHandle> g_subscriber{nullptr};
std::atomic<uint32_t> g_completing{0};  // threads in subscriber_buffer_completed()
std::atomic<uint8_t*> g_region{nullptr};
std::atomic<uint8_t*> g_discard{nullptr};
std::atomic<uint32_t> g_next_discard{0};
std::atomic<bool> g_records_are_ours{false};

// Address space; memory comes with the first touch.
uint8_t* reserve(std::atomic<uint8_t*>& region, size_t bytes) {
  uint8_t* known = region.load(std::memory_order_acquire);
  if (known) return known;
  void* const fresh = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (fresh == MAP_FAILED) return nullptr;
  if (region.compare_exchange_strong(known, static_cast<uint8_t*>(fresh))) {
    return static_cast<uint8_t*>(fresh);
  }
  ::munmap(fresh, bytes);
  return known;
}

bool lies_in(const std::atomic<uint8_t*>& region, size_t bytes, const uint8_t* buffer) {
  const uint8_t* const begin = region.load(std::memory_order_acquire);
  return begin && buffer >= begin && buffer < begin + bytes;
}

uint8_t* lend() {
  uint8_t* const region = reserve(g_region, kRegionBytes);
  if (!region) return nullptr;
  const LockGuard guard(g_lock);
  for (size_t word = 0; word < kBuffers / 64; ++word) {
    if (g_lent[word] == ~uint64_t{0}) continue;
    const size_t bit = static_cast<size_t>(std::countr_one(g_lent[word]));
    g_lent[word] |= uint64_t{1} << bit;
    return region + (word * 64 + bit) * kBufferBytes;
  }
  return nullptr;
}

void take_back(uint8_t* buffer) {
  const size_t slot = static_cast<size_t>(buffer - g_region.load()) / kBufferBytes;
  if (slot >= kKeptBuffers) ::madvise(buffer, kBufferBytes, MADV_DONTNEED);
  const LockGuard guard(g_lock);
  g_lent[slot / 64] &= ~(uint64_t{1} << (slot % 64));
}

CuptiRecordContext context_now() {
  const CuptiClock::Anchor anchor = g_context->clock.read();
  const LockGuard guard(g_clock_lock);
  g_context->clock.add(anchor);
  CuptiRecordContext context = *g_context;
  context.now_ticks = now_ticks();
  return context;
}

// CUPTI calls us in threads of its own, and in calls of the program: that is noted.
class CallbackTime {
 public:
  ~CallbackTime() {
    if (t_state.blocked == 0) note_own_time(OwnTime::callback, begin_, now_ticks());
  }

 private:
  const uint64_t begin_ = now_ticks();
};

CuptiActivities activities() { return {g_api, g_subscriber.load(std::memory_order_acquire)}; }

void read_records(uint8_t* buffer, size_t valid, bool store) {
  const CuptiRecordContext context = context_now();
  const CuptiActivities ours = activities();
  if (store && graphs_are_ordered()) order_graph_records(ours, context, buffer, valid);
  CUpti_Activity* record = nullptr;
  uint64_t count = 0;
  CUptiResult result = valid ? CUPTI_SUCCESS : CUPTI_ERROR_MAX_LIMIT_REACHED;
  while (result == CUPTI_SUCCESS) {
    result = ours.next_record(buffer, valid, &record);
    if (result != CUPTI_SUCCESS) break;
    ++count;
    if (store) store_activity(context, record);
  }
  if (!store) {
    lose_graph_order();
    return count_loss(Loss::cupti_dropped, count);
  }
  if (result == CUPTI_ERROR_MAX_LIMIT_REACHED) return;
  // A record that was never finished ends what can be read of the buffer.
  count_loss(Loss::cupti_incomplete);
  lose_graph_order();
}

void read_ours(CUcontext context, uint32_t stream, uint8_t* buffer, size_t valid, bool store) {
  const ErrnoGuard keep_errno;
  const BlockedScope blocked;
  const GpuBufferScope gpu_buffer;
  size_t dropped = 0;
  if (activities().dropped(context, stream, &dropped) == CUPTI_SUCCESS && dropped) {
    count_loss(Loss::cupti_dropped, dropped);
    lose_graph_order();
  }
  if (buffer) read_records(buffer, valid, store);
}

// As many records as fit, into each buffer that the program lends.
void pass_to_host(CUcontext context, uint32_t stream, uint8_t* buffer, size_t valid) {
  const auto request = host_request();
  if (!request) return;
  uint8_t* const end = buffer + valid;
  CUpti_Activity* record = nullptr;
  bool more = g_api->ActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS;
  while (more) {
    uint8_t* target = nullptr;
    size_t size = 0, limit = 0, used = 0, count = 0;
    request(&target, &size, &limit);
    if (!target) return;
    while (more && (limit == 0 || count < limit)) {
      auto* const begin = reinterpret_cast<uint8_t*>(record);
      more = g_api->ActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS;
      const auto bytes =
          static_cast<size_t>((more ? reinterpret_cast<uint8_t*>(record) : end) - begin);
      if (used + bytes > size) {
        record = reinterpret_cast<CUpti_Activity*>(begin);
        more = used != 0;  // a buffer that cannot hold one record never will
        break;
      }
      std::memcpy(target + used, begin, bytes);
      used += bytes;
      ++count;
    }
    host_buffer_completed(context, stream, target, size, used);
  }
}

}  // namespace

void records_are_ours(bool ours) { g_records_are_ours.store(ours, std::memory_order_release); }

void set_buffer_reader(const CuptiApi& api, CuptiRecordContext& context) {
  g_context = &context;
  g_api = &api;
}

bool reserve_cupti_buffers() { return reserve(g_region, kRegionBytes) != nullptr; }

void CUPTIAPI cupti_buffer_requested(uint8_t** buffer, size_t* size, size_t* max_records) {
  const ErrnoGuard keep_errno;
  const CallbackTime own_time;
  *max_records = 0;
  *buffer = lend();
  *size = *buffer ? kBufferBytes : 0;
  if (*buffer || g_context->version >= kBearsRefusal) return;
  if (uint8_t* const region = reserve(g_discard, kDiscardRegionBytes)) {
    *buffer = region + g_next_discard.fetch_add(1) % kDiscardBuffers * kDiscardBytes;
    *size = kDiscardBytes;
  }
}

void CUPTIAPI cupti_buffer_completed(CUcontext context, uint32_t stream, uint8_t* buffer,
                                     size_t size, size_t valid) {
  const bool ours = lies_in(g_region, kRegionBytes, buffer);
  const bool discard = !ours && lies_in(g_discard, kDiscardRegionBytes, buffer);
  const bool of_host = buffer && !ours && !discard;
  if (!g_records_are_ours.load(std::memory_order_acquire)) {
    if (of_host || !buffer) return host_buffer_completed(context, stream, buffer, size, valid);
    if (ours && valid) pass_to_host(context, stream, buffer, valid);
    if (ours) take_back(buffer);
    return;
  }
  {
    const CallbackTime own_time;
    read_ours(context, stream, buffer, valid, !discard);
  }
  if (of_host) host_buffer_completed(context, stream, buffer, size, 0);
  if (ours) take_back(buffer);
}

void read_as_subscriber(CUpti_SubscriberHandle subscriber) {
  if (subscriber) {
    const LockGuard guard(g_lock);
    std::memcpy(g_lent_before, g_lent, sizeof g_lent);
  }
  g_subscriber.store(subscriber, std::memory_order_release);
}

void take_back_subscriber_buffers() {
  constexpr int kTries = 1000;
  for (int i = 0; i < kTries && g_completing.load(); ++i) ::usleep(1000);
  if (g_completing.load()) return;  // a buffer that is still read is not lent again
  const LockGuard guard(g_lock);
  for (size_t word = 0; word < kBuffers / 64; ++word) g_lent[word] &= g_lent_before[word];
}

void take_back_all_buffers() {
  const LockGuard guard(g_lock);
  std::memset(g_lent, 0, sizeof g_lent);
}

void CUPTIAPI subscriber_buffer_requested(uint8_t** buffer, size_t* size, size_t* max_records,
                                          CuptiV2RequestInfo*) {
  cupti_buffer_requested(buffer, size, max_records);
}

void CUPTIAPI subscriber_buffer_completed(uint8_t* buffer, size_t, size_t valid,
                                          CuptiV2CompleteInfo*) {
  const bool ours = buffer && lies_in(g_region, kRegionBytes, buffer);
  if (!ours) return;
  g_completing.fetch_add(1);
  if (g_subscriber.load()) {
    const CallbackTime own_time;
    read_ours(nullptr, 0, buffer, valid, true);
    take_back(buffer);
  } else if (valid) {
    count_loss(Loss::cupti_incomplete);  // it came after its subscriber had left
  }
  g_completing.fetch_sub(1);
}

uint64_t cupti_clock_error_ticks() {
  const LockGuard guard(g_clock_lock);
  return g_context ? g_context->clock.error_ticks() : 0;
}

void forget_cupti_buffers() {
  g_lock.unlock();
  g_clock_lock.unlock();
  g_subscriber = nullptr;
  g_completing = 0;
}

}  // namespace gpuprof
