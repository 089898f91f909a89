// SPDX-License-Identifier: Apache-2.0
// Planes: one for each GPU with a line for each stream, one for the host with a line for each
// thread. XProf finds steps by roots (events with `_r`) on the host: calls lie inside them in time,
// kernels have their call's correlation_id. It sums up kernels by `kernel_details` and operators by
// `tf_op`.
#include "formats/writers/xplane/xplane_export.h"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <map>
#include <set>

#include "formats/io/output_folder.h"
#include "formats/trace/names.h"
#include "formats/views/context_numbers.h"
#include "formats/views/left_out_text.h"
#include "formats/views/occupancy.h"
#include "formats/views/slices.h"
#include "formats/views/work_order.h"
#include "formats/writers/kineto/kineto_export.h"
#include "formats/writers/xplane/xplane_writer.h"

namespace gpuprof {
namespace {

constexpr int64_t kLeftOutLine = int64_t{1} << 40;  // beyond all threads
constexpr int64_t kLineStride = 10'000'000;         // further lines of a thread or stream

class XplaneExport {
 public:
  XplaneExport(const Trace& trace, const Process& process, OutputFile& file,
               ExportProgress& progress)
      : trace_(trace),
        process_(process),
        contexts_(process),
        main_thread_(main_thread(process)),
        works_(work_shapes(trace)),
        file_(file),
        progress_(progress) {
    origin_ = process.window_begin;
    for (const Lane& lane : process.lanes) {
      if (lane.event_count) origin_ = std::min(origin_, process.events.begin_of(lane.first_event));
    }
  }

  bool run(std::string_view host) {
    std::set<uint32_t> devices;
    for (const Lane& lane : process_.lanes) {
      if (lane.type == LaneType::stream) devices.insert(lane.device);
    }
    int64_t id = 1;
    bool ok = true;
    for (const uint32_t device : devices) ok = gpu_plane(id++, device) && ok;
    ok = host_plane(id) && ok;
    xplane::write_hostname(file_, host);
    return ok;
  }

 private:
  bool gpu_plane(int64_t id, uint32_t device) {
    xplane::Plane plane(file_, id, fmt::format("/device:GPU:{}", device), origin_);
    const dump::Device* const known = device_of(process_, device);
    for (const Lane& lane : process_.lanes) {
      if (lane.type == LaneType::stream && lane.device == device) stream(plane, lane, known);
    }
    plane.plane_stat("device_vendor", "Nvidia");
    if (known) {
      plane.plane_stat("gpu_device_name", known->name());
      plane.plane_stat("core_count", int64_t{known->multiprocessors()});
      plane.plane_stat("memory_size", static_cast<int64_t>(known->total_memory_bytes()));
      plane.plane_stat("compute_cap_major", int64_t{known->compute_major()});
      plane.plane_stat("compute_cap_minor", int64_t{known->compute_minor()});
    }
    return plane.finish();
  }

  void stream(xplane::Plane& plane, const Lane& lane, const dump::Device* device) {
    std::set<std::string_view> kinds;
    const auto slices = [&](const auto& visit) {
      for (const Event& event : process_.lane_events(lane)) {
        if (works_[number(event.shape)]) visit(Slice{event.index, event.begin, event.end});
      }
    };
    slices([&](const Slice& slice) { kinds.insert(kind_name(shape_of(slice))); });
    const size_t first = contexts_.of(lane) * kMaxTracks;
    each_row(slices, Overlap::apart, [&](size_t row, const auto& each) {
      plane.begin_line(
          lane.stream + static_cast<int64_t>(first + row) * kLineStride,
          fmt::format("Stream #{}({}){}{}{}", lane.stream, fmt::join(kinds, ","),
                      lane.thread_name.empty() ? "" : " " + lane.thread_name,
                      row ? fmt::format(" overlapping {}", row) : "", gpu_times_note(process_)));
      each([&](const Slice& slice) { work(plane, slice, device); });
      plane.end_line();
    });
  }

  // Arranges what `slices` visits, in order, on rows, and calls `visit(row, each)` with every row
  // that has any; `each` visits its slices. As often as there are rows, all are gone through:
  // mostly there is one.
  template <typename Slices, typename Visit>
  static void each_row(const Slices& slices, Overlap overlap, const Visit& visit) {
    const auto place_all = [&](const auto& placed) {
      TrackSplitter splitter(overlap);
      slices([&](Slice slice) {
        const size_t row = splitter.place(slice, [](size_t, int64_t) {});
        placed(row, slice);
      });
    };
    size_t rows = 0;
    place_all([&](size_t row, const Slice&) { rows = std::max(rows, row + 1); });
    for (size_t i = 0; i < rows; ++i) {
      visit(i, [&](const auto& each) {
        place_all([&](size_t row, const Slice& slice) {
          if (row == i) each(slice);
        });
      });
    }
  }

