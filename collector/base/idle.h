// SPDX-License-Identifier: Apache-2.0
// What a process that never uses a GPU runs and writes of this library: when it is loaded, and when
// it becomes another program or ends. Each page of it that is touched costs a fault in every
// process of a machine, so these functions and words lie together. tests/check_library.py counts
// the pages.
#pragma once

// Functions. The linker puts the section right before the compiler's own code of start and end.
#define GPUPROF_IDLE_CODE [[gnu::section(".text.sorted.idle")]]
// Variables, among them those with addresses in them, which the dynamic linker writes. The linker
// puts the section at the end of the data, whose last page is written at each start anyway.
#define GPUPROF_IDLE_DATA [[gnu::section("gpuprof_idle")]]
