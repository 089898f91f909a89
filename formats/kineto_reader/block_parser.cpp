// SPDX-License-Identifier: Apache-2.0
#include "formats/kineto_reader/block_parser.h"

#include <algorithm>

#include "formats/kineto_reader/call_kinds.h"
#include "formats/kineto_reader/categories.h"
#include "formats/kineto_reader/interned.h"
#include "formats/kineto_reader/numbers.h"
#include "formats/trace/names.h"

namespace gpuprof::kineto {
namespace {

constexpr int64_t kLatest = int64_t{1} << 61;

static_assert(std::has_unique_object_representations_v<Row>);

class BlockParser {
 public:
  BlockParser(std::string_view text, const ParseOptions& options, Block& block)
      : text_(text),
        options_(options),
        block_(block),
        args_(block, text_faults_),
        shapes_(block.shapes),
        rows_(block.rows) {
    if (block_.extras.empty()) block_.extras.emplace_back();
  }

  Parsed run() {
    const char* at = text_.data();
    const char* const end = at + text_.size();
    while (true) {
      while (at < end && (is_space(*at) || *at == ',')) ++at;
      if (at == end) return {Stop::end_of_text, text_.size()};
      if (*at == ']') return {Stop::end_of_array, position(at) + 1};
      const char* const begin = at;
      const EventEnd ended = *at == '{' ? read_event(at, end, event_) : EventEnd::wrong;
      if (ended == EventEnd::whole) {
        begin_ = position(begin);
        take_event();
        note_text_faults();
        continue;
      }
      if (ended == EventEnd::cut && !options_.final) return {Stop::cut, position(begin)};
      // Where there is nothing to come, an event that does not end before the next begins is
      // broken.
      const char* const next = next_event_start(begin + 1, end);
      if (ended == EventEnd::cut && !next) return {Stop::cut, position(begin)};
      note(block_.faults, Fault::event, options_.offset + position(begin));
      if (!next) return {Stop::end_of_text, text_.size()};
      at = next;
    }
  }

 private:
  size_t position(const char* at) const { return static_cast<size_t>(at - text_.data()); }
  void fault(Fault what, uint64_t count = 1) {
    note(block_.faults, what, options_.offset + begin_, count);
  }
  void note_text_faults() {
    if (text_faults_.escapes) fault(Fault::escape, text_faults_.escapes);
    if (text_faults_.utf8) fault(Fault::utf8, text_faults_.utf8);
    if (text_faults_.values) fault(Fault::value, text_faults_.values);
    text_faults_ = {};
  }

  void take_event() {
    for (const Member& member : event_.args) {
      if (member.value.type == ValueType::wrong) fault(Fault::value);
    }
    switch (event_.phase) {
      case 'X': range(); break;
      case 'i':
      case 'I':
      case 'R': instant(); break;
      case 'M': fact(); break;
      case 'C': counter(); break;
      case 's':
      case 't':
      case 'f': flow(); break;
      default: fault(Fault::phase);
    }
  }

  // The event's time; false (and noted) where it has none.
  bool time(int64_t& out) {
    const ValueType type = event_.time.type;
    const auto time = type == ValueType::number || type == ValueType::string
                          ? nanoseconds(event_.time.text)
                          : std::nullopt;
    if (!time) {
      fault(Fault::time);
      return false;
    }
    if (*time >= kLatest || *time <= -kLatest) {
      fault(Fault::range);
      return false;
    }
    out = *time;
    return true;
  }

  void note_large_id() {
    const Member* const id = argument("correlation");
    if (!id || id->value.type != ValueType::number) return;
    const std::optional<double> number = real(id->value.text);
    if (number && *number > UINT32_MAX) fault(Fault::id);
  }

  uint32_t category_text() {
    return event_.category.type == ValueType::string ? args_.text(event_.category) : 0;
  }

