// SPDX-License-Identifier: Apache-2.0
// What stands in the way of recording, found by looking at the machine and at a program's file.
#pragma once

#include <string>
#include <vector>

namespace gpuprof {

struct Finding {
  enum class State { good, limited, bad };
  State state;
  std::string subject;  // "driver", "CUPTI", ...
  std::string text;     // what was found
  std::string advice;   // what to do, or what it means; may be empty
};

// The library, the settings, where dumps go, driver, CUPTI, clock, and other tools in the
// environment.
std::vector<Finding> diagnose_machine();
// Whether the library gets into `command` (a path, or a name to be looked for), and which CUDA
// libraries it brings.
void diagnose_program(const std::string& command, std::vector<Finding>& findings);
// What no setting makes visible; docs/design/RECORDING.md, "What escapes".
void diagnose_what_escapes(std::vector<Finding>& findings);

}  // namespace gpuprof
