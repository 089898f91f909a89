// SPDX-License-Identifier: Apache-2.0
// Records with the fields that a subscriber selects: "User-Defined Activity Records" of the CUPTI
// guide, by cupti_activity.h of 13.3.75. Of the kinds that PyTorch's profiler selects.
#pragma once

#include <cupti.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace gpuprof::simcuda {

struct FieldLayoutEntry {  // CUpti_ActivityFieldLayoutEntry
  size_t structSize;
  int fieldId;
  size_t offset, size, alignment;
};

struct RecordLayout {  // CUpti_ActivityRecordLayout
  size_t structSize;
  FieldLayoutEntry* pEntries;
  size_t numFields, recordSize;
};

struct ActivityConfig {  // CUpti_ActivityConfig
  size_t structSize;
  struct {  // CUpti_ActivityFieldSelection
    size_t structSize, numFields;
    int* pFieldIds;
  } fieldSelection;
};

// Of one client. Selections are never freed: a buffer may still be read by them. Any thread.
class SelectedFields {
 public:
  // False: this kind's fields are not simulated, an id is none of its fields, or the kind's own
  // is not the first.
  bool select(CUpti_ActivityKind kind, const ActivityConfig& config);

  // Of a record with the selected fields; 0: it has all fields.
  size_t record_size(CUpti_ActivityKind kind) const;

  // From a record with all fields, of 13.3, to one with the selected ones.
  void pack(CUpti_ActivityKind kind, const unsigned char* all, unsigned char* out) const;

  // By kind; null where all fields are selected. No document tells the order: so PyTorch reads it.
  std::vector<RecordLayout*> layouts() const;

 private:
  struct Selection {
    std::vector<FieldLayoutEntry> entries;
    std::vector<uint16_t> from;  // of each entry, in the record with all fields
    RecordLayout layout{};
  };
  const Selection* selection(CUpti_ActivityKind kind) const;

  std::array<std::atomic<Selection*>, 64> by_kind_{};
};

}  // namespace gpuprof::simcuda
