// SPDX-License-Identifier: Apache-2.0
#pragma once

// Visible outside the library; must also match the version script (exports.map).
#define GPUPROF_EXPORT [[gnu::visibility("default")]]

extern "C" GPUPROF_EXPORT void gpuprof_step();
