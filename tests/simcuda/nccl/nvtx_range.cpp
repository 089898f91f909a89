// SPDX-License-Identifier: Apache-2.0
#include "tests/simcuda/nccl/nvtx_range.h"

#include <nvtx3/nvToolsExtPayload.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <string_view>

namespace gpuprof::simcuda {
namespace {

constexpr uint64_t kReductionEnum = NVTX_PAYLOAD_SCHEMA_ID_STATIC_START + 24;
constexpr char kCommunicator[] = "NCCL communicator ID";
constexpr char kRanks[] = "No. of ranks", kRank[] = "Rank", kDevice[] = "CUDA device";

bool disabled() {
  static const bool is = [] {
    const char* const text = std::getenv("NCCL_NVTX_DISABLE");
    return text != nullptr && std::strcmp(text, "0") != 0;
  }();
  return is;
}

nvtxDomainHandle_t domain() {
  static const nvtxDomainHandle_t made = [] {
    const nvtxDomainHandle_t handle = nvtxDomainCreateA("NCCL");
    if (nvtx_release() == NvtxRelease::kNone) return handle;
    static constexpr std::array<nvtxPayloadEnum_t, 5> kReductions{{{"Sum", ncclSum, 0},
                                                                   {"Product", ncclProd, 0},
                                                                   {"Max", ncclMax, 0},
                                                                   {"Min", ncclMin, 0},
                                                                   {"Avg", ncclAvg, 0}}};
    nvtxPayloadEnumAttr_t attributes{};
    attributes.fieldMask =
        NVTX_PAYLOAD_ENUM_ATTR_FIELD_ENTRIES | NVTX_PAYLOAD_ENUM_ATTR_FIELD_NUM_ENTRIES |
        NVTX_PAYLOAD_ENUM_ATTR_FIELD_SIZE | NVTX_PAYLOAD_ENUM_ATTR_FIELD_SCHEMA_ID;
    attributes.entries = kReductions.data();
    attributes.numEntries = kReductions.size();
    attributes.sizeOfEnum = sizeof(ncclRedOp_t);
    attributes.schemaId = kReductionEnum;
    nvtxPayloadEnumRegister(handle, &attributes);
    return handle;
  }();
  return made;
}

// Registered strings, as the real library uses.
nvtxStringHandle_t registered(const char* name) {
  static std::mutex& mutex = *new std::mutex();
  static auto& strings = *new std::map<const char*, nvtxStringHandle_t>();
  const std::lock_guard<std::mutex> lock(mutex);
  const auto [it, added] = strings.try_emplace(name, nullptr);
  if (added) it->second = nvtxDomainRegisterStringA(domain(), name);
  return it->second;
}

size_t width_of(const NvtxField& field) {
  const bool wide =
      field.type == NVTX_PAYLOAD_ENTRY_TYPE_UINT64 || field.type == NVTX_PAYLOAD_ENTRY_TYPE_SIZE;
  return wide ? 8 : 4;
}

// A struct of the fields.
struct Payload {
  alignas(8) std::array<unsigned char, 64> bytes{};
  size_t size = 0;
  std::array<size_t, 8> offsets{};
  nvtxPayloadData_t data{};
};

void lay_out(const NvtxFields& fields, Payload& out) {
  size_t widest = 4;
  for (size_t i = 0; i < fields.size(); ++i) {
    const size_t width = width_of(fields[i]);
    out.offsets[i] = (out.size + width - 1) / width * width;
    std::memcpy(&out.bytes[out.offsets[i]], &fields[i].value, width);
    out.size = out.offsets[i] + width;
    widest = std::max(widest, width);
  }
  out.size = (out.size + widest - 1) / widest * widest;
}

// NVTX_SID_... of nvtx.h.
uint64_t schema_id(std::string_view function) {
  constexpr std::string_view kFunctions[] = {"ncclCommInitRank",
                                             "ncclCommInitAll",
                                             "ncclCommDestroy",
                                             "ncclCommAbort",
                                             "ncclAllGather",
                                             "ncclAllReduce",
                                             "ncclBroadcast",
                                             "ncclReduceScatter",
                                             "ncclReduce",
                                             "ncclSend",
                                             "ncclRecv",
                                             "ncclCommInitRankConfig",
                                             "ncclCommInitRankScalable",
                                             "ncclCommSplit",
                                             "ncclCommFinalize",
                                             "ncclCommShrink",
                                             "ncclAlltoAll",
                                             "ncclGather",
                                             "ncclScatter"};
  constexpr std::string_view kConfig = "Config";
  const auto* at = std::ranges::find(kFunctions, function);
  if (at == std::end(kFunctions) && function.ends_with(kConfig)) {
    at = std::ranges::find(kFunctions, function.substr(0, function.size() - kConfig.size()));
  }
  if (at == std::end(kFunctions)) at = std::ranges::find(kFunctions, "ncclBroadcast");  // Bcast
  return NVTX_PAYLOAD_SCHEMA_ID_STATIC_START + static_cast<uint64_t>(at - kFunctions);
}

// Each function has its schema, registered by its first call, as NCCL's static variables do.
uint64_t schema_of(const char* function, const NvtxFields& fields, const Payload& payload) {
  static std::mutex& mutex = *new std::mutex();
  static auto& schemas = *new std::map<std::string, uint64_t>();
  const std::lock_guard<std::mutex> lock(mutex);
  const auto [it, added] = schemas.try_emplace(function, 0);
  if (!added) return it->second;
  auto& entries = *new std::vector<nvtxPayloadSchemaEntry_t>();
  for (size_t i = 0; i < fields.size(); ++i) {
    nvtxPayloadSchemaEntry_t entry{};
    entry.type = fields[i].type;
    entry.name = fields[i].name;
    entry.offset = payload.offsets[i];
    entries.push_back(entry);
  }
  nvtxPayloadSchemaAttr_t attributes{};
  attributes.fieldMask =
      NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_TYPE | NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_ENTRIES |
      NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_NUM_ENTRIES | NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_STATIC_SIZE |
      NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_SCHEMA_ID;
  attributes.type = NVTX_PAYLOAD_SCHEMA_TYPE_STATIC;
  attributes.entries = entries.data();
  attributes.numEntries = entries.size();
  if (nvtx_release() == NvtxRelease::k2_28) attributes.payloadStaticSize = payload.size;
  attributes.schemaId = it->second = schema_id(function);
  nvtxPayloadSchemaRegister(domain(), &attributes);
  return it->second;
}

void pack(const char* function, const NvtxFields& fields, Payload& out) {
  lay_out(fields, out);
  out.data = {schema_of(function, fields, out), out.size, out.bytes.data()};
}

uint64_t number(int value) { return static_cast<uint32_t>(value); }

}  // namespace

NvtxRelease nvtx_release() {
  static const NvtxRelease release = [] {
    const char* const text = std::getenv("SIMCUDA_NCCL_NVTX");
    if (text == nullptr || std::strcmp(text, "2.28") == 0) return NvtxRelease::k2_28;
    return std::strcmp(text, "2.18") == 0 ? NvtxRelease::k2_18 : NvtxRelease::kNone;
  }();
  return release;
}

NvtxFields nvtx_fields(const CollectiveCall& call, uint64_t hash) {
  if (nvtx_release() == NvtxRelease::kNone) return {};
  const bool old = nvtx_release() == NvtxRelease::k2_18;
  const bool message = is_message(call.code), rooted = call.root >= 0;
  const bool reduces = call.op >= 0;
  const bool plainly = old && (message || call.code == OpCode::kBroadcast);
  NvtxFields out;
  if (!old) out.push_back({kCommunicator, NVTX_PAYLOAD_ENTRY_TYPE_UINT64, hash});
  out.push_back({plainly ? "Bytes" : "Message size [bytes]", NVTX_PAYLOAD_ENTRY_TYPE_SIZE,
                 call.count * type_bytes(call.type)});
  if (rooted) out.push_back({"Root", NVTX_PAYLOAD_ENTRY_TYPE_INT, number(call.root)});
  if (message) out.push_back({"Peer rank", NVTX_PAYLOAD_ENTRY_TYPE_INT, number(call.peer)});
  if (reduces) out.push_back({"Reduction operation", kReductionEnum, number(call.op)});
  return out;
}

NvtxFields nvtx_fields(const CommState& comm) {
  const NvtxField rank{kRank, NVTX_PAYLOAD_ENTRY_TYPE_INT, number(comm.rank)};
  const NvtxField ranks{kRanks, NVTX_PAYLOAD_ENTRY_TYPE_INT, number(comm.ranks)};
  const NvtxField device{kDevice, NVTX_PAYLOAD_ENTRY_TYPE_INT, number(comm.device)};
  if (nvtx_release() == NvtxRelease::kNone) return {};
  if (nvtx_release() == NvtxRelease::k2_18) return {rank, ranks, device};
  return {{kCommunicator, NVTX_PAYLOAD_ENTRY_TYPE_UINT64, comm.hash}, ranks, rank, device};
}

NvtxFields nvtx_fields_of_all(uint64_t hash, int devices) {
  return {{kCommunicator, NVTX_PAYLOAD_ENTRY_TYPE_UINT64, hash},
          {"No. of devices", NVTX_PAYLOAD_ENTRY_TYPE_INT, number(devices)}};
}

NvtxFields nvtx_fields_of_split(const CommState& made, const CommState& parent, int color,
                                int key) {
  return {{kCommunicator, NVTX_PAYLOAD_ENTRY_TYPE_UINT64, made.hash},
          {"Parent NCCL communicator ID", NVTX_PAYLOAD_ENTRY_TYPE_UINT64, parent.hash},
          {kRanks, NVTX_PAYLOAD_ENTRY_TYPE_INT, number(parent.ranks)},
          {kRank, NVTX_PAYLOAD_ENTRY_TYPE_INT, number(parent.rank)},
          {kDevice, NVTX_PAYLOAD_ENTRY_TYPE_INT, number(parent.device)},
          {"Color", NVTX_PAYLOAD_ENTRY_TYPE_INT, number(color)},
          {"Key", NVTX_PAYLOAD_ENTRY_TYPE_INT, number(key)}};
}

NvtxRange::NvtxRange(const char* function, const NvtxFields& fields) : function_(function) {
  if (disabled()) return;
  Payload payload;
  nvtxEventAttributes_t attributes{};
  attributes.version = NVTX_VERSION;
  attributes.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  attributes.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
  attributes.message.registered = registered(function);
  if (!fields.empty()) {
    pack(function, fields, payload);
    attributes.payloadType = NVTX_PAYLOAD_TYPE_EXT;
    attributes.reserved0 = 1;
    attributes.payload.ullValue = reinterpret_cast<uint64_t>(&payload.data);
  }
  nvtxDomainRangePushEx(domain(), &attributes);
}

NvtxRange::~NvtxRange() {
  if (disabled()) return;
  if (at_end_.empty()) {
    nvtxDomainRangePop(domain());
    return;
  }
  Payload payload;
  pack(function_, at_end_, payload);
  nvtxRangePopPayload(domain(), &payload.data, 1);
}

}  // namespace gpuprof::simcuda
