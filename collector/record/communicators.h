// SPDX-License-Identifier: Apache-2.0
// NCCL's communicators: place and identity of each, and how many calls it has had. Any thread; no
// lock, no allocation.
#pragma once

#include <cstddef>
#include <cstdint>

#include "collector/record/collector.h"

namespace gpuprof {

class WireWriter;

// ---- identity: equal on all ranks of a communicator, 0 where nobody knows

// Of bytes that all its ranks have.
uint64_t communicator_identity(const void* bytes, size_t size);
// Of one that was made from another, by a call that all ranks of that make in the same order;
// `argument` tells apart what one such call makes. Counts the calls of each `way`.
enum class CommunicatorWay : uint8_t { split, shrink };
uint64_t child_identity(const void* parent, CommunicatorWay way, uint64_t argument);
// Of a communicator that is registered, or will be.
void identify_communicator(const void* communicator, uint64_t identity);

// ---- of NCCL's own hash: equal on all ranks, so that a process with several of them cannot tell
// its communicators apart

// The handle under which one that is known by its hash has a row; null: that says nothing.
const void* handle_of_hash(uint64_t hash);
// This process has rank `place.rank` of it. With a second one it is shared from then on.
void register_rank_of(const void* handle, CommunicatorPlace place);
// This process has several ranks of it: of its calls nobody knows whose they are.
void share_communicator(const void* handle);
bool is_shared_communicator(const void* handle);

// ---- names: what the program calls a communicator

struct GroupNames {
  static constexpr size_t kTextBytes = 64;  // with the terminator; what is longer is cut
  char name[kTextBytes];
  char description[kTextBytes];
  // Ranks in the job are first, first + stride, ...; stride 0: not known.
  uint32_t size, first, stride;
};
// Of the process group that issues collectives on it. Once for each communicator.
void name_group(const void* communicator, const GroupNames& names);
// Of the call that made it (ncclConfig_t::commName); a group's names stand before it.
void name_communicator(const void* communicator, const char* name);
// Whether any was named since it was last asked.
bool communicators_lack_groups();
// Of each that has the group's name, its size, and no group yet.
void name_groups_called(const GroupNames& names);

// Whether no communicator known is larger than this one: its collectives are those of all ranks.
bool is_largest_communicator(const void* communicator);

// Field `field` of a Summary: those that lived at `begin_ticks` or since, with an identity or a
// name.
void encode_communicators(WireWriter& out, uint32_t field, uint64_t begin_ticks);

}  // namespace gpuprof
