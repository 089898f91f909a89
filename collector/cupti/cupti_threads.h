// SPDX-License-Identifier: Apache-2.0
// The threads that CUPTI makes for itself while it is being attached. They live as long as the
// process, and would keep one alive whose own threads have all ended.
#pragma once

#include <cstdint>

namespace gpuprof {

// Around a call of CUPTI that may make threads, on a thread that blocks all signals. CUPTI's are
// those that are there afterwards, were not before, and block all signals as their maker did. A
// thread of the program's is taken for one only if it is made at that moment and blocks all
// signals, too. One at a time.
class CuptiThreadsWatch {
 public:
  CuptiThreadsWatch();
  ~CuptiThreadsWatch();
  CuptiThreadsWatch(const CuptiThreadsWatch&) = delete;
  CuptiThreadsWatch& operator=(const CuptiThreadsWatch&) = delete;

 private:
  bool watches_;
};

uint32_t cupti_threads();     // how many of them live
void forget_cupti_threads();  // in the child after fork

}  // namespace gpuprof
