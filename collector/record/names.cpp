// SPDX-License-Identifier: Apache-2.0
// Which kernel a host function pointer or a cudaKernel_t stands for. That changes rarely (module
// load), and is looked up on the drain thread.
#include "collector/record/names.h"

#include <atomic>
#include <cstring>

#include "collector/base/fork_waits.h"
#include "collector/base/kept_memory.h"
#include "collector/base/libc.h"
#include "collector/base/os.h"
#include "collector/record/collector.h"
#include "collector/record/ring.h"
#include "collector/steps/kernel_steps.h"
#include "formats/core/byte_buffer.h"

namespace gpuprof {
namespace {

struct FunctionRow {
  const void* module;
  const void* key;    // host function, or kernel handle
  const void* alias;  // kernel handles: the host function they stand for
  const char* name;   // null: look at alias
  const char* copy;   // of a name that was looked up: the module's own goes with it
};

Mutex g_function_lock;
constinit KeptMemory g_kept;  // copies of names
constinit Immortal<PodVector<FunctionRow>> g_functions;
constinit Immortal<PodVector<uint32_t>> g_index;  // open addressing: row + 1
size_t g_indexed = 0;                             // rows that g_index covers
bool g_any_left = false;                          // a module that had rows has been closed

size_t slot_of(const void* key, size_t slots) {
  return (reinterpret_cast<uintptr_t>(key) * 0x9e3779b97f4a7c15ull >> 20) & (slots - 1);
}

// Later rows win: an address may be used again after dlclose.
bool index_rows() {
  PodVector<FunctionRow>& functions = *g_functions;
  PodVector<uint32_t>& index = *g_index;
  size_t slots = index.size();
  if (slots < functions.size() * 2) {
    slots = slots ? slots : 1024;
    while (slots < functions.size() * 4) slots *= 2;
    index.clear();
    if (!index.resize(slots)) return false;
    g_indexed = 0;
  }
  for (; g_indexed < functions.size(); ++g_indexed) {
    const void* const key = functions[g_indexed].key;
    size_t slot = slot_of(key, slots);
    while (index[slot] && functions[index[slot] - 1].key != key) slot = (slot + 1) & (slots - 1);
    index[slot] = static_cast<uint32_t>(g_indexed + 1);
  }
  return true;
}

FunctionRow* find(const void* key) {
  if (g_functions->empty() || !index_rows()) return nullptr;
  const size_t slots = g_index->size();
  for (size_t slot = slot_of(key, slots); (*g_index)[slot]; slot = (slot + 1) & (slots - 1)) {
    FunctionRow& row = (*g_functions)[(*g_index)[slot] - 1];
    if (row.key == key) return &row;
  }
  return nullptr;
}

// A thread that no longer exists may have held it: a fork waits, but not for ever.
void unlock_names_in_child() { g_function_lock.unlock(); }

void add(const FunctionRow& row) {
  const ErrnoGuard keep_errno;
  // Not by GPUPROF_FORGET_IN_CHILD, which is for children of a session: names come before one.
  static std::atomic<bool> registered{false};
  if (!registered.exchange(true)) at_fork_in_child(unlock_names_in_child);
  {
    const ForkWaitsScope forks_wait;
    const LockGuard guard(g_function_lock);
    FunctionRow* const left = g_any_left ? find(row.key) : nullptr;
    if (left && !left->name && !left->alias) {  // a library that is opened and closed in turn
      const char* const copy = row.copy ? row.copy : left->copy;
      *left = row;
      left->copy = copy;
    } else {
      // Without memory a name is missing in the trace; nothing else depends on it.
      (void)g_functions->push_back(row);
    }
  }
  forget_unknown_kernels();
}

// Null without memory. The lock is held.
const char* copy_of(const char* name) {
  const size_t bytes = std::strlen(name) + 1;
  void* const copy = g_kept.take(bytes);
  if (copy) std::memcpy(copy, name, bytes);
  return static_cast<const char*>(copy);
}

// A copy that outlives the module; null without memory.
const char* keep_name(FunctionRow& row) {
  if (row.name == row.copy) return row.copy;
  if (!row.copy || std::strcmp(row.copy, row.name) != 0) {
    const char* const copy = copy_of(row.name);
    if (!copy) return nullptr;
    row.copy = copy;  // the one before may be in use
  }
  return row.name = row.copy;
}

}  // namespace

void register_function(const void* module, const void* host_function, const char* name) {
  add({module, host_function, nullptr, name, nullptr});
}

// A program asks for a kernel's handle just before it first launches it: its name goes to the ring
// now.
void register_kernel(const void* kernel, const void* host_function) {
  add({nullptr, kernel, host_function, nullptr, nullptr});
  if (ring()) store_function_in_ring(kernel, lookup_function(kernel));
}

// The name is the caller's to free. Copies are few (one per kernel loaded) and kept.
void register_driver_function(const void* function, const char* name) {
  const ErrnoGuard keep_errno;
  if (lookup_function(function) == name) return;
  const char* copy = nullptr;
  {
    const ForkWaitsScope forks_wait;
    const LockGuard guard(g_function_lock);
    copy = copy_of(name);
  }
  if (!copy) return;
  add({nullptr, function, nullptr, copy, copy});
}

// Handles that were asked for before there was a ring. Names of host functions are stored when they
// are first seen in a launch: frameworks register tens of thousands and use few.
void store_known_kernels() {
  for (size_t i = 0;; ++i) {
    const void* kernel = nullptr;
    {
      const LockGuard guard(g_function_lock);
      if (i >= g_functions->size()) return;
      if ((*g_functions)[i].alias) kernel = (*g_functions)[i].key;
    }
    if (kernel) store_function_in_ring(kernel, lookup_function(kernel));
  }
}

void unregister_functions(const void* module) {
  {
    const LockGuard guard(g_function_lock);
    for (FunctionRow& row : *g_functions) {
      if (row.module == module) row.name = nullptr, row.alias = nullptr;
    }
    g_any_left = true;
  }
  forget_kernel_verdicts();
}

std::string_view lookup_function(const void* function) {
  const ForkWaitsScope forks_wait;
  const LockGuard guard(g_function_lock);
  FunctionRow* row = find(function);
  if (row && !row->name && row->alias) row = find(row->alias);
  const char* const name = row && row->name ? keep_name(*row) : nullptr;
  return name ? std::string_view(name) : std::string_view();
}

}  // namespace gpuprof
