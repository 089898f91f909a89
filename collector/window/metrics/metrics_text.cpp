// SPDX-License-Identifier: Apache-2.0
#include "collector/window/metrics/metrics_text.h"

#include "formats/core/names.h"
#include "formats/core/text.h"

namespace gpuprof {
namespace {

constexpr const char* kQuantileNames[Metrics::kQuantiles] = {"0.5", "0.9", "0.99"};

class Writer {
 public:
  Writer(const Metrics& metrics, ByteBuffer& out) : out_(out) {
    TextBuilder labels(labels_, sizeof labels_);
    add_label(labels, "run", metrics.run);
    if (metrics.rank >= 0) {
      labels.add(",rank=\"").add_whole(static_cast<uint64_t>(metrics.rank)).add('"');
    }
    labels.add(",pid=\"").add_whole(metrics.pid).add('"');
  }

  // What samples that follow are of; `name` without "gpuprof_".
  void family(const char* name, const char* type, const char* help) {
    name_ = name;
    add("# HELP gpuprof_", name, " ", help, "\n# TYPE gpuprof_", name, " ", type, "\n");
  }
  void sample(double value, const char* suffix = "", const char* label = nullptr,
              std::string_view label_value = {}) {
    char text[48];
    TextBuilder(text, sizeof text).add_decimal(value > 0 ? value : 0);
    begin(suffix, label, label_value);
    add(text, "\n");
  }
  void count(uint64_t value, const char* suffix = "", const char* label = nullptr,
             std::string_view label_value = {}) {
    char text[24];
    TextBuilder(text, sizeof text).add_whole(value);
    begin(suffix, label, label_value);
    add(text, "\n");
  }
  // A sample of 1 with these labels more.
  void info(const char* const (&names)[4], const std::string_view (&values)[4]) {
    char text[700];
    TextBuilder labels(text, sizeof text);
    for (size_t i = 0; i < 4; ++i) {
      labels.add(',');
      add_label(labels, names[i], values[i]);
    }
    add("gpuprof_", name_, "{", labels_, text, "} 1\n");
  }
  bool good() const { return good_; }

 private:
  static void add_label(TextBuilder& out, const char* name, std::string_view value) {
    out.add(std::string_view(name)).add("=\"");
    for (const char c : slice(value, 0, 300)) {
      if (c == '\n') {
        out.add("\\n");
        continue;
      }
      if (c == '"' || c == '\\') out.add('\\');
      out.add(c);
    }
    out.add('"');
  }
  void begin(const char* suffix, const char* label, std::string_view value) {
    char text[400] = "";
    if (label) {
      TextBuilder one(text, sizeof text);
      one.add(',');
      add_label(one, label, value);
    }
    add("gpuprof_", name_, suffix, "{", labels_, text, "} ");
  }
  template <typename... Texts>
  void add(Texts... texts) {
    (add_one(texts), ...);
  }
  void add_one(std::string_view text) {
    good_ = good_ && out_.append(reinterpret_cast<const uint8_t*>(text.data()), text.size());
  }

