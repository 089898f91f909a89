// SPDX-License-Identifier: Apache-2.0
#include "formats/dump/nvtx_names.h"

#include "formats/dump/edit_shapes.h"
#include "formats/io/utf8.h"

namespace gpuprof {

void NvtxNames::add(const dump::NvtxNames& names, size_t most) {
  for (const dump::NvtxName& each : names.name()) {
    if (categories_.size() + threads_.size() + streams_.size() + devices_.size() >= most) return;
    std::string name = valid_utf8(each.name());
    switch (each.object()) {
      case dump::NvtxName::CATEGORY:
        categories_[{each.domain(), each.id()}] = std::move(name);
        break;
      case dump::NvtxName::THREAD: threads_[each.id()] = std::move(name); break;
      case dump::NvtxName::STREAM: streams_[each.id()] = std::move(name); break;
      case dump::NvtxName::DEVICE: devices_[each.id()] = std::move(name); break;
      default: break;
    }
  }
}

void NvtxNames::name_lanes(Trace& trace, std::vector<OpenLane>& lanes) const {
  for (OpenLane& open : lanes) {
    if (open.lane.type != LaneType::thread) continue;
    const auto name = threads_.find(open.lane.thread_id);
    if (name != threads_.end() && !name->second.empty()) open.lane.thread_name = name->second;
  }
  if (categories_.empty()) return;
  edit_shapes(trace, lanes, [&](Shape& shape) {
    if (shape.kind != Kind::nvtx_range && shape.kind != Kind::nvtx_mark) return false;
    const std::string domain(trace.strings[shape.detail]);
    const auto name = categories_.find({domain, shape.category});
    if (name == categories_.end()) return false;
    shape.group = trace.strings.intern(name->second);
    return true;
  });
}

void NvtxNames::name_process(Process& process) const {
  for (const auto& [device, name] : devices_) {
    if (device <= UINT32_MAX) process.gpu_names[static_cast<uint32_t>(device)] = name;
  }
  if (streams_.empty()) return;
  for (Lane& lane : process.lanes) {
    if (lane.type != LaneType::stream) continue;
    for (const StreamLink& link : process.streams) {
      if (link.device != lane.device || link.context != lane.context || link.stream != lane.stream)
        continue;
      const auto name = streams_.find(link.handle);
      if (name != streams_.end()) lane.thread_name = name->second;
    }
  }
}

}  // namespace gpuprof
