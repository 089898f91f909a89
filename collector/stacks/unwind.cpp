// SPDX-License-Identifier: Apache-2.0
#include "collector/stacks/unwind.h"

#include <link.h>

#include <atomic>
#include <iterator>

#include "collector/base/libraries.h"
#include "collector/stacks/frame_rules.h"
#include "collector/stacks/frame_step.h"
#include "collector/stacks/stack_memory.h"

namespace gpuprof {

namespace {

// Rules by address, of all threads: sets of one cache line. An entry is two words that are written
// without a lock; one half of another entry does not fit the key.
struct Entry {
  std::atomic<uint64_t> check, rule;
};
struct Set {
  Entry entries[4];
};
constexpr size_t kSetBits = 13;
alignas(kPage) constinit Set g_sets[1 << kSetBits];
static_assert(sizeof(Set) == 64);
constinit std::atomic<uint64_t> g_generation{1};

uint64_t g_own_begin = 0, g_own_end = 0;  // this library's code

uint64_t mixed(uint64_t word) {
  word *= 0x9e3779b97f4a7c15u;
  return word ^ word >> 29;
}

[[gnu::noinline]] uint64_t find_rule(Set& set, uint64_t key, uint64_t address) {
  const uint64_t word = rule_word_at(address);
  // An empty or outdated place, else one that the address chooses.
  Entry* place = &set.entries[address % 4];
  const uint64_t generation = key >> 48;
  for (Entry& entry : set.entries) {
    const uint64_t other = entry.rule.load(std::memory_order_relaxed);
    const uint64_t check = entry.check.load(std::memory_order_relaxed);
    if ((check ^ mixed(other)) >> 48 != generation) {
      place = &entry;
      break;
    }
  }
  place->rule.store(word, std::memory_order_relaxed);
  place->check.store(key ^ mixed(word), std::memory_order_relaxed);
  return word;
}

// `address` lies within the instruction that the frame is at.
inline uint64_t rule_word(uint64_t address, uint64_t generation) {
  const uint64_t key = (address & 0xffffffffffffu) | generation << 48;
  Set& set = g_sets[(address * 0x9e3779b97f4a7c15u) >> (64 - kSetBits)];
  for (Entry& entry : set.entries) {
    const uint64_t word = entry.rule.load(std::memory_order_relaxed);
    if ((entry.check.load(std::memory_order_relaxed) ^ mixed(word)) == key) return word;
  }
  return find_rule(set, key, address);
}

// Where this library's code lies: only if it is a library (a test links it into its program).
int find_own_code(dl_phdr_info* info, size_t, void*) {
  const auto here = reinterpret_cast<uint64_t>(&find_own_code);
  if (!info->dlpi_name || !info->dlpi_name[0]) return 0;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const auto& segment = info->dlpi_phdr[i];
    const uint64_t begin = info->dlpi_addr + segment.p_vaddr;
    if (segment.p_type != PT_LOAD || here - begin >= segment.p_memsz) continue;
    g_own_begin = begin;
    g_own_end = begin + segment.p_memsz;
    return 1;
  }
  return 0;
}

}  // namespace

void prepare_unwind() {
  // A page each, before a call waits for it.
  for (size_t i = 0; i < std::size(g_sets); i += kPage / sizeof(Set)) {
    g_sets[i].entries[0].check.fetch_or(0, std::memory_order_relaxed);
  }
  prepare_frame_rules();
  list_objects(find_own_code, nullptr);
}

void forget_frame_rules() {
  // 15 bits of it are in the keys: never 0, which is what an empty entry has.
  const uint64_t next = (g_generation.load(std::memory_order_relaxed) + 1) & 0x7fff;
  g_generation.store(next ? next : 1, std::memory_order_relaxed);
}

namespace {

size_t unwind_from(Registers at, uint64_t* frames, size_t size, uint64_t* stack_pointers) {
  StackMemory memory(at.sp);
  const uint64_t generation = g_generation.load(std::memory_order_relaxed);
  bool exact = true;
  size_t count = 0;
  // More frames than are kept may be this library's.
  for (size_t steps = 0; steps < size + 64 && count < size; ++steps) {
    const uint64_t word = rule_word(exact ? at.pc : at.pc - 1, generation);
    if (!step(at, memory, word, exact)) break;
    if (at.pc - g_own_begin < g_own_end - g_own_begin) continue;
    if (stack_pointers) stack_pointers[count] = at.sp;
    frames[count++] = at.pc;
  }
  return count;
}

}  // namespace

[[gnu::noinline]] size_t unwind(uint64_t* frames, size_t size, uint64_t* stack_pointers) {
  return unwind_from(registers_here(), frames, size, stack_pointers);
}

size_t unwind_interrupted(const void* context, uint64_t* frames, size_t size,
                          uint64_t* stack_pointers) {
  const Registers at = registers_of(context);
  if (at.pc - g_own_begin < g_own_end - g_own_begin) {
    return unwind_from(at, frames, size, stack_pointers);
  }
  frames[0] = at.pc + 1;
  stack_pointers[0] = at.sp;
  return 1 + unwind_from(at, frames + 1, size - 1, stack_pointers + 1);
}

}  // namespace gpuprof
