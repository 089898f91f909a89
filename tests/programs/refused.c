// SPDX-License-Identifier: Apache-2.0
// Runs a program to which the kernel refuses what a failing disk, a quota, a network file system or
// a limit would: refused RULE... -- COMMAND. Descriptors from 512 on are those of the library.
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LOAD(field) \
  BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (unsigned)offsetof(struct seccomp_data, field))
#define LOAD_HIGH(field) \
  BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (unsigned)offsetof(struct seccomp_data, field) + 4)
#define FAIL(error) BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (error))
#define ALLOW BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)
#define IF_CALL(number, skip) LOAD(nr), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (number), 0, (skip))
#define IS(number, skip) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (number), (skip), 0)

static struct sock_filter no_fallocate[] = {IF_CALL(SYS_fallocate, 1), FAIL(EOPNOTSUPP), ALLOW};
static struct sock_filter quota_at_create[] = {IF_CALL(SYS_openat, 3), LOAD(args[2]),
                                               BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, O_EXCL, 0, 1),
                                               FAIL(EDQUOT), ALLOW};
static struct sock_filter no_shared_map[] = {IF_CALL(SYS_mmap, 5),
                                             LOAD(args[3]),
                                             BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, MAP_SHARED, 0, 3),
                                             LOAD(args[4]),
                                             BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, 0x80000000u, 1, 0),
                                             FAIL(ENODEV),
                                             ALLOW};
#define WRITE_FAILS(error)                                                                \
  {                                                                                       \
    IF_CALL(SYS_write, 3), LOAD(args[0]), BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, 512, 0, 1), \
        FAIL(error), ALLOW                                                                \
  }
static struct sock_filter broken_disk[] = WRITE_FAILS(EIO);
static struct sock_filter quota_at_write[] = WRITE_FAILS(EDQUOT);
static struct sock_filter no_locks[] = {IF_CALL(SYS_flock, 1), FAIL(ENOLCK), ALLOW};
// glibc asks clone3 first, whose flags cannot be seen here, and falls back.
static struct sock_filter no_threads[] = {IF_CALL(SYS_clone3, 1),
                                          FAIL(ENOSYS),
                                          IF_CALL(SYS_clone, 3),
                                          LOAD(args[0]),
                                          BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, CLONE_THREAD, 0, 1),
                                          FAIL(EAGAIN),
                                          ALLOW};
// What containers-common's profile (Podman, CRI-O) refuses a process without capabilities, of the
// calls that are not for administrators alone:
// https://github.com/containers/common/blob/main/pkg/seccomp/seccomp.json
static struct sock_filter as_in_podman[] = {LOAD(nr),
                                            IS(SYS_process_vm_readv, 10),
                                            IS(SYS_process_vm_writev, 9),
                                            IS(SYS_ptrace, 8),
                                            IS(SYS_kcmp, 7),
                                            IS(SYS_membarrier, 6),
                                            IS(SYS_perf_event_open, 5),
                                            IS(SYS_userfaultfd, 4),
                                            IS(SYS_get_mempolicy, 3),
                                            IS(SYS_mbind, 2),
                                            IS(SYS_set_mempolicy, 1),
                                            ALLOW,
                                            FAIL(EPERM)};
// A file is not as long as addresses are high.
static struct sock_filter no_memory_file[] = {IF_CALL(SYS_pread64, 3), LOAD_HIGH(args[3]),
                                              BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 1, 0),
                                              FAIL(EPERM), ALLOW};

static const struct {
  const char* name;
  struct sock_filter* filter;
  unsigned short length;
} rules[] = {
#define RULE(name) \
  { #name, name, sizeof name / sizeof name[0] }
    RULE(no_fallocate), RULE(quota_at_create), RULE(no_shared_map),
    RULE(broken_disk),  RULE(quota_at_write),  RULE(no_threads),
    RULE(no_locks),     RULE(as_in_podman),    RULE(no_memory_file),
};

static int refuse(const char* name) {
  for (size_t i = 0; i < sizeof rules / sizeof rules[0]; ++i) {
    const struct sock_fprog program = {rules[i].length, rules[i].filter};
    if (strcmp(rules[i].name, name) != 0) continue;
    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
  }
  errno = EINVAL;
  return -1;
}

int main(int count, char** words) {
  int at = 1;
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  for (; at < count && strcmp(words[at], "--") != 0; ++at) {
    if (refuse(words[at]) != 0) return perror(words[at]), 90;
  }
  if (at + 1 >= count) return 91;
  execvp(words[at + 1], words + at + 1);
  return perror(words[at + 1]), 92;
}
