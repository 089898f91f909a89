// SPDX-License-Identifier: Apache-2.0
// A library that throws through its caller (unwinding.cpp).
#include <stdexcept>

void throw_from_library(int depth) {
  if (depth == 0) throw std::logic_error("from the library");
  throw_from_library(depth - 1);
}
