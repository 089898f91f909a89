/* SPDX-License-Identifier: Apache-2.0 */
/* What the simulated libcudart exports beside CUDA's own names, for programs that know it.
 * Found by dlsym, so that such a program also runs on the real library. */
#pragma once

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The device time of this thread's next kernel launch, in ns. */
void simcuda_set_next_kernel_ns(uint64_t ns);

/* Makes a kernel known by name. Returns what cudaLaunchKernel takes as its function, or NULL when
 * `name` is NULL. The same name gives the same answer. Thread safe. */
const void* simcuda_register_kernel(const char* name);

/* Appends one line, a JSON object without a newline, to the truth log, if there is one. */
void simcuda_truth_note(const char* json_line);

#ifdef __cplusplus
}
#endif
