// SPDX-License-Identifier: Apache-2.0
// Texts as NVTX hands them over: ASCII, wide, or registered before.
#pragma once

#include <cstdint>
#include <string_view>

// NVTX's nvtxEventAttributes_t, of nvtx3/nvToolsExt.h.
struct nvtxEventAttributes_v2;

namespace gpuprof {

// A message as bytes; valid while the argument is. Wide texts become UTF-8, cut at 4,095 bytes.
class NvtxText {
 public:
  explicit NvtxText(const char* text) : view_(text ? text : "") {}
  explicit NvtxText(const wchar_t* text);
  explicit NvtxText(const nvtxEventAttributes_v2* attributes);
  NvtxText(const NvtxText&) = delete;
  NvtxText& operator=(const NvtxText&) = delete;
  std::string_view view() const { return view_; }

 private:
  void convert(const wchar_t* text);
  std::string_view view_;
  char converted_[4096];
};

// Keeps a copy of a registered string's or domain's name for the life of the process. Returns a
// handle, never null, and the same for the same name. All copies take 64 MiB at most: names of over
// 1,024 bytes are cut once half of that is taken, and names that find no room have none.
const void* keep_nvtx_name(std::string_view name);
// What of its name a handle lacks.
enum class NameLoss { none, end, whole };
NameLoss nvtx_name_loss(const void* handle);
// Before the first of them: names outlive the session, so their lock is opened in each child.
void survive_fork_with_nvtx_names();
std::string_view nvtx_name(const void* handle);
// "" for the default domain (0).
std::string_view nvtx_domain_name(uint64_t handle);

}  // namespace gpuprof
