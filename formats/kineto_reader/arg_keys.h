// SPDX-License-Identifier: Apache-2.0
// Keys in `args` of Kineto's events that have a field in the in-memory trace.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace gpuprof::kineto {

enum class ArgKey : uint8_t {
  none,
  address,
  block,
  bytes,
  call_stack,
  callback,
  category,
  cluster,
  channel,
  channel_type,
  color,
  communicator,
  context,
  copy_direction,
  copy_kind,
  correlation,
  depth,
  derived,
  derived_of_collective,
  destination_kind,
  device,
  device_id,
  device_type,
  domain,
  dtype,
  event_handle,
  event_id,
  external_id,
  forward_thread,
  from_device,
  graph_id,
  graph_node,
  grid,
  group_description,
  group_name,
  group_ranks,
  group_size,
  hierarchy,
  in_elements,
  inner_correlation,
  input_dims,
  input_types,
  kernel,
  local_memory,
  memory_kind,
  memory_operation,
  message_bytes,
  nccl_call,
  nccl_function,
  nccl_operation,
  number_,
  of_range,
  of_shape,
  open_end,
  original_stream,
  out_elements,
  payload,
  peer,
  peer_in_job,
  pointer,
  python_id,
  python_module,
  python_parent,
  range_id,
  rank,
  registers,
  requested_bytes,
  result,
  sequence,
  sequence_of_collective,
  shared_memory,
  source,
  source_kind,
  static_shared,
  step_ns,
  stream,
  stream_handle,
  sync_kind,
  to_device,
  total_allocated,
  total_reserved,
  tensor_bytes,
};

struct ArgName {
  std::string_view text;
  ArgKey key;
};

// Rows: what Kineto writes, in old spelling where that differs, then what only we write.
inline constexpr ArgName kArgNames[] = {
    {"Addr", ArgKey::address},
    {"blocks per SM", ArgKey::of_shape},
    {"warps per SM", ArgKey::of_shape},
    {"est. achieved occupancy %", ArgKey::of_shape},
    {"queued", ArgKey::of_shape},
    {"cbid", ArgKey::of_shape},
    {"block", ArgKey::block},
    {"bytes", ArgKey::bytes},
    {"Bytes", ArgKey::tensor_bytes},
    {"Call stack", ArgKey::call_stack},
    {"channel", ArgKey::channel},
    {"channel_type", ArgKey::channel_type},
    {"context", ArgKey::context},
    {"correlation", ArgKey::correlation},
    {"device", ArgKey::device},
    {"Device Id", ArgKey::device_id},
    {"Device Type", ArgKey::device_type},
    {"wait_on_cuda_event_id", ArgKey::event_id},
    {"External id", ArgKey::external_id},
    {"external id", ArgKey::external_id},
    {"Fwd thread id", ArgKey::forward_thread},
    {"fromDevice", ArgKey::from_device},
    {"graph id", ArgKey::graph_id},
    {"graph node id", ArgKey::graph_node},
    {"grid", ArgKey::grid},
    {"Module Hierarchy", ArgKey::hierarchy},
    {"Input Dims", ArgKey::input_dims},
    {"Input dims", ArgKey::input_dims},
    {"Input type", ArgKey::input_types},
    {"Ev Idx", ArgKey::number_},
    {"Python id", ArgKey::python_id},
    {"Python module id", ArgKey::python_module},
    {"Python parent id", ArgKey::python_parent},
    {"registers per thread", ArgKey::registers},
    {"Sequence number", ArgKey::sequence},
    {"shared memory", ArgKey::shared_memory},
    {"stream", ArgKey::stream},
    {"cuda_sync_kind", ArgKey::sync_kind},
    {"toDevice", ArgKey::to_device},
    {"copy kind", ArgKey::copy_direction},  // of torch.profiler's newer exporters
    {"dst kind", ArgKey::destination_kind},
    {"src kind", ArgKey::source_kind},
    {"Total Allocated", ArgKey::total_allocated},
    {"Total Reserved", ArgKey::total_reserved},
    {"Collective name", ArgKey::derived_of_collective},
    {"Comms Id", ArgKey::communicator},
    {"Dst Rank", ArgKey::peer_in_job},
    {"dtype", ArgKey::dtype},
    {"Group size", ArgKey::group_size},
    {"In msg nelems", ArgKey::in_elements},
    {"Out msg nelems", ArgKey::out_elements},
    {"Process Group Description", ArgKey::group_description},
    {"Process Group Name", ArgKey::group_name},
    {"Process Group Ranks", ArgKey::group_ranks},
    {"Rank", ArgKey::rank},
    {"Seq", ArgKey::sequence_of_collective},
    {"Peer", ArgKey::peer},
    {"Src Rank", ArgKey::peer_in_job},
    {"address", ArgKey::pointer},
    {"cluster", ArgKey::cluster},
    {"cudaMemcpyKind", ArgKey::copy_kind},
    {"event handle", ArgKey::event_handle},
    {"from callback", ArgKey::callback},
    {"from NVTX", ArgKey::of_range},
    {"gpuprof derived", ArgKey::derived},
    {"gpuprof step ns", ArgKey::step_ns},
    {"inner correlation", ArgKey::inner_correlation},
    {"launched kernel", ArgKey::kernel},
    {"local memory per thread", ArgKey::local_memory},
    {"memory kind", ArgKey::memory_kind},
    {"memory operation", ArgKey::memory_operation},
    {"message bytes", ArgKey::message_bytes},
    {"nccl call", ArgKey::nccl_call},
    {"nccl function", ArgKey::nccl_function},
    {"nccl operation", ArgKey::nccl_operation},
    {"nvtx category", ArgKey::category},
    {"nvtx color", ArgKey::color},
    {"nvtx depth", ArgKey::depth},
    {"nvtx domain", ArgKey::domain},
    {"nvtx payload", ArgKey::payload},
    {"nvtx range id", ArgKey::range_id},
    {"open at window end", ArgKey::open_end},
    {"original_stream", ArgKey::original_stream},
    {"requested bytes", ArgKey::requested_bytes},
    {"result", ArgKey::result},
    {"source", ArgKey::source},
    {"static shared memory", ArgKey::static_shared},
    {"stream handle", ArgKey::stream_handle},
};

namespace detail {
constexpr uint8_t hash_of(std::string_view key) {
  const auto at = [&](size_t i) { return static_cast<uint32_t>(static_cast<uint8_t>(key[i])); };
  return static_cast<uint8_t>(key.size() * 37 + at(0) * 5 + at(key.size() / 2) * 11 +
                              at(key.size() - 1) * 3);
}
constexpr std::array<uint8_t, 256> make_table() {  // rows of kArgNames, from 1
  std::array<uint8_t, 256> table{};
  for (size_t i = 0; i < std::size(kArgNames); ++i) {
    uint8_t at = hash_of(kArgNames[i].text);
    while (table[at]) ++at;
    table[at] = static_cast<uint8_t>(i + 1);
  }
  return table;
}
inline constexpr std::array<uint8_t, 256> kTable = make_table();
}  // namespace detail

constexpr ArgKey arg_key(std::string_view key) {
  if (key.empty()) return ArgKey::none;
  for (uint8_t at = detail::hash_of(key); detail::kTable[at]; ++at) {
    const ArgName& row = kArgNames[detail::kTable[at] - 1];
    if (row.text == key) return row.key;
  }
  return ArgKey::none;
}
static_assert(arg_key("correlation") == ArgKey::correlation && arg_key("x") == ArgKey::none);

}  // namespace gpuprof::kineto
