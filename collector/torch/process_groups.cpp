// SPDX-License-Identifier: Apache-2.0
#include "collector/torch/process_groups.h"

#include <dlfcn.h>

#include <cstring>
#include <string_view>

#include "collector/base/fork.h"
#include "collector/base/libraries.h"
#include "collector/base/os.h"
#include "collector/record/communicators.h"
#include "collector/record/recorder.h"
#include "collector/torch/record_function.h"
#include "formats/core/text.h"

namespace gpuprof {
namespace {

// std::string of libstdc++'s ABI since GCC 5.
struct String {
  const char* text;
  size_t length;
  char local[16];

  explicit String(const char* short_text) : text(local), length(std::strlen(short_text)) {
    std::memcpy(local, short_text, length + 1);
  }
  String(const String&) = delete;
  std::string_view view() const { return {text, length}; }
};
struct Numbers {  // std::vector<int64_t>
  int64_t *first = nullptr, *last = nullptr, *end_of_storage = nullptr;
};
// std::tuple<std::string, std::string> of libstdc++: the last one comes first.
struct NameAndDescription {
  String description, name;
};
// torch::ParamCommsDebugInfo
struct CommsInfo {
  void (**functions)(const CommsInfo*);  // the first one destroys it
  NameAndDescription group;
  int rank, world_size;
  String collective;
  int64_t in_elements, out_elements;
  int8_t data_type;
  Numbers in_splits, out_splits;
  int first_rank, rank_stride;
};
static_assert(sizeof(CommsInfo) == 192);

// A signature with these arguments has these members: from 2.4 on, and from 2.12 on, which has one
// more argument, whether the collective is asynchronous, and more members behind.
#define GPUPROF_COMMS_INFO                                                          \
  "_ZN5torch19ParamCommsDebugInfoC1ESt5tupleIJNSt7__cxx1112basic_stringIcSt11char_" \
  "traitsIcESaIcEEES7_EEiOS7_llN3c1010ScalarTypeESt6vectorIlSaIlEESE_iii"
constexpr const char* kConstructors[] = {GPUPROF_COMMS_INFO, GPUPROF_COMMS_INFO "b"};
#undef GPUPROF_COMMS_INFO
constexpr const char* kCurrent = "_ZN3c1020ThreadLocalDebugInfo3getENS_13DebugInfoKindE";
// c10::DebugInfoKind::PARAM_COMMS_INFO: an enum's value, from 2.15 on the address of a text, which
// a variable of this name holds.
constexpr const char* kCommsKind = "_ZN3c1013DebugInfoKind16PARAM_COMMS_INFOE";
constexpr uintptr_t kCommsKindBefore = 4;
constexpr size_t kLongestText = 4096;

enum class State : uint8_t { unknown, usable, refused };

Mutex g_lock;
State g_state = State::unknown;
const CommsInfo* (*g_current)(uintptr_t kind) = nullptr;
uintptr_t g_comms_kind = kCommsKindBefore;
const void* g_functions = nullptr;  // of each object of this class

template <typename Function>
bool find(void* library, const char* name, Function& out) {
  void* const symbol = real_symbol(library, name);
  std::memcpy(&out, &symbol, sizeof symbol);
  if (!symbol) ::dlerror();
  return symbol != nullptr;
}

// Arguments that C++ passes by value and that have destructors go by reference. One more than a
// function takes is not looked at.
using Constructor = void (*)(void* memory, NameAndDescription& group, int rank, String& collective,
                             int64_t in, int64_t out, int8_t type, Numbers& in_splits,
                             Numbers& out_splits, int first_rank, int rank_stride, int world_size,
                             bool asynchronous);

bool try_out(Constructor construct) {
  alignas(16) static char memory[1024];
  NameAndDescription group{String("description"), String("name")};
  String collective("collective");
  Numbers in_splits, out_splits;
  construct(memory, group, 1, collective, 11, 12, 6, in_splits, out_splits, 3, 2, 5, true);
  const auto* const made = reinterpret_cast<const CommsInfo*>(memory);
  const bool right = made->group.name.view() == "name" &&
                     made->group.description.view() == "description" && made->rank == 1 &&
                     made->world_size == 5 && made->collective.view() == "collective" &&
                     made->in_elements == 11 && made->out_elements == 12 && made->first_rank == 3 &&
                     made->rank_stride == 2;
  if (!right) return false;
  g_functions = made->functions;
  made->functions[0](made);
  return true;
}

// Under g_lock.
State look_for_torch() {
  void* const library = torch_library();
  if (!library) return State::unknown;
  if (!find(library, kCurrent, g_current)) return State::refused;
  const uintptr_t* kind = nullptr;
  if (find(library, kCommsKind, kind)) g_comms_kind = *kind;
  for (const char* const name : kConstructors) {
    Constructor construct = nullptr;
    if (find(library, name, construct) && try_out(construct)) return State::usable;
  }
  return State::refused;
}

bool copy(const String& from, char (&out)[ProcessGroup::kTextBytes]) {
  if (from.length > kLongestText) return false;
  copy_text(from.view(), out, sizeof out);
  return true;
}

void unlock_process_groups_in_child() { g_lock.unlock(); }
GPUPROF_FORGET_IN_CHILD(unlock_process_groups_in_child);

}  // namespace

bool current_process_group(ProcessGroup& out) {
  {
    const LockGuard guard(g_lock);
    if (g_state == State::unknown) g_state = look_for_torch();
    if (g_state != State::usable) return false;
  }
  const CommsInfo* const info = g_current(g_comms_kind);
  if (!info || info->functions != g_functions || info->world_size < 1) return false;
  if (!copy(info->group.name, out.name) || !copy(info->group.description, out.description)) {
    return false;
  }
  out.size = static_cast<uint32_t>(info->world_size);
  // Of a group of one rank PyTorch gives 0.
  const bool regular = info->first_rank >= 0 && (info->rank_stride > 0 || out.size == 1);
  out.first = regular ? static_cast<uint32_t>(info->first_rank) : 0;
  out.stride = !regular ? 0 : out.size == 1 ? 1 : static_cast<uint32_t>(info->rank_stride);
  return true;
}

void name_group_of(const void* communicator) {
  const BlockedScope blocked;
  ProcessGroup group;
  if (!current_process_group(group)) return;
  GroupNames names;
  static_assert(sizeof names.name == sizeof group.name);
  std::memcpy(names.name, group.name, sizeof names.name);
  std::memcpy(names.description, group.description, sizeof names.description);
  names.size = group.size, names.first = group.first, names.stride = group.stride;
  name_group(communicator, names);
}

}  // namespace gpuprof
