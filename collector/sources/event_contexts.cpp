// SPDX-License-Identifier: Apache-2.0
#include "collector/sources/event_contexts.h"

#include <atomic>

#include "collector/base/fork.h"
#include "collector/base/os.h"
#include "collector/record/session.h"
#include "collector/sources/event_pool.h"
#include "collector/sources/graphs.h"

namespace gpuprof {
namespace {

struct Table {
  EventContext rows[EventPool::kMostContexts];
};
constinit Immortal<Table> g;
Mutex g_context_lock;  // of who adds a context
std::atomic<uint32_t> g_contexts{0};
constexpr unsigned long long kVacant = ~0ull;
std::atomic<unsigned long long> g_ids[EventPool::kMostContexts];  // of the rows; kVacant: of none

// That the runtime would bind on the calling thread; null: it would have to make it.
void* context_to_be(const EventDriver& driver, const Record& record) {
  void* context = nullptr;
  const uint64_t stream = stream_of(record);
  constexpr uint64_t kPerThread = 2;  // CU_STREAM_PER_THREAD; those up to it are of any context
  if (stream > kPerThread) {
    return driver.stream_context(stream, &context) == 0 ? context : nullptr;
  }
  int device = 0, active = 0;
  unsigned flags = 0;
  if (!driver.runtime_device || driver.runtime_device(&device) != 0) return nullptr;
  if (driver.primary_state(device, &flags, &active) != 0 || active == 0) return nullptr;
  if (driver.primary_retain(&context, device) != 0) return nullptr;
  driver.primary_release(device);  // the program's own use keeps it
  return context;
}

}  // namespace

ContextOfCall::ContextOfCall(const EventDriver& driver, const Record& record) : driver_(driver) {
  if (driver.get_context(&handle_) != 0) handle_ = nullptr;
  const bool runtime =
      record.api < api_count() && api_rows()[record.api].library == Library::cudart;
  if (handle_ || !runtime) return;
  handle_ = context_to_be(driver, record);
  lent_ = handle_ && driver.set_context(handle_) == 0;
  if (!lent_) handle_ = nullptr;
}

int place_of_context(const EventDriver& driver, void* handle) {
  EventContext fresh{};
  fresh.handle = handle;
  if (!handle || driver.context_id(handle, &fresh.id) != 0) return -1;
  const uint32_t count = event_context_count();
  for (uint32_t i = 0; i < count; ++i) {
    if (g_ids[i].load(std::memory_order_acquire) == fresh.id) return static_cast<int>(i);
  }
  if (driver.context_device(&fresh.device) != 0) return -1;
  const LockGuard guard(g_context_lock);
  const uint32_t now = g_contexts.load(std::memory_order_relaxed);
  uint32_t vacant = now;
  for (uint32_t i = 0; i < now; ++i) {
    const unsigned long long id = g_ids[i].load(std::memory_order_relaxed);
    if (id == fresh.id) return static_cast<int>(i);
    if (id == kVacant) vacant = i;
  }
  if (vacant == EventPool::kMostContexts) return -1;
  g->rows[vacant] = fresh;
  g_ids[vacant].store(fresh.id, std::memory_order_release);
  if (vacant == now) g_contexts.store(now + 1, std::memory_order_release);
  return static_cast<int>(vacant);
}

uint32_t event_context_count() { return g_contexts.load(std::memory_order_acquire); }

EventContext& event_context(uint32_t place) { return g->rows[place]; }

bool enter_context(const EventDriver& driver, EventContext& context) {
  unsigned long long id = 0;
  if (context.gone || !context.handle) return false;
  if (driver.context_id(context.handle, &id) == 0 && id == context.id &&
      driver.set_context(context.handle) == 0) {
    return true;
  }
  context.gone = true;
  context.clock.lose_events();
  return false;
}

void vacate_context(const EventDriver& driver, uint32_t place) {
  EventContext& context = event_context(place);
  unsigned long long id = 0;
  const bool there =
      context.handle && driver.context_id(context.handle, &id) == 0 && id == context.id;
  if (there) return;
  const LockGuard guard(g_context_lock);
  context = EventContext{};
  g_ids[place].store(kVacant, std::memory_order_release);
}

namespace {
void forget_event_contexts() {
  g_context_lock.unlock();
  g_contexts = 0;
  for (auto& id : g_ids) id = kVacant;
  for (EventContext& row : g->rows) row = EventContext{};
}
GPUPROF_FORGET_IN_CHILD(forget_event_contexts);
}  // namespace

}  // namespace gpuprof
