// SPDX-License-Identifier: Apache-2.0
#include "formats/kineto_reader/is_kineto.h"

#include <fmt/format.h>

#include <algorithm>

#include "formats/io/contents.h"
#include "formats/kineto_reader/byte_source.h"
#include "formats/kineto_reader/scan.h"

namespace gpuprof {

using kineto::ByteSource;

namespace {

constexpr size_t kFirstBytes = 4096, kPeekBytes = 1 << 18;
constexpr size_t kMostBlanks = 64 << 20;  // in front of a document

std::string read_some(ByteSource& source, size_t bytes) {
  std::string text(bytes, '\0');
  text.resize(source.read(text.data(), bytes));
  return text;
}

// The start of the text without blanks and byte order mark.
std::string first_text(const std::string& path, size_t bytes) {
  ByteSource source(path);
  std::string text = read_some(source, bytes);
  if (text.starts_with("\xef\xbb\xbf")) text.erase(0, 3);
  for (size_t blanks = 0; !text.empty() && blanks < kMostBlanks;) {
    const char* const begin = text.data();
    const auto skipped =
        static_cast<size_t>(kineto::skip_space(begin, begin + text.size()) - begin);
    text.erase(0, skipped);
    blanks += skipped;
    if (!text.empty()) break;
    text = read_some(source, std::max(bytes, kPeekBytes));
  }
  return text;
}

bool begins_json(const std::string& text) {
  if (text.empty()) return false;
  const char* const end = text.data() + text.size();
  const char* const second = kineto::skip_space(text.data() + 1, end);
  if (text[0] == '{') return second == end || *second == '"' || *second == '}';
  return text[0] == '[' && (second == end || *second == '{' || *second == ']');
}

// Of a file that is no JSON: what else it holds, also within gzip. Empty: not known; a dump is not.
std::string other_contents(const std::string& path) {
  ByteSource source(path);
  const std::string first = read_some(source, kFirstBytes);
  const std::string found = known_contents(first);
  if (found.empty() || !source.is_gzip() || !source.error().empty()) return found;
  return "gzip of " + found;
}

// The start of Kineto's object (libkineto/src/output_json.cpp). Its events may be far: what
// "distributedInfo" tells has all ranks of all groups.
bool has_head_of_kineto(std::string_view text) {
  const auto has = [&](std::string_view key) { return text.find(key) != text.npos; };
  return text[0] == '{' && has("\"schemaVersion\"") &&
         (has("\"deviceProperties\"") || has("\"distributedInfo\""));
}

// JSON of other profilers, whose events have no categories of Kineto's; empty: none that is known.
std::string other_profiler(std::string text) {
  std::erase_if(text, [](char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; });
  const auto has = [&](std::string_view part) { return text.find(part) != text.npos; };
  // Its first key, and the rows of its host or of a device (tsl/profiler/convert's
  // trace_events_to_json.cc, xplane_schema.cc). JAX takes out what follows, for Perfetto.
  const bool rows = has(R"("name":"/host:)") || has(R"("name":"/device:)");
  if (text.starts_with(R"({"displayTimeUnit":"ns",)") && rows) {
    return "XLA's profiler (jax.profiler, TensorFlow), which XProf and ui.perfetto.dev open";
  }
  // tensorflow/python/client/timeline.py
  if (has(R"("process_name")") && has(R"("name":"/job:)") && has("/task:")) {
    return "TensorFlow's timeline, which ui.perfetto.dev opens";
  }
  // EventList.export_chrome_trace() in torch/autograd/profiler_util.py
  if (has(R"("pid":"CPUfunctions")") || has(R"("pid":"CUDAfunctions")")) {
    return "PyTorch's autograd profiler without Kineto (use_kineto=False), which ui.perfetto.dev "
           "opens";
  }
  return {};
}

// Whether it also has "traceEvents", an event or the keys in front of them soon, for files that
// nobody named; and who wrote it.
enum class TraceLook { none, trace, our_trace };
TraceLook look_for_trace(const std::string& path) {
  const std::string text = first_text(path, kPeekBytes);
  if (!begins_json(text)) return TraceLook::none;
  const size_t events = text.find("\"traceEvents\"");
  if (events != std::string::npos || has_head_of_kineto(text)) {
    const bool ours = text.substr(0, events).find("\"producer\": \"gpuprof\"") != std::string::npos;
    return ours ? TraceLook::our_trace : TraceLook::trace;
  }
  const bool array =
      text[0] == '[' && kineto::next_event_start(text.data(), text.data() + text.size());
  return array ? TraceLook::trace : TraceLook::none;
}

// As torch.profiler names the trace of a rank, HOST_PID.TIME.pt.trace.json, and we do.
bool is_named_for_a_rank(const std::string& path) {
  return path.substr(path.rfind('/') + 1).find(".pt.trace.json") != std::string::npos;
}

}  // namespace

bool is_kineto(const std::string& path) {
  const std::string text = first_text(path, kFirstBytes);
  return begins_json(text) && other_profiler(text).empty();
}

std::string why_not_kineto(const std::string& path) {
  if (const std::string other = other_profiler(first_text(path, kFirstBytes)); !other.empty()) {
    return fmt::format("holds a trace of {}; {}: record the program with gpuprof run", other,
                       kAllowedInput);
  }
  const std::string found = other_contents(path);
  return found.empty() ? found : fmt::format("holds {}; {}", found, kAllowedInput);
}

std::vector<std::string> kineto_traces(const std::vector<std::string>& files) {
  std::vector<std::string> ours, others;
  for (const std::string& file : files) {
    const TraceLook look = look_for_trace(file);
    if (look != TraceLook::none) (look == TraceLook::our_trace ? ours : others).push_back(file);
  }
  if (!others.empty()) return others;
  if (std::any_of(ours.begin(), ours.end(), is_named_for_a_rank)) {
    std::erase_if(ours, [](const std::string& file) { return !is_named_for_a_rank(file); });
  }
  return ours;
}

}  // namespace gpuprof
