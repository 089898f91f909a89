// SPDX-License-Identifier: Apache-2.0
// What is known of the file system that a path or an open file lies on, by statfs(2). Any thread; a
// call waits as long as the file system takes to answer. A path that is not there has none.
#pragma once

namespace gpuprof {

// Other machines may see it.
bool on_network(const char* path);

// The name of a file system that writes a changed page to a new place, so that a full disk may
// raise SIGBUS also where a mapped file has its blocks; nullptr of all others. Seen so: btrfs, and
// overlay above it. By their sources: NILFS2 (nilfs_page_mkwrite), UBIFS (ubifs_vm_page_mkwrite),
// bcachefs (bch2_page_mkwrite). ZFS keeps no blocks for a file (zpl_fallocate_common).
const char* writes_pages_anew(const char* path);
const char* writes_pages_anew(int file);

}  // namespace gpuprof
