// SPDX-License-Identifier: Apache-2.0
#include "tools/analysis/tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <map>
#include <optional>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "formats/core/early_window.h"
#include "formats/trace/collective_calls.h"
#include "formats/trace/names.h"
#include "formats/views/memory_curves.h"
#include "formats/views/occupancy.h"
#include "formats/views/slices.h"
#include "tools/analysis/collective_args.h"
#include "tools/analysis/kernel_families.h"
#include "tools/analysis/named_rows.h"
#include "tools/analysis/short_names.h"
#include "tools/analysis/tensor_types.h"
#include "tools/analysis/walks.h"

namespace gpuprof::analysis {
namespace {

// CUpti_ActivityMemoryKind, CUpti_ActivityMemcpyKind.
constexpr uint32_t kPageable = 1, kPinned = 2;
constexpr uint32_t kToDevice = 1, kToHost = 2;

bool is_pinned_copy(const Shape& shape) {
  return (shape.direction == kToDevice && shape.source_kind == kPinned) ||
         (shape.direction == kToHost && shape.destination_kind == kPinned);
}

template <typename Row>
std::vector<Row> by_time(std::map<std::string, Row>&& rows) {
  return named_rows(std::move(rows), &Row::total_us);
}

class TableMaker {
 public:
  explicit TableMaker(std::span<const Timeline> timelines) : timelines_(timelines) {}

  Tables make() {
    for (const Timeline& timeline : timelines_) {
      if (timeline.steps.empty()) continue;
      begin_ = timeline.steps.front().begin;
      end_ = timeline.steps.back().end;
      apart_ = leave_time_between(timeline.steps);
      add_works(timeline);
      add_calls(timeline);
      add_collectives(timeline);
      add_collectives_of_kernels(timeline);
      out_.memory.push_back(memory_of(timeline));
    }
    finish_kernels();
    out_.copies = by_time(std::move(copies_));
    finish_collectives();
    out_.synchronizations = by_time(std::move(syncs_));
    out_.allocations = by_time(std::move(allocations_));
    return std::move(out_);
  }

 private:
  struct ShapeSum {
    uint64_t count = 0;
    int64_t total = 0;
    Occupancy occupancy;
    WorkClass kind = WorkClass::compute;
  };

  bool inside(const Timeline& timeline, int64_t time) const {
    return time >= begin_ && time < end_ && (!apart_ || timeline.step_at(time));
  }

  struct Copies {
    uint64_t to_gpu = 0, from_gpu = 0;
  };

  void add_copy(const Timeline& timeline, const Work& work, const Shape& shape,
                std::map<uint64_t, Copies>& by_size) {
    const std::string_view label = timeline.trace->text(shape.label);
    const uint64_t bytes = timeline.process->extras[timeline.events().extra_of(work.event)].bytes;
    const double us = static_cast<double>(work.end - work.begin) / 1000;
    CopyRow& row = copies_[std::string(label)];
    ++row.count;
    row.bytes += bytes;
    if (shape.direction == kToDevice) ++by_size[bytes].to_gpu;
    if (shape.direction == kToHost) ++by_size[bytes].from_gpu;
    row.total_us += us;
    if (!exposed_) exposed_ = exposed_copies(timeline);
    const auto found = exposed_->find(work.event);
    const double exposed_us =
        found == exposed_->end() ? 0 : static_cast<double>(found->second) / 1000;
    row.exposed_us += exposed_us;
    row.pageable = shape.source_kind == kPageable || shape.destination_kind == kPageable;
    if (!is_pinned_copy(shape)) return;
    const std::optional<Call> call = timeline.call_of(work);
    if (!call || call->blocking) return;
    row.asynchronous_us += us;
    row.exposed_asynchronous_us += exposed_us;
  }

