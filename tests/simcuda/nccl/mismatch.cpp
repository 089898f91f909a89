// SPDX-License-Identifier: Apache-2.0
#include "tests/simcuda/nccl/mismatch.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "tests/simcuda/core/clock.h"

namespace gpuprof::simcuda {
namespace {

constexpr int kSpoiled = 0xa5;

bool corrupts() {
  static const bool value = [] {
    const char* text = std::getenv("SIMCUDA_NCCL_MISMATCH");
    return text != nullptr && std::string_view(text) == "corrupt";
  }();
  return value;
}

uint32_t mixed(uint32_t word, uint64_t part) {
  return static_cast<uint32_t>(mix64(uint64_t{word} << 32 ^ mix64(part + 1)));
}

void add(CallWords& words, const CollectiveCall& call, uint64_t code) {
  words.waits = mixed(words.waits, code);
  words.waits = mixed(words.waits, call.count * type_bytes(call.type));
  words.waits = mixed(words.waits, static_cast<uint64_t>(call.root + 1));
  const bool reduces = call.code == OpCode::kAllReduce || call.code == OpCode::kReduce ||
                       call.code == OpCode::kReduceScatter;
  if (!reduces) return;  // others move bytes, of whatever type
  words.values = mixed(words.values, static_cast<uint64_t>(call.type));
  words.values = mixed(words.values, static_cast<uint64_t>(call.op + 1));
}

}  // namespace

CallWords words_of(const std::vector<CollectiveCall>& calls) {
  CallWords out;
  for (const CollectiveCall& call : calls) {
    if (!is_message(call.code)) add(out, call, static_cast<uint64_t>(call.code));
  }
  return out;
}

CallWords words_of_message(const CollectiveCall& call) {
  CallWords out;
  add(out, call, static_cast<uint64_t>(OpCode::kSend));
  return out;
}

Agreement compare(uint64_t own, uint64_t other) {
  const CallWords a = CallWords::unpack(own), b = CallWords::unpack(other);
  if (a.waits != b.waits) return corrupts() ? Agreement::wrong_values : Agreement::hangs;
  return a.values == b.values ? Agreement::alike : Agreement::wrong_values;
}

void spoil_payloads(const std::vector<CollectiveCall>& calls, const CommState& comm) {
  for (const CollectiveCall& call : calls) {
    if (call.code == OpCode::kSend || call.receive == nullptr) continue;
    const bool of_each = call.code == OpCode::kAllGather || call.code == OpCode::kAlltoAll ||
                         call.code == OpCode::kGather;
    const size_t bytes =
        call.count * type_bytes(call.type) * (of_each ? static_cast<size_t>(comm.ranks) : 1);
    if (sim_core()->is_known(call.receive, bytes)) std::memset(call.receive, kSpoiled, bytes);
  }
}

}  // namespace gpuprof::simcuda