  const Shape& shape_of(const Slice& slice) const { return trace_.shape_of(process_, slice.event); }

  static std::string_view kind_name(const Shape& shape) {
    switch (shape.kind) {
      case Kind::gpu_copy: return "Memcpy";
      case Kind::gpu_set: return "Memset";
      default: return "Kernel";
    }
  }

  void work(xplane::Plane& plane, const Slice& slice, const dump::Device* device) {
    const Event& event = process_.event(slice.event);
    const Shape& shape = trace_.shape(event);
    const std::string_view label = trace_.text(shape.label);
    if (shape.kind == Kind::gpu_copy) {
      plane.begin_event(fmt::format("Memcpy{}", copy_direction_name(shape.direction)), label,
                        slice.begin, slice.end);
      plane.stat("memcpy_details", fmt::format("kind_src:{} kind_dst:{} size:{} dest:0 async:1",
                                               memory_kind_name(shape.source_kind),
                                               memory_kind_name(shape.destination_kind),
                                               process_.extra(event).bytes));
    } else if (shape.kind == Kind::gpu_set) {
      plane.begin_event("Memset", label, slice.begin, slice.end);
      plane.stat("memset_details",
                 fmt::format("kind:{} num_bytes:{}", memory_kind_name(shape.destination_kind),
                             process_.extra(event).bytes));
    } else {
      plane.begin_event(label, {}, slice.begin, slice.end);
      if (shape.kind == Kind::gpu_kernel) plane.stat("kernel_details", details(event, device));
    }
    if (event.correlation) plane.stat("correlation_id", int64_t{event.correlation});
    operator_of(plane, event);
    plane.end_event();
    progress_.add_one();
  }

  // As XLA's own profiler spells it.
  std::string_view details(const Event& event, const dump::Device* device) {
    std::string& text = details_[event.shape];
    if (text.empty()) {
      const Shape& s = trace_.shape(event);
      text = fmt::format(
          "regs:{} static_shared:{} dynamic_shared:{} grid:{},{},{} block:{},{},{} occ_pct:{}",
          s.registers_per_thread, s.static_shared_bytes, s.dynamic_shared_bytes, s.grid.x, s.grid.y,
          s.grid.z, s.block.x, s.block.y, s.block.z, device ? occupancy_of(s, *device).percent : 0);
    }
    return text;
  }

  void operator_of(xplane::Plane& plane, const Event& event) {
    const EventIndex op = process_.operator_of(event);
    if (op == EventIndex::none || trace_.shape(process_.event(op)).kind != Kind::op) return;
    plane.stat("tf_op", operator_name(trace_.text(trace_.shape(process_.event(op)).label)));
  }

  // "aten/addmm:addmm" for "aten::addmm": XProf takes what follows the last colon for the type.
  static std::string operator_name(std::string_view name) {
    std::string path;
    std::string_view type = name;
    for (size_t at; (at = name.find("::")) != std::string_view::npos;) {
      path.append(name.substr(0, at)).append("/");
      name.remove_prefix(at + 2);
      type = name;
    }
    return path.append(name).append(":").append(type);
  }

  bool host_plane(int64_t id) {
    xplane::Plane plane(file_, id, "/host:CPU", origin_);
    bool stepped = false;
    for (const Lane& lane : process_.lanes) {
      if (lane.type != LaneType::thread) continue;
      const bool main = lane.thread_id == main_thread_;
      stepped = stepped || main;
      thread(plane, lane.thread_id, lane.thread_name, process_.lane_events(lane), main);
    }
    if (!stepped) thread(plane, main_thread_, "", {}, true);
    left_out(plane);
    return plane.finish();
  }

  // From where on the trace has not all that happened, as a line of its own.
  void left_out(xplane::Plane& plane) {
    const std::string list = left_out_list(process_);
    if (list.empty()) return;
    plane.begin_line(kLeftOutLine, kLeftOutTitle);
    for (const RecordingBudget::LeftOut& each : process_.budget.left_out) {
      plane.begin_event(left_out_words(each.kind), {}, each.since,
                        std::max(each.since, process_.window_end));
      plane.end_event();
    }
    plane.end_line();
    plane.plane_stat("not_recorded", list);
  }

