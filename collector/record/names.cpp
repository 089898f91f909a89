// SPDX-License-Identifier: Apache-2.0
// Which kernel a host function pointer or a cudaKernel_t stands for. That changes rarely (module
// load), and is looked up on the drain thread.
#include "collector/record/names.h"

#include <cstdlib>
#include <cstring>

#include "collector/base/fork.h"
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
};

Mutex g_function_lock;
constinit Immortal<PodVector<FunctionRow>> g_functions;
constinit Immortal<PodVector<uint32_t>> g_index;  // open addressing: row + 1
size_t g_indexed = 0;                             // rows that g_index covers

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

const FunctionRow* find(const void* key) {
  if (g_functions->empty() || !index_rows()) return nullptr;
  const size_t slots = g_index->size();
  for (size_t slot = slot_of(key, slots); (*g_index)[slot]; slot = (slot + 1) & (slots - 1)) {
    const FunctionRow& row = (*g_functions)[(*g_index)[slot] - 1];
    if (row.key == key) return &row;
  }
  return nullptr;
}

void add(const FunctionRow& row) {
  const ErrnoGuard keep_errno;
  {
    const LockGuard guard(g_function_lock);
    // Without memory a name is missing in the trace; nothing else depends on it.
    (void)g_functions->push_back(row);
  }
  forget_unknown_kernels();
}

}  // namespace

void register_function(const void* module, const void* host_function, const char* name) {
  add({module, host_function, nullptr, name});
}

// A program asks for a kernel's handle just before it first launches it: its name goes to the ring
// now.
void register_kernel(const void* kernel, const void* host_function) {
  add({nullptr, kernel, host_function, nullptr});
  if (ring()) store_function_in_ring(kernel, lookup_function(kernel));
}

// The name is the caller's to free. Copies are few (one per kernel loaded) and kept.
void register_driver_function(const void* function, const char* name) {
  const ErrnoGuard keep_errno;
  if (lookup_function(function) == name) return;
  const size_t bytes = std::strlen(name) + 1;
  char* const copy = static_cast<char*>(std::malloc(bytes));
  if (!copy) return;
  std::memcpy(copy, name, bytes);
  add({nullptr, function, nullptr, copy});
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
  }
  forget_kernel_verdicts();
}

std::string_view lookup_function(const void* function) {
  const LockGuard guard(g_function_lock);
  const FunctionRow* row = find(function);
  if (row && !row->name && row->alias) row = find(row->alias);
  return row && row->name ? std::string_view(row->name) : std::string_view();
}

namespace {
// A thread that no longer exists may have held it.
void unlock_names_in_child() { g_function_lock.unlock(); }
GPUPROF_FORGET_IN_CHILD(unlock_names_in_child);
}  // namespace

}  // namespace gpuprof
