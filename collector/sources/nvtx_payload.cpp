// SPDX-License-Identifier: Apache-2.0
#include "collector/sources/nvtx_payload.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <string_view>

#include "collector/base/libc.h"
#include "collector/base/os.h"

namespace gpuprof {
namespace {

// How NCCL names the fields (src/include/nvtx_payload_schemas.h since 2.24, src/collectives.cc and
// src/init.cc before). Until 2.22 there is no communicator, and some sizes are just "Bytes".
struct FieldName {
  std::string_view name;
  NcclField field;
};
constexpr FieldName kNames[] = {
    {"NCCL communicator ID", NcclField::communicator},
    {"Message size [bytes]", NcclField::bytes},
    {"Bytes", NcclField::bytes},
    {"Reduction operation", NcclField::operation},
    {"Root", NcclField::root},
    {"Peer rank", NcclField::peer},
    {"Rank", NcclField::rank},
    {"No. of ranks", NcclField::ranks},
    {"No. of devices", NcclField::devices},
};

// NCCL's payloads have a few dozen bytes, its schemas up to seven entries.
constexpr uint64_t kMostBytes = 4096;
constexpr size_t kMostEntries = 64, kMostPayloads = 16;
constexpr uint64_t kFirstOwnType = 1 << 24;  // types from here on are schemas and enumerations

struct KeptField {
  uint64_t enumeration;  // 0: a plain number
  uint16_t offset;
  uint8_t width;  // 0: the enumeration's, or, without one, there is no such field
  bool is_signed;
  bool is_there() const { return width != 0 || enumeration != 0; }
  bool operator==(const KeptField&) const = default;
};
struct KeptSchema {
  uint64_t id;
  size_t size;  // of a payload; 0: not known
  KeptField fields[kNcclFields];
  bool operator==(const KeptSchema&) const = default;
};
struct KeptEnum {
  uint64_t id;
  size_t size;
  bool operator==(const KeptEnum&) const = default;
};

// Rows are complete before they are counted.
template <typename Row, size_t kMost>
struct Rows {
  Row rows[kMost];
  std::atomic<size_t> count;

