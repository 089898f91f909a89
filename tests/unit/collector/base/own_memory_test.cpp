// SPDX-License-Identifier: Apache-2.0
#include "collector/base/own_memory.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <numeric>
#include <vector>

namespace gpuprof {
namespace {

constexpr int kCannotRefuse = 77;

bool refuse_process_vm_readv() {
  sock_filter rules[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program{std::size(rules), rules};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

// Two pages, after which nothing is mapped.
class OwnMemory : public ::testing::TestWithParam<bool> {
 protected:
  static constexpr size_t kPage = 65536;  // the largest that a kernel has

  void SetUp() override {
    void* const memory =
        ::mmap(nullptr, 3 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(memory, MAP_FAILED);
    bytes_ = static_cast<uint8_t*>(memory);
    std::iota(bytes_, bytes_ + 2 * kPage, uint8_t{1});
    ASSERT_EQ(::munmap(bytes_ + 2 * kPage, kPage), 0);
  }
  void TearDown() override { ::munmap(bytes_, 2 * kPage); }
  uint64_t at(size_t offset) const { return reinterpret_cast<uint64_t>(bytes_) + offset; }

  // `holds` in a child, to which the call is refused where the parameter says so.
  template <typename Holds>
  void in_child(Holds&& holds) {
    const pid_t child = ::fork();
    if (child == 0) {
      if (GetParam() && !refuse_process_vm_readv()) ::_exit(kCannotRefuse);
      ::_exit(can_copy_own_memory() && holds() ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    if (WIFEXITED(status) && WEXITSTATUS(status) == kCannotRefuse) {
      GTEST_SKIP() << "this kernel takes no filter of seccomp";
    }
    EXPECT_EQ(status, 0);
  }

  uint8_t* bytes_ = nullptr;
};

TEST_P(OwnMemory, IsCopiedByPieces) {
  in_child([this] {
    std::vector<uint8_t> first(100), second(kPage + 8);
    const iovec to[] = {{first.data(), 100}, {second.data(), kPage + 8}};
    const iovec from[] = {{bytes_ + 7, 100}, {bytes_ + kPage - 8, kPage + 8}};
    return copy_own_memory(to, from, 2, kPage + 108) &&
           std::equal(first.begin(), first.end(), bytes_ + 7) &&
           std::equal(second.begin(), second.end(), bytes_ + kPage - 8);
  });
}

TEST_P(OwnMemory, WhatIsNotMappedIsAnError) {
  in_child([this] {
    uint64_t word = 0;
    const iovec to[] = {{&word, 4}, {&word, 4}};
    const iovec from[] = {{bytes_, 4}, {bytes_ + 2 * kPage, 4}};
    return !copy_own_memory(at(2 * kPage), &word, sizeof word) &&
           !copy_own_memory(at(2 * kPage - 4), &word, sizeof word) &&
           !copy_own_memory(0, &word, sizeof word) &&
           !copy_own_memory(~uint64_t{7}, &word, sizeof word) && !copy_own_memory(to, from, 2, 8);
  });
}

TEST_P(OwnMemory, IsTheChildsAfterFork) {
  in_child([this] {
    bytes_[0] = 200;  // the parent's is 1
    const pid_t grandchild = ::fork();
    if (grandchild == 0) {
      bytes_[0] = 100;
      uint8_t seen = 0;
      ::_exit(can_copy_own_memory() && copy_own_memory(at(0), &seen, 1) && seen == 100 ? 0 : 1);
    }
    int status = 1;
    ::waitpid(grandchild, &status, 0);
    uint8_t seen = 0;
    return status == 0 && copy_own_memory(at(0), &seen, 1) && seen == 200;
  });
}

TEST_P(OwnMemory, CopiesLeaveNoFileOpen) {
  in_child([this] {
    const int before = ::open("/dev/null", O_RDONLY);
    ::close(before);
    uint8_t seen = 0;
    for (int i = 0; i < 10; ++i) copy_own_memory(at(0), &seen, 1);
    const int after = ::open("/dev/null", O_RDONLY);
    return before >= 0 && after == before;
  });
}

INSTANTIATE_TEST_SUITE_P(Refused, OwnMemory, ::testing::Bool(), [](const auto& info) {
  return info.param ? "by_the_file" : "by_the_call";
});

}  // namespace
}  // namespace gpuprof
