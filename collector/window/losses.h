// SPDX-License-Identifier: Apache-2.0
// Losses of a window. The ring counts those that no dump has yet, so that they are the newest
// window's also where the process is killed; those in dumps are kept here. Drain thread only.
#pragma once

#include <array>
#include <cstdint>

#include "formats/core/ring_file.h"

namespace gpuprof {

using LossCounts = std::array<uint64_t, kLossKinds>;

// What no dump has yet.
LossCounts new_losses();
// A dump has them now.
void note_dumped_losses(const LossCounts& losses);
// Their dump is no more, and nothing that follows lacks what is lost with it.
void forget_dumped_losses(const LossCounts& losses);
// All of the run, but for the forgotten ones.
LossCounts all_losses();
// Without those of the logs of the whole run, which a later dump lacks as well: none of a dump that
// may be dropped.
LossCounts without_lasting(const LossCounts& losses);
// CUPTI is off: what it dropped since the newest dump is of no window.
void forget_losses_of_cupti();

}  // namespace gpuprof
