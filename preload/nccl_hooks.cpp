// SPDX-License-Identifier: Apache-2.0
// NCCL: what a collective keeps of its arguments, and which communicator a handle stands for.
#include <cuda_runtime_api.h>
#include <nccl.h>

#include "preload/elf_symbols.h"
#include "preload/hook.h"

namespace gpuprof {

// capture() and observe() overloads are found through their tag's namespace when a hook is
// instantiated, which is why they are static functions of it and not in an unnamed one.

constexpr uint8_t kNone = 0xff;
constexpr int kNoPeer = -1;

#ifndef GPUPROF_NOP
static void remember(ncclComm_t communicator, int rank_count, int rank) {
  if (communicator) {
    register_communicator(communicator,
                          {static_cast<uint16_t>(rank_count), static_cast<uint16_t>(rank)});
  }
}

// NCCL knows size and rank of each, however it was made: split or shrunk, within a group, before
// this library was loaded. Asked once; again while NCCL is still making it.
static void learn(ncclComm_t communicator) {
  if (!communicator || !is_new_communicator(communicator)) return;
  // NCCL marks its own calls with NVTX, and the caller may be filling a record.
  const BlockedScope blocked;
  using State = ncclResult_t (*)(ncclComm_t, ncclResult_t*);
  const auto state_of =
      reinterpret_cast<State>(symbol_in_loaded("libnccl.so", "ncclCommGetAsyncError"));
  ncclResult_t state = ncclSuccess;
  if (state_of && state_of(communicator, &state) == ncclSuccess && state == ncclInProgress) return;
  using Query = ncclResult_t (*)(ncclComm_t, int*);
  const auto count = reinterpret_cast<Query>(symbol_in_loaded("libnccl.so", "ncclCommCount"));
  const auto user_rank =
      reinterpret_cast<Query>(symbol_in_loaded("libnccl.so", "ncclCommUserRank"));
  int ranks = 0, rank = 0;
  ncclResult_t result = count && user_rank ? count(communicator, &ranks) : ncclInternalError;
  if (result == ncclSuccess) result = user_rank(communicator, &rank);
  if (result == ncclInProgress || (result == ncclSuccess && ranks == 0)) return;
  const bool known = result == ncclSuccess;
  remember(communicator, known ? ranks : 0, known ? rank : 0);
}

#endif

static void fill(Record& r, ncclResult_t result, ncclComm_t communicator, size_t count, int type,
                 int operation, int peer, cudaStream_t stream) {
  auto& out = r.collective;
  out.communicator = reinterpret_cast<uint64_t>(communicator);
  out.count = count;
  out.stream = reinterpret_cast<uint64_t>(stream);
  out.peer = peer;
  out.data_type = static_cast<uint8_t>(type);
  out.operation = static_cast<uint8_t>(operation);
  out.result = static_cast<int16_t>(result);
#ifndef GPUPROF_NOP
  learn(communicator);
  const CommunicatorPlace place = note_collective(communicator, &out.sequence);
  out.rank_count = place.rank_count;
  out.rank = place.rank;
#endif
}

using Collective = KindTag<Kind::collective>;
// AllReduce, ReduceScatter
[[maybe_unused]] static void capture(Record& r, Collective, ncclResult_t result, const void*, void*,
                                     size_t count, ncclDataType_t type, ncclRedOp_t operation,
                                     ncclComm_t communicator, cudaStream_t stream) {
  fill(r, result, communicator, count, type, operation, kNoPeer, stream);
}
// Reduce
[[maybe_unused]] static void capture(Record& r, Collective, ncclResult_t result, const void*, void*,
                                     size_t count, ncclDataType_t type, ncclRedOp_t operation,
                                     int root, ncclComm_t communicator, cudaStream_t stream) {
  fill(r, result, communicator, count, type, operation, root, stream);
}
// Broadcast, Gather, Scatter
[[maybe_unused]] static void capture(Record& r, Collective, ncclResult_t result, const void*, void*,
                                     size_t count, ncclDataType_t type, int root,
                                     ncclComm_t communicator, cudaStream_t stream) {
  fill(r, result, communicator, count, type, kNone, root, stream);
}
// AllGather, AlltoAll
[[maybe_unused]] static void capture(Record& r, Collective, ncclResult_t result, const void*, void*,
                                     size_t count, ncclDataType_t type, ncclComm_t communicator,
                                     cudaStream_t stream) {
  fill(r, result, communicator, count, type, kNone, kNoPeer, stream);
}
// Bcast, Send, Recv: one buffer, root or peer
[[maybe_unused]] static void capture(Record& r, Collective, ncclResult_t result, const void*,
                                     size_t count, ncclDataType_t type, int peer,
                                     ncclComm_t communicator, cudaStream_t stream) {
  fill(r, result, communicator, count, type, kNone, peer, stream);
}

#ifndef GPUPROF_NOP
// A step's collectives differ in their buffers and sizes, and come again with the next step.
static void note(StepSubject& subject, ncclComm_t communicator) {
  subject.object = communicator;
  learn(communicator);
}
static void note(StepSubject& subject, size_t count) { subject.detail ^= count; }
template <typename Other>
static void note(StepSubject&, Other) {}
template <typename... Rest>
[[maybe_unused]] static StepSubject step_subject(Collective, const void* buffer, Rest... rest) {
  StepSubject subject;
  subject.detail = reinterpret_cast<uint64_t>(buffer) << 8;
  (note(subject, rest), ...);
  return subject;
}
#endif

[[maybe_unused]] static void capture(Record& r, KindTag<Kind::call>, ncclResult_t result) {
  r.call = {0, 0, static_cast<int32_t>(result)};
}
[[maybe_unused]] static void capture(Record& r, KindTag<Kind::call>, ncclResult_t result,
                                     ncclComm_t communicator) {
  r.call = {reinterpret_cast<uint64_t>(communicator), 0, static_cast<int32_t>(result)};
}
template <typename... Rest>
[[maybe_unused]] static void capture(Record& r, KindTag<Kind::call>, ncclResult_t result,
                                     ncclComm_t* communicator, Rest...) {
  const bool made = result == ncclSuccess && communicator;
  r.call = {made ? reinterpret_cast<uint64_t>(*communicator) : 0, 0, static_cast<int32_t>(result)};
}
template <typename... Rest>
[[maybe_unused]] static void capture(Record& r, KindTag<Kind::call>, ncclResult_t result,
                                     ncclComm_t communicator, Rest...) {
  r.call = {reinterpret_cast<uint64_t>(communicator), 0, static_cast<int32_t>(result)};
}

// Of no communicator.
template <typename First, typename... Rest>
[[maybe_unused]] static void capture(Record& r, KindTag<Kind::call>, ncclResult_t result, First,
                                     Rest...) {
  r.call = {0, 0, static_cast<int32_t>(result)};
}

#ifndef GPUPROF_NOP
// ---- communicators: remembered whether recording or not ----

static bool is_usable(ncclResult_t result) {
  return result == ncclSuccess || result == ncclInProgress;
}

[[maybe_unused]] static void observe(ApiTag<Api::ncclCommInitRank>, ncclResult_t result,
                                     ncclComm_t* made, int rank_count, ncclUniqueId, int rank) {
  if (result == ncclSuccess && made) remember(*made, rank_count, rank);
}
[[maybe_unused]] static void observe(ApiTag<Api::ncclCommInitRankConfig>, ncclResult_t result,
                                     ncclComm_t* made, int rank_count, ncclUniqueId, int rank,
                                     ncclConfig_t*) {
  if (is_usable(result) && made) remember(*made, rank_count, rank);
}
[[maybe_unused]] static void observe(ApiTag<Api::ncclCommInitRankScalable>, ncclResult_t result,
                                     ncclComm_t* made, int rank_count, int rank, int, ncclUniqueId*,
                                     ncclConfig_t*) {
  if (is_usable(result) && made) remember(*made, rank_count, rank);
}
[[maybe_unused]] static void observe(ApiTag<Api::ncclCommInitAll>, ncclResult_t result,
                                     ncclComm_t* made, int devices, const int*) {
  for (int i = 0; result == ncclSuccess && made && i < devices; ++i) remember(made[i], devices, i);
}
[[maybe_unused]] static void observe(ApiTag<Api::ncclCommSplit>, ncclResult_t result, ncclComm_t,
                                     int, int, ncclComm_t* made, ncclConfig_t*) {
  if (is_usable(result) && made) learn(*made);
}
[[maybe_unused]] static void observe(ApiTag<Api::ncclCommShrink>, ncclResult_t result, ncclComm_t,
                                     int*, int, ncclComm_t* made, ncclConfig_t*, int) {
  if (is_usable(result) && made) learn(*made);
}
[[maybe_unused]] static void observe(ApiTag<Api::ncclCommDestroy>, ncclResult_t,
                                     ncclComm_t communicator) {
  forget_communicator(communicator);
}
[[maybe_unused]] static void observe(ApiTag<Api::ncclCommAbort>, ncclResult_t,
                                     ncclComm_t communicator) {
  forget_communicator(communicator);
}
#endif

// ---- hooks -------------------------------------------------------------------------------------

// Expands to X(...) for rows of this file's library, to nothing for the others.
#define GPUPROF_ROWS_cudart(X, symbol)
#define GPUPROF_ROWS_driver(X, symbol)
#define GPUPROF_ROWS_nccl(X, symbol) X(symbol)
#define GPUPROF_API_AS(library, symbol, model, role) GPUPROF_API(library, symbol, role)
#define GPUPROF_CALLBACK(library, symbol, role)
#define GPUPROF_HAND(library, symbol)

[[gnu::used]] static void export_hooks() {
#define GPUPROF_EXPORT_ROW(symbol) GPUPROF_EXPORT_HOOK(symbol, decltype(::symbol));
#define GPUPROF_API(library, symbol, role) GPUPROF_ROWS_##library(GPUPROF_EXPORT_ROW, symbol)
#include "preload/apis.def"
#undef GPUPROF_API
#undef GPUPROF_EXPORT_ROW
}

void fill_nccl_slots() {
#define GPUPROF_FILL_SLOT(symbol)                                                      \
  {                                                                                    \
    using RowHook = Hook<Api::symbol, decltype(::symbol)>;                             \
    hook_slot(Api::symbol) = {reinterpret_cast<void*>(&RowHook::enter), &RowHook::get, \
                              &RowHook::set};                                          \
  }
#define GPUPROF_API(library, symbol, role) GPUPROF_ROWS_##library(GPUPROF_FILL_SLOT, symbol)
#include "preload/apis.def"
#undef GPUPROF_API
#undef GPUPROF_FILL_SLOT
}

#undef GPUPROF_ROWS_cudart
#undef GPUPROF_ROWS_driver
#undef GPUPROF_ROWS_nccl
#undef GPUPROF_API_AS
#undef GPUPROF_CALLBACK
#undef GPUPROF_HAND

}  // namespace gpuprof
