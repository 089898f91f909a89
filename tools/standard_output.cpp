// SPDX-License-Identifier: Apache-2.0
#include "tools/standard_output.h"

#include <poll.h>
#include <unistd.h>

#include "tools/console.h"

namespace gpuprof {

void end_if_reader_is_gone() {
  pollfd output{STDOUT_FILENO, POLLOUT, 0};
  if (::poll(&output, 1, 0) == 1 && (output.revents & POLLERR) != 0) throw ClosedPipe();
}

}  // namespace gpuprof
