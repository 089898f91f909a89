// SPDX-License-Identifier: Apache-2.0
// Rows of collectives and messages.
#include <optional>
#include <string_view>

#include "formats/trace/collective_calls.h"
#include "formats/trace/names.h"
#include "tools/analysis/collective_args.h"
#include "tools/analysis/ranks/same_collectives.h"
#include "tools/hash.h"
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

namespace {

// What is known of a collective, whatever tells of it.
struct Known {
  std::optional<uint64_t> communicator, sequence, elements, bytes;
  std::string_view group, operation, reduction, data_type;
  uint32_t group_size = 0, group_rank = Shape::kAbsent, peer = Shape::kAbsent;
  std::optional<CollectiveArgs> args;  // holds the texts of a kernel's
};

Known known_of_call(const Exported& source, const CollectiveCall& call, const Shape& shape) {
  const Trace& trace = *source.trace;
  const EventExtra& extra = source.process->extras[source.process->events.extra_of(call.event)];
  Known out;
  if (const auto name = name_of_call(trace, *source.process, call.event)) {
    out.communicator = name->communicator, out.sequence = name->sequence;
  }
  out.group = group_label(trace.text(shape.group), trace.text(shape.group_description));
  out.operation = trace.text(shape.name);
  if (shape.operation != Shape::kAbsent) out.reduction = nccl_operation_name(shape.operation);
  out.data_type = nccl_type(shape.data_type).nccl;
  out.elements = collective_elements(shape, extra);
  out.bytes = collective_own_bytes(shape, extra);
  out.group_size = shape.rank_count;
  out.group_rank = shape.rank, out.peer = shape.peer;
  return out;
}

// A trace without NCCL's calls has a kernel for each, and what its arguments say.
void read_kernel(const Exported& source, const CollectiveCall& call, const Shape& shape,
                 Known& out) {
  const Trace& trace = *source.trace;
  const EventExtra& extra = source.process->extras[source.process->events.extra_of(call.event)];
  out.operation = trace.text(shape.name);
  out.args = collective_in(trace.text(extra.args));
  if (!out.args) return;
  out.operation = out.args->function;
  out.group = out.args->label;
  out.data_type = out.args->data_type;
  out.elements = out.args->elements;
  out.bytes = out.args->bytes;
  out.group_size = out.args->group_size;
  out.sequence = out.args->sequence;
  // Name and ranks of the group are the same on all its ranks.
  if (!out.args->group.empty()) out.communicator = fnv1a(out.args->group);
}

}  // namespace

template <>
void add_rows<Collectives>(std::span<const Exported> sources, std::span<const RowKey> keys,
                           TableFile& file) {
  using C = Collectives;
  for (const RowKey& key : keys) {
    const Exported& source = sources[key.source];
    const CollectiveCall& call = source.collectives[key.event];
    const Shape& shape = source.timeline->shape(call.event);
    const bool of_nccl = shape.kind == Kind::collective;
    Known known;
    if (of_nccl) {
      known = known_of_call(source, call, shape);
    } else {
      read_kernel(source, call, shape, known);
    }
    const auto ns = [](double us) { return static_cast<int64_t>(us * 1000 + 0.5); };
    file.add<C>([&](Row<C>& row) {
      put_place(row, source, key);
      row.put_if(of_nccl, C::entered_ns, key.begin);
      row.put(C::start_ns, call.begin);
      row.put(C::end_ns, call.end);
      row.put_if(known.communicator.has_value(), C::communicator, known.communicator.value_or(0));
      row.text(C::group_name, known.group);
      row.put_if(known.sequence.has_value(), C::sequence, known.sequence.value_or(0));
      row.text(C::operation, known.operation);
      row.text(C::reduction, known.reduction);
      row.put_if(known.elements.has_value(), C::elements, known.elements.value_or(0));
      row.text(C::data_type, known.data_type);
      row.put_if(known.bytes.has_value(), C::bytes, known.bytes.value_or(0));
      row.put_if(known.group_size != 0, C::group_size, known.group_size);
      row.put_if(known.group_rank != Shape::kAbsent, C::group_rank, known.group_rank);
      row.put_if(known.peer != Shape::kAbsent, C::peer, known.peer);
      row.put_if(call.matched, C::transfer_ns, ns(call.transfer_us));
      row.put_if(call.wait_us.has_value(), C::wait_ns, ns(call.wait_us.value_or(0)));
      row.put_if(call.matched, C::exposed_ns, ns(call.exposed_us));
      row.put_if(call.matched, C::overlapped_ns, ns(call.overlapped_us));
    });
  }
}

}  // namespace gpuprof::parquet_export
