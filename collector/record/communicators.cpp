// SPDX-License-Identifier: Apache-2.0
#include "collector/record/communicators.h"

#include <atomic>
#include <cstring>

#include "collector/base/clock.h"
#include "collector/record/ring.h"
#include "formats/core/text.h"
#include "formats/core/wire.h"

namespace gpuprof {
namespace {

constexpr size_t kCommunicators = 1024;  // live at once; one more goes without place and sequence
constexpr size_t kWays = 2;

struct CommunicatorRow {
  std::atomic<const void*> communicator;
  std::atomic<uint32_t> place;  // rank_count << 16 | rank; 0: not registered yet
  std::atomic<uint32_t> sequence;
  std::atomic<uint32_t> generation;  // of the row: how often it has been used anew
  std::atomic<uint32_t> children[kWays];
  std::atomic<uint64_t> identity;
  std::atomic<const void*> handle;  // also of one that is gone
  std::atomic<uint64_t> made_ticks, gone_ticks;
  std::atomic<bool> shared;
  std::atomic<bool> group_asked, group_taken, group_known, name_known;
  GroupNames group;                   // once group_known
  char name[GroupNames::kTextBytes];  // once name_known
};
constinit CommunicatorRow g_communicators[kCommunicators]{};
std::atomic<uint32_t> g_most_ranks{0};  // of any of them
std::atomic<bool> g_named_anew{false};
constexpr uint32_t kPlaceUnknown = 1;  // registered, but nobody knows: no ranks
const void* const kGone = reinterpret_cast<const void*>(1);

// Calls between two ranks, each direction by itself. What is of a row's earlier generation stays:
// communicators are few.
struct MessageRow {
  std::atomic<uint64_t> key;  // 0: free
  std::atomic<uint32_t> count;
};
constexpr size_t kMessageRows = 1 << 14;
MessageRow g_messages[kMessageRows];

uint64_t mixed(uint64_t value) {
  value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9ull;
  value = (value ^ value >> 27) * 0x94d049bb133111ebull;
  return value ^ value >> 31;
}

// Whether no dump that is still to be written needs what the row says of one that is gone.
bool is_of_before(const CommunicatorRow& row) {
  const Ring* const own = ring();  // null: there is no session yet
  return own && row.gone_ticks.load() < own->header->window_begin_ticks.load();
}

// A row that is free, or was used before the window, is taken anew; else, for want of room, that of
// any that is gone. The next one often has the same address.
CommunicatorRow* find_communicator(const void* communicator, bool make) {
  CommunicatorRow *reusable = nullptr, *gone = nullptr;
  const size_t start = mixed(reinterpret_cast<uintptr_t>(communicator)) % kCommunicators;
  for (size_t i = 0; i < kCommunicators; ++i) {
    CommunicatorRow& row = g_communicators[(start + i) % kCommunicators];
    const void* there = row.communicator.load(std::memory_order_acquire);
    if (there == communicator) return &row;
    if (there == kGone && make) {
      if (!gone) gone = &row;
      if (!reusable && is_of_before(row)) reusable = &row;
    }
    if (there != nullptr) continue;
    if (!make) return nullptr;
    if (!reusable) reusable = &row;
    break;
  }
  if (!reusable) reusable = gone;
  if (!make || !reusable) return nullptr;
  const void* expected = reusable->communicator.load(std::memory_order_relaxed);
  if (expected != nullptr && expected != kGone) return nullptr;
  if (!reusable->communicator.compare_exchange_strong(expected, communicator)) {
    return find_communicator(communicator, make);
  }
  reusable->place = 0;
  reusable->sequence = 0;
  reusable->shared = false;
  ++reusable->generation;
  reusable->group_asked = reusable->group_taken = false;
  reusable->group_known = reusable->name_known = false;
  for (auto& children : reusable->children) children = 0;
  reusable->identity = 0;
  reusable->gone_ticks = 0;
  reusable->made_ticks = now_ticks();
  reusable->handle = communicator;
  return reusable;
}

// Null: there is no room.
std::atomic<uint32_t>* messages_of(const CommunicatorRow& row, MessagePath path) {
  const auto index = static_cast<uint64_t>(&row - g_communicators);
  const uint64_t key = index << 48 | uint64_t{row.generation & 0x3fff} << 34 |
                       uint64_t{static_cast<uint32_t>(path.peer)} << 2 | (path.sends ? 2u : 0u) |
                       1u;
  const size_t start = mixed(key) % kMessageRows;
  for (size_t i = 0; i < 64; ++i) {
    MessageRow& message = g_messages[(start + i) % kMessageRows];
    uint64_t there = message.key.load(std::memory_order_acquire);
    if (there == 0 && message.key.compare_exchange_strong(there, key)) there = key;
    if (there == key) return &message.count;
  }
  return nullptr;
}

}  // namespace

uint64_t communicator_identity(const void* bytes, size_t size) {
  uint64_t hash = 0xcbf29ce484222325ull;  // FNV-1a
  for (size_t i = 0; i < size; ++i) {
    hash = (hash ^ static_cast<const uint8_t*>(bytes)[i]) * 0x100000001b3ull;
  }
  hash = mixed(hash);
  return hash ? hash : 1;
}

uint64_t child_identity(const void* parent, CommunicatorWay way, uint64_t argument) {
  CommunicatorRow* const row = find_communicator(parent, false);
  if (!row) return 0;
  const auto kind = static_cast<uint64_t>(way);
  const uint64_t number = row->children[kind].fetch_add(1);
  const uint64_t parts[] = {row->identity.load(), kind, number, argument};
  return parts[0] ? communicator_identity(parts, sizeof parts) : 0;
}

void identify_communicator(const void* communicator, uint64_t identity) {
  if (CommunicatorRow* const row = find_communicator(communicator, true)) row->identity = identity;
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
    row->gone_ticks = now_ticks();
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

CommunicatorPlace note_collective(const void* communicator, uint32_t* sequence, MessagePath path,
                                  bool usable) {
  CommunicatorRow* const row = find_communicator(communicator, usable);
  *sequence = 0;
  if (!row) return {};
  std::atomic<uint32_t>* const count = path.peer < 0 ? &row->sequence : messages_of(*row, path);
  if (count) *sequence = count->fetch_add(1, std::memory_order_relaxed);
  const bool asks = !row->group_asked.load(std::memory_order_relaxed) &&
                    !row->group_asked.exchange(true, std::memory_order_relaxed);
  const uint32_t place = row->place.load(std::memory_order_relaxed);
  if (place == kPlaceUnknown) return {0, 0, asks};
  return {static_cast<uint16_t>(place >> 16), static_cast<uint16_t>(place & 0xffff), asks};
}

const void* handle_of_hash(uint64_t hash) {
  const void* const handle = reinterpret_cast<const void*>(hash);
  return handle == kGone ? nullptr : handle;
}

void register_rank_of(const void* handle, CommunicatorPlace place) {
  const CommunicatorRow* const row = find_communicator(handle, true);
  const uint32_t there = row ? row->place.load() : 0;
  const bool another = there > kPlaceUnknown && (there & 0xffff) != place.rank;
  if (another) return share_communicator(handle);
  register_communicator(handle, place);
}

void share_communicator(const void* handle) {
  if (CommunicatorRow* const row = find_communicator(handle, true)) row->shared = true;
}

bool is_shared_communicator(const void* handle) {
  const CommunicatorRow* const row = find_communicator(handle, false);
  return row && row->shared.load(std::memory_order_relaxed);
}

void name_group(const void* communicator, const GroupNames& names) {
  CommunicatorRow* const row = find_communicator(communicator, false);
  if (!row || row->group_taken.exchange(true)) return;
  row->group = names;
  row->group_known.store(true, std::memory_order_release);
}

void name_communicator(const void* communicator, const char* name) {
  CommunicatorRow* const row = find_communicator(communicator, true);
  if (!row || row->name_known.load()) return;
  copy_text(name, row->name, sizeof row->name);
  row->name_known.store(true, std::memory_order_release);
  g_named_anew.store(true, std::memory_order_release);
}

bool communicators_lack_groups() {
  return g_named_anew.load(std::memory_order_relaxed) &&
         g_named_anew.exchange(false, std::memory_order_acq_rel);
}

void name_groups_called(const GroupNames& names) {
  for (CommunicatorRow& row : g_communicators) {
    const void* const communicator = row.communicator.load(std::memory_order_acquire);
    if (!communicator || communicator == kGone || !row.name_known.load(std::memory_order_acquire))
      continue;
    if (std::strcmp(row.name, names.name) != 0) continue;
    const uint32_t place = row.place.load();
    if (place == 0) g_named_anew.store(true);  // not registered yet: once more
    if (place >> 16 == names.size) name_group(communicator, names);
  }
}

bool is_largest_communicator(const void* communicator) {
  const CommunicatorRow* const row = find_communicator(communicator, false);
  const uint32_t own = row ? row->place.load(std::memory_order_relaxed) >> 16 : 0;
  return own >= g_most_ranks.load(std::memory_order_relaxed);
}

void encode_communicators(WireWriter& out, uint32_t field, uint64_t begin_ticks) {
  for (const CommunicatorRow& row : g_communicators) {
    const uint64_t identity = row.identity.load(), gone = row.gone_ticks.load();
    const bool grouped = row.group_known.load(std::memory_order_acquire);
    const bool named = row.name_known.load(std::memory_order_acquire);
    if (!(identity || grouped || named) || (gone && gone < begin_ticks)) continue;
    const uint32_t place = row.place.load();
    const size_t mark = out.open(field);
    out.uint(1, reinterpret_cast<uint64_t>(row.handle.load()));
    if (identity) out.fixed64(2, identity);
    if (place > kPlaceUnknown) {
      out.uint(3, place >> 16);
      out.uint(4, place & 0xffff);
    }
    out.uint(5, row.made_ticks.load());
    out.uint(6, gone);
    if (grouped) {
      out.text(7, row.group.name);
      out.text(8, row.group.description);
      // A communicator between two ranks of a larger group is none of all its ranks.
      if (row.group.stride && row.group.size == place >> 16) {
        out.uint(9, uint64_t{row.group.first} + 1);
        out.uint(10, row.group.stride);
      }
    } else if (named) {
      out.text(7, row.name);
    }
    out.close(mark);
  }
}

}  // namespace gpuprof
