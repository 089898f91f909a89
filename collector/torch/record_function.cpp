// SPDX-License-Identifier: Apache-2.0
#include "collector/torch/record_function.h"

#include <dlfcn.h>

#include <atomic>
#include <cstring>

#include "collector/base/fork.h"
#include "collector/base/libraries.h"
#include "collector/base/os.h"

namespace gpuprof {
namespace {

// std::unique_ptr<at::ObserverContext>, always null: with a destructor of its own it is returned
// through memory.
struct NoContext {
  void* pointer = nullptr;
  NoContext() = default;
  NoContext(const NoContext&) = delete;
  ~NoContext() {}
};

// at::RecordFunctionCallback. Scopes that a newer PyTorch adds in the middle would be read from
// what is false here.
struct Callback {
  NoContext (*begin)(const RecordFunction&);
  void (*end)(const RecordFunction&, void*);
  double probability = 1;
  bool scopes[10] = {};
  bool needs_inputs = false, needs_outputs = false, needs_ids = false;
};
static_assert(sizeof(Callback) == 40);

// at::RecordScope
constexpr uint8_t kForwardScopes[] = {0, 2, 4, 6, 8, 9};  // operators, TorchScript, static runtime
constexpr uint8_t kBackwardScope = 1, kUserScope = 7;

// std::variant<std::string_view, std::reference_wrapper<...>> that holds the first.
struct NameVariant {
  size_t length;
  const char* text;
  uint8_t index = 0;
};

struct Functions {
  uint64_t (*add)(Callback callback);
  void (*remove)(uint64_t handle);
  const char* (*name)(const RecordFunction*);
  void (*construct)(void* memory, uint8_t scope);
  void (*destroy)(void* object);
  void (*before_text)(void* object, const char* name, int64_t sequence);     // up to 2.0
  void (*before_variant)(void* object, NameVariant name, int64_t sequence);  // from 2.1
};

constexpr const char* kProbeName = "gpuprof";
constexpr int64_t kProbeSequence = 0x6770757072664f70;
constexpr size_t kProbeBytes = 4096;  // several times the size of an at::RecordFunction

Mutex g_lock;
constinit Functions g_torch{};
constinit OperatorObserver g_observer{};
enum class State : uint8_t { unknown, usable, refused };
State g_state = State::unknown;
uint64_t g_handles[3] = {};
// Where in a RecordFunction its sequence number lies; 0: not known.
std::atomic<size_t> g_sequence_offset{0};

struct Probe {
  const void* object;
  bool begun, ended;
};
constinit Probe g_probe{};

NoContext begin_forward(const RecordFunction& function) {
  g_observer.begin(function, OperatorScope::forward);
  return {};
}
NoContext begin_backward(const RecordFunction& function) {
  g_observer.begin(function, OperatorScope::backward);
  return {};
}
NoContext begin_annotation(const RecordFunction& function) {
  g_observer.begin(function, OperatorScope::annotation);
  return {};
}
void end(const RecordFunction& function, void*) { g_observer.end(function); }

template <typename Function>
bool find(void* library, const char* name, Function& out) {
  void* const symbol = real_symbol(library, name);
  std::memcpy(&out, &symbol, sizeof symbol);
  return symbol != nullptr;
}

bool find_functions(void* library) {
  Functions& t = g_torch;
  const bool all = find(library, "_ZN2at17addGlobalCallbackENS_22RecordFunctionCallbackE", t.add) &&
                   find(library, "_ZN2at14removeCallbackEm", t.remove) &&
                   find(library, "_ZNK2at14RecordFunction4nameEv", t.name) &&
                   find(library, "_ZN2at14RecordFunctionC1ENS_11RecordScopeE", t.construct) &&
                   find(library, "_ZN2at14RecordFunctionD1Ev", t.destroy);
  const bool text = find(library, "_ZN2at14RecordFunction6beforeEPKcl", t.before_text);
  const bool variant =
      find(library,
           "_ZN2at14RecordFunction6beforeESt7variantIJSt17basic_string_viewIcSt11char_"
           "traitsIcEESt17reference_wrapperIKN3c1014FunctionSchemaEEEEl",
           t.before_variant);
  if (!all || !text || !variant) ::dlerror();
  return all && (text || variant);
}

NoContext probe_begin(const RecordFunction& function) {
  Probe& probe = g_probe;
  if (&function != probe.object) return {};  // another thread's range
  probe.begun = std::strcmp(g_torch.name(&function), kProbeName) == 0;
  const char* const bytes = reinterpret_cast<const char*>(&function);
  for (size_t at = 0; at + sizeof kProbeSequence <= kProbeBytes; at += sizeof kProbeSequence) {
    if (std::memcmp(bytes + at, &kProbeSequence, sizeof kProbeSequence) == 0) {
      g_sequence_offset.store(at, std::memory_order_relaxed);
    }
  }
  return {};
}
void probe_end(const RecordFunction& function, void*) {
  if (&function == g_probe.object) g_probe.ended = true;
}

// One range of ours, seen by a callback of ours: the layouts are as we think.
bool try_out() {
  alignas(16) static char memory[kProbeBytes];
  Callback callback{probe_begin, probe_end};
  callback.scopes[kUserScope] = true;
  g_probe = Probe{memory, false, false};
  const uint64_t handle = g_torch.add(callback);
  g_torch.construct(memory, kUserScope);
  if (g_torch.before_variant) {
    g_torch.before_variant(memory, {std::strlen(kProbeName), kProbeName}, kProbeSequence);
  } else {
    g_torch.before_text(memory, kProbeName, kProbeSequence);
  }
  g_torch.destroy(memory);
  g_torch.remove(handle);
  return g_probe.begun && g_probe.ended;
}

// Under g_lock.
State look_for_torch() {
  void* const library = torch_library();
  if (!library) return State::unknown;
  return find_functions(library) && try_out() ? State::usable : State::refused;
}

}  // namespace

void try_observers() {
  const LockGuard guard(g_lock);
  if (g_state == State::unknown) g_state = look_for_torch();
}

ObserveResult observe_operators(const OperatorObserver& observer) {
  const LockGuard guard(g_lock);
  if (g_state == State::unknown) g_state = look_for_torch();
  if (g_state == State::unknown) return ObserveResult::no_torch;
  if (g_state == State::refused) return ObserveResult::unknown_torch;
  if (g_handles[0]) return ObserveResult::observing;
  g_observer = observer;
  Callback callbacks[] = {{begin_forward, end}, {begin_backward, end}, {begin_annotation, end}};
  for (const uint8_t scope : kForwardScopes) callbacks[0].scopes[scope] = true;
  for (Callback& each : callbacks) each.needs_inputs = observer.with_inputs;
  callbacks[1].scopes[kBackwardScope] = true;
  callbacks[2].scopes[kUserScope] = true;
  for (int i = 0; i < 3; ++i) g_handles[i] = g_torch.add(callbacks[i]);
  return ObserveResult::observing;
}

void stop_observing_operators() {
  const LockGuard guard(g_lock);
  for (uint64_t& handle : g_handles) {
    if (handle) g_torch.remove(handle);
    handle = 0;
  }
}

namespace {
// A child of fork is observed where its parent was, until it stops that itself.
void unlock_observers_in_child() { g_lock.unlock(); }
GPUPROF_FORGET_IN_CHILD(unlock_observers_in_child);
}  // namespace

void* torch_library() { return loaded_library("libtorch_cpu.so"); }

const char* operator_name(const RecordFunction& function) { return g_torch.name(&function); }

int64_t operator_sequence(const RecordFunction& function) {
  const size_t offset = g_sequence_offset.load(std::memory_order_relaxed);
  int64_t sequence = -1;
  if (offset) {
    std::memcpy(&sequence, reinterpret_cast<const char*>(&function) + offset, sizeof sequence);
  }
  return sequence;
}

}  // namespace gpuprof
