// SPDX-License-Identifier: Apache-2.0
// Whether dumps can be written where they are to go. Makes a folder there for a moment, since some
// file systems refuse what modes allow, and some give all folders one owner or mode. Thread-safe
// while nobody changes the environment.
#pragma once

#include <string>

#include "formats/core/settings.h"

namespace gpuprof {

struct OutputPlace {
  std::string path;    // of the output, on a host called "host"; empty: known only in the program
  std::string folder;  // what of it, and of a run that is named, is there
  std::string reason;  // why no run can be in it, or why it is not known; empty: it can
};

OutputPlace look_at_output(const Config& config, char* const* environment);

}  // namespace gpuprof
