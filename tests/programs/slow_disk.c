// SPDX-License-Identifier: Apache-2.0
// Preloaded after libgpuprof.so: a disk that takes SLOW_DISK_MS for each write to a dump, and no
// more than SHORT_WRITES bytes of it. Other files are as ever.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

ssize_t write(int file, const void* data, size_t size) {
  char link[64], path[4096];
  snprintf(link, sizeof link, "/proc/self/fd/%d", file);
  const ssize_t length = readlink(link, path, sizeof path - 1);
  if (length > 0) {
    path[length] = '\0';
    const char* const milliseconds = getenv("SLOW_DISK_MS");
    const char* const most = getenv("SHORT_WRITES");
    const int is_dump = strstr(path, ".gpuprof.part") != NULL;
    if (is_dump && most && size > (size_t)atol(most)) size = (size_t)atol(most);
    if (is_dump && milliseconds) {
      const long ms = atol(milliseconds);
      const struct timespec pause = {ms / 1000, ms % 1000 * 1000000};
      nanosleep(&pause, NULL);
    }
  }
  return syscall(SYS_write, file, data, size);
}