  void range() {
    int64_t begin = 0, length = 0;
    if (!time(begin)) return;
    const bool given =
        event_.duration.type == ValueType::number || event_.duration.type == ValueType::string;
    const std::optional<int64_t> duration =
        given ? nanoseconds(event_.duration.text) : std::nullopt;
    if (!duration) {
      fault(Fault::length);
    } else if (*duration < 0) {
      fault(Fault::duration);
    } else {
      length = *duration;
    }
    if (length >= kLatest) return fault(Fault::range);
    const int64_t end = begin + length;
    const Category category = category_of_text(event_.category.text);
    if (category == Category::span) {
      block_.span_begin = std::min(block_.span_begin, begin);
      block_.span_end = std::max(block_.span_end, end);
      return;
    }
    Shape shape{};
    start_shape(shape);
    set_kind(category, shape);
    emit(shape, begin, end);
  }

  void instant() {
    int64_t at = 0;
    if (!time(at)) return;
    Shape shape{};
    start_shape(shape);
    shape.kind = event_.name.text == "[memory]" ? Kind::tensor : Kind::instant;
    if (shape.kind == Kind::instant) {
      shape.detail = static_cast<StringIndex>(category_text());
      const std::string_view scope = event_.scope.text;
      if (scope == "g" || scope == "p") shape.value = static_cast<uint8_t>(scope[0]);
    }
    emit(shape, at, at);
  }

  void start_shape(Shape& shape) {
    shape.data_type = shape.operation = shape.peer = shape.rank = shape.stream = Shape::kAbsent;
    shape.peer_source = shape.peer_destination = shape.cupti_type = Shape::kAbsent;
    shape.device_type = shape.device_id = Shape::kAbsent;
    shape.name = shape.label = static_cast<StringIndex>(args_.text(event_.name));
  }

  void set_kind(Category category, Shape& shape) {
    switch (category) {
      case Category::op: shape.kind = Kind::op; break;
      case Category::annotation: shape.kind = Kind::annotation; break;
      case Category::python:
        shape.kind =
            event_.name.text.starts_with("nn.Module: ") ? Kind::module : Kind::python_function;
        break;
      case Category::runtime:
      case Category::driver:
        shape.kind = kind_of_call(event_.name.text);
        if (category == Category::runtime && is_unnamed_launch()) shape.kind = Kind::launch;
        shape.domain = category == Category::driver ? ApiDomain::driver : ApiDomain::runtime;
        if (category == Category::driver) shape.flags = kFlagDriver;
        break;
      case Category::kernel: shape.kind = Kind::gpu_kernel; break;
      case Category::copy:
        shape.kind = Kind::gpu_copy;
        set_copy_kinds(event_.name.text, shape);
        break;
      case Category::set:
        shape.kind = Kind::gpu_set;
        set_memory_kind(event_.name.text, shape);
        break;
      case Category::gpu_annotation: shape.kind = Kind::gpu_annotation; break;
      case Category::sync: shape.kind = Kind::gpu_sync; break;
      case Category::event: shape.kind = Kind::gpu_event; break;
      case Category::overhead: shape.kind = Kind::overhead; break;
      case Category::xpu_sync:
        if (is_host_wait()) {
          shape.kind = Kind::sync;
          shape.domain = ApiDomain::driver;
          shape.flags = kFlagDriver;
          break;
        }
        [[fallthrough]];
      case Category::span:
      case Category::other:
        shape.kind = Kind::other;
        shape.detail = static_cast<StringIndex>(category_text());
        break;
    }
  }

