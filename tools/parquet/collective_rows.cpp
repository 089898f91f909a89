// SPDX-License-Identifier: Apache-2.0
// Rows of collectives and messages.
#include <optional>

#include "formats/trace/collective_calls.h"
#include "formats/trace/names.h"
#include "tools/analysis/ranks/same_collectives.h"
#include "tools/parquet/row_place.h"

namespace gpuprof::parquet_export {

using namespace analysis;

template <>
std::vector<RowKey> sorted_keys<Collectives>(std::span<const Exported> sources) {
  std::vector<RowKey> keys;
  for (uint32_t i = 0; i < sources.size(); ++i) {
    for (uint32_t at = 0; at < sources[i].collectives.size(); ++at) {
      const Timeline& timeline = *sources[i].timeline;
      const int64_t begin = timeline.events().begin_of(sources[i].collectives[at].event);
      const int64_t step = step_of(timeline, begin);
      keys.push_back({step, begin, i, at, 0, step != RowKey::kNoStep});
    }
  }
  sort(keys);
  return keys;
}

template <>
void add_rows<Collectives>(std::span<const Exported> sources, std::span<const RowKey> keys,
                           TableFile& file) {
  using C = Collectives;
  for (const RowKey& key : keys) {
    const Exported& source = sources[key.source];
    const CollectiveCall& call = source.collectives[key.event];
    const Trace& trace = *source.trace;
    const Shape& shape = source.timeline->shape(call.event);
    const bool of_nccl = shape.kind == Kind::collective;  // else a kernel stands for it
    const auto name =
        of_nccl ? name_of_call(trace, *source.process, call.event) : std::optional<CallName>();
    const EventExtra& extra = source.process->extras[source.process->events.extra_of(call.event)];
    const auto elements = collective_elements(shape, extra);
    const auto bytes = collective_own_bytes(shape, extra);
    const NcclTypeName& type = nccl_type(shape.data_type);
    const std::string_view reduction =
        of_nccl && shape.operation != Shape::kAbsent ? nccl_operation_name(shape.operation) : "";
    const auto ns = [](double us) { return static_cast<int64_t>(us * 1000 + 0.5); };
    file.add<C>([&](Row<C>& row) {
      put_place(row, source, key);
      row.put_if(of_nccl, C::entered_ns, key.begin);
      row.put(C::start_ns, call.begin);
      row.put(C::end_ns, call.end);
      row.put_if(name.has_value(), C::communicator, name ? name->communicator : 0);
      row.text(C::group_name,
               group_label(trace.text(shape.group), trace.text(shape.group_description)));
      row.put_if(name.has_value(), C::sequence, name ? name->sequence : 0);
      row.text(C::operation, trace.strings, shape.name);
      row.text(C::reduction, reduction);
      row.put_if(of_nccl && elements, C::elements, elements.value_or(0));
      row.text(C::data_type, of_nccl ? type.nccl : "");
      row.put_if(of_nccl && bytes, C::bytes, bytes.value_or(0));
      row.put_if(of_nccl && shape.rank_count, C::group_size, shape.rank_count);
      row.put_if(of_nccl && shape.rank != Shape::kAbsent, C::group_rank, shape.rank);
      row.put_if(of_nccl && shape.peer != Shape::kAbsent, C::peer, shape.peer);
      row.put_if(call.matched, C::transfer_ns, ns(call.transfer_us));
      row.put_if(call.matched, C::wait_ns, ns(call.wait_us));
      row.put_if(call.matched, C::exposed_ns, ns(call.exposed_us));
      row.put_if(call.matched, C::overlapped_ns, ns(call.overlapped_us));
    });
  }
}

}  // namespace gpuprof::parquet_export
