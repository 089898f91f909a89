// SPDX-License-Identifier: Apache-2.0
#include "tools/report/operator_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string_view>
#include <vector>

#include "tools/console.h"
#include "tools/report/text_lines.h"
#include "tools/report/text_table.h"

namespace gpuprof {
namespace {

using namespace analysis;

// Three significant digits: "1.23 ms"; nothing where there is nothing.
std::string time_text(double us) {
  if (us <= 0) return us < 0 ? "-" : "";
  const char* unit = "us";
  if (us >= 999.5e3) {
    us /= 1e6;
    unit = "s";
  } else if (us >= 999.5) {
    us /= 1e3;
    unit = "ms";
  }
  return fmt::format("{:.{}f} {}", us, us < 9.995 ? 2 : us < 99.95 ? 1 : 0, unit);
}

// Net of what was freed, so it may be negative.
std::string change_text(int64_t bytes) {
  if (bytes == 0) return "";
  const std::string size = format_bytes(static_cast<uint64_t>(bytes < 0 ? -bytes : bytes));
  return (bytes < 0 ? "-" : "") + size;
}

double measure_of(const OperatorRow& row, SortBy by) {
  switch (by) {
    case SortBy::gpu: return row.gpu_us;
    case SortBy::gpu_self: return row.gpu_self_us;
    case SortBy::cpu: return row.cpu_us;
    case SortBy::cpu_self: return row.cpu_self_us;
    case SortBy::count: return static_cast<double>(row.count);
    case SortBy::memory: return static_cast<double>(row.memory_bytes);
    case SortBy::memory_self: return static_cast<double>(row.memory_self_bytes);
    case SortBy::name: break;
  }
  return 0;
}

// What is first, if the options do not say: `gpu`; without GPU times that says nothing: `cpu`.
SortBy order_of(const std::vector<OperatorRow>& rows, const TextOptions& options, SortBy gpu,
                SortBy cpu) {
  const bool timed =
      std::any_of(rows.begin(), rows.end(), [](const OperatorRow& row) { return row.gpu_us > 0; });
  return options.sort.value_or(timed ? gpu : cpu);
}

// A layer's time is that of what it calls.
SortBy layer_order(const std::vector<OperatorRow>& rows, const TextOptions& options) {
  return order_of(rows, options, SortBy::gpu, SortBy::cpu);
}

bool before(const OperatorRow& a, const OperatorRow& b, SortBy by) {
  if (by == SortBy::name) return std::pair(a.name, a.by) < std::pair(b.name, b.by);
  return measure_of(a, by) > measure_of(b, by);
}

bool matches(const std::string& text, const TextOptions& options) {
  return !options.filter || std::regex_search(text, *options.filter);
}

bool matches(const OperatorRow& row, const TextOptions& options) {
  return matches(row.name, options) || (!row.by.empty() && matches(row.by, options));
}

// "[[64,32],[16,32]]" with room between inputs, where a line may end.
std::string spaced(std::string text) {
  for (size_t at = text.find("],["); at != text.npos; at = text.find("],[", at)) {
    text.insert(at + 2, " ");
  }
  return text;
}

using Rows = std::vector<const OperatorRow*>;

Rows chosen(const std::vector<OperatorRow>& rows, const TextOptions& options, bool ranges) {
  Rows out;
  for (const OperatorRow& row : rows) {
    const bool wanted = ranges || row.kind != "range" || row.gpu_us > 0 || options.filter;
    if (wanted && matches(row, options)) out.push_back(&row);
  }
  const SortBy by = order_of(rows, options, SortBy::gpu_self, SortBy::cpu_self);
  std::stable_sort(out.begin(), out.end(),
                   [by](const OperatorRow* a, const OperatorRow* b) { return before(*a, *b, by); });
  return out;
}

size_t shown_of(size_t count, const TextOptions& options) {
  return options.top == 0 ? count : std::min(options.top, count);
}

std::string more_of(size_t all, size_t shown) {
  return all > shown ? fmt::format("  and {} more: --top {} lists all\n", all - shown, all)
                     : std::string();
}

std::string_view group_title(Grouping by) {
  switch (by) {
    case Grouping::name: return "";
    case Grouping::shape: return " by shape";
    case Grouping::stack: return " by stack";
    case Grouping::layer: return " by layer";
    case Grouping::line: return " by line of code";
  }
  return "";
}

std::string title(std::string_view text, const Report& report, const TextOptions& options) {
  const std::string steps = fmt::format("{} {}{}", report.steps.size(), report.unit(),
                                        report.steps.size() == 1 ? "" : "s");
  TextLines lines(options);
  lines.title(fmt::format("{}, sums over {}", text, steps));
  return lines.take();
}

constexpr std::string_view kModulePrefix = "nn.Module: ";

// "aten::mm in GPT.head (Linear)".
std::string without_prefix(std::string text) {
  const size_t at = text.find(kModulePrefix);
  return at == text.npos ? text : text.erase(at, kModulePrefix.size());
}

std::string layer_name(const std::string& name) { return without_prefix(name); }

// "GPT.blocks.0.attention (CausalAttention)" by its path.
std::string_view path_of(std::string_view name) { return name.substr(0, name.find(" (")); }

struct Layer {
  const OperatorRow* row = nullptr;
  std::string name;          // with its whole path
  size_t depth = 0;          // modules around it that were called
  std::string shown;         // without the path of the one around it
  std::vector<Layer> inner;  // in the order of `before`
};

// The layer that `path` lies in, of a tree by paths; "": none.
std::string around(const std::map<std::string, const OperatorRow*, std::less<>>& by_path,
                   std::string_view path) {
  for (size_t dot = path.rfind('.'); dot != path.npos && dot > 0; dot = path.rfind('.', dot - 1)) {
    if (by_path.contains(path.substr(0, dot))) return std::string(path.substr(0, dot));
  }
  return {};
}

class LayerTree {
 public:
  LayerTree(const std::vector<OperatorRow>& rows, const TextOptions& options)
      : by_(layer_order(rows, options)) {
    for (const OperatorRow& row : rows) {
      const std::string name = layer_name(row.name);
      by_path_.emplace(path_of(name), &row);
    }
    for (const auto& [path, row] : by_path_) {
      inner_[around(by_path_, path)].push_back(row);
    }
    for (auto& [path, list] : inner_) {
      std::stable_sort(
          list.begin(), list.end(),
          [this](const OperatorRow* a, const OperatorRow* b) { return before(*a, *b, by_); });
    }
    walk("", 0);
  }
  const std::vector<Layer>& layers() const { return layers_; }

