// SPDX-License-Identifier: Apache-2.0
#include "collector/base/own_directory.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstring>

#include "collector/base/fork.h"
#include "collector/base/fork_waits.h"
#include "collector/base/os.h"
#include "collector/base/own_file.h"

namespace gpuprof {
namespace {

constexpr int kMostLinks = 40;  // as the kernel
constexpr size_t kLongestPath = 2048;

// By system call: the libc symbols are newer than the oldest glibc we run on.
bool stat_of(int file, struct stat& info) { return ::syscall(SYS_fstat, file, &info) == 0; }
bool stat_of(int directory, const char* name, struct stat& info) {
  return ::syscall(SYS_newfstatat, directory, name, &info, AT_SYMLINK_NOFOLLOW) == 0;
}

bool is_of_root_or_us(const struct stat& info) {
  return info.st_uid == 0 || info.st_uid == effective_user();
}
// Whether users other than root and us may rename or replace entries that are not theirs.
bool keeps_only_owners(const struct stat& directory) {
  return (directory.st_mode & S_ISVTX) != 0 && (directory.st_mode & 0022) != 0;
}

// One walk along a path. Of what has been entered a descriptor is kept, no name.
class Walk {
 public:
  Walk(OwnDirectory::Kind kind, char* why, size_t why_size)
      : kind_(kind), make_(kind == OwnDirectory::Kind::run), why_(why), why_size_(why_size) {}
  ~Walk() {
    if (at_ >= 0) ::close(at_);
  }
  Walk(const Walk&) = delete;
  Walk& operator=(const Walk&) = delete;

  void make_nothing() { make_ = false; }
  bool made_last() const { return made_last_; }
  // The descriptor (O_PATH) of what `path` leads to, the caller's; -1: it was said why.
  int run(const char* path) {
    if (!put_in_front(path) || !enter_root()) return -1;
    char part[256];
    while (next_part(part, sizeof part)) {
      if (!enter(part)) return -1;
    }
    if (failed_) return -1;
    const int found = at_;
    at_ = -1;
    return found;
  }

 private:
  [[gnu::format(printf, 2, 3)]] bool fail(const char* format, ...) {
    const ErrnoGuard keep;
    failed_ = true;
    va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(why_, why_size_, format, arguments);
    va_end(arguments);
    return false;
  }

  // Puts `first` in front of what is still to walk.
  bool put_in_front(const char* first) {
    const size_t size = std::strlen(first), left = std::strlen(next_);
    if (size + 1 + left >= sizeof rest_) {
      errno = ENAMETOOLONG;
      return fail("cannot open directory: the path is longer than %zu bytes", sizeof rest_ - 1);
    }
    std::memmove(rest_ + size + 1, next_, left + 1);
    std::memcpy(rest_, first, size);
    rest_[size] = '/';
    next_ = rest_;
    return true;
  }

  bool next_part(char* part, size_t size) {
    while (*next_ == '/') ++next_;
    if (!*next_) return false;
    const size_t length = std::strcspn(next_, "/");
    if (length >= size) {
      errno = ENAMETOOLONG;
      return fail("cannot open directory: a name in the path is longer than %zu bytes", size - 1);
    }
    std::memcpy(part, next_, length);
    part[length] = '\0';
    next_ += length;
    return true;
  }

  bool enter_root() {
    const int root = ::open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    return root < 0 ? fail("cannot open directory /: %s", std::strerror(errno)) : move_to(root);
  }

  bool move_to(int directory) {
    if (at_ >= 0) ::close(at_);
    at_ = directory;
    return true;
  }

