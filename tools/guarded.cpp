// SPDX-License-Identifier: Apache-2.0
#include "tools/guarded.h"

#include <malloc.h>

#include <exception>
#include <new>

#include "tools/command.h"
#include "tools/console.h"

namespace gpuprof {

int run_guarded(const std::function<int()>& work) {
  // What holds a trace comes and goes in large pieces: freed, they go back to the system.
  ::mallopt(M_MMAP_THRESHOLD, 64 << 10);
  try {
    const int code = work();
    flush_output();
    return code;
  } catch (const ClosedPipe&) {
    return kExitDone;
  } catch (const Failure& failure) {
    print_error(failure.what());
  } catch (const std::bad_alloc&) {
    print_error("out of memory");
  } catch (const std::exception& error) {
    print_error(error.what());
  }
  return kExitBadUsage;
}

}  // namespace gpuprof
