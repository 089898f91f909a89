// SPDX-License-Identifier: Apache-2.0
// The part of chain.cpp and chain_reload.cpp that lies in a library.
#pragma once

extern "C" void chain_through_library(void (*then)());
