// SPDX-License-Identifier: Apache-2.0
// Allocates for tests/programs/heap.c, which loads it late.
#include <stdlib.h>

void* heap_library_give(size_t bytes) { return malloc(bytes); }
void heap_library_take(void* given) { free(given); }
