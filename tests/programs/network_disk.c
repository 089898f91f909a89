// SPDX-License-Identifier: Apache-2.0
// Preloaded with the library: what lies under NETWORK_DISK_UNDER (all, if that is not set) is on a
// file system of the type NETWORK_DISK (in hexadecimal), which counts no inodes.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

static int pretend(int result, const char* path, struct statfs* out) {
  const char* const type = getenv("NETWORK_DISK");
  const char* const under = getenv("NETWORK_DISK_UNDER");
  if (result == 0 && type && (!under || strncmp(path, under, strlen(under)) == 0)) {
    out->f_type = (long)strtoul(type, NULL, 16);
    out->f_files = 0;
  }
  return result;
}

int statfs(const char* path, struct statfs* out) {
  return pretend((int)syscall(SYS_statfs, path, out), path, out);
}

int fstatfs(int file, struct statfs* out) {
  char link[64], path[4096];
  snprintf(link, sizeof link, "/proc/self/fd/%d", file);
  const ssize_t length = readlink(link, path, sizeof path - 1);
  path[length > 0 ? length : 0] = '\0';
  return pretend((int)syscall(SYS_fstatfs, file, out), path, out);
}
