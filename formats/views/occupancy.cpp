// SPDX-License-Identifier: Apache-2.0
#include "formats/views/occupancy.h"

#include <algorithm>
#include <cmath>

namespace gpuprof {
namespace {

constexpr uint64_t kMaxBlocksPerSm = 32;
constexpr uint64_t kRegisterUnit = 256, kSharedUnit = 128;

uint64_t round_up(uint64_t value, uint64_t unit) { return (value + unit - 1) / unit * unit; }

}  // namespace

Occupancy occupancy_of(const Shape& kernel, const dump::Device& device) {
  Occupancy out;
  const double threads = double{1} * kernel.block.x * kernel.block.y * kernel.block.z;
  const double blocks = double{1} * kernel.grid.x * kernel.grid.y * kernel.grid.z;
  const uint64_t warp = device.warp_size() ? device.warp_size() : 32;
  const uint64_t max_warps = device.max_threads_per_multiprocessor() / warp;
  if (device.multiprocessors() == 0 || threads < 1 || threads > 4096) return out;
  const auto warps = static_cast<uint64_t>(std::ceil(threads / static_cast<double>(warp)));
  out.blocks_per_sm = blocks / device.multiprocessors();
  out.warps_per_sm = out.blocks_per_sm * static_cast<double>(warps);
  if (max_warps == 0) return out;

  uint64_t resident = std::min(kMaxBlocksPerSm, max_warps / warps);
  if (kernel.registers_per_thread && device.registers_per_multiprocessor()) {
    const uint64_t per_warp = round_up(uint64_t{kernel.registers_per_thread} * warp, kRegisterUnit);
    resident = std::min(resident, device.registers_per_multiprocessor() / (per_warp * warps));
  }
  const uint64_t shared =
      round_up(uint64_t{kernel.static_shared_bytes} + kernel.dynamic_shared_bytes, kSharedUnit);
  if (shared && device.shared_bytes_per_multiprocessor()) {
    resident = std::min(resident, device.shared_bytes_per_multiprocessor() / shared);
  }
  const double filled = std::min(out.blocks_per_sm, static_cast<double>(resident));
  const double share = filled * static_cast<double>(warps) / static_cast<double>(max_warps);
  out.percent = static_cast<int>(std::lround(100 * std::min(1.0, share)));
  return out;
}

}  // namespace gpuprof
