// SPDX-License-Identifier: Apache-2.0
#include "collector/sources/nvtx_text.h"

#include <nvtx3/nvToolsExt.h>

#include <atomic>
#include <cstring>

#include "collector/base/kept_memory.h"
#include "collector/base/libc.h"
#include "collector/base/os.h"
#include "formats/core/byte_buffer.h"
#include "formats/core/string_table.h"

namespace gpuprof {
namespace {

// Handles point at these; they are never freed, as NVTX's are.
struct KeptName {
  uint32_t hash, size : 31, is_cut : 1;
  char* text() { return reinterpret_cast<char*>(this + 1); }  // follows the header
  const char* text() const { return reinterpret_cast<const char*>(this + 1); }
};
// Of all of them, with their places. XLA registers texts of up to 65,330 bytes for each program
// that it compiles (tsl/profiler/lib/nvtx_utils.cc): once half of the room is taken, long ones are
// cut.
constexpr size_t kMostBytes = 64 << 20, kMostWholeBytes = kMostBytes / 2;
constexpr size_t kMostText = StringTable::kMaxText, kMostOfLong = 1024;
constexpr size_t kPlaceBytes = 4 * sizeof(KeptName*);  // of the table when it has just grown

Mutex g_lock;
constinit Immortal<PodVector<KeptName*>> g_names;  // open addressing; null: free
size_t g_name_count = 0, g_bytes = 0;              // that they take
constinit KeptMemory g_memory;
// Given out when there is no memory: a handle must not be null, NVTX takes that for "no tool".
constexpr KeptName* kNoName = nullptr;
const char g_nameless = 0;

KeptName* allocate(size_t text_size) {
  const size_t bytes = sizeof(KeptName) + text_size;
  if (g_bytes + bytes + kPlaceBytes > kMostBytes) return kNoName;
  g_bytes += bytes + kPlaceBytes;
  return static_cast<KeptName*>(g_memory.take(bytes));
}

// A long name's begin and a hash of all of it, as names that are recorded are cut (string_table.h).
class CutName {
 public:
  explicit CutName(std::string_view name) {
    constexpr size_t kHead = kMostOfLong - 19;
    const uint64_t hash = hash_bytes(name.data(), name.size());
    std::memcpy(text_, name.data(), kHead);
    std::memcpy(text_ + kHead, "...", 3);
    for (size_t i = 0; i < 16; ++i) {
      text_[kHead + 3 + i] = "0123456789abcdef"[hash >> (60 - 4 * i) & 15];
    }
  }
  std::string_view view() const { return {text_, sizeof text_}; }

 private:
  char text_[kMostOfLong];
};

// Where the name is, or where it would go. There is a free place.
KeptName*& place_of(uint32_t hash, std::string_view name) {
  const size_t last = g_names->size() - 1;
  size_t at = hash & last;
  for (; KeptName* const kept = (*g_names)[at]; at = (at + 1) & last) {
    if (kept->hash == hash && std::string_view(kept->text(), kept->size) == name) break;
  }
  return (*g_names)[at];
}

// At most half of the places are taken. False: there is no memory for more.
bool make_room() {
  const size_t places = g_names->size();
  if (g_name_count * 2 < places) return true;
  PodVector<KeptName*> larger;
  if (!larger.resize(places ? places * 2 : 512)) return false;
  g_names->swap(larger);
  for (KeptName* const kept : larger) {
    if (kept) place_of(kept->hash, {kept->text(), kept->size}) = kept;
  }
  return true;
}

// Under the lock. Null: there is no room.
KeptName* find_or_keep(std::string_view name, bool is_cut) {
  const auto hash = static_cast<uint32_t>(hash_bytes(name.data(), name.size()));
  KeptName*& place = place_of(hash, name);
  if (place) return place;
  KeptName* const kept = allocate(name.size());
  if (!kept) return nullptr;
  kept->hash = hash;
  kept->size = static_cast<uint32_t>(name.size()) & 0x7fffffff;
  kept->is_cut = is_cut;
  std::memcpy(kept->text(), name.data(), name.size());
  place = kept;
  ++g_name_count;
  return kept;
}

// Whether it is kept already, or there is room for all of it.
bool fits(std::string_view name) {
  if (name.size() <= kMostOfLong) return true;
  if (name.size() > kMostText) return false;
  const auto hash = static_cast<uint32_t>(hash_bytes(name.data(), name.size()));
  return g_bytes < kMostWholeBytes || place_of(hash, name);
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
  if (!make_room()) return &g_nameless;
  const KeptName* const kept =
      fits(name) ? find_or_keep(name, false) : find_or_keep(CutName(name).view(), true);
  return kept ? static_cast<const void*>(kept) : &g_nameless;
}

NameLoss nvtx_name_loss(const void* handle) {
  if (handle == &g_nameless) return NameLoss::whole;
  const bool cut = handle && static_cast<const KeptName*>(handle)->is_cut;
  return cut ? NameLoss::end : NameLoss::none;
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
