// SPDX-License-Identifier: Apache-2.0
// One file, once, to a browser on this machine.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace gpuprof {

struct ServedFile {
  std::string path;  // on disk
  std::string name;  // the last part of its address
  std::string content_type;
  std::string origin;  // whose pages may fetch it ("https://host"); empty: none
};

// The port that Perfetto's page lets its visitors load a trace from (its open_trace_in_ui script).
inline constexpr uint16_t kPagePort = 9001;

// Listens on 127.0.0.1 alone, at `port` or, if that is 0, one that the kernel chooses. Calls
// `ready` with the file's address, which nobody can guess, and the port. Returns when the file has
// been sent once. What else is asked for is refused. Throws Failure.
void serve_once(const ServedFile& file, uint16_t port,
                const std::function<void(const std::string& address, uint16_t port)>& ready);

}  // namespace gpuprof
