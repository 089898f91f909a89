// SPDX-License-Identifier: Apache-2.0
// NVTX's payload extension (https://github.com/NVIDIA/NVTX, nvToolsExtPayload.h): what NCCL says of
// a call in its range's payload. It is read by the names, types and offsets that NCCL registers, so
// that each of its releases can be read.
#pragma once

#include <cstddef>
#include <cstdint>

namespace gpuprof {

// The extension's structures as a program passes them, the same since its compatibility number
// 0x0103 (2021). CUDA 12's headers have no such file, hence none is included.
struct NvtxSchemaEntry {
  uint64_t flags, type;
  const char *name, *description;
  uint64_t array_or_union;
  uint64_t offset;  // bytes in the payload; 0 of a later entry: behind the one before, aligned
  const void *semantics, *reserved;
};
struct NvtxSchema {
  enum Fields : uint64_t { kType = 1 << 2, kEntries = 1 << 4, kEntryCount = 1 << 5, kId = 1 << 8 };
  static constexpr uint64_t kStatic = 1;  // a `type`: each entry at its place

  uint64_t fields;  // which of the following are set
  const char* name;
  uint64_t type, flags;
  const NvtxSchemaEntry* entries;
  size_t entry_count, static_size, pack_align;
  uint64_t id;
};
struct NvtxEnum {
  enum Fields : uint64_t { kSize = 1 << 4, kId = 1 << 5 };

  uint64_t fields;
  const char* name;
  const void* entries;
  size_t entry_count, size;
  uint64_t id;
};
struct NvtxPayloadData {
  uint64_t schema;
  size_t size;  // bytes
  const void* payload;
};
struct NvtxExtension {
  struct Segment {
    size_t id, slot_count;
    intptr_t* slots;
  };
  uint16_t version, size, module, compatibility;
  size_t segment_count;
  Segment* segments;
};
constexpr uint16_t kNvtxPayloadModule = 2;
// nvtxEventAttributes_t::payloadType of a pointer to NvtxPayloadData, `reserved0` of them.
constexpr int32_t kNvtxPayloadType = static_cast<int32_t>(0xDFBD0009);

// What NCCL's schemas name; see kNames in the .cpp.
enum class NcclField : uint8_t { communicator, bytes, operation, root, peer, rank, ranks, devices };
constexpr size_t kNcclFields = 8;

// Of one call; what is not known is not there.
struct NcclArguments {
  uint8_t known;  // bit i: field i
  uint64_t values[kNcclFields];

  bool has(NcclField field) const { return known >> static_cast<unsigned>(field) & 1; }
  uint64_t at(NcclField field) const { return values[static_cast<size_t>(field)]; }
  void set(NcclField field, uint64_t value) {
    known = static_cast<uint8_t>(known | 1u << static_cast<unsigned>(field));
    values[static_cast<size_t>(field)] = value;
  }
};

// Schemas and enumerations of the domain "NCCL". Any thread. One more than there is room for is not
// kept: payloads by it say nothing.
void keep_nccl_schema(const NvtxSchema& schema);
void keep_nccl_enum(const NvtxEnum& enumeration);

// Adds what the payloads of one event say; signed numbers are extended to 64 bits. A payload says
// nothing if no schema is registered for it, or if several of different layout fit it, as of two
// releases of NCCL in one process. Any thread; no lock.
void read_nccl_payloads(const NvtxPayloadData* payloads, size_t count, NcclArguments& out);

}  // namespace gpuprof