  // Steps are slices among the calls of the main thread; EventIndex::none marks them.
  void thread(xplane::Plane& plane, uint32_t thread_id, std::string_view name,
              const EventTable::Range& events, bool main) {
    std::vector<Slice> steps;
    if (main) {
      for (const Step& step : process_.window_steps()) {
        steps.push_back({EventIndex::none, step.begin, step.end});
      }
      std::stable_sort(steps.begin(), steps.end(), earlier);
    }
    const auto slices = [&](const auto& visit) {
      auto step = steps.begin();
      for (const Event& event : events) {
        if (is_instant(trace_.shape(event).kind)) continue;
        const Slice slice{event.index, event.begin, event.end};
        for (; step != steps.end() && earlier(*step, slice); ++step) visit(*step);
        visit(slice);
      }
      for (; step != steps.end(); ++step) visit(*step);
    };
    each_row(slices, Overlap::nest, [&](size_t row, const auto& each) {
      plane.begin_line(thread_id + static_cast<int64_t>(row) * kLineStride,
                       fmt::format("{}/{}", name.empty() ? "thread" : name, thread_id));
      each([&](const Slice& slice) {
        slice.event == EventIndex::none ? this->step(plane, slice) : call(plane, slice);
      });
      plane.end_line();
    });
  }

  void step(xplane::Plane& plane, const Slice& slice) {
    for (const Step& step : process_.window_steps()) {
      if (step.begin != slice.begin) continue;
      plane.begin_event("train", fmt::format("train {}", step.step), slice.begin, slice.end);
      plane.stat("_r", int64_t{1});
      plane.stat("step_num", static_cast<int64_t>(step.step));
      plane.end_event();
      return;
    }
  }

  void call(xplane::Plane& plane, const Slice& slice) {
    const Event& event = process_.event(slice.event);
    const Shape& shape = trace_.shape(event);
    const std::string_view label = trace_.text(shape.label);
    if (shape.kind == Kind::op) {
      plane.begin_event(operator_name(label), label, slice.begin, slice.end);
    } else {
      plane.begin_event(label, {}, slice.begin, slice.end);
    }
    if (event.correlation) plane.stat("correlation_id", int64_t{event.correlation});
    if (shape.flags & kFlagOpenEnd) plane.stat("open at window end", int64_t{1});
    plane.end_event();
    progress_.add_one();
  }

  const Trace& trace_;
  const Process& process_;
  const ContextNumbers contexts_;
  const uint32_t main_thread_;
  const std::vector<bool> works_;  // by shape
  OutputFile& file_;
  ExportProgress& progress_;
  int64_t origin_ = 0;
  std::map<ShapeIndex, std::string> details_;
};

std::string host_name(const Process& process, std::set<std::string>& used) {
  const dump::Header& h = process.header;
  const std::string host = file_name_part(h.host());
  const std::string stem =
      h.rank() >= 0 ? fmt::format("{}_r{}", host, h.rank()) : fmt::format("{}_{}", host, h.pid());
  std::string name = h.window() ? fmt::format("{}_w{}", stem, h.window()) : stem;
  for (int i = 2; !used.insert(name).second; ++i) name = fmt::format("{}_{}", stem, i);
  return name;
}

std::string run_name(const Trace& trace) {
  int64_t first = trace.processes.empty() ? 0 : trace.processes.front().window_begin;
  for (const Process& process : trace.processes) first = std::min(first, process.window_begin);
  const std::time_t seconds = std::max<int64_t>(first, 0) / 1'000'000'000;
  std::tm utc{};
  char text[32];
  if (!gmtime_r(&seconds, &utc) || !std::strftime(text, sizeof text, "%Y_%m_%d_%H_%M_%S", &utc)) {
    return "run";
  }
  return text;
}

}  // namespace

bool write_xplane(const Trace& trace, const std::string& path, const ExportOptions& options,
                  std::string& error) {
  if (!make_folder(path, error, options.links)) return false;
  std::set<std::string> used;
  ExportProgress progress(trace, options);
  for (const Process& process : trace.processes) {
    if (process.is_data_worker()) continue;
    const std::string host = host_name(process, used);
    OutputFile file(path + "/" + host + ".xplane.pb", Compression::none, Links::replaced);
    if (file.ok() && !XplaneExport(trace, process, file, progress).run(host)) {
      error = path + "/" + host + ".xplane.pb: not enough memory";
      return false;
    }
    if (!file.commit()) {
      error = file.error();
      return false;
    }
  }
  return true;
}

bool write_tensorboard(const Trace& trace, const std::string& path, const ExportOptions& options,
                       std::string& error) {
  const std::string run = run_name(trace);
  ExportOptions below = options;
  below.links = Links::replaced;  // these names are ours, whoever chose that of the directory
  return make_folder(path, error, options.links) &&
         write_kineto_folder(trace, path + "/" + run, below, KinetoSpelling::tensorboard, error) &&
         make_folder(path + "/plugins", error, below.links) &&
         make_folder(path + "/plugins/profile", error, below.links) &&
         write_xplane(trace, path + "/plugins/profile/" + run, below, error);
}

}  // namespace gpuprof
