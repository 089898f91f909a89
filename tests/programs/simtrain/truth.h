// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <dlfcn.h>

#include <string>

namespace gpuprof::simtrain {

// Adds a line to the simulator's truth log, if this runs on the simulator.
inline void truth_note(const std::string& json) {
  using Note = void (*)(const char*);
  static const auto note = reinterpret_cast<Note>(::dlsym(RTLD_DEFAULT, "simcuda_truth_note"));
  if (note != nullptr) note(json.c_str());
}

}  // namespace gpuprof::simtrain