 private:
  void walk(const std::string& path, size_t depth) {
    const auto found = inner_.find(path);
    if (found == inner_.end()) return;
    for (const OperatorRow* const row : found->second) {
      Layer layer;
      layer.row = row;
      layer.name = layer_name(row->name);
      layer.depth = depth;
      layer.shown = path.empty() ? layer.name : layer.name.substr(path.size() + 1);
      const std::string own(path_of(layer.name));
      layers_.push_back(std::move(layer));
      walk(own, depth + 1);
    }
  }

  SortBy by_;
  std::map<std::string, const OperatorRow*, std::less<>> by_path_;
  std::map<std::string, Rows> inner_;  // by the path around them
  std::vector<Layer> layers_;          // as listed
};

// The `top` layers by the order's measure, and those around them.
std::vector<const Layer*> chosen(const LayerTree& tree, const TextOptions& options, SortBy by) {
  std::vector<const Layer*> all;
  for (const Layer& layer : tree.layers()) {
    if (matches(layer.name, options)) all.push_back(&layer);
  }
  std::vector<const Layer*> order = all;
  std::stable_sort(order.begin(), order.end(),
                   [by](const Layer* a, const Layer* b) { return before(*a->row, *b->row, by); });
  order.resize(shown_of(order.size(), options));
  std::sort(order.begin(), order.end());  // as in the tree: layers lie in one vector
  return order;
}

}  // namespace

std::string why_not_grouped(const Report& report) {
  const auto& rows = report.operators.grouped;
  if (std::any_of(rows.begin(), rows.end(), [](const OperatorRow& row) { return !row.by.empty(); }))
    return {};
  switch (report.grouping) {
    case Grouping::name: return {};
    case Grouping::shape:
      return "--by shape: no shapes of operators' inputs were recorded; +op:shapes records them "
             "(GPUPROF_ACTIVITIES), record_shapes=True those of torch.profiler";
    case Grouping::stack:
      return "--by stack: no stacks were recorded; GPUPROF_STACKS=launch records them, "
             "with_stack=True those of torch.profiler";
    case Grouping::layer:
      return "--by layer: no calls of layers were recorded; +module records them "
             "(GPUPROF_ACTIVITIES), with_stack=True those of torch.profiler";
    case Grouping::line:
      return "--by line: no stacks were recorded, of which the line of code comes; "
             "GPUPROF_STACKS=launch records them, with_stack=True those of torch.profiler";
  }
  return {};
}

std::string operator_text(const Report& report, const TextOptions& options) {
  const Grouping by = report.grouping;
  const auto& all = by == Grouping::name ? report.operators.operators : report.operators.grouped;
  const Rows rows = chosen(all, options, options.width >= kWide);
  if (rows.empty()) return {};
  const bool wide = options.width >= kWide;
  TextTable table({"GPU", "GPU self", "CPU", "CPU self", "count", wide ? "memory" : "",
                   wide ? "memory self" : "memory", "name"},
                  options.width);
  const size_t shown = shown_of(rows.size(), options);
  for (size_t i = 0; i < shown; ++i) {
    const OperatorRow& row = *rows[i];
    std::string name = row.name;
    if (by == Grouping::layer) {
      name += "  " + (row.by.empty() ? "(no layer)" : layer_name(row.by));
    } else if (by != Grouping::name) {
      name += "  " + (row.by.empty() ? "(not recorded)" : spaced(row.by));
    }
    table.row({time_text(row.gpu_us), time_text(row.gpu_self_us), time_text(row.cpu_us),
               time_text(row.cpu_self_us), fmt::format("{}", row.count),
               wide ? change_text(row.memory_bytes) : "", change_text(row.memory_self_bytes),
               std::move(name)});
  }
  return title(fmt::format("Operators{}{}", group_title(by),
                           not_whole_text(report.left_out, ShedKind::operators)),
               report, options) +
         table.text() + more_of(rows.size(), shown);
}

std::string layer_text(const Report& report, const TextOptions& options) {
  const auto& rows = report.operators.modules;
  const LayerTree tree(rows, options);
  const std::vector<const Layer*> layers = chosen(tree, options, layer_order(rows, options));
  if (layers.empty()) return {};
  TextTable table({"GPU", "forward", "backward", "self", "CPU", "count", "layer"}, options.width);
  std::vector<const Layer*> open;  // those around the next one that are listed
  for (const Layer* const layer : layers) {
    while (!open.empty() && open.back()->depth >= layer->depth) open.pop_back();
    // Below one that is not listed it goes by its whole path.
    const bool below = open.size() == layer->depth;
    const OperatorRow& row = *layer->row;
    table.row({time_text(row.gpu_us), time_text(row.gpu_us - row.gpu_backward_us),
               time_text(row.gpu_backward_us), time_text(row.gpu_self_us), time_text(row.cpu_us),
               fmt::format("{}", row.count), below ? layer->shown : layer->name},
              below ? 2 * layer->depth : 0);
    if (below) open.push_back(layer);
  }
  return title("Layers" + not_whole_text(report.left_out, ShedKind::operators), report, options) +
         table.text() + more_of(tree.layers().size(), layers.size());
}

constexpr const char* kSinceWindow =
    "since the window began; what was held before is not known (GPUPROF_MEMORY=1 tells)";

std::string memory_text(const Report& report, const TextOptions& options) {
  const Memory* most = nullptr;
  for (const Memory& memory : report.tables.memory) {
    if (!most || memory.peak_bytes > most->peak_bytes) most = &memory;
  }
  if (!most || most->peak_bytes <= 0) return {};
  const auto bytes = [](int64_t count) { return format_bytes(static_cast<uint64_t>(count)); };
  TextLines lines(options);
  lines.title("Device memory");
  lines.line("  peak {} at {}; {} at the end", bytes(most->peak_bytes), format_us(most->peak_us),
             bytes(most->end_bytes));
  if (!most->before_known) {
    const size_t room = options.width > 2 ? options.width - 2 : 0;
    for (const std::string& line : wrapped(kSinceWindow, room)) lines.line("  {}", line);
  }
  std::string out = lines.take();
  bool listed = false;
  const auto list = [&](std::string_view what, const std::vector<OwnerRow>& rows) {
    TextTable table({"bytes", "blocks", std::string(what)}, options.width);
    std::vector<const OwnerRow*> wanted;
    for (const OwnerRow& row : rows) {
      if (matches(row.name, options)) wanted.push_back(&row);
    }
    const size_t shown = shown_of(wanted.size(), options);
    for (size_t i = 0; i < shown; ++i) {
      table.row({bytes(wanted[i]->bytes), fmt::format("{}", wanted[i]->count),
                 without_prefix(wanted[i]->name)});
    }
    listed |= !table.empty();
    if (!table.empty()) out += table.text() + more_of(wanted.size(), shown);
  };
  list("at the peak, allocated by", report.operators.memory_owners);
  const std::vector<OwnerRow>* kept = nullptr;
  int64_t largest = 0;
  for (const auto& [process, rows] : report.operators.kept_memory) {
    int64_t sum = 0;
    for (const OwnerRow& row : rows) sum += row.bytes;
    if (sum > largest) kept = &rows;
    largest = std::max(largest, sum);
  }
  if (kept) list("allocated after the first step and not freed, by", *kept);
  return listed || !options.filter ? out : std::string();
}

}  // namespace gpuprof
