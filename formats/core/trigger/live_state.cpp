// SPDX-License-Identifier: Apache-2.0
#include "formats/core/trigger/live_state.h"

#include "formats/core/text.h"

namespace gpuprof {
namespace {

constexpr std::string_view kMagic = "gpuprof-state-1";

// The fields in their order in the file, after the rank.
constexpr uint64_t LiveState::*kFields[] = {&LiveState::beat,           &LiveState::process_id,
                                            &LiveState::boundaries,     &LiveState::step_ns,
                                            &LiveState::poll_ms,        &LiveState::control_id,
                                            &LiveState::control_result, &LiveState::recording_off};

}  // namespace

// "gpuprof-state-1 RANK+1 BEAT PID BOUNDARIES ...\n"
size_t format_live_state(const LiveState& state, char* out) {
  TextBuilder text(out, kLiveStateBytes);
  text.add(kMagic).add(' ').add_whole(static_cast<uint64_t>(state.rank + 1));
  for (const auto field : kFields) text.add(' ').add_whole(state.*field);
  text.add('\n');
  return text.size();
}

bool parse_live_state(std::string_view text, LiveState& state) {
  if (text.empty() || text.back() != '\n') return false;
  text.remove_suffix(1);
  if (take_until(text, ' ') != kMagic) return false;
  LiveState result{};
  uint64_t rank = 0;
  if (!parse_whole(take_until(text, ' '), rank) || rank > INT32_MAX) return false;
  result.rank = static_cast<int64_t>(rank) - 1;
  for (const auto field : kFields) {
    if (!parse_whole(take_until(text, ' '), result.*field)) return false;
  }
  if (!text.empty()) return false;
  state = result;
  return true;
}

}  // namespace gpuprof
