// SPDX-License-Identifier: Apache-2.0
// NCCL: what a collective keeps of its arguments, and which calls tell of communicators.
#include <cuda_runtime_api.h>
#include <nccl.h>

#include <cstddef>
#include <tuple>
#include <type_traits>
#include <utility>

#include "collector/base/clock.h"
#include "collector/record/communicators.h"
#include "collector/sources/graphs.h"
#include "preload/hook.h"
#include "preload/nccl_call.h"
#include "preload/nccl_communicators.h"
#include "preload/nccl_later.h"

namespace gpuprof {

// capture() and observe() overloads are found through their tag's namespace when a hook is
// instantiated, which is why they are static functions of it and not in an unnamed one.

constexpr uint8_t kNone = 0xff;
constexpr int kNoPeer = -1;

#ifndef GPUPROF_NOP
// Calls count whether recorded or not: all ranks number them alike. A record takes the number
// first.
[[gnu::tls_model("initial-exec")]] static thread_local bool t_counted = false;

#endif

static void fill(Record& r, ncclResult_t result, ncclComm_t communicator, size_t count, int type,
                 int operation, int peer, cudaStream_t stream) {
  auto& out = r.collective;
  out.communicator = reinterpret_cast<uint64_t>(communicator);
  out.count = count;
  out.stream = reinterpret_cast<uint64_t>(stream);
  out.peer = peer;
  out.data_type = static_cast<uint8_t>(type);
  // Handles of ncclRedOpCreatePreMulSum are any number above NCCL's own.
  out.operation = operation < ncclNumOps ? static_cast<uint8_t>(operation) : uint8_t{0xff};
  out.result = static_cast<int16_t>(result);
#ifndef GPUPROF_NOP
  if (is_usable(result)) learn_communicator(communicator);
  const CommunicatorPlace place = note_call(
      communicator, &out.sequence, path_of(static_cast<Api>(r.api), peer), is_usable(result));
  t_counted = true;
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

// NCCL's per-call configuration, which is the last argument, changes no argument before it.
template <typename... Arguments>
[[maybe_unused]] static void capture(Record& r, Collective kind, ncclResult_t result,
                                     const void* send, void* receive, size_t count,
                                     ncclDataType_t type, Arguments... rest) {
  const auto tuple = std::make_tuple(rest...);
  [&]<size_t... index>(std::index_sequence<index...>) {
    capture(r, kind, result, send, receive, count, type, std::get<index>(tuple)...);
  }
  (std::make_index_sequence<sizeof...(rest) - 1>());
}

#ifndef GPUPROF_NOP
// A step's collectives differ in their buffers and sizes, and come again with the next step.
static void note(StepSubject& subject, ncclComm_t communicator) { subject.object = communicator; }
static void note(StepSubject& subject, size_t count) { subject.detail ^= count; }
static void note(StepSubject& subject, cudaStream_t stream) {
  subject.captured = any_capture() && is_captured(reinterpret_cast<uint64_t>(stream), false);
}
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

[[maybe_unused]] static void observe(ApiTag<Api::ncclGroupStart>, ncclResult_t) {
  begin_nccl_group();
}
[[maybe_unused]] static void observe(ApiTag<Api::ncclGroupEnd>, ncclResult_t result) {
  end_nccl_group(result);
}
[[maybe_unused]] static void observe(ApiTag<Api::ncclGroupSimulateEnd>, ncclResult_t result,
                                     ncclSimInfo_t*) {
  end_nccl_group(result);
}

[[maybe_unused]] static void observe(ApiTag<Api::ncclCommInitRank>, ncclResult_t result,
                                     ncclComm_t* made, int rank_count, ncclUniqueId id, int rank) {
  if (is_usable(result) && made) begin_communicator(*made, rank_count, rank);
  made_communicator(result, made, nullptr, communicator_identity(&id, sizeof id));
}
[[maybe_unused]] static void observe(ApiTag<Api::ncclCommInitRankConfig>, ncclResult_t result,
                                     ncclComm_t* made, int rank_count, ncclUniqueId id, int rank,
                                     ncclConfig_t* config) {
  if (is_usable(result) && made) begin_communicator(*made, rank_count, rank);
  made_communicator(result, made, nullptr, communicator_identity(&id, sizeof id), config);
}
[[maybe_unused]] static void observe(ApiTag<Api::ncclCommInitRankScalable>, ncclResult_t result,
                                     ncclComm_t* made, int rank_count, int rank, int id_count,
                                     ncclUniqueId* ids, ncclConfig_t* config) {
  if (is_usable(result) && made) begin_communicator(*made, rank_count, rank);
  if (!ids || id_count < 1) return;
  made_communicator(result, made, nullptr,
                    communicator_identity(ids, static_cast<size_t>(id_count) * sizeof *ids),
                    config);
}
[[maybe_unused]] static void observe(ApiTag<Api::ncclCommInitAll>, ncclResult_t result,
                                     ncclComm_t* made, int devices, const int*) {
  if (result != ncclSuccess || !made) return;
  // All ranks are in this process: the first one's address and the time are theirs alone.
  const uint64_t parts[] = {reinterpret_cast<uint64_t>(made[0]), now_ticks()};
  for (int i = 0; i < devices; ++i) {
    begin_communicator(made[i], devices, i);
    identify_communicator(made[i], communicator_identity(parts, sizeof parts));
  }
}
[[maybe_unused]] static void observe(ApiTag<Api::ncclCommSplit>, ncclResult_t result,
                                     ncclComm_t parent, int color, int, ncclComm_t* made,
                                     ncclConfig_t* config) {
  const uint64_t identity = child_identity(parent, CommunicatorWay::split,
                                           static_cast<uint64_t>(static_cast<uint32_t>(color)));
  if (color >= 0) made_communicator(result, made, parent, identity, config);
}
// Those that are excluded do not call it, so the others count it alike.
[[maybe_unused]] static void observe(ApiTag<Api::ncclCommShrink>, ncclResult_t result,
                                     ncclComm_t parent, int* excluded, int count, ncclComm_t* made,
                                     ncclConfig_t* config, int) {
  const size_t bytes = excluded && count > 0 ? static_cast<size_t>(count) * sizeof *excluded : 0;
  made_communicator(
      result, made, parent,
      child_identity(parent, CommunicatorWay::shrink, communicator_identity(excluded, bytes)),
      config);
}

// Nothing that all its ranks pass tells it from others: those that were in the parent have that,
// those that are new have the id. So it has a place and no identity.
[[maybe_unused]] static void observe(ApiTag<Api::ncclCommGrow>, ncclResult_t result,
                                     ncclComm_t parent, int, const ncclUniqueId*, int,
                                     ncclComm_t* made, ncclConfig_t* config) {
  made_communicator(result, made, parent, 0, config);
}

// ---- calls on communicators: counted whether recorded or not

static void count_call(ncclResult_t result, ncclComm_t communicator, MessagePath path) {
  uint32_t sequence;
  if (!t_counted) note_call(communicator, &sequence, path, is_usable(result));
  t_counted = false;
}
static ncclComm_t communicator_in(ncclComm_t communicator, cudaStream_t) { return communicator; }
static ncclComm_t communicator_in(ncclComm_t communicator, cudaStream_t, const CollectiveConfig*) {
  return communicator;
}
template <typename First, typename... Rest>
static ncclComm_t communicator_in(First, Rest... rest) {
  return communicator_in(rest...);
}
// After each call on one that is not blocking an operation may go on, before it none does: NCCL
// refuses a call while one does. A step source asks for the size; after the call the communicator
// may be gone, aborted by another thread.
template <Api A, typename... Arguments>
[[maybe_unused]] static void before_call(ApiTag<A>, Collective, uint8_t flags, Arguments... given) {
  if (nccl_was_asked_early() || flags & kHookStep) learn_communicator(communicator_in(given...));
}
// Its address may be another's as soon as it is gone.
static void before_end_of(ncclComm_t communicator) {
  forget_awaited_communicators();
  forget_communicator(communicator);
}
[[maybe_unused]] static void before_call(ApiTag<Api::ncclCommDestroy>, KindTag<Kind::call>, uint8_t,
                                         ncclComm_t communicator) {
  before_end_of(communicator);
}
[[maybe_unused]] static void before_call(ApiTag<Api::ncclCommAbort>, KindTag<Kind::call>, uint8_t,
                                         ncclComm_t communicator) {
  before_end_of(communicator);
}
// Hooks that do this are not to be left out while nothing is recorded.
[[maybe_unused]] static void observe(ApiTag<Api::ncclCommDestroy>, ncclResult_t, ncclComm_t) {}
[[maybe_unused]] static void observe(ApiTag<Api::ncclCommAbort>, ncclResult_t, ncclComm_t) {}
#define GPUPROF_COUNTED(symbol)                                                  \
  template <typename... Arguments>                                               \
  [[maybe_unused]] static void observe(ApiTag<Api::symbol>, ncclResult_t result, \
                                       Arguments... given) {                     \
    count_call(result, communicator_in(given...), {});                           \
  }
GPUPROF_COUNTED(ncclAllReduce)
GPUPROF_COUNTED(ncclBroadcast)
GPUPROF_COUNTED(ncclBcast)
GPUPROF_COUNTED(ncclReduce)
GPUPROF_COUNTED(ncclAllGather)
GPUPROF_COUNTED(ncclReduceScatter)
GPUPROF_COUNTED(ncclAlltoAll)
GPUPROF_COUNTED(ncclGather)
GPUPROF_COUNTED(ncclScatter)
GPUPROF_COUNTED(ncclAllReduceConfig)
GPUPROF_COUNTED(ncclBroadcastConfig)
GPUPROF_COUNTED(ncclReduceConfig)
GPUPROF_COUNTED(ncclAllGatherConfig)
GPUPROF_COUNTED(ncclReduceScatterConfig)
GPUPROF_COUNTED(ncclAlltoAllConfig)
GPUPROF_COUNTED(ncclGatherConfig)
GPUPROF_COUNTED(ncclScatterConfig)
#undef GPUPROF_COUNTED
[[maybe_unused]] static void observe(ApiTag<Api::ncclSend>, ncclResult_t result, const void*,
                                     size_t, ncclDataType_t, int peer, ncclComm_t communicator,
                                     cudaStream_t) {
  count_call(result, communicator, path_of(Api::ncclSend, peer));
}
[[maybe_unused]] static void observe(ApiTag<Api::ncclRecv>, ncclResult_t result, void*, size_t,
                                     ncclDataType_t, int peer, ncclComm_t communicator,
                                     cudaStream_t) {
  count_call(result, communicator, path_of(Api::ncclRecv, peer));
}
#endif

#ifndef GPUPROF_NOP
// What has to be observed: a call that makes a communicator, and one that counts on it.
template <typename Signature>
constexpr bool kMakesCommunicator = false;
template <typename R, typename... P>
constexpr bool kMakesCommunicator<R(P...)> = (std::is_same_v<P, ncclComm_t*> || ...);

template <Api A, typename Signature>
constexpr bool kIsObserved = false;
template <Api A, typename R, typename... P>
constexpr bool kIsObserved<A, R(P...)> = requires(R result, P... args) {
  observe(ApiTag<A>{}, result, args...);
};

template <Api A, typename Signature>
constexpr bool kIsComplete =
    kIsObserved<A, Signature> || !(kMakesCommunicator<Signature> ||
                                   kApiRows[static_cast<size_t>(A)].role == ApiRole::collective);
#endif

}  // namespace gpuprof

// A program asks it again and again while an operation goes on: no record.
extern "C" [[gnu::visibility("default")]] ncclResult_t ncclCommGetAsyncError(ncclComm_t comm,
                                                                             ncclResult_t* state) {
  using Real = gpuprof::Hook<gpuprof::Api::ncclCommGetAsyncError, decltype(ncclCommGetAsyncError)>;
  const ncclResult_t result = Real::call_real(comm, state);
#ifndef GPUPROF_NOP
  if (result == ncclSuccess && state) gpuprof::end_nccl_operation(comm, *state);
#endif
  return result;
}

namespace gpuprof {

// ---- hooks -------------------------------------------------------------------------------------

// Expands to X(...) for rows of this file's library, to nothing for the others.
#define GPUPROF_ROWS_cudart(X, ...)
#define GPUPROF_ROWS_cupti(X, ...)
#define GPUPROF_ROWS_driver(X, ...)
#define GPUPROF_ROWS_nccl(X, ...) X(__VA_ARGS__)
#define GPUPROF_CALLBACK(library, symbol, role)
#define GPUPROF_HAND(library, symbol)

[[gnu::used]] static void export_hooks() {
#define GPUPROF_EXPORT_ROW(symbol, model) GPUPROF_EXPORT_HOOK(symbol, decltype(model));
#define GPUPROF_API(library, symbol, role) \
  GPUPROF_ROWS_##library(GPUPROF_EXPORT_ROW, symbol, ::symbol)
#define GPUPROF_API_AS(library, symbol, model, role) \
  GPUPROF_ROWS_##library(GPUPROF_EXPORT_ROW, symbol, model)
#include "preload/apis.def"
#undef GPUPROF_API
#undef GPUPROF_API_AS
#undef GPUPROF_EXPORT_ROW
}

void fill_nccl_slots() {
#define GPUPROF_FILL_SLOT(symbol, model)                                            \
  {                                                                                 \
    using RowHook = Hook<Api::symbol, decltype(model)>;                             \
    fill_slot(Api::symbol, reinterpret_cast<void*>(&RowHook::enter), &RowHook::get, \
              &RowHook::set);                                                       \
  }
#define GPUPROF_API(library, symbol, role) \
  GPUPROF_ROWS_##library(GPUPROF_FILL_SLOT, symbol, ::symbol)
#define GPUPROF_API_AS(library, symbol, model, role) \
  GPUPROF_ROWS_##library(GPUPROF_FILL_SLOT, symbol, model)
#undef GPUPROF_HAND
#define GPUPROF_HAND(library, symbol) GPUPROF_ROWS_##library(GPUPROF_FILL_HAND, symbol)
#include "preload/apis.def"
#undef GPUPROF_API
#undef GPUPROF_API_AS
#undef GPUPROF_HAND
#undef GPUPROF_FILL_SLOT
#define GPUPROF_HAND(library, symbol)
}

#ifndef GPUPROF_NOP
#define GPUPROF_CHECK_ROW(symbol, model)                   \
  static_assert(kIsComplete<Api::symbol, decltype(model)>, \
                #symbol " makes a communicator or counts on one: it needs an observe()");
#define GPUPROF_API(library, symbol, role) \
  GPUPROF_ROWS_##library(GPUPROF_CHECK_ROW, symbol, ::symbol)
#define GPUPROF_API_AS(library, symbol, model, role) \
  GPUPROF_ROWS_##library(GPUPROF_CHECK_ROW, symbol, model)
#include "preload/apis.def"
#undef GPUPROF_API
#undef GPUPROF_API_AS
#undef GPUPROF_CHECK_ROW
#endif

#undef GPUPROF_ROWS_cudart
#undef GPUPROF_ROWS_cupti
#undef GPUPROF_ROWS_driver
#undef GPUPROF_ROWS_nccl
#undef GPUPROF_API_AS
#undef GPUPROF_CALLBACK
#undef GPUPROF_HAND

}  // namespace gpuprof
