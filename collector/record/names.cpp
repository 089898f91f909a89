// SPDX-License-Identifier: Apache-2.0
// Which kernel a host function pointer or a cudaKernel_t stands for, and what is known of NCCL
// communicators. Both change rarely (module load, communicator creation) and are looked up on the
// drain thread and at collectives.
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

SpinLock g_function_lock;
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

constexpr size_t kCommunicators = 1024;  // live at once; one more goes without place and sequence

struct CommunicatorRow {
  std::atomic<const void*> communicator;
  std::atomic<uint32_t> place;  // rank_count << 16 | rank; 0: not registered yet
  std::atomic<uint32_t> sequence;
};
CommunicatorRow g_communicators[kCommunicators];
std::atomic<uint32_t> g_most_ranks{0};  // of any of them
constexpr uint32_t kPlaceUnknown = 1;   // registered, but nobody knows: no ranks
const void* const kGone = reinterpret_cast<const void*>(1);

CommunicatorRow* find_communicator(const void* communicator, bool make) {
  CommunicatorRow* reusable = nullptr;
  const size_t start = slot_of(communicator, kCommunicators);
  for (size_t i = 0; i < kCommunicators; ++i) {
    CommunicatorRow& row = g_communicators[(start + i) % kCommunicators];
    const void* there = row.communicator.load(std::memory_order_acquire);
    if (there == communicator) return &row;
    if (there == kGone && !reusable) reusable = &row;
    if (there != nullptr) continue;
    if (!make) return nullptr;
    if (!reusable) reusable = &row;
    break;
  }
  if (!make || !reusable) return nullptr;
  const void* expected = reusable->communicator.load(std::memory_order_relaxed);
  if (expected != nullptr && expected != kGone) return nullptr;
  if (!reusable->communicator.compare_exchange_strong(expected, communicator)) {
    return find_communicator(communicator, make);
  }
  reusable->place = 0;
  reusable->sequence = 0;
  return reusable;
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

void register_communicator(const void* communicator, CommunicatorPlace place) {
  if (CommunicatorRow* const row = find_communicator(communicator, true)) {
    row->place = place.rank_count ? uint32_t{place.rank_count} << 16 | place.rank : kPlaceUnknown;
  }
  uint32_t most = g_most_ranks.load();
  while (most < place.rank_count && !g_most_ranks.compare_exchange_weak(most, place.rank_count)) {
  }
}

void forget_communicator(const void* communicator) {
  if (CommunicatorRow* const row = find_communicator(communicator, false)) {
    row->communicator.store(kGone, std::memory_order_release);
  }
  uint32_t most = 0;
  for (const CommunicatorRow& row : g_communicators) {
    const void* const there = row.communicator.load(std::memory_order_relaxed);
    const uint32_t ranks = row.place.load(std::memory_order_relaxed) >> 16;
    if (there != nullptr && there != kGone && ranks > most) most = ranks;
  }
  g_most_ranks = most;
}

bool is_new_communicator(const void* communicator) {
  const CommunicatorRow* const row = find_communicator(communicator, true);
  return row && row->place.load(std::memory_order_relaxed) == 0;
}

CommunicatorPlace note_collective(const void* communicator, uint32_t* sequence) {
  CommunicatorRow* const row = find_communicator(communicator, true);
  *sequence = row ? row->sequence.fetch_add(1, std::memory_order_relaxed) : 0;
  const uint32_t place = row ? row->place.load(std::memory_order_relaxed) : 0;
  if (place == kPlaceUnknown) return {};
  return {static_cast<uint16_t>(place >> 16), static_cast<uint16_t>(place & 0xffff)};
}

bool is_largest_communicator(const void* communicator) {
  const CommunicatorRow* const row = find_communicator(communicator, false);
  const uint32_t own = row ? row->place.load(std::memory_order_relaxed) >> 16 : 0;
  return own >= g_most_ranks.load(std::memory_order_relaxed);
}

void restart_sequences() {
  for (CommunicatorRow& row : g_communicators) row.sequence.store(0, std::memory_order_relaxed);
}

namespace {
// A thread that no longer exists may have held it.
void unlock_names_in_child() { g_function_lock.unlock(); }
GPUPROF_FORGET_IN_CHILD(unlock_names_in_child);
}  // namespace

}  // namespace gpuprof
