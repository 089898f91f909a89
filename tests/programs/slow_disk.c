// SPDX-License-Identifier: Apache-2.0
// Preloaded after libgpuprof.so: a disk that takes SLOW_DISK_MS for each write to a dump, and no
// more than SHORT_WRITES bytes of it, SLOW_COPY_MS to one that takes the place of a longer one, and
// SLOW_CREATE_MS to create the buffers' file. With TORN_WRITE it takes half of what is first
// appended to that file, and then says once that it is full. Other files are as ever.
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static void wait_for(const char* milliseconds) {
  const long ms = milliseconds ? atol(milliseconds) : 0;
  const struct timespec pause = {ms / 1000, ms % 1000 * 1000000};
  if (ms > 0) nanosleep(&pause, NULL);
}

int openat(int directory, const char* name, int flags, ...) {
  va_list list;
  va_start(list, flags);
  const int mode = va_arg(list, int);
  va_end(list);
  if ((flags & O_CREAT) && strstr(name, ".gpuprof.ring")) wait_for(getenv("SLOW_CREATE_MS"));
  return (int)syscall(SYS_openat, directory, name, flags, mode);
}

ssize_t write(int file, const void* data, size_t size) {
  char link[64], path[4096];
  snprintf(link, sizeof link, "/proc/self/fd/%d", file);
  const ssize_t length = readlink(link, path, sizeof path - 1);
  if (length > 0) {
    path[length] = '\0';
    const char* const most = getenv("SHORT_WRITES");
    const int is_dump = strstr(path, ".gpuprof.part") != NULL;
    if (is_dump && most && size > (size_t)atol(most)) size = (size_t)atol(most);
    if (is_dump) wait_for(getenv("SLOW_DISK_MS"));
    if (strstr(path, ".gpuprof.ring") && getenv("TORN_WRITE")) {
      static int writes = 0;
      if (++writes == 1) size /= 2;
      if (writes == 2) {
        errno = ENOSPC;
        return -1;
      }
    }
    if (strstr(path, ".gpuprof.new")) wait_for(getenv("SLOW_COPY_MS"));
  }
  return syscall(SYS_write, file, data, size);
}
