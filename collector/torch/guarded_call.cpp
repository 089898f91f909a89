// SPDX-License-Identifier: Apache-2.0
#include "collector/torch/guarded_call.h"

#include <cstdint>
#include <cstring>

#include "collector/base/libraries.h"

extern "C" {
[[gnu::visibility("hidden")]] bool gpuprof_guarded_call(void (*function)(void*), void* argument);
[[gnu::visibility("hidden")]] extern const char gpuprof_guarded_call_caught[];
[[gnu::visibility("hidden")]] int gpuprof_guard_personality(int version, int actions, uint64_t kind,
                                                            void* exception, void* context);
[[gnu::visibility("hidden")]] void gpuprof_drop_exception(void* exception);
}

namespace gpuprof {
namespace {

// Of the unwinder and the C++ runtime, by the Itanium C++ ABI.
struct Runtime {
  void (*set_register)(void* context, int number, uintptr_t value);
  void (*set_place)(void* context, uintptr_t address);
  void* (*begin_catch)(void* exception);
  void (*end_catch)();
};
constinit Runtime g_runtime{};

template <typename Function>
bool find(void* library, const char* name, Function& out) {
  void* symbol = program_symbol(name);
  if (!symbol) symbol = real_symbol(library, name);
  std::memcpy(&out, &symbol, sizeof symbol);
  return symbol != nullptr;
}

}  // namespace

bool guard_is_usable(void* library) {
  Runtime& r = g_runtime;
  return find(library, "_Unwind_SetGR", r.set_register) &&
         find(library, "_Unwind_SetIP", r.set_place) &&
         find(library, "__cxa_begin_catch", r.begin_catch) &&
         find(library, "__cxa_end_catch", r.end_catch);
}

bool guarded_call(void (*function)(void*), void* argument) {
  return gpuprof_guarded_call(function, argument);
}

}  // namespace gpuprof

// The unwinder asks it about the frame of gpuprof_guarded_call: first whether an exception ends
// there, then to go there.
int gpuprof_guard_personality(int version, int actions, uint64_t, void* exception, void* context) {
  constexpr int kSearching = 1, kHandling = 4, kForced = 8;       // _Unwind_Action
  constexpr int kFatal = 3, kFound = 6, kGoThere = 7, kGoOn = 8;  // _Unwind_Reason_Code
  if (version != 1) return kFatal;
  if (actions & kForced) return kGoOn;
  if (actions & kSearching) return kFound;
  if (!(actions & kHandling)) return kGoOn;
  const gpuprof::Runtime& r = gpuprof::g_runtime;
  r.set_register(context, __builtin_eh_return_data_regno(0),
                 reinterpret_cast<uintptr_t>(exception));
  r.set_place(context, reinterpret_cast<uintptr_t>(gpuprof_guarded_call_caught));
  return kGoThere;
}

void gpuprof_drop_exception(void* exception) {
  gpuprof::g_runtime.begin_catch(exception);
  gpuprof::g_runtime.end_catch();
}
