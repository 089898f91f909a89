// SPDX-License-Identifier: Apache-2.0
// Functions that exist and only say that they cannot, whatever their arguments.
#pragma once

// In extern "C": `name`, which returns `answer`, a value of `type`.
#define SIMCUDA_REFUSED(type, name, answer) \
  type sim_refused_##name() __asm__(#name); \
  type sim_refused_##name() { return answer; }
