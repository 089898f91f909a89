// SPDX-License-Identifier: Apache-2.0
#include "preload/nccl_ranges.h"

#include <nccl.h>

#include <cstring>

#include "collector/base/clock.h"
#include "collector/record/collector.h"
#include "collector/record/communicators.h"
#include "collector/record/recorder.h"
#include "preload/nccl_call.h"

namespace gpuprof {
namespace {

constexpr size_t kNccl = static_cast<size_t>(Library::nccl);
// What NVTX's own inline functions, compiled without optimization, may take of the stack between a
// function of NCCL's and ours.
constexpr size_t kNvtxFrames = 1024;

// Api::count: no call that is recorded.
Api api_of(std::string_view message) {
  char name[64];
  if (message.empty() || message.size() >= sizeof name) return Api::count;
  std::memcpy(name, message.data(), message.size());
  name[message.size()] = 0;
  const Api api = find_api(name);
  if (api == Api::count) return api;
  const ApiRow& row = kApiRows[static_cast<size_t>(api)];
  return row.library == Library::nccl && row.kind != Kind::none ? api : Api::count;
}

// A hook that NCCL's function calls in turn finds itself nested, as in a hook's call.
void enter(NvtxCall& call, const void* frame) {
  call.frame = frame;
  t_state.inside[kNccl] = static_cast<const char*>(frame) + kNvtxFrames;
}
void leave(NvtxCall& call) {
  call.open = false;
  t_state.inside[kNccl] = nullptr;
}

bool begin_range(std::string_view message, const NvtxPayloadData* payloads, size_t count,
                 const void* frame) {
  if (NvtxCall* const outer = nvtx_call(false); outer && outer->open) {
    if (frame < outer->frame) {
      ++outer->nested;
      return !outer->as_range;
    }
    leave(*outer);  // a longjmp left it
  }
  if (frame < t_state.inside[kNccl]) return false;  // a hook has this call
  const Api api = api_of(message);
  if (api == Api::count) return false;
  const auto id = static_cast<ApiId>(api);
  uint8_t flags = g_hook_flags[id].load(std::memory_order_relaxed);
  if (flags == 0) flags = wake_session(id);
  NvtxCall* const call = nvtx_call(true);
  if (!call) return false;
  *call = {};
  call->open = true;
  call->api = id;
  call->recorded = flags & kHookRecord;
  call->as_range = !call->recorded;
  if (flags & kHookStack && can_have_stack(kApiRows[id].kind)) call->stack = take_stack(id);
  read_nccl_payloads(payloads, count, call->given);
  enter(*call, frame);
  call->begin = now_ticks();
  return !call->as_range;
}

// Null: unknown.
const void* communicator_of(const NcclArguments& given) {
  return given.has(NcclField::communicator) ? handle_of_hash(given.at(NcclField::communicator))
                                            : nullptr;
}

bool is_rank(const NcclArguments& given, NcclField field) {
  return given.has(field) && given.at(field) < 0xffff;
}

// A communicator that a call makes or ends. Those of a split or shrunk one say their parent's
// place.
void follow(Api api, const void* communicator, const NcclArguments& given) {
  switch (api) {
    case Api::ncclCommInitRank:
    case Api::ncclCommInitRankConfig:
    case Api::ncclCommInitRankScalable:
      if (is_rank(given, NcclField::rank) && is_rank(given, NcclField::ranks)) {
        register_rank_of(communicator, {static_cast<uint16_t>(given.at(NcclField::ranks)),
                                        static_cast<uint16_t>(given.at(NcclField::rank))});
      }
      break;
    case Api::ncclCommInitAll:
      if (given.has(NcclField::devices) && given.at(NcclField::devices) == 1) {
        register_rank_of(communicator, {1, 0});
      } else {
        share_communicator(communicator);
      }
      break;
    case Api::ncclCommDestroy:
    case Api::ncclCommAbort:
      if (!is_shared_communicator(communicator)) forget_communicator(communicator);
      break;
    default: break;
  }
}

// Calls count whether recorded or not.
CollectivePayload count_collective(Api api, const NcclArguments& given) {
  CollectivePayload out{};
  const bool rooted = given.has(NcclField::root), paired = given.has(NcclField::peer);
  out.count =
      given.has(NcclField::bytes) ? given.at(NcclField::bytes) : CollectivePayload::kUnknownCount;
  out.peer = rooted   ? static_cast<int32_t>(given.at(NcclField::root))
             : paired ? static_cast<int32_t>(given.at(NcclField::peer))
                      : -1;
  out.data_type = 0xff;
  const bool reduces =
      given.has(NcclField::operation) && given.at(NcclField::operation) < ncclNumOps;
  out.operation = reduces ? static_cast<uint8_t>(given.at(NcclField::operation)) : uint8_t{0xff};
  const void* const communicator = communicator_of(given);
  const bool message = api == Api::ncclSend || api == Api::ncclRecv;
  if (!communicator || (message && out.peer < 0) || is_shared_communicator(communicator)) {
    return out;
  }
  const CommunicatorPlace place = note_call(communicator, &out.sequence, path_of(api, out.peer));
  const uint64_t hash = given.at(NcclField::communicator);
  identify_communicator(communicator, communicator_identity(&hash, sizeof hash));
  out.communicator = hash;
  out.rank_count = place.rank_count, out.rank = place.rank;
  return out;
}

void write(const NvtxCall& call, uint64_t end, const CollectivePayload& collective) {
  Record* const record = reserve_record_after(call.stack, call.begin, end);
  if (!record) return;
  look_for_silence(call.stack.id ? record - 1 : record, end);
  const Kind kind = kApiRows[call.api].kind;
  begin_record(record, kind, call.begin, end, kFlagFromNvtx);
  record->api = call.api;
  if (kind == Kind::collective) {
    record->collective = collective;
  } else {
    record->call = {reinterpret_cast<uint64_t>(communicator_of(call.given)), 0, 0};
  }
  commit_record(record);
}

bool end_range(const NvtxPayloadData* payloads, size_t count) {
  NvtxCall* const call = nvtx_call(false);
  if (!call || !call->open) return false;
  if (call->nested) {
    --call->nested;
    return !call->as_range;
  }
  const uint64_t end = now_ticks();
  leave(*call);
  // Since 2.27 those that make a communicator say at their end which.
  read_nccl_payloads(payloads, count, call->given);
  const auto api = static_cast<Api>(call->api);
  CollectivePayload collective{};
  if (kApiRows[call->api].kind == Kind::collective) {
    collective = count_collective(api, call->given);
  } else if (const void* const communicator = communicator_of(call->given)) {
    follow(api, communicator, call->given);
  }
  if (call->recorded && nvtx_is_wanted()) write(*call, end, collective);
  return !call->as_range;
}

}  // namespace

constinit const NvtxCallDomain nccl_ranges{"NCCL", begin_range, end_range};

}  // namespace gpuprof
