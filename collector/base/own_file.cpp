// SPDX-License-Identifier: Apache-2.0
#include "collector/base/own_file.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "collector/base/fork_waits.h"
#include "collector/base/os.h"

namespace gpuprof {
namespace {

// Programs take the lowest free number; some count on getting 0 to 2 after closing those.
constexpr rlim_t kLowest = 512;

}  // namespace

int move_up(int file) {
  rlimit limit{};
  rlim_t lowest = kLowest;
  if (::getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur / 2 < lowest)
    lowest = limit.rlim_cur / 2;
  if (lowest < 3) lowest = 3;
  const int moved = ::fcntl(file, F_DUPFD_CLOEXEC, static_cast<int>(lowest));
  if (moved < 0) return file;
  ::close(file);
  return moved;
}

bool OwnFile::create(OwnDirectory& directory, const char* name) {
  const int at = directory.descriptor();  // -1: errno says why
  if (at < 0) return false;
  const ForkWaitsScope forks_wait;
  const int file =
      ::openat(at, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC | O_APPEND, 0600);
  if (file < 0) return false;
  struct stat info {};
  // By the name, since the program may be closing all its descriptors meanwhile. By system call:
  // the libc symbol is newer than the oldest glibc we run on.
  ::syscall(SYS_newfstatat, directory.descriptor(), name, &info, AT_SYMLINK_NOFOLLOW);
  device_ = info.st_dev, inode_ = info.st_ino;
  directory_ = &directory;
  name_ = name;
  file_ = move_up(file);
  return true;
}

bool OwnFile::is_ours(int file) const {
  struct stat info {};
  return file >= 0 && ::syscall(SYS_fstat, file, &info) == 0 && info.st_dev == device_ &&
         info.st_ino == inode_;
}

bool OwnFile::reopen() {
  const ForkWaitsScope forks_wait;
  const int again =
      ::openat(directory_->descriptor(), name_, O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_APPEND);
  if (!is_ours(again)) {
    if (again >= 0) ::close(again);
    return false;
  }
  file_ = move_up(again);
  return true;
}

int OwnFile::append(const void* data, size_t size) {
  int attempts = 10;  // while the program closes descriptors, ours may go between two calls
  const uint8_t* rest = static_cast<const uint8_t*>(data);
  while (size) {
    if (!is_ours(file_) && !reopen()) {
      if (--attempts == 0) return EBADF;
      continue;
    }
    const ssize_t wrote = ::write(file_, rest, size);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0 && errno == EBADF && --attempts > 0) continue;
    if (wrote <= 0) return wrote < 0 ? errno : EIO;
    rest += wrote;
    size -= static_cast<size_t>(wrote);
  }
  return 0;
}

int OwnFile::allocate(uint64_t from, uint64_t to) {
  const auto begin = static_cast<off_t>(from), bytes = static_cast<off_t>(to - from);
  for (int attempts = 10; attempts > 0; --attempts) {
    if (!is_ours(file_) && !reopen()) continue;
    if (::syscall(SYS_fallocate, file_, 0, begin, bytes) == 0) return 0;
    if (errno != EBADF && errno != EINTR) return errno;
  }
  return EBADF;
}

int OwnFile::truncate(uint64_t size) {
  if (!is_ours(file_) && !reopen()) return EBADF;
  return ::ftruncate(file_, static_cast<off_t>(size)) == 0 ? 0 : errno;
}

size_t OwnFile::read(uint64_t offset, void* out, size_t size) {
  for (int attempts = 10; attempts > 0; --attempts) {
    if (!is_ours(file_) && !reopen()) continue;
    const ssize_t got = ::pread(file_, out, size, static_cast<off_t>(offset));
    if (got >= 0) return static_cast<size_t>(got);
  }
  return 0;
}

bool OwnFile::is_on_disk() {
  struct stat info {};
  return file_ >= 0 && (is_ours(file_) || reopen()) && ::syscall(SYS_fstat, file_, &info) == 0 &&
         info.st_nlink > 0;
}

int OwnFile::close() {
  const int file = file_;
  file_ = -1;
  return is_ours(file) && ::close(file) != 0 ? errno : 0;
}

}  // namespace gpuprof
