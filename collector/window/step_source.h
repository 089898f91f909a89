// SPDX-License-Identifier: Apache-2.0
// The step source in force, for threads that must not wait for step_lock, and the lines that name
// it.
#pragma once

#include <cstdint>

namespace gpuprof {

// The tracker's is in force from now on. Under step_lock.
void publish_source();
// Names it in a line. Under step_lock.
void say_source();
// The same at boundary `newest`, as often as that says something new. Under step_lock.
void say_source_once(bool chosen_now, uint64_t newest);

}  // namespace gpuprof
