// SPDX-License-Identifier: Apache-2.0
#include "collector/sources/nvtx_text.h"

#include <sys/mman.h>

#include <atomic>
#include <cstring>

#include "collector/base/libc.h"
#include "collector/base/os.h"

namespace gpuprof {
namespace {

// Handles point at these; they are never freed, as NVTX's are.
struct KeptName {
  KeptName* next;
  uint32_t size;
  char* text() { return reinterpret_cast<char*>(this + 1); }  // follows the header
  const char* text() const { return reinterpret_cast<const char*>(this + 1); }
};
constexpr size_t kBlockBytes = 64 * 1024;

Mutex g_lock;
KeptName* g_names = nullptr;
uint8_t* g_block = nullptr;
size_t g_block_left = 0;
// Given out when there is no memory: a handle must not be null, NVTX takes that for "no tool".
constexpr KeptName* kNoName = nullptr;
const char g_nameless = 0;

KeptName* allocate(size_t text_size) {
  const size_t bytes = (sizeof(KeptName) + text_size + 15) & ~size_t{15};
  if (bytes > kBlockBytes) return kNoName;
  if (bytes > g_block_left) {
    void* memory =
        ::mmap(nullptr, kBlockBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return kNoName;
    g_block = static_cast<uint8_t*>(memory);
    g_block_left = kBlockBytes;
  }
  KeptName* const name = reinterpret_cast<KeptName*>(g_block);
  g_block += bytes;
  g_block_left -= bytes;
  return name;
}

}  // namespace

NvtxText::NvtxText(const wchar_t* text) { convert(text); }

NvtxText::NvtxText(const nvtxEventAttributes_t* attributes) {
  if (!attributes) return;
  switch (attributes->messageType) {
    case NVTX_MESSAGE_TYPE_ASCII:
      if (attributes->message.ascii) view_ = attributes->message.ascii;
      break;
    case NVTX_MESSAGE_TYPE_UNICODE: convert(attributes->message.unicode); break;
    case NVTX_MESSAGE_TYPE_REGISTERED: view_ = nvtx_name(attributes->message.registered); break;
    default: break;
  }
}

void NvtxText::convert(const wchar_t* text) {
  size_t used = 0;
  for (; text && *text && used + 4 < sizeof converted_; ++text) {
    const uint32_t c = static_cast<uint32_t>(*text);
    if (c < 0x80) {
      converted_[used++] = static_cast<char>(c);
    } else if (c < 0x800) {
      converted_[used++] = static_cast<char>(0xc0 | c >> 6);
      converted_[used++] = static_cast<char>(0x80 | (c & 0x3f));
    } else if (c < 0x10000) {
      converted_[used++] = static_cast<char>(0xe0 | c >> 12);
      converted_[used++] = static_cast<char>(0x80 | (c >> 6 & 0x3f));
      converted_[used++] = static_cast<char>(0x80 | (c & 0x3f));
    } else {
      converted_[used++] = static_cast<char>(0xf0 | (c >> 18 & 7));
      converted_[used++] = static_cast<char>(0x80 | (c >> 12 & 0x3f));
      converted_[used++] = static_cast<char>(0x80 | (c >> 6 & 0x3f));
      converted_[used++] = static_cast<char>(0x80 | (c & 0x3f));
    }
  }
  view_ = std::string_view(converted_, used);
}

void survive_fork_with_nvtx_names() {
  static std::atomic<bool> registered{false};
  if (!registered.exchange(true)) at_fork_in_child([] { g_lock.unlock(); });
}

const void* keep_nvtx_name(std::string_view name) {
  const ErrnoGuard keep_errno;
  const LockGuard guard(g_lock);
  for (KeptName* kept = g_names; kept; kept = kept->next) {
    if (kept->size == name.size() && std::memcmp(kept->text(), name.data(), name.size()) == 0)
      return kept;
  }
  KeptName* const kept = allocate(name.size());
  if (!kept) return &g_nameless;
  kept->size = static_cast<uint32_t>(name.size());
  std::memcpy(kept->text(), name.data(), name.size());
  kept->next = g_names;
  g_names = kept;
  return kept;
}

std::string_view nvtx_name(const void* handle) {
  if (!handle || handle == &g_nameless) return {};
  const KeptName* const kept = static_cast<const KeptName*>(handle);
  return {kept->text(), kept->size};
}

std::string_view nvtx_domain_name(uint64_t handle) {
  return nvtx_name(reinterpret_cast<const void*>(handle));
}

}  // namespace gpuprof
