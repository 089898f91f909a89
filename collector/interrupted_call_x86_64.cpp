// SPDX-License-Identifier: Apache-2.0
#include <sys/syscall.h>
#include <ucontext.h>

#include <cerrno>
#include <cstdint>
#include <cstring>

#include "collector/interrupted_call.h"

namespace gpuprof {
namespace {

// "mov $number, %eax" and "syscall", as the C library makes its calls.
constexpr uint8_t kMove = 0xb8, kSyscall[] = {0x0f, 0x05};
constexpr uint64_t kMoveBytes = 5, kBytes = kMoveBytes + sizeof kSyscall;

bool waits_for_time_or_events(uint32_t number, const greg_t* registers) {
  switch (number) {
    case SYS_poll:
    case SYS_select:
    case SYS_epoll_wait:
    case SYS_nanosleep:
    case SYS_clock_nanosleep: return true;
    case SYS_ppoll: return registers[REG_R10] == 0;
    case SYS_epoll_pwait: return registers[REG_R8] == 0;
    case SYS_pselect6: {
      uint64_t mask = 0;  // the first word of what the sixth argument points at
      if (registers[REG_R9]) std::memcpy(&mask, reinterpret_cast<void*>(registers[REG_R9]), 8);
      return mask == 0;
    }
    default: return false;
  }
}

}  // namespace

void make_interrupted_call_again(void* context) {
  greg_t* const registers = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
  if (registers[REG_RAX] != -EINTR) return;
  // Code can be read where it is executed, and it has called the kernel, or looks as if: what lies
  // before an address that is at the begin of a page may not be there.
  const auto next = static_cast<uint64_t>(registers[REG_RIP]);
  if (next % 4096 < kBytes) return;
  uint8_t before[kBytes];
  std::memcpy(before, reinterpret_cast<const void*>(next - kBytes), kBytes);
  if (before[0] != kMove || std::memcmp(before + kMoveBytes, kSyscall, sizeof kSyscall) != 0)
    return;
  uint32_t number = 0;
  std::memcpy(&number, before + 1, sizeof number);
  if (!waits_for_time_or_events(number, registers)) return;
  registers[REG_RAX] = number;
  registers[REG_RIP] -= sizeof kSyscall;
}

}  // namespace gpuprof
