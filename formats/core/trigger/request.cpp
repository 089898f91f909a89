// SPDX-License-Identifier: Apache-2.0
#include "formats/core/trigger/request.h"

#include "formats/core/text.h"

namespace gpuprof {
namespace {

constexpr std::string_view kMagic = "gpuprof-control-1";
constexpr std::string_view kCommands[] = {"window", "off", "on"};

}  // namespace

// "gpuprof-control-1 ID COMMAND STEP STEPS\n"
size_t format_control(const ControlRequest& request, char* out) {
  TextBuilder text(out, kControlFileBytes);
  text.add(kMagic).add(' ').add_whole(request.id).add(' ');
  text.add(kCommands[static_cast<size_t>(request.command)]).add(' ');
  text.add_whole(request.step).add(' ').add_whole(request.steps).add('\n');
  return text.size();
}

bool parse_control(std::string_view text, ControlRequest& request) {
  if (text.empty() || text.back() != '\n') return false;
  text.remove_suffix(1);
  if (take_until(text, ' ') != kMagic) return false;
  ControlRequest result{};
  if (!parse_whole(take_until(text, ' '), result.id)) return false;
  const std::string_view command = take_until(text, ' ');
  bool known = false;
  for (size_t i = 0; i < sizeof kCommands / sizeof kCommands[0]; ++i) {
    if (command != kCommands[i]) continue;
    result.command = static_cast<ControlCommand>(i);
    known = true;
  }
  if (!known || !parse_whole(take_until(text, ' '), result.step) ||
      !parse_whole(text, result.steps)) {
    return false;
  }
  request = result;
  return true;
}

}  // namespace gpuprof
