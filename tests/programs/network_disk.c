// SPDX-License-Identifier: Apache-2.0
// Preloaded with the library: all lies on a file system of the type NETWORK_DISK (in hexadecimal).
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

int statfs(const char* path, struct statfs* out) {
  const int result = (int)syscall(SYS_statfs, path, out);
  const char* const type = getenv("NETWORK_DISK");
  if (result == 0 && type) out->f_type = (long)strtoul(type, NULL, 16);
  return result;
}
