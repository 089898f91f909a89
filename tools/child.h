// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace gpuprof {

struct ChildEnd {
  int code;      // what a shell would return: the exit code, 128 + signal, 127, 126
  int signal;    // that killed it, 0: none
  int pid;       // that it had
  bool started;  // false: a line has said why not
};

// As exec takes them: with a null behind the last. Valid as long as the texts.
std::vector<char*> pointers(const std::vector<std::string>& texts);

// Starts `command` (found through PATH) with `environment` (NAME=VALUE) and waits for it. The code
// is 127 when it is not found, 126 when it cannot be executed (both with one line on standard
// error). While it runs, signals that someone
// sends to this process are passed on; those of the terminal reach the program by themselves. Then
// they do what they did before.
ChildEnd run_child(const std::vector<std::string>& command,
                   const std::vector<std::string>& environment);

}  // namespace gpuprof