  ByteBuffer& out_;
  char labels_[800];
  const char* name_ = "";
  bool good_ = true;
};

void write_process(const Metrics& m, Writer& out) {
  out.family("process_info", "gauge", "A process that is profiled; always 1.");
  out.info({"job_id", "version", "mode", "step_source"}, {m.job, m.version, m.mode, m.step_source});
  out.family("start_timestamp_seconds", "gauge", "When its first call was traced.");
  out.sample(m.started_at);
  out.family("written_timestamp_seconds", "gauge",
             "When this was written; every 15 s while the process lives.");
  out.sample(m.written_at);
}

void write_steps(const Metrics& m, Writer& out) {
  out.family("step_seconds", "summary",
             "Steps of the process; quantiles of the newest 1,024 since it was last written.");
  for (size_t i = 0; i < Metrics::kQuantiles && m.quantiles_known; ++i) {
    out.sample(m.step_quantiles[i], "", "quantile", kQuantileNames[i]);
  }
  out.sample(m.steps_seconds, "_sum");
  out.count(m.steps, "_count");
  if (m.last_step_at <= 0) return;
  out.family("last_step_timestamp_seconds", "gauge", "When the newest step ended.");
  out.sample(m.last_step_at);
}

void write_recording(const Metrics& m, Writer& out) {
  out.family("windows_total", "counter", "Windows that were recorded, by what became of them.");
  out.count(m.windows_complete, "", "result", "complete");
  out.count(m.windows_cut, "", "result", "cut");
  out.count(m.windows_lost, "", "result", "lost");
  out.family("windows_seconds_total", "counter", "Time in windows.");
  out.sample(m.windows_seconds);
  out.family("events_total", "counter", "Events in dumps.");
  out.count(m.events);
  out.family("own_seconds_total", "counter",
             "What gpuprof and CUPTI count as their own in the program's threads, in windows.");
  out.sample(m.hooks_seconds, "", "part", "hooks");
  out.sample(m.cupti_seconds, "", "part", "cupti");
  out.family("writer_cpu_seconds_total", "counter", "Processor time of the thread that writes.");
  out.sample(m.writer_cpu_seconds);
}

void write_losses(const Metrics& m, Writer& out) {
  uint64_t all = 0;
  for (const uint64_t count : m.losses) all += count;
  out.family("losses_total", "counter", "What is missing or wrong in dumps.");
  out.count(all);
  if (all == 0) return;
  out.family("losses_by_cause_total", "counter",
             "The same by cause; causes without any are not listed.");
  for (size_t i = 0; i < m.losses.size(); ++i) {
    if (m.losses[i]) out.count(m.losses[i], "", "cause", loss_name(static_cast<Loss>(i)));
  }
}

void write_window(const Metrics& m, Writer& out) {
  if (!m.has_window) return;
  out.family("last_window_seconds", "gauge", "Length of the newest window.");
  out.sample(m.window_seconds);
  out.family("last_window_end_timestamp_seconds", "gauge", "When the newest window ended.");
  out.sample(m.window_ended_at);
  bool whole = true;
  for (size_t i = 0; i < kShedKinds; ++i) {
    if (m.left_out[i] <= 0) continue;
    if (whole) {
      out.family("last_window_left_out_ratio", "gauge",
                 "Share of the newest window in which GPUPROF_BUDGET left out a kind of records.");
    }
    whole = false;
    out.sample(m.left_out[i], "", "kind", kShedTexts[i].name);
  }
  const auto each_gpu = [&](auto write) {
    for (size_t i = 0; i < m.gpu_count; ++i) {
      char index[24];
      TextBuilder(index, sizeof index).add_whole(m.gpus[i].index);
      write(m.gpus[i], index);
    }
  };
  if (m.gpu_count > 0) {
    out.family("last_window_gpu_idle_ratio", "gauge",
               "Share of the newest window in which a GPU had no work of this process.");
    each_gpu([&](const Metrics::Gpu& gpu, const char* index) {
      out.sample(gpu.idle, "", "gpu", index);
    });
  }
  bool known = false;
  for (size_t i = 0; i < m.gpu_count; ++i) known |= m.gpus[i].communication_known;
  if (known) {
    out.family("last_window_exposed_communication_ratio", "gauge",
               "Share of the newest window in which a GPU had NCCL's kernels and no other work.");
    each_gpu([&](const Metrics::Gpu& gpu, const char* index) {
      if (gpu.communication_known) out.sample(gpu.exposed_communication, "", "gpu", index);
    });
  }
  if (!m.data_wait_known) return;
  out.family("last_window_data_wait_ratio", "gauge",
             "Share of the newest window in which a thread waited for PyTorch's DataLoader.");
  out.sample(m.data_wait);
}

}  // namespace

bool format_metrics(const Metrics& metrics, ByteBuffer& out) {
  Writer writer(metrics, out);
  write_process(metrics, writer);
  write_steps(metrics, writer);
  write_recording(metrics, writer);
  write_losses(metrics, writer);
  write_window(metrics, writer);
  return writer.good();
}

}  // namespace gpuprof
