// SPDX-License-Identifier: Apache-2.0
#include "tests/programs/chain_library.h"

namespace {

[[gnu::noinline]] void call_back(void (*then)()) {
  then();
  __asm__ volatile("");
}

}  // namespace

void chain_through_library(void (*then)()) {
  call_back(then);
  __asm__ volatile("");
}