  // By copy or set, in `events`: ns in which no kernel ran, and none that began before. As the part
  // `transfer` has it.
  static std::unordered_map<uint32_t, int64_t> exposed_copies(const Timeline& timeline) {
    std::unordered_map<uint32_t, int64_t> out;
    std::deque<Work> open;
    int64_t kernels_until = INT64_MIN, at = INT64_MIN;
    // What the first of the copies that run until `time` has alone.
    const auto advance = [&](int64_t time) {
      at = std::max(at, std::min(kernels_until, time));
      while (!open.empty() && at < time) {
        const Work& copy = open.front();
        const int64_t end = std::min(copy.end, time);
        if (end > std::max(at, copy.begin)) out[copy.event] += end - std::max(at, copy.begin);
        at = std::max(at, end);
        if (copy.end > time) break;
        open.pop_front();
      }
      at = std::max(at, time);
    };
    for (auto work = all_work(timeline); !work.at_end(); ++work) {
      advance(work->begin);
      if (work->kind == WorkClass::transfer) {
        open.push_back(*work);
      } else {
        kernels_until = std::max(kernels_until, work->end);
      }
    }
    advance(INT64_MAX);
    return out;
  }

  void add_works(const Timeline& timeline) {
    const Trace& trace = *timeline.trace;
    trace_ = &trace;
    shapes_.resize(trace.shapes.size());
    std::map<uint64_t, Copies> by_size;
    exposed_.reset();
    std::vector<bool> seen(timeline.streams.size());  // those that ran kernels
    each_work_of_steps(timeline, [&](const Work& work) {
      const ShapeIndex index = timeline.events().shape_of(work.event);
      const Shape& shape = trace.shapes[index];
      const int64_t length = work.end - work.begin;
      if (shape.kind == Kind::gpu_copy || shape.kind == Kind::gpu_set) {
        return add_copy(timeline, work, shape, by_size);
      }
      if (shape.kind == Kind::gpu_graph && timeline.process->summary.gpu_times_from() == "events") {
        out_.event_graph_us += static_cast<double>(length) / 1000;
      }
      ShapeSum& sum = shapes_[number(index)];
      if (!sum.count) {
        const dump::Device* const device =
            device_of(*timeline.process, timeline.streams[work.stream].name.device);
        if (device) sum.occupancy = occupancy_of(shape, *device);
        sum.kind = work.kind;
      }
      ++sum.count;
      sum.total += length;
      if (!seen[work.stream]) add_device(timeline, work.stream);
      seen[work.stream] = true;
      if (length < kTinyKernelNs) ++tiny_;
      ++all_;
    });
    for (const auto& [bytes, copies] : by_size) {
      const uint64_t both = std::min(copies.to_gpu, copies.from_gpu);
      out_.copies_back.count += both;
      out_.copies_back.bytes += static_cast<double>(both * bytes);
    }
  }

  // Of a stream that ran a kernel.
  void add_device(const Timeline& timeline, uint32_t stream) {
    const dump::Device* const device =
        device_of(*timeline.process, timeline.streams[stream].name.device);
    const TensorTypes types = device ? tensor_types(*device) : TensorTypes::not_known;
    out_.tensor_types = all_ ? std::min(out_.tensor_types, types) : types;
  }

  void add_calls(const Timeline& timeline) {
    const Trace& trace = *timeline.trace;
    each_call(timeline, [&](const Call& call) {
      if (!inside(timeline, call.begin)) return;
      const Shape& shape = timeline.shape(call.event);
      const double us = static_cast<double>(call.end - call.begin) / 1000;
      if (shape.kind == Kind::launch) {
        ++out_.launches;
        out_.launch_us += us;
        if (trace.text(shape.name).find("GraphLaunch") != std::string_view::npos) {
          ++out_.graph_launches;
        }
      }
      const bool waits = call.kind == CallClass::synchronize || call.blocking;
      if (!waits && call.kind != CallClass::allocate) return;
      CallRow& row = (waits ? syncs_ : allocations_)[std::string(trace.text(shape.name))];
      ++row.count;
      row.total_us += us;
    });
  }

  CollectiveRow& collective_row(std::string_view function, std::string_view group) {
    CollectiveRow& row = collectives_[fmt::format("{}\n{}", function, group)];
    row.group = group;
    return row;
  }

  GroupRow& group_row(const Trace& trace, const Shape& shape) {
    const std::tuple key(trace.text(shape.group_description), trace.text(shape.group_ranks),
                         trace.text(shape.group));
    GroupRow& row = groups_[key];
    if (row.count > 0) return row;
    row.name = trace.text(shape.group);
    row.description = trace.text(shape.group_description);
    row.ranks = trace.text(shape.group_ranks);
    return row;
  }

