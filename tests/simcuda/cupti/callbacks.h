// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cupti.h>

namespace gpuprof::simcuda {

// How records name threads: pthread_self() cut to 32 bits, or the system's thread id.
void set_thread_id_type(CUpti_ActivityThreadIdType type);
CUpti_ActivityThreadIdType get_thread_id_type();

}  // namespace gpuprof::simcuda
