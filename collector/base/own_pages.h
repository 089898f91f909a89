// SPDX-License-Identifier: Apache-2.0
// Our own code's pages, before they are needed.
#pragma once

namespace gpuprof {

// Has the kernel map our code and constants, so that the first calls that are recorded need not
// wait for it page by page (some 30 us of a first step). Drain thread, once.
void touch_own_pages();

}  // namespace gpuprof