  void emit(Shape& shape, int64_t begin, int64_t end) {
    EventExtra extra{};
    if (shape.kind == Kind::tensor) extra.address2 = extra.value = EventExtra::kNotGiven;
    Placement placement;
    args_.read(event_.args, shape, extra, placement);
    if (placement.derived) return;
    if (shape.kind == Kind::gpu_copy || shape.kind == Kind::gpu_set) name_as_usual(shape);
    if (placement.step_ns) {
      add_step(begin,
               begin + static_cast<int64_t>(std::min<uint64_t>(*placement.step_ns, kLatest)));
      return;
    }
    if (shape.kind == Kind::gpu_kernel && shape.graph && !shape.grid.x && options_.ours) {
      shape.kind = Kind::gpu_graph;
    }
    BlockEvent event{};
    event.begin = begin;
    event.end = end;
    event.row = row_of(shape, placement);
    event.correlation = placement.correlation;
    if (event.correlation == 0) note_large_id();
    event.shape = static_cast<ShapeIndex>(shapes_(shape));
    event.extra = extra_of(extra);
    event.external_id = placement.external_id;
    block_.events.push_back(event);
  }

  // What knows the kinds by its arguments alone, or by names of another vendor.
  void name_as_usual(Shape& shape) {
    const std::string name = usual_name(event_.name.text, shape);
    if (!name.empty())
      shape.name = shape.label = static_cast<StringIndex>(block_.texts.intern(name));
  }

  void add_step(int64_t begin, int64_t end) {
    const std::optional<uint64_t> step = step_number(event_.name.text);
    if (step) block_.steps.push_back({rows_(file_row()), {*step, begin, end}});
  }

  // Many events have only the same arguments as others.
  uint32_t extra_of(const EventExtra& extra) {
    const bool bare = !(extra.bytes | extra.address | extra.address2 | extra.value);
    if (bare && extra.args == StringIndex::empty) return 0;
    if (!bare) {
      block_.extras.push_back(extra);
      return static_cast<uint32_t>(block_.extras.size() - 1);
    }
    const uint32_t args = number(extra.args);
    if (args >= extras_of_args_.size()) extras_of_args_.resize(args + 256);
    if (!extras_of_args_[args]) {
      block_.extras.push_back(extra);
      extras_of_args_[args] = static_cast<uint32_t>(block_.extras.size() - 1);
    }
    return extras_of_args_[args];
  }

  // Pid and tid as numbers where they are such.
  void place(const Value& value, int64_t& number, uint32_t& text) {
    const std::optional<int64_t> whole =
        value.type == ValueType::number || value.type == ValueType::string
            ? signed_whole(value.text)
            : std::nullopt;
    if (whole) {
      number = *whole;
    } else if (value.type == ValueType::string || value.type == ValueType::number) {
      text = value.text.empty() ? block_.texts.intern("-") : args_.text(value);
    }
  }

  Row file_row() {
    Row row{};
    row.type = LaneType::thread;
    place(event_.pid, row.pid, row.pid_text);
    place(event_.tid, row.tid, row.tid_text);
    return row;
  }

  uint32_t row_of(Shape& shape, const Placement& placement) {
    Row row = file_row();
    if (shape.kind == Kind::overhead) {
      row.type = LaneType::overhead;
    } else if (is_gpu_kind(shape.kind)) {
      gpu_row(shape, placement, row);
    }
    return rows_(row);
  }

  void gpu_row(Shape& shape, const Placement& placement, Row& row) {
    const bool pid_is_device = !row.pid_text && row.pid >= 0 && row.pid < Shape::kAbsent;
    row.device = placement.device.value_or(pid_is_device ? static_cast<uint32_t>(row.pid) : 0);
    if (shape.kind == Kind::gpu_memory) {
      row.type = LaneType::device;
    } else if (shape.kind == Kind::gpu_sync || shape.kind == Kind::gpu_event) {
      row.type = LaneType::device;
      if (placement.stream) shape.stream = *placement.stream;
      shape.context = placement.context.value_or(0);
      if (shape.cupti_type == Shape::kAbsent) {
        for (uint32_t type = 1; type <= 4; ++type) {
          if (sync_type_name(type) == event_.name.text) shape.cupti_type = type;
        }
      }
    } else {
      row.type = LaneType::stream;
      row.context = placement.context.value_or(0);
      row.stream = placement.stream.value_or(stream_of_tid(row));
    }
    row.tid = 0;  // said by the stream
    row.tid_text = 0;
  }

