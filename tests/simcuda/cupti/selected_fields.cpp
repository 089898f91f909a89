// SPDX-License-Identifier: Apache-2.0
#include "tests/simcuda/cupti/selected_fields.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <span>

namespace gpuprof::simcuda {
namespace {

// Where a field lies in the record with all fields of CUPTI 13.3, by its id.
struct Field {
  uint16_t offset;
  uint16_t bytes;
};
constexpr uint16_t kNone = 0xffff;  // not simulated: 0

// clang-format off
// CUpti_ActivityKernelFieldIds, in CUpti_ActivityKernel12
constexpr Field kKernel[] = {
    {0, 4},
    {kNone, 1},
    {kNone, 1},
    {5, 1},
    {6, 2},
    {8, 4},
    {12, 4},
    {16, 8},
    {24, 8},
    {32, 8},
    {40, 4},
    {44, 4},
    {48, 4},
    {52, 4},
    {56, 4},
    {60, 4},
    {64, 4},
    {68, 4},
    {72, 4},
    {76, 4},
    {80, 4},
    {84, 4},
    {92, 4},
    {96, 8},
    {104, 8},
    {120, 8},
    {128, 8},
    {136, 1},
    {137, 1},
    {138, 1},
    {140, 4},
    {144, 8},
    {152, 4},
    {156, 4},
    {kNone, 32},
    {168, 4},
    {172, 4},
    {176, 4},
    {180, 4},
    {184, 4},
    {188, 4},
    {192, 8},
    {200, 4},
    {204, 4},
    {208, 1},
    {216, 4},
    {224, 4},
};
// CUpti_ActivityMemcpyFieldIds, in CUpti_ActivityMemcpy6
constexpr Field kMemcpy[] = {
    {0, 4},
    {4, 1},
    {5, 1},
    {6, 1},
    {7, 1},
    {8, 8},
    {16, 8},
    {24, 8},
    {32, 4},
    {36, 4},
    {40, 4},
    {44, 4},
    {64, 8},
    {72, 4},
    {76, 4},
    {80, 4},
    {84, 1},
    {88, 8},
};
// CUpti_ActivityMemcpy2FieldIds, in CUpti_ActivityMemcpyPtoP4
constexpr Field kMemcpy2[] = {
    {0, 4},
    {4, 1},
    {5, 1},
    {6, 1},
    {7, 1},
    {8, 8},
    {16, 8},
    {24, 8},
    {32, 4},
    {36, 4},
    {40, 4},
    {44, 4},
    {48, 4},
    {52, 4},
    {56, 4},
    {60, 4},
    {72, 8},
    {80, 4},
    {84, 4},
    {88, 4},
};
// CUpti_ActivityMemsetFieldIds, in CUpti_ActivityMemset4
constexpr Field kMemset[] = {
    {0, 4},
    {4, 4},
    {8, 8},
    {16, 8},
    {24, 8},
    {32, 4},
    {36, 4},
    {40, 4},
    {44, 4},
    {48, 2},
    {50, 2},
    {64, 8},
    {72, 4},
    {76, 4},
    {80, 4},
    {84, 1},
};
// CUpti_ActivityApiFieldIds, in CUpti_ActivityAPI
constexpr Field kApi[] = {
    {0, 4},
    {4, 4},
    {8, 8},
    {16, 8},
    {24, 4},
    {28, 4},
    {32, 4},
    {36, 4},
};
// CUpti_ActivityExternalCorrelationFieldIds, in CUpti_ActivityExternalCorrelation
constexpr Field kExternal[] = {
    {0, 4},
    {4, 4},
    {8, 8},
    {16, 4},
};
// CUpti_ActivityOverheadFieldIds, in CUpti_ActivityOverhead3
constexpr Field kOverhead[] = {
    {0, 4},
    {4, 4},
    {12, 4},
    {16, 4},
    {24, 8},
    {32, 8},
    {40, 4},
    {48, 8},
};
// CUpti_ActivityCudaEventFieldIds, in CUpti_ActivityCudaEvent2
constexpr Field kEvent[] = {
    {0, 4},
    {4, 4},
    {8, 4},
    {12, 4},
    {16, 4},
    {24, 4},
    {40, 8},
    {48, 8},
};
// CUpti_ActivitySynchronizationFieldIds, in CUpti_ActivitySynchronization2
constexpr Field kSync[] = {
    {0, 4},
    {4, 4},
    {8, 8},
    {16, 8},
    {24, 4},
    {28, 4},
    {32, 4},
    {36, 4},
    {40, 8},
    {48, 4},
};
// CUpti_ActivityGraphHostNodeFieldIds: no such record is made
constexpr Field kGraphHostNode[] = {
    {0, 4},
    {kNone, 4},
    {kNone, 4},
    {kNone, 4},
    {kNone, 8},
    {kNone, 4},
    {kNone, 8},
    {kNone, 4},
    {kNone, 8},
    {kNone, 8},
    {kNone, 8},
};
constexpr int kGraphHostNodeKind = 56;
// clang-format on

std::span<const Field> fields_of(CUpti_ActivityKind kind) {
  if (kind == kGraphHostNodeKind) return kGraphHostNode;
  switch (kind) {
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL: return kKernel;
    case CUPTI_ACTIVITY_KIND_MEMCPY: return kMemcpy;
    case CUPTI_ACTIVITY_KIND_MEMCPY2: return kMemcpy2;
    case CUPTI_ACTIVITY_KIND_MEMSET: return kMemset;
    case CUPTI_ACTIVITY_KIND_RUNTIME:
    case CUPTI_ACTIVITY_KIND_DRIVER: return kApi;
    case CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION: return kExternal;
    case CUPTI_ACTIVITY_KIND_OVERHEAD: return kOverhead;
    case CUPTI_ACTIVITY_KIND_CUDA_EVENT: return kEvent;
    case CUPTI_ACTIVITY_KIND_SYNCHRONIZATION: return kSync;
    default: return {};
  }
}

size_t aligned(size_t offset, size_t alignment) {
  return (offset + alignment - 1) / alignment * alignment;
}

}  // namespace

bool SelectedFields::select(CUpti_ActivityKind kind, const ActivityConfig& config) {
  const std::span<const Field> fields = fields_of(kind);
  const auto& wanted = config.fieldSelection;
  if (fields.empty() || wanted.numFields == 0 || wanted.pFieldIds[0] != 0) return false;
  auto selection = std::make_unique<Selection>();
  size_t end = 0;
  for (size_t i = 0; i < wanted.numFields; ++i) {
    const int id = wanted.pFieldIds[i];
    if (id < 0 || static_cast<size_t>(id) >= fields.size()) return false;
    const Field& field = fields[static_cast<size_t>(id)];
    const size_t alignment = std::min<size_t>(field.bytes, 8);
    const size_t offset = aligned(end, alignment);
    selection->entries.push_back({sizeof(FieldLayoutEntry), id, offset, field.bytes, alignment});
    selection->from.push_back(field.offset);
    end = offset + field.bytes;
  }
  selection->layout = {sizeof(RecordLayout), selection->entries.data(), selection->entries.size(),
                       aligned(end, 8)};
  by_kind_[kind].store(selection.release(), std::memory_order_release);
  return true;
}

const SelectedFields::Selection* SelectedFields::selection(CUpti_ActivityKind kind) const {
  const auto place = static_cast<size_t>(kind);
  return place < by_kind_.size() ? by_kind_[place].load(std::memory_order_acquire) : nullptr;
}

size_t SelectedFields::record_size(CUpti_ActivityKind kind) const {
  const Selection* const found = selection(kind);
  return found == nullptr ? 0 : found->layout.recordSize;
}

void SelectedFields::pack(CUpti_ActivityKind kind, const unsigned char* all,
                          unsigned char* out) const {
  const Selection& chosen = *selection(kind);
  std::memset(out, 0, chosen.layout.recordSize);
  for (size_t i = 0; i < chosen.entries.size(); ++i) {
    const FieldLayoutEntry& entry = chosen.entries[i];
    if (chosen.from[i] != kNone) {
      std::memcpy(out + entry.offset, all + chosen.from[i], entry.size);
    }
  }
}

std::vector<RecordLayout*> SelectedFields::layouts() const {
  std::vector<RecordLayout*> found;
  for (const auto& slot : by_kind_) {
    Selection* const chosen = slot.load(std::memory_order_acquire);
    found.push_back(chosen == nullptr ? nullptr : &chosen->layout);
  }
  return found;
}

}  // namespace gpuprof::simcuda
