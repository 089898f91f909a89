// SPDX-License-Identifier: Apache-2.0
// The part of chain.cpp that lies in a library.
#pragma once

void chain_through_library(void (*then)());
