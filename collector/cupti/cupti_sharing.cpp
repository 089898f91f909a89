// SPDX-License-Identifier: Apache-2.0
#include "collector/cupti/cupti_sharing.h"

#include <dlfcn.h>

#include <atomic>
#include <cstdio>
#include <cstring>

#include "collector/base/os.h"
#include "collector/cupti/cupti_buffers.h"
#include "collector/cupti/cupti_callback.h"
#include "collector/cupti/cupti_graphs.h"
#include "collector/cupti/cupti_session.h"
#include "collector/record/collector.h"
#include "collector/record/recorder.h"
#include "collector/record/session.h"
#include "collector/window/drain.h"

namespace gpuprof {
namespace {

constexpr uint64_t kMs = 1000000;
constexpr uint64_t kWaitForDrainNs = 3000 * kMs;
// Who is refused may go without CUPTI for good, as XLA does (its cupti_error_manager.cc).
constexpr uint64_t kWaitAfterRefusalNs = 10000 * kMs;
// After its last call the program may be between two of them; after it switched its last kind off
// it still has to ask for its records.
constexpr uint64_t kHoldOffNs = 300 * kMs;
constexpr uint64_t kHoldOffUnflushedNs = 2000 * kMs;

constexpr size_t kIds = 2048;

struct Host {
  std::atomic<uint32_t> inside{0};       // threads within a HostTakesCupti
  std::atomic<bool> was_in_vain{false};  // the newest wait for the drain thread
  std::atomic<uint64_t> last_call_ns{0};
  std::atomic<uint64_t> kinds{0};  // one bit each
  std::atomic<bool> unflushed{false};
  std::atomic<CUpti_SubscriberHandle> subscription{nullptr};
  std::atomic<CUpti_CallbackFunc> callback{nullptr};
  std::atomic<void*> user{nullptr};
  std::atomic<uint64_t> ids[3][kIds / 64];  // runtime, driver, resource
  std::atomic<bool> shared{false};
  std::atomic<bool> used_v1{false};
  std::atomic<CUpti_SubscriberHandle> joined[8];
  std::atomic<CUpti_BuffersCallbackRequestFunc> request{nullptr};
  std::atomic<CUpti_BuffersCallbackCompleteFunc> complete{nullptr};
  std::atomic<CUpti_TimestampCallbackFunc> clock{nullptr};
  Mutex name_lock;
  char name[96] = "another tool";
  char joined_name[96] = "";
};
constinit Host g_host;

// CUPTI gives a call one word from entry to exit. In a shared subscription it is the program's;
// ours are these, by domain: a driver call runs inside a runtime call, not inside another driver
// call.
thread_local uint64_t t_call_words[2] __attribute__((tls_model("initial-exec")));

void note_call() { g_host.last_call_ns.store(monotonic_ns(), std::memory_order_relaxed); }

void set_name(const char* text) {
  const LockGuard guard(g_host.name_lock);
  std::snprintf(g_host.name, sizeof g_host.name, "%s", text);
}

int index_of(uint32_t domain) {
  if (domain == CUPTI_CB_DOMAIN_RUNTIME_API) return 0;
  if (domain == CUPTI_CB_DOMAIN_DRIVER_API) return 1;
  return domain == CUPTI_CB_DOMAIN_RESOURCE ? 2 : -1;
}

void want(bool on, int index, uint32_t id) {
  std::atomic<uint64_t>& word = g_host.ids[index][id / 64];
  const uint64_t bit = uint64_t{1} << (id % 64);
  if (on) {
    word.fetch_or(bit);
  } else {
    word.fetch_and(~bit);
  }
}

void want_all(bool on, uint32_t domain) {
  const int index = index_of(domain);
  if (index < 0) return;
  for (auto& word : g_host.ids[index]) word.store(on ? ~uint64_t{0} : 0);
}

void CUPTIAPI on_host_callback(void*, CUpti_CallbackDomain domain, CUpti_CallbackId id,
                               const void* data) {
  const int index = index_of(domain);
  if (index >= 0 && g_host.shared.load(std::memory_order_acquire) && callback_is_ours(domain, id)) {
    on_callback_beside_others(nullptr, domain, id, data);
  }
  const CUpti_CallbackFunc callback = g_host.callback.load(std::memory_order_acquire);
  if (callback && host_wants_callback(domain, id)) callback(g_host.user.load(), domain, id, data);
}

// A dump that is being written may hold the drain thread up for long, and a profiler that starts
// makes many calls: one of them waits for it.
void wait_until_given_up() {
  // In this order: an attach that begins later sees that a thread is inside.
  if (!cupti_is_attaching() && !cupti_is_attached()) return;
  const bool waits_already = drain_is_asked_for(DrainCommand::yield) && g_host.was_in_vain.load();
  drain_request(DrainCommand::yield);
  const bool done = drain_wait_for(DrainCommand::yield, waits_already ? 0 : kWaitForDrainNs);
  g_host.was_in_vain.store(!done);
}

}  // namespace

void CUPTIAPI on_callback_beside_others(void*, CUpti_CallbackDomain domain, CUpti_CallbackId id,
                                        const void* data) {
  const int index = index_of(domain);
  if (index < 0) return;
  if (domain == CUPTI_CB_DOMAIN_RESOURCE) return on_api_callback(nullptr, domain, id, data);
  CUpti_CallbackData ours = *static_cast<const CUpti_CallbackData*>(data);
  ours.correlationData = &t_call_words[index];
  on_api_callback(nullptr, domain, id, &ours);
}

bool host_wants_several(const CUpti_SubscriberParams* params) {
  if (!params || params->structSize < kCuptiV2SubscriberParamsSize) return false;
  CuptiV2SubscriberParams all;
  std::memcpy(&all, params, sizeof all);
  return all.allowMultipleSubscribers == 1;
}

void host_has_joined(CUpti_SubscriberHandle handle, const char* name) {
  {
    const LockGuard guard(g_host.name_lock);
    std::snprintf(g_host.joined_name, sizeof g_host.joined_name, "CUPTI for %s",
                  name && name[0] ? name : "the program");
  }
  for (auto& each : g_host.joined) {
    CUpti_SubscriberHandle none = nullptr;
    if (each.compare_exchange_strong(none, handle)) return;
  }
}

bool host_leaves(CUpti_SubscriberHandle handle) {
  for (auto& each : g_host.joined) {
    CUpti_SubscriberHandle expected = handle;
    if (handle && each.compare_exchange_strong(expected, nullptr)) return true;
  }
  return false;
}

void joined_host_name(char* out, size_t size) {
  const LockGuard guard(g_host.name_lock);
  std::snprintf(out, size, "%s", g_host.joined_name);
}

void host_was_answered(CUptiResult result) {
  if (result == CUPTI_SUCCESS) {
    g_host.used_v1.store(true);
  } else if (result == CUPTI_ERROR_NOT_COMPATIBLE ||
             result == CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED) {
    cupti_refused_host(static_cast<int>(result));
  }
}

bool cupti_makes_room(CUptiResult refusal) {
  if (refusal != CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED || !session_is_live()) return false;
  // Else it has been given up meanwhile, or it is another tool that has it.
  const bool ours = cupti_is_attaching() || cupti_is_attached();
  if (!ours && !g_host.was_in_vain.load()) return false;
  const ErrnoGuard keep_errno;
  const BlockedScope blocked;
  drain_request(DrainCommand::yield);
  const bool done = drain_wait_for(DrainCommand::yield, kWaitAfterRefusalNs);
  g_host.was_in_vain.store(!done);
  return done;
}

bool host_has_used_v1() { return g_host.used_v1.load() || g_host.subscription.load(); }

bool host_cupti_is_followed() { return !t_state.blocked && ensure_configured(); }

HostTakesCupti::HostTakesCupti(const void* return_address) {
  const ErrnoGuard keep_errno;
  g_host.inside.fetch_add(1);
  note_call();
  Dl_info caller{};
  if (!g_host.subscription.load() && ::dladdr(return_address, &caller) && caller.dli_fname) {
    const char* const slash = std::strrchr(caller.dli_fname, '/');
    set_name(slash ? slash + 1 : caller.dli_fname);
  }
  if (!session_is_live()) return;
  const BlockedScope blocked;
  wait_until_given_up();
}

HostTakesCupti::~HostTakesCupti() {
  note_call();
  g_host.inside.fetch_sub(1);
}

CUpti_CallbackFunc host_subscribes(CUpti_CallbackFunc callback, void* user, const char* name) {
  if (!callback || g_host.subscription.load()) return callback;  // CUPTI will refuse it
  if (name && name[0]) set_name(name);
  want_all(false, CUPTI_CB_DOMAIN_RUNTIME_API);
  want_all(false, CUPTI_CB_DOMAIN_DRIVER_API);
  want_all(false, CUPTI_CB_DOMAIN_RESOURCE);
  g_host.user.store(user);
  g_host.callback.store(callback, std::memory_order_release);
  return on_host_callback;
}

void host_has_subscribed(CUpti_SubscriberHandle handle) { g_host.subscription.store(handle); }
void host_has_unsubscribed() { g_host.subscription.store(nullptr); }

bool host_enables_callback(bool on, CUpti_SubscriberHandle handle, uint32_t domain, uint32_t id) {
  if (!handle || handle != g_host.subscription.load()) return true;
  note_call();
  const int index = index_of(domain);
  if (id != 0) {
    if (index >= 0 && id < kIds) want(on, index, id);
    const bool needed = index >= 0 && g_host.shared.load() &&
                        callback_is_ours(static_cast<CUpti_CallbackDomain>(domain), id);
    return on || !needed;
  }
  for (const uint32_t each :
       {CUPTI_CB_DOMAIN_RUNTIME_API, CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_CB_DOMAIN_RESOURCE}) {
    if (domain == 0 || domain == each) want_all(on, each);
  }
  return on || !g_host.shared.load();
}

CUpti_BuffersCallbackCompleteFunc host_registers_buffers(
    CUpti_BuffersCallbackRequestFunc request, CUpti_BuffersCallbackCompleteFunc complete) {
  if (!request || !complete) return complete;
  g_host.complete.store(complete);
  g_host.request.store(request);
  return cupti_buffer_completed;
}

void host_registers_clock(CUpti_TimestampCallbackFunc clock) { g_host.clock.store(clock); }

void host_has_enabled(CUpti_ActivityKind kind, bool on) {
  note_call();
  const uint64_t bit = uint64_t{1} << (static_cast<uint32_t>(kind) & 63);
  if (on) {
    g_host.kinds.fetch_or(bit);
    g_host.unflushed = true;
    if (kind == CUPTI_ACTIVITY_KIND_GRAPH_TRACE) graph_trace_enabled();
  } else {
    g_host.kinds.fetch_and(~bit);
  }
}

bool host_has_kind(CUpti_ActivityKind kind) {
  return g_host.kinds.load() >> (static_cast<uint32_t>(kind) & 63) & 1;
}

void host_has_flushed() {
  if (!host_has_used_v1()) return;  // of several subscribers any may flush
  note_call();
  if (g_host.kinds.load() == 0) g_host.unflushed = false;
}

void host_has_finalized() {
  graph_trace_forgotten();
  g_host.kinds = 0;
  g_host.unflushed = false;
  g_host.subscription = nullptr;
  g_host.request = nullptr;
  g_host.complete = nullptr;
  g_host.clock = nullptr;
}

bool host_is_at_cupti() {
  if (g_host.inside.load() || g_host.kinds.load()) return true;
  const uint64_t last = g_host.last_call_ns.load();
  return last &&
         monotonic_ns() - last < (g_host.unflushed.load() ? kHoldOffUnflushedNs : kHoldOffNs);
}

bool cupti_is_asked_for() {
  drain_note_progress();
  return host_is_at_cupti() || drain_is_asked_for(DrainCommand::exit) ||
         drain_is_asked_for(DrainCommand::yield) || drain_is_asked_for(DrainCommand::attach);
}

bool host_was_ever_at_cupti() { return g_host.last_call_ns.load() != 0; }

void host_cupti_name(char* out, size_t size) {
  const LockGuard guard(g_host.name_lock);
  std::snprintf(out, size, "%s", g_host.name);
}

CUpti_SubscriberHandle host_subscription() { return g_host.subscription.load(); }
CUpti_BuffersCallbackRequestFunc host_request() { return g_host.request.load(); }
CUpti_TimestampCallbackFunc host_clock() { return g_host.clock.load(); }

bool host_wants_callback(uint32_t domain, uint32_t id) {
  const int index = index_of(domain);
  if (index < 0 || id >= kIds) return true;
  return g_host.ids[index][id / 64].load(std::memory_order_relaxed) >> (id % 64) & 1;
}

void host_buffer_completed(CUcontext context, uint32_t stream, uint8_t* buffer, size_t size,
                           size_t valid) {
  if (const auto complete = g_host.complete.load()) complete(context, stream, buffer, size, valid);
}

void share_host_subscription(bool shared) {
  g_host.shared.store(shared, std::memory_order_release);
}

void forget_host_cupti() {
  g_host.name_lock.unlock();
  g_host.inside = 0;
  g_host.shared = g_host.was_in_vain = false;
  for (auto& each : g_host.joined) each = nullptr;
}

}  // namespace gpuprof