  // Under g_lock.
  void keep(const Row& row) {
    const size_t used = count.load(std::memory_order_relaxed);
    if (used == kMost || std::find(rows, rows + used, row) != rows + used) return;
    rows[used] = row;
    count.store(used + 1, std::memory_order_release);
  }
  // The only row that is `wanted`; null: none, or several.
  template <typename Wanted>
  const Row* only(const Wanted& wanted) const {
    const Row* found = nullptr;
    const size_t used = count.load(std::memory_order_acquire);
    for (const Row* row = rows; row != rows + used; ++row) {
      if (!wanted(*row)) continue;
      if (found) return nullptr;
      found = row;
    }
    return found;
  }
};
constinit Rows<KeptSchema, 128> g_schemas{};
constinit Rows<KeptEnum, 16> g_enums{};
Mutex g_lock;  // of those who register

void open_lock_in_children() {
  static std::atomic<bool> registered{false};
  if (!registered.exchange(true)) at_fork_in_child([] { g_lock.unlock(); });
}

struct Number {
  uint8_t width;  // 0: not a number
  bool is_signed;
};
// NVTX_PAYLOAD_ENTRY_TYPE_CHAR = 1 and so on.
Number number_of(uint64_t type) {
  constexpr Number kNumbers[] = {{0, false},
                                 {1, true},
                                 {1, false},
                                 {sizeof(short), true},
                                 {sizeof(short), false},
                                 {sizeof(int), true},
                                 {sizeof(int), false},
                                 {sizeof(long), true},
                                 {sizeof(long), false},
                                 {sizeof(long long), true},
                                 {sizeof(long long), false},
                                 {1, true},
                                 {1, false},
                                 {2, true},
                                 {2, false},
                                 {4, true},
                                 {4, false},
                                 {8, true},
                                 {8, false}};
  constexpr uint64_t kSize = 22;
  if (type == kSize) return {sizeof(size_t), false};
  return type < std::size(kNumbers) ? kNumbers[type] : Number{0, false};
}

// Pointers, arrays and the like are no plain values.
bool is_plain(const NvtxSchemaEntry& entry) { return (entry.flags & 0xfe) == 0; }

void keep_field(const NvtxSchemaEntry& entry, uint64_t offset, KeptSchema& out) {
  if (!entry.name || offset >= kMostBytes) return;
  const std::string_view name(entry.name, ::strnlen(entry.name, 64));
  const auto* const known = std::find_if(std::begin(kNames), std::end(kNames),
                                         [&](const FieldName& each) { return each.name == name; });
  if (known == std::end(kNames)) return;
  KeptField& field = out.fields[static_cast<size_t>(known->field)];
  if (field.is_there()) return;
  const Number number = number_of(entry.type);
  field.width = number.width, field.is_signed = number.is_signed;
  if (number.width == 0 && entry.type >= kFirstOwnType) field.enumeration = entry.type;
  field.offset = static_cast<uint16_t>(offset);
}

size_t size_of_enum(uint64_t id) {
  const KeptEnum* const known = g_enums.only([&](const KeptEnum& each) { return each.id == id; });
  return known && known->size <= sizeof(uint64_t) ? known->size : 0;
}

// 0: not known.
uint64_t width_of(const NvtxSchemaEntry& entry) {
  if (!is_plain(entry)) return 0;
  return entry.type >= kFirstOwnType ? size_of_enum(entry.type) : number_of(entry.type).width;
}

uint64_t aligned(uint64_t offset, uint64_t width) { return (offset + width - 1) / width * width; }

// False: nothing is known of its layout.
bool lay_out(const NvtxSchema& schema, KeptSchema& out) {
  constexpr uint64_t kNeeded =
      NvtxSchema::kType | NvtxSchema::kEntries | NvtxSchema::kEntryCount | NvtxSchema::kId;
  if ((schema.fields & kNeeded) != kNeeded || schema.type != NvtxSchema::kStatic ||
      !schema.entries || schema.entry_count == 0 || schema.entry_count > kMostEntries) {
    return false;
  }
  out.id = schema.id;
  uint64_t end = 0, widest = 1;  // of the entries so far
  bool known = true;             // where the entry before ends
  for (size_t i = 0; i < schema.entry_count; ++i) {
    const NvtxSchemaEntry& entry = schema.entries[i];
    const uint64_t width = width_of(entry);
    const bool placed = i == 0 || entry.offset != 0;
    const uint64_t offset = placed || !width ? entry.offset : aligned(end, width);
    if (is_plain(entry) && (placed || (known && width))) keep_field(entry, offset, out);
    known = known && width && offset < kMostBytes;
    if (known) end = std::max(end, offset + width), widest = std::max(widest, width);
  }
  out.size = schema.static_size ? schema.static_size : known ? aligned(end, widest) : 0;
  return true;
}

bool fits(const KeptSchema& schema, const NvtxPayloadData& data) {
  return schema.id == data.schema && (schema.size == 0 || schema.size == data.size);
}

uint64_t value_at(const void* payload, const KeptField& field, size_t width) {
  uint64_t value = 0;  // both machines that gpuprof runs on are little-endian
  std::memcpy(&value, static_cast<const uint8_t*>(payload) + field.offset, width);
  if (!field.is_signed || width == sizeof value) return value;
  const unsigned unused = static_cast<unsigned>(sizeof value - width) * 8;
  return static_cast<uint64_t>(static_cast<int64_t>(value << unused) >> unused);
}

void read(const NvtxPayloadData& data, const KeptSchema& schema, NcclArguments& out) {
  for (size_t i = 0; i < kNcclFields; ++i) {
    const KeptField& field = schema.fields[i];
    const size_t width = field.enumeration ? size_of_enum(field.enumeration) : field.width;
    if (width == 0 || field.offset + width > data.size) continue;
    out.set(static_cast<NcclField>(i), value_at(data.payload, field, width));
  }
}

}  // namespace

void keep_nccl_schema(const NvtxSchema& schema) {
  KeptSchema row{};
  if (!lay_out(schema, row)) return;
  open_lock_in_children();
  const LockGuard guard(g_lock);
  g_schemas.keep(row);
}

void keep_nccl_enum(const NvtxEnum& enumeration) {
  constexpr uint64_t kNeeded = NvtxEnum::kSize | NvtxEnum::kId;
  if ((enumeration.fields & kNeeded) != kNeeded) return;
  open_lock_in_children();
  const LockGuard guard(g_lock);
  g_enums.keep({enumeration.id, enumeration.size});
}

void read_nccl_payloads(const NvtxPayloadData* payloads, size_t count, NcclArguments& out) {
  if (!payloads || count > kMostPayloads) return;
  for (const NvtxPayloadData* data = payloads; data != payloads + count; ++data) {
    if (!data->payload || data->size > kMostBytes) continue;
    const KeptSchema* const schema =
        g_schemas.only([&](const KeptSchema& each) { return fits(each, *data); });
    if (schema) read(*data, *schema, out);
  }
}

}  // namespace gpuprof
