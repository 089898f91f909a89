// SPDX-License-Identifier: Apache-2.0
#include "formats/kineto_reader/top_level.h"

#include <optional>

#include "formats/kineto_reader/numbers.h"
#include "formats/kineto_reader/scan.h"

namespace gpuprof::kineto {
namespace {

// Calls `each` with key and value of every member of an object, as far as it is one.
template <typename Each>
void for_members(std::string_view object, Each each) {
  const char* at = object.data() + 1;
  const char* const end = object.data() + object.size();
  while (at && at < end) {
    Value key, value;
    at = skip_space(at, end);
    if (at == end || *at != '"' || !(at = read_value(at, end, key))) return;
    at = skip_space(at, end);
    if (at == end || *at != ':') return;
    at = read_value(skip_space(at + 1, end), end, value);
    if (!at) return;
    each(key.text, value);
    at = skip_space(at, end);
    if (at == end || *at != ',') return;
    ++at;
  }
}

std::string text_of(const Value& value, TextFaults& faults) {
  std::string out;
  if (value.type == ValueType::string) unescape(value.text, out, faults);
  return out;
}

uint64_t number_of(const Value& value) { return whole(value.text).value_or(0); }
uint32_t small_of(const Value& value) {
  const uint64_t number = number_of(value);
  return number <= UINT32_MAX ? static_cast<uint32_t>(number) : 0;
}

void read_device(std::string_view object, dump::Device& device, TopLevel& out) {
  for_members(object, [&](std::string_view key, const Value& value) {
    if (key == "id") device.set_id(small_of(value));
    if (key == "name") device.set_name(text_of(value, out.faults));
    if (key == "totalGlobalMem") device.set_total_memory_bytes(number_of(value));
    if (key == "computeMajor") device.set_compute_major(small_of(value));
    if (key == "computeMinor") device.set_compute_minor(small_of(value));
    if (key == "numSms") device.set_multiprocessors(small_of(value));
    if (key == "warpSize") device.set_warp_size(small_of(value));
    if (key == "maxThreadsPerBlock") device.set_max_threads_per_block(small_of(value));
    if (key == "maxThreadsPerMultiprocessor") {
      device.set_max_threads_per_multiprocessor(small_of(value));
    }
    if (key == "regsPerBlock") device.set_registers_per_block(small_of(value));
    if (key == "regsPerMultiprocessor") {
      device.set_registers_per_multiprocessor(small_of(value));
    }
    if (key == "sharedMemPerBlock") device.set_shared_bytes_per_block(small_of(value));
    if (key == "sharedMemPerBlockOptin") device.set_shared_bytes_per_block_optin(small_of(value));
    if (key == "sharedMemPerMultiprocessor" || key == "maxSharedMemoryPerMultiProcessor") {
      device.set_shared_bytes_per_multiprocessor(small_of(value));
    }
  });
}

// Calls `each` with the objects of an array, as far as it is one of objects; some thousand at most.
template <typename Each>
void for_objects(std::string_view array, Each each) {
  constexpr int kMost = 4096;
  const char* at = array.data() + 1;
  const char* const end = array.data() + array.size();
  for (int i = 0; at && at < end && i < kMost; ++i) {
    Value object;
    at = skip_space(at, end);
    if (at == end || *at != '{') return;
    at = read_value(at, end, object);
    if (!at) return;
    each(object.text);
    at = skip_space(at, end);
    if (at == end || *at != ',') return;
    ++at;
  }
}

// A kind of a newer gpuprof is not told.
void read_left_out(std::string_view object, TopLevel& out) {
  LeftOutOf found;
  for_members(object, [&](std::string_view key, const Value& value) {
    if (key == "pid") found.pid = signed_whole(value.text).value_or(0);
    if (key == "since_ns") found.left_out.since = signed_whole(value.text).value_or(0);
    if (key == "budget_pct") found.budget_pct = real(value.text).value_or(0);
    for (size_t kind = 1; key == "kind" && kind < kShedKinds; ++kind) {
      if (value.text == kShedTexts[kind].name) found.left_out.kind = static_cast<ShedKind>(kind);
    }
  });
  if (found.left_out.kind != ShedKind::none) out.left_out.push_back(found);
}

void keep(std::string_view member, std::string& members, TopLevel& out) {
  const std::string sound = sound_members(member, out.faults);
  if (!sound.empty()) members.append(members.empty() ? "" : ",").append(sound);
}

void read_distributed(std::string_view object, TopLevel& out) {
  for_members(object, [&](std::string_view key, const Value& value) {
    const std::optional<int64_t> number = signed_whole(value.text);
    const bool small = number && *number >= 0 && *number <= INT32_MAX;
    if (small && key == "rank") {
      out.header.set_rank(static_cast<int32_t>(*number));
    } else if (small && key == "world_size") {
      out.header.set_world_size(static_cast<int32_t>(*number));
    } else {
      const char* const end =
          value.text.data() + value.text.size() + (value.type == ValueType::string ? 1 : 0);
      keep({key.data() - 1, static_cast<size_t>(end - key.data() + 1)}, out.distributed, out);
    }
  });
}

void take_member(std::string_view key, const Value& value, std::string_view member, TopLevel& out) {
  if (key == "deviceProperties" && value.type == ValueType::array) {
    if (out.header.device_size() > 0) return;
    for_objects(value.text, [&](std::string_view device) {
      read_device(device, *out.header.add_device(), out);
    });
  } else if (key == "gpuprof left out" && value.type == ValueType::array) {
    for_objects(value.text, [&](std::string_view each) { read_left_out(each, out); });
  } else if (key == "distributedInfo" && value.type == ValueType::object) {
    read_distributed(value.text, out);
  } else if (key == "host_name") {
    out.header.set_host(text_of(value, out.faults));
  } else if (key == "baseTimeNanoseconds") {
    out.base_nanoseconds = signed_whole(value.text).value_or(0);
  } else if (key == "cuda_runtime_version" && small_of(value) != 0) {
    out.header.set_runtime_version(small_of(value));
  } else if (key == "cuda_driver_version" && small_of(value) != 0) {
    out.header.set_driver_version(small_of(value));
  } else if (key == "producer" && value.text == "gpuprof") {
    out.ours = true;
  } else if (key != "schemaVersion" && key != "displayTimeUnit" && key != "traceName") {
    keep(member, out.metadata, out);
  }
}

}  // namespace

TopStop read_top_level(std::string_view text, size_t& at, TopLevel& out) {
  const char* const begin = text.data();
  const char* const end = begin + text.size();
  while (true) {
    const char* p = begin + at;
    while (p < end && (is_space(*p) || *p == ',')) ++p;
    at = static_cast<size_t>(p - begin);
    if (p == end) return TopStop::need_more;
    if (*p == '}') {
      ++at;
      return TopStop::end;
    }
    if (*p != '"') return TopStop::wrong;
    Value key, value;
    const char* const first = p;
    p = read_value(p, end, key);
    if (!p) return TopStop::need_more;
    p = skip_space(p, end);
    if (p == end) return TopStop::need_more;
    if (*p != ':') return TopStop::wrong;
    p = skip_space(p + 1, end);
    if (p == end) return TopStop::need_more;
    if (key.text == "traceEvents" && *p == '[') {
      at = static_cast<size_t>(p + 1 - begin);
      return TopStop::events;
    }
    const char* const behind = read_value(p, end, value);
    if (!behind) return TopStop::need_more;
    if (behind == p) return TopStop::wrong;
    take_member(key.text, value, {first, static_cast<size_t>(behind - first)}, out);
    at = static_cast<size_t>(behind - begin);
  }
}

}  // namespace gpuprof::kineto