  void finish_collectives() {
    for (auto& [key, row] : groups_) out_.process_groups.push_back(std::move(row));
    out_.collectives = by_time(std::move(collectives_));
    for (CollectiveRow& row : out_.collectives) row.name.resize(row.name.find('\n'));
  }

  // Of the time of a kernel that does several calls, as in a group, each has its part by its bytes.
  static double weight_of(const Timeline& timeline, const Event& call) {
    const auto bytes =
        collective_own_bytes(timeline.trace->shape(call), timeline.process->extra(call));
    return std::max(1.0, static_cast<double>(bytes.value_or(0)));
  }

  void add_collectives(const Timeline& timeline) {
    const Process& process = *timeline.process;
    EventIndex last = EventIndex::none;
    std::unordered_map<EventIndex, double> weights;  // of all calls of a kernel
    for (const CollectiveKernel& pair : process.collective_kernels) {
      weights[pair.kernel] += weight_of(timeline, process.event(pair.collective));
    }
    for (const CollectiveKernel& pair : process.collective_kernels) {
      const Event& call = process.event(pair.collective);
      const Event& kernel = process.event(pair.kernel);
      if (!inside(timeline, call.begin)) continue;
      const Shape& shape = timeline.trace->shape(call);
      const std::string_view group = group_label(timeline.trace->text(shape.group),
                                                 timeline.trace->text(shape.group_description));
      CollectiveRow& row = collective_row(timeline.trace->text(shape.name), group);
      const double share = weight_of(timeline, call) / weights[pair.kernel];
      row.total_us += share * static_cast<double>(kernel.end - kernel.begin) / 1000;
      if (pair.collective == last) continue;
      last = pair.collective;
      ++row.count;
      if (!group.empty()) ++group_row(*timeline.trace, shape).count;
      const auto bytes = collective_own_bytes(shape, process.extra(call));
      row.bytes += bytes.value_or(0);
      row.unsized += !bytes;
    }
  }

  // Of a trace that has no calls of NCCL's: what its kernels say.
  void add_collectives_of_kernels(const Timeline& timeline) {
    const Process& process = *timeline.process;
    if (!process.collective_kernels.empty()) return;
    each_work_of_steps(timeline, [&](const Work& work) {
      if (work.kind != WorkClass::communication) return;
      const std::string_view args =
          timeline.trace->text(process.extras[process.events.extra_of(work.event)].args);
      const auto found = collective_in(args);
      if (!found) return;
      CollectiveRow& row = collective_row(found->function, found->label);
      row.total_us += static_cast<double>(work.end - work.begin) / 1000;
      ++row.count;
      row.bytes += found->bytes.value_or(0);
      row.unsized += !found->bytes;
    });
  }

  // What a framework's allocator gives out mostly lies in what it had from the driver long before.
  static void add_tensors(const Timeline& timeline, const TensorCurve& curve, Memory& out) {
    if (!is_gpu_memory(curve.device_type) || curve.points.empty()) return;
    for (const MemoryPoint& point : curve.points) {
      if (point.total <= out.peak_bytes) continue;
      out.peak_bytes = point.total;
      out.peak_us = static_cast<double>(point.time - timeline.process->window_begin) / 1000;
      out.before_known = out.before_known || curve.totals_given;
    }
    out.end_bytes = std::max(out.end_bytes, curve.points.back().total);
  }

  // The memory log has it, or there was nothing: the window began with the program.
  static bool before_window_known(const Process& process) {
    const auto begins = [](const LiveMemory& live) {
      return live.moment == LiveMoment::window_begins;
    };
    const bool whole = is_early_window(process.header.window()) ||
                       std::string_view(process.header.schedule()).starts_with("all");
    return (whole && process.summary.left_out() == 0) ||
           std::any_of(process.live_memory.begin(), process.live_memory.end(), begins);
  }