  bool enter(const char* part) {
    struct stat above {
    }, info{};
    if (!stat_of(at_, above)) return fail("cannot look at a directory: %s", std::strerror(errno));
    made_last_ = false;
    if (!stat_of(at_, part, info)) {
      if (errno != ENOENT || !make_)
        return fail("cannot open directory %s: %s", part, std::strerror(errno));
      made_last_ = ::mkdirat(at_, part, 0700) == 0;
      if (!made_last_ && errno != EEXIST)
        return fail("cannot create directory %s: %s", part, std::strerror(errno));
      if (!stat_of(at_, part, info))
        return fail("cannot open directory %s: %s", part, std::strerror(errno));
    }
    const bool last = next_[std::strspn(next_, "/")] == '\0';
    if (S_ISLNK(info.st_mode) && !(last && kind_ == OwnDirectory::Kind::run))
      return follow(part, info);
    const int next = ::openat(at_, part, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    // What was entered, which need not be what lay there a moment ago.
    if (next < 0 || !stat_of(next, info)) {
      const int error = errno;
      if (next >= 0) ::close(next);
      errno = error;
      return fail("cannot open directory %s: %s", part, std::strerror(error));
    }
    if (keeps_only_owners(above) && std::strcmp(part, "..") != 0 && !is_of_root_or_us(info)) {
      ::close(next);
      errno = EPERM;
      return fail(
          "directory %s lies where everybody may write and belongs to user %u; it must belong to "
          "this user or to root",
          part, info.st_uid);
    }
    return move_to(next);
  }

  bool follow(const char* part, const struct stat& info) {
    if (!is_of_root_or_us(info)) {
      errno = EPERM;
      return fail("%s is a symbolic link of user %u; it must belong to this user or to root", part,
                  info.st_uid);
    }
    if (++links_ > kMostLinks) {
      errno = ELOOP;
      return fail("cannot open directory %s: %s", part, std::strerror(errno));
    }
    char target[1024];
    const ssize_t length = ::readlinkat(at_, part, target, sizeof target - 1);
    if (length < 0) return fail("cannot read link %s: %s", part, std::strerror(errno));
    target[length] = '\0';
    return put_in_front(target) && (target[0] != '/' || enter_root());
  }

  const OwnDirectory::Kind kind_;
  bool make_;
  char* const why_;
  const size_t why_size_;
  int at_ = -1, links_ = 0;
  bool failed_ = false, made_last_ = false;
  char rest_[kLongestPath] = {};
  const char* next_ = rest_;
};

bool check_run(int file, const char* path, char* why, size_t why_size) {
  struct stat info {};
  if (!stat_of(file, info) || info.st_uid != effective_user() || (info.st_mode & 0022) != 0) {
    std::snprintf(why, why_size,
                  "directory %s must belong to this user and not be writable by others", path);
    errno = EPERM;
    return false;
  }
  char name[32];  // an O_PATH descriptor; the effective user's rights, as of all that follows
  std::snprintf(name, sizeof name, "fd/%d", file);
  const OwnProcPath self(name);
  if (::access(self.c_str(), F_OK) == 0 &&
      ::faccessat(AT_FDCWD, self.c_str(), W_OK | X_OK, AT_EACCESS) != 0) {
    const ErrnoGuard keep;
    std::snprintf(why, why_size, "cannot write to directory %s: %s", path, std::strerror(errno));
    return false;
  }
  return true;
}

OwnDirectory g_run, g_scratch;

}  // namespace

bool OwnDirectory::open(const char* path, Kind kind, char* why, size_t why_size) {
  path_ = path, kind_ = kind;
  device_ = inode_ = 0;
  made_ = false;
  char reason[512];
  const ForkWaitsScope forks_wait;
  Walk walk(kind, reason, sizeof reason);
  const int file = walk.run(path);
  if (file < 0) {
    std::snprintf(why, why_size, "%s: %s", path, reason);
    return false;
  }
  struct stat info {};
  if ((kind == Kind::run && !check_run(file, path, why, why_size)) || !stat_of(file, info)) {
    ::close(file);
    return false;
  }
  device_ = info.st_dev, inode_ = info.st_ino;
  made_ = walk.made_last();
  file_ = move_up(file);
  return true;
}

bool OwnDirectory::is_ours(int file) const {
  struct stat info {};
  return file >= 0 && inode_ != 0 && stat_of(file, info) && info.st_dev == device_ &&
         info.st_ino == inode_;
}

int OwnDirectory::descriptor() {
  if (!path_) {
    errno = ESTALE;
    return -1;
  }
  if (is_ours(file_)) return file_;
  const ForkWaitsScope forks_wait;
  const int again = walk_again();
  if (again >= 0) file_ = move_up(again);
  return again >= 0 ? file_ : -1;
}

// A descriptor of the directory, by its path; -1: that leads nowhere, as errno says, or elsewhere
// (ESTALE).
int OwnDirectory::walk_again() const {
  char why[16];
  Walk walk(kind_, why, sizeof why);
  walk.make_nothing();
  const int again = walk.run(path_);
  if (again < 0 || is_ours(again)) return again;
  ::close(again);
  errno = ESTALE;
  return -1;
}

bool OwnDirectory::is_at_its_path() const {
  if (!path_) return false;
  const ForkWaitsScope forks_wait;
  const int again = walk_again();
  if (again >= 0) ::close(again);
  return again >= 0;
}

void OwnDirectory::forget() {
  if (is_ours(file_)) ::close(file_);
  *this = OwnDirectory{};
}

const char* name_in_directory(const char* path) {
  const char* const slash = std::strrchr(path, '/');
  return slash ? slash + 1 : path;
}

namespace {
void forget_directories() {
  g_run.forget();
  g_scratch.forget();
}
GPUPROF_FORGET_IN_CHILD(forget_directories);
}  // namespace

OwnDirectory& run_directory() { return g_run; }
OwnDirectory& scratch_directory() { return g_scratch; }

}  // namespace gpuprof
