// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cupti.h>

#include "formats/core/record.h"

namespace gpuprof {

// Ids of a domain that are looked at. They only grow: those of 13.5 end at 877.
inline constexpr uint32_t kMaxCallbackIds = 2048;

// Which row of preload's table a callback id is. Before the callback is enabled.
void set_callback_api(CUpti_CallbackDomain domain, uint32_t callback_id, ApiId api);

ApiId callback_api(CUpti_CallbackDomain domain, uint32_t callback_id);  // as set; else 0

// Whether that is one of the callbacks set above, or of CUDA graphs (any of the resource domain).
bool callback_is_ours(CUpti_CallbackDomain domain, uint32_t callback_id);

// Whether it is one that the order of graph launches hangs on (cupti_graphs.h).
// Once it is set.
bool orders_graphs(CUpti_CallbackDomain domain, uint32_t callback_id);

// A call was told of without a correlation id. Any thread.
bool calls_lack_ids();

// The subscriber's callback: on the thread that makes the call, at its entry and exit.
void CUPTIAPI on_api_callback(void* user, CUpti_CallbackDomain domain, CUpti_CallbackId id,
                              const void* data);

}  // namespace gpuprof
