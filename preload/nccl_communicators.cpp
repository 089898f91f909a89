// SPDX-License-Identifier: Apache-2.0
#include "preload/nccl_communicators.h"

#include <cstddef>
#include <cstdint>

#include "collector/base/os.h"
#include "collector/record/communicators.h"
#include "formats/core/text.h"
#include "preload/hook.h"
#include "preload/objects/elf_symbols.h"

namespace gpuprof {

constinit std::atomic<bool> g_nccl_asked_early{false};

namespace {

// One that a group is to make, or an operation that goes on, to where the program wants it.
struct AwaitedCommunicator {
  std::atomic<uint32_t> thread;  // 0: free
  bool in_operation;             // of `parent`; else of a group
  ncclComm_t* made;
  ncclComm_t parent;
  uint64_t identity;
  char name[GroupNames::kTextBytes];
};
constinit AwaitedCommunicator g_awaited[256];
// Short: static TLS is scarce. No group is nested as deep, and there are 256 rows.
[[gnu::tls_model("initial-exec")]] thread_local uint16_t t_groups = 0;
[[gnu::tls_model("initial-exec")]] thread_local uint16_t t_in_operations = 0;

// ncclConfig_t::commName, since NCCL 2.27; empty: the program gave none.
const char* name_in(const ncclConfig_t* config) {
  constexpr unsigned kMagic = 0xcafebeef, kFirst = NCCL_VERSION(2, 27, 0);
  constexpr size_t kEnd = offsetof(ncclConfig_t, commName) + sizeof config->commName;
  if (!config || config->magic != kMagic || config->version < kFirst || config->size < kEnd) {
    return "";
  }
  return config->commName ? config->commName : "";
}

void remember_communicator(ncclComm_t communicator, int rank_count, int rank) {
  register_communicator(communicator,
                        {static_cast<uint16_t>(rank_count), static_cast<uint16_t>(rank)});
}

void ask_nccl_of(ncclComm_t communicator) {
  // NCCL marks its own calls with NVTX, and the caller may be filling a record.
  const BlockedScope blocked;
  using State = ncclResult_t (*)(ncclComm_t, ncclResult_t*);
  const auto state_of =
      reinterpret_cast<State>(symbol_in_loaded("libnccl.so", "ncclCommGetAsyncError"));
  ncclResult_t state = ncclSuccess;
  if (state_of && state_of(communicator, &state) == ncclSuccess && state == ncclInProgress) {
    g_nccl_asked_early.store(true, std::memory_order_relaxed);
    return;
  }
  using Query = ncclResult_t (*)(ncclComm_t, int*);
  const auto count = reinterpret_cast<Query>(symbol_in_loaded("libnccl.so", "ncclCommCount"));
  const auto user_rank =
      reinterpret_cast<Query>(symbol_in_loaded("libnccl.so", "ncclCommUserRank"));
  int ranks = 0, rank = 0;
  ncclResult_t result = count && user_rank ? count(communicator, &ranks) : ncclInternalError;
  if (result == ncclSuccess) result = user_rank(communicator, &rank);
  if (result == ncclInProgress || (result == ncclSuccess && ranks == 0)) return;
  const bool known = result == ncclSuccess;
  remember_communicator(communicator, known ? ranks : 0, known ? rank : 0);
}

void adopt(ncclComm_t communicator, uint64_t identity, const char* name) {
  if (is_new_communicator(communicator)) ask_nccl_of(communicator);
  if (identity) identify_communicator(communicator, identity);
  if (name[0]) name_communicator(communicator, name);
}

// NCCL's own thread may write it.
ncclComm_t handle_at(ncclComm_t* made) { return __atomic_load_n(made, __ATOMIC_ACQUIRE); }

// `act` of each that the calling thread awaits and that is `in_operation`; true: it awaits it no
// longer.
template <typename Act>
void each_awaited(bool in_operation, Act&& act) {
  const uint32_t own = current_tid();
  for (AwaitedCommunicator& row : g_awaited) {
    if (row.thread.load() != own || row.in_operation != in_operation || !act(row)) continue;
    if (row.in_operation) --t_in_operations;
    row.thread = 0;
  }
}

}  // namespace

void begin_communicator(ncclComm_t communicator, int rank_count, int rank) {
  if (!communicator) return;
  forget_communicator(communicator);
  remember_communicator(communicator, rank_count, rank);
}

void meet_communicator(ncclComm_t communicator) {
  forget_awaited_communicators();
  ask_nccl_of(communicator);
}

void made_communicator(ncclResult_t result, ncclComm_t* made, ncclComm_t parent, uint64_t identity,
                       const ncclConfig_t* config) {
  if (!is_usable(result) || !made) return;
  if (const ncclComm_t there = handle_at(made)) return adopt(there, identity, name_in(config));
  const bool in_operation = t_groups == 0;
  if (in_operation && (result != ncclInProgress || !parent)) return;
  const uint32_t own = current_tid();
  for (AwaitedCommunicator& row : g_awaited) {
    uint32_t nobody = 0;
    if (!row.thread.compare_exchange_strong(nobody, own)) continue;
    row.in_operation = in_operation;
    if (in_operation) ++t_in_operations;
    row.made = made, row.parent = parent, row.identity = identity;
    copy_text(name_in(config), row.name, sizeof row.name);
    return;
  }
}

void begin_nccl_group() { ++t_groups; }

void end_nccl_group(ncclResult_t result) {
  if (t_groups > 0 && --t_groups > 0) return;
  each_awaited(false, [result](AwaitedCommunicator& row) {
    const ncclComm_t there = is_usable(result) ? handle_at(row.made) : nullptr;
    if (there) adopt(there, row.identity, row.name);
    row.in_operation = !there && result == ncclInProgress && row.parent;
    if (row.in_operation) ++t_in_operations;
    return !row.in_operation;
  });
}

void end_nccl_operation(ncclComm_t parent, ncclResult_t state) {
  if (t_in_operations == 0 || state == ncclInProgress) return;
  each_awaited(true, [parent, state](AwaitedCommunicator& row) {
    if (row.parent != parent) return false;
    const ncclComm_t there = state == ncclSuccess ? handle_at(row.made) : nullptr;
    if (there) adopt(there, row.identity, row.name);
    return true;
  });
}

void forget_awaited_communicators() {
  if (t_in_operations == 0) return;
  each_awaited(true, [](AwaitedCommunicator&) { return true; });
}

}  // namespace gpuprof
