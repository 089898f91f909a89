// SPDX-License-Identifier: Apache-2.0
#include "formats/writers/kineto/external_id_map.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <unordered_set>

#include "formats/views/gpu_annotations.h"
#include "formats/views/slices.h"

namespace gpuprof {
namespace {

constexpr std::string_view kKey = "\"External id\":";

struct IdText {
  uint64_t id;
  std::string_view rest;  // what follows the number
};

std::optional<IdText> first_id(std::string_view args) {
  if (!args.starts_with(kKey)) return std::nullopt;
  args.remove_prefix(kKey.size());
  IdText out{};
  const auto [end, error] = std::from_chars(args.data(), args.data() + args.size(), out.id);
  out.rest = args.substr(static_cast<size_t>(end - args.data()));
  if (error != std::errc() || (!out.rest.empty() && out.rest.front() != ',')) return std::nullopt;
  return out;
}

}  // namespace

struct ExternalIdMap::Taken {
  // JSON's readers hold larger numbers inexactly: none is counted on from these.
  static constexpr uint64_t kLimit = uint64_t{1} << 53;

  void add(uint64_t id) {
    if (id == 0 || id >= kLimit) return;
    least = std::min(least, id);
    greatest = std::max(greatest, id);
  }

  uint64_t least = kLimit, greatest = 0;
};

std::vector<ExternalIdMap::Use> ExternalIdMap::uses_of(const Trace& trace) {
  std::vector<Use> uses;
  for (const Shape& shape : trace.shapes) {
    switch (shape.kind) {
      case Kind::op:
      case Kind::annotation:
      case Kind::gpu_annotation: uses.push_back(Use::named); break;
      case Kind::collective: uses.push_back(Use::collective); break;
      case Kind::nvtx_range:
        uses.push_back(names_torch_data_loader(trace.text(shape.label)) ? Use::loader : Use::none);
        break;
      default: uses.push_back(Use::none);
    }
  }
  return uses;
}

// Of a trace that gpuprof exported: kernels of collectives name these.
void ExternalIdMap::find_named_collectives(const Trace& trace, const Process& process) {
  std::unordered_set<uint64_t> ids;
  for (const auto& [kernel, pair] : collectives_by_kernel(process)) {
    const Event event = process.events[kernel];
    const auto text = first_id(trace.text(process.extra(event).args));
    if (!text || !ids.insert(text->id).second) continue;
    named_.emplace(number(process.collective_kernels[pair].collective), text->id);
  }
}

void ExternalIdMap::find_ids(const Trace& trace, const Process& process, Taken& taken) {
  const std::vector<Use> uses = uses_of(trace);
  const bool outside = process.source == Source::kineto;
  const EventTable& events = process.events;
  for (uint32_t i = 0; i < events.size(); ++i) {
    const Use use = uses[number(events.shape_of(i))];
    if (use == Use::none && !outside) continue;
    const EventExtra& extra = process.extras[events.extra_of(i)];
    if (use == Use::named) taken.add(extra.value);
    const bool counts = use == Use::loader || (use == Use::collective && !named_.contains(i));
    if (counts) counted_.emplace(i, counted_.size());
    if (!outside || extra.args == StringIndex::empty) continue;
    if (const auto text = first_id(trace.text(extra.args))) taken.add(text->id);
  }
}

ExternalIdMap::ExternalIdMap(const Trace& trace, const Process& process, uint64_t& next) {
  Taken taken;
  if (process.source == Source::kineto) find_named_collectives(trace, process);
  find_ids(trace, process, taken);
  if (taken.least < next) moved_by_ = next - 1;
  if (taken.greatest) next = std::max(next, taken.greatest + moved_by_ + 1);
  first_counted_ = next;
  first_step_ = first_counted_ + counted_.size();
  next = first_step_ + process.window_steps().size();
}

uint64_t ExternalIdMap::of_event(EventIndex event) const {
  if (const auto own = named_.find(number(event)); own != named_.end()) {
    return of_named(own->second);
  }
  const auto at = counted_.find(number(event));
  return at == counted_.end() ? 0 : first_counted_ + at->second;
}

bool ExternalIdMap::is_in(std::string_view args) { return first_id(args).has_value(); }

void ExternalIdMap::write_args(std::string_view args, JsonText& json) const {
  const auto id = moved_by_ ? first_id(args) : std::nullopt;
  if (!id) {
    json.raw(args);
  } else {
    json.raw(kKey).number(of_named(id->id)).raw(id->rest);
  }
}

}  // namespace gpuprof