  // "stream 7" and 7
  uint32_t stream_of_tid(const Row& row) {
    if (!row.tid_text) {
      return row.tid >= 0 && row.tid < Shape::kAbsent ? static_cast<uint32_t>(row.tid) : 0;
    }
    std::string_view text = block_.texts[row.tid_text];
    if (text.starts_with("stream ")) text.remove_prefix(7);
    const std::optional<uint64_t> stream = whole(text);
    return stream && *stream < Shape::kAbsent ? static_cast<uint32_t>(*stream) : 0;
  }

  const Member* argument(std::string_view key) const {
    for (const Member& member : event_.args) {
      if (member.key == key) return &member;
    }
    return nullptr;
  }

  // CUDA 13's __cudaLaunchKernel and __cudaLaunchKernel_ptsz, which Kineto has no names for.
  bool is_unnamed_launch() const {
    if (event_.name.text != "INVALID") return false;
    const Member* const id = argument("cbid");
    return id && (id->value.text == "505" || id->value.text == "506");
  }

  // handleSynchronizationActivity() in Kineto's xpupti/XpuptiActivityHandlers.cpp: the others are
  // barriers on a device that nothing names.
  bool is_host_wait() const {
    const Member* const type = argument("Type");
    return type && type->value.text.starts_with("HOST_");
  }

  void fact() {
    struct What {
      std::string_view name, key;
      RowFact::What what;
    };
    constexpr What kWhats[] = {{"process_name", "name", RowFact::process_name},
                               {"process_labels", "labels", RowFact::process_label},
                               {"process_sort_index", "sort_index", RowFact::process_sort},
                               {"thread_name", "name", RowFact::thread_name},
                               {"thread_sort_index", "sort_index", RowFact::thread_sort}};
    for (const What& each : kWhats) {
      if (event_.name.text != each.name) continue;
      const Member* const value = argument(each.key);
      if (!value) return;
      RowFact fact{};
      fact.what = each.what;
      fact.row = rows_(file_row());
      if (value->value.type == ValueType::string) fact.text = args_.text(value->value);
      fact.number = signed_whole(value->value.text).value_or(Lane::kUnsorted);
      block_.facts.push_back(fact);
    }
  }

  void counter() {
    CounterPoint point{};
    if (!time(point.time)) return;
    point.row = rows_(file_row());
    point.name = args_.text(event_.name);
    point.category = category_text();
    for (const Member& member : event_.args) {
      const bool is_number =
          member.value.type == ValueType::number || member.value.type == ValueType::string;
      const std::optional<double> value = is_number ? real(member.value.text) : std::nullopt;
      if (!value) continue;
      point.value = *value;
      point.key = args_.text(
          {member.key, ValueType::string, member.key.find('\\') != std::string_view::npos});
      block_.counters.push_back(point);
    }
  }

  void flow() {
    if (is_launch_flow(event_.category.text)) return;  // said by correlation ids
    FlowEnd end{};
    if (!time(end.time)) return;
    end.id = whole_or_hex(event_.id.text).value_or(0);
    end.start = event_.phase == 's';
    end.category = category_text();
    end.row = rows_(file_row());
    block_.flows.push_back(end);
  }

  const std::string_view text_;
  const ParseOptions options_;
  Block& block_;
  TextFaults text_faults_;
  ArgReader args_;
  Interned<Shape> shapes_;
  Interned<Row> rows_;
  EventText event_;
  std::vector<uint32_t> extras_of_args_;
  size_t begin_ = 0;  // of the event in the text
};

}  // namespace

Parsed parse_block(std::string_view text, const ParseOptions& options, Block& block) {
  return BlockParser(text, options, block).run();
}

}  // namespace gpuprof::kineto
