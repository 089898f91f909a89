// SPDX-License-Identifier: Apache-2.0
#include "tests/simcuda/nccl/api_scope.h"

#include <fmt/format.h>
#include <unistd.h>

#include <iterator>

#include "tests/simcuda/core/clock.h"

namespace gpuprof::simcuda {
namespace {

thread_local int depth = 0;

}  // namespace

ApiScope::ApiScope(const char* name, const NvtxFields& fields)
    : name_(name), begin_(now_ns()), range_(name, fields), outermost_(depth++ == 0) {}

ApiScope::~ApiScope() {
  --depth;
  if (outermost_ && sim_core() != nullptr && sim_core()->truth_enabled()) write();
}

void ApiScope::describe(const CollectiveCall& call, ncclComm_t handle, const CommState& comm,
                        cudaStream_t stream, uint64_t sequence) {
  described_ = true;
  call_ = call;
  handle_ = handle;
  hash_ = comm.hash;
  rank_ = comm.rank;
  ranks_ = comm.ranks;
  sequence_ = sequence;
  stream_id_ = sim_core()->stream_id(stream, false);
}

ncclResult_t ApiScope::finish(ncclResult_t result) {
  result_ = result;
  return result;
}

void ApiScope::write() const {
  fmt::memory_buffer out;
  fmt::format_to(std::back_inserter(out),
                 "{{\"t\":\"nccl\",\"name\":\"{}\",\"tid\":{},\"begin\":{},\"end\":{},\"ret\":{}",
                 name_, ::gettid(), begin_, now_ns(), static_cast<int>(result_));
  if (described_) {
    fmt::format_to(std::back_inserter(out),
                   ",\"count\":{},\"dtype\":{},\"op\":{},\"root\":{},\"peer\":{},\"bytes\":{}",
                   call_.count, static_cast<int>(call_.type), call_.op, call_.root, call_.peer,
                   payload_bytes(call_, ranks_));
    fmt::format_to(std::back_inserter(out),
                   ",\"comm\":\"{}\",\"commhash\":\"{:016x}\",\"rank\":{},\"nranks\":{},"
                   "\"stream\":{},\"seq\":{}",
                   static_cast<const void*>(handle_), hash_, rank_, ranks_, stream_id_, sequence_);
  }
  fmt::format_to(std::back_inserter(out), "}}");
  sim_core()->truth_line(std::string_view(out.data(), out.size()));
}

}  // namespace gpuprof::simcuda
