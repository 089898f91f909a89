// SPDX-License-Identifier: Apache-2.0
// Built twice, with another name for its inner function: libraries that can take each other's
// place.
#include "tests/programs/chain/chain_library.h"

#ifndef CHAIN_INNER
#define CHAIN_INNER call_back
#endif

namespace {

[[gnu::noinline]] void CHAIN_INNER(void (*then)()) {
  then();
  __asm__ volatile("");  // not a jump, which would leave no frame
}

}  // namespace

void chain_through_library(void (*then)()) {
  CHAIN_INNER(then);
  __asm__ volatile("");
}
