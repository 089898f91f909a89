// SPDX-License-Identifier: Apache-2.0
#include "collector/base/file_systems.h"

#include <sys/vfs.h>

#include <initializer_list>

namespace gpuprof {
namespace {

// Linux's linux/magic.h; of file systems that are not in it their own sources. SMB 2 and 3 have
// another number than SMB 1. 9p is none of these: it is also what gVisor calls its own disk.
constexpr long kLustre = 0x0bd00bd0, kGpfs = 0x47504653, kFuse = 0x65735546, kCifs = 0xff534d42,
               kSmb2 = 0xfe534d42, kNfs = 0x6969, kAfs = 0x5346414f, kCeph = 0x00c36400,
               kBeegfs = 0x19830326, kOverlay = 0x794c7630;

struct Anew {
  long magic;
  const char* name;
};
constexpr Anew kAnew[] = {{0x9123683e, "btrfs"},
                          {0x2fc12fc1, "ZFS"},
                          {0xca451a4e, "bcachefs"},
                          {0x3434, "NILFS2"},
                          {0x24051905, "UBIFS"}};

const char* name_if_anew(const struct statfs& info) {
  for (const Anew& row : kAnew) {
    if (static_cast<long>(info.f_type) == row.magic) return row.name;
  }
  // Overlay passes on all but the type of what lies below; btrfs counts no inodes.
  const bool on_btrfs = static_cast<long>(info.f_type) == kOverlay && info.f_files == 0;
  return on_btrfs ? "overlay above btrfs" : nullptr;
}

}  // namespace

bool on_network(const char* path) {
  struct statfs info {};
  if (::statfs(path, &info) != 0) return false;
  for (const long magic : {kLustre, kGpfs, kFuse, kCifs, kSmb2, kNfs, kAfs, kCeph, kBeegfs}) {
    if (static_cast<long>(info.f_type) == magic) return true;
  }
  return false;
}

const char* writes_pages_anew(const char* path) {
  struct statfs info {};
  return ::statfs(path, &info) == 0 ? name_if_anew(info) : nullptr;
}

const char* writes_pages_anew(int file) {
  struct statfs info {};
  return ::fstatfs(file, &info) == 0 ? name_if_anew(info) : nullptr;
}

}  // namespace gpuprof