  Memory memory_of(const Timeline& timeline) const {
    const MemoryCurves curves = memory_curves(*timeline.trace, *timeline.process);
    Memory out;
    out.peak_bytes = out.end_bytes = curves.device_before;
    out.before_known = before_window_known(*timeline.process);
    for (const MemoryPoint& point : curves.device) {
      ++(point.change < 0 ? out.releases : out.allocations);
      out.end_bytes = point.total;
      if (point.total > out.peak_bytes) {
        out.peak_bytes = point.total;
        out.peak_us = static_cast<double>(point.time - timeline.process->window_begin) / 1000;
      }
    }
    for (const TensorCurve& curve : curves.tensors) add_tensors(timeline, curve, out);
    return out;
  }

  // Rows by name, of the sums by shape.
  void finish_kernels() {
    std::map<std::string, KernelRow> rows;
    std::map<std::string, FamilyRow> families;
    std::map<std::string, int64_t> most;
    double tensor = 0, not_known = 0, compute = 0;
    for (size_t index = 0; index < shapes_.size(); ++index) {
      const ShapeSum& sum = shapes_[index];
      if (!sum.count) continue;
      const Shape& shape = trace_->shapes[static_cast<ShapeIndex>(index)];
      const std::string name(trace_->text(shape.label));
      KernelRow& row = rows[name];
      row.count += sum.count;
      row.total_us += static_cast<double>(sum.total) / 1000;
      row.kind = sum.kind;
      const TensorCores cores = tensor_cores_of(name);
      row.tensor_cores = cores == TensorCores::used;
      ++row.shapes;
      if (shape.kind == Kind::gpu_graph)
        out_.whole_graph_us += static_cast<double>(sum.total) / 1000;
      const bool exchanges = sum.kind == WorkClass::communication;
      FamilyRow& family = families[exchanges ? "communication" : std::string(kernel_family(name))];
      family.count += sum.count;
      family.total_us += static_cast<double>(sum.total) / 1000;
      if (row.tensor_cores) family.tensor_core_us += static_cast<double>(sum.total) / 1000;
      if (cores == TensorCores::not_known)
        family.tensor_core_unknown_us += static_cast<double>(sum.total) / 1000;
      if (sum.kind == WorkClass::compute) {
        compute += static_cast<double>(sum.total);
        if (row.tensor_cores) tensor += static_cast<double>(sum.total);
        if (cores == TensorCores::not_known) not_known += static_cast<double>(sum.total);
      }
      int64_t& longest = most[name];
      if (row.shapes > 1 && sum.total <= longest) continue;
      longest = sum.total;
      row.grid = shape.grid;
      row.block = shape.block;
      row.occupancy_pct = sum.occupancy.percent;
      row.multiprocessors_pct = 100 * std::min(1.0, sum.occupancy.blocks_per_sm);
    }
    out_.kernels = by_time(std::move(rows));
    std::vector<std::string> names;
    for (const KernelRow& row : out_.kernels) names.push_back(row.name);
    const auto short_ones = short_names(names);
    for (KernelRow& row : out_.kernels) row.short_name = short_ones.at(row.name);
    out_.kernel_families = by_time(std::move(families));
    if (all_)
      out_.tiny_kernels_pct = 100.0 * static_cast<double>(tiny_) / static_cast<double>(all_);
    if (compute <= 0) return;
    out_.tensor_core_pct = 100 * tensor / compute;
    out_.tensor_core_unknown_pct = 100 * not_known / compute;
  }

  std::span<const Timeline> timelines_;
  const Trace* trace_ = nullptr;
  Tables out_;
  int64_t begin_ = 0, end_ = 0;
  bool apart_ = false;  // there is time between steps
  uint64_t tiny_ = 0, all_ = 0;
  std::vector<ShapeSum> shapes_;  // by shape
  std::map<std::string, CopyRow> copies_;
  std::optional<std::unordered_map<uint32_t, int64_t>> exposed_;  // of the timeline at hand, if it
                                                                  // has copies
  std::map<std::string, CollectiveRow> collectives_;              // by function, then group
  std::map<std::tuple<std::string_view, std::string_view, std::string_view>, GroupRow> groups_;
  std::map<std::string, CallRow> syncs_, allocations_;
};

}  // namespace

Tables make_tables(std::span<const Timeline> timelines) { return TableMaker(timelines).make(); }

}  // namespace gpuprof::analysis
