// SPDX-License-Identifier: Apache-2.0
// Python source that hooks of ours share: whether torch.compile is tracing the code that calls it.
// A macro, to stand before the literal of each script.
#pragma once

#define GPUPROF_PYTHON_IS_COMPILING                                            \
  "def is_compiling(torch):\n"                                                 \
  "    for place in 'compiler', '_utils':\n"                                   \
  "        ask = getattr(getattr(torch, place, None), 'is_compiling', None)\n" \
  "        if ask is not None:\n"                                              \
  "            return ask()\n"                                                 \
  "    return False\n"
