// SPDX-License-Identifier: Apache-2.0
// Many functions of libc are where a thread with a pending pthread_cancel() ends.
#pragma once

#include <pthread.h>

#pragma weak pthread_setcancelstate

namespace gpuprof {

// A scope in which the calling thread is not cancelled: for what this library does on a thread of
// the program, which else would leave locks held and a session half begun. The request stays.
class CancelGuard {
 public:
  CancelGuard() {
    if (::pthread_setcancelstate) ::pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before_);
  }
  ~CancelGuard() {
    if (::pthread_setcancelstate) ::pthread_setcancelstate(before_, nullptr);
  }
  CancelGuard(const CancelGuard&) = delete;
  CancelGuard& operator=(const CancelGuard&) = delete;

 private:
  int before_ = PTHREAD_CANCEL_ENABLE;
};

}  // namespace gpuprof
