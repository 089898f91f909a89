// SPDX-License-Identifier: Apache-2.0
// A user who is neither root nor the one who runs the tests, to whom a test gives a file.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

namespace gpuprof {

constexpr uid_t kSomebody = 54321;

// Whether this process may give files away, and the user is known to its user namespace. Root of a
// namespace that maps one user (`unshare --map-root-user`) may not: chown(2) answers EINVAL.
inline bool can_give_files_to_somebody() {
  const int file = ::memfd_create("somebody's", MFD_CLOEXEC);
  if (file < 0) return false;
  const bool given = ::fchown(file, kSomebody, kSomebody) == 0;
  ::close(file);
  return given;
}

}  // namespace gpuprof
