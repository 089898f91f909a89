// SPDX-License-Identifier: Apache-2.0
#include "tools/otlp/identity.h"

#include <fmt/format.h>

#include <boost/uuid/name_generator_sha1.hpp>
#include <boost/uuid/string_generator.hpp>
#include <boost/uuid/uuid.hpp>
#include <boost/uuid/uuid_io.hpp>
#include <string_view>
#include <vector>

#include "formats/trace/activities.h"
#include "tools/hash.h"
#include "tools/otlp/json_lines.h"

namespace gpuprof::otlp {
namespace {

// A version 5 UUID. The namespace is the one that the conventions give for service.instance.id.
boost::uuids::uuid uuid_of(const std::string& name) {
  static const boost::uuids::uuid space =
      boost::uuids::string_generator()("4d63009a-8d0f-11ee-aad7-4c796ed8e320");
  return boost::uuids::name_generator_sha1(space)(name);
}

// Of a dump not the rank, which may be known from the dumps of others alone.
std::string instance_id(const Process& process) {
  const dump::Header& h = process.header;
  std::string name =
      fmt::format("{}\n{}\n{}\n{}", h.host(), h.pid(), h.os_start_time(), h.process_start_ticks());
  if (process.source != Source::dump) name += fmt::format("\n{}", h.rank());
  return to_string(uuid_of(name));
}

std::string_view file_name(std::string_view path) { return path.substr(path.rfind('/') + 1); }

// Of python's words; empty: it runs neither a script nor a module.
std::string_view script_of(const std::vector<std::string>& words) {
  for (size_t i = 1; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (word == "-m") return i + 1 < words.size() ? std::string_view(words[i + 1]) : "";
    if (word == "-c" || word == "-") return "";
    if (word == "-X" || word == "-W") {
      ++i;
    } else if (!word.starts_with('-')) {
      return file_name(word);
    }
  }
  return "";
}

std::vector<std::string> words_of(const dump::Header& h) {
  return {h.command().begin(), h.command().end()};
}

void add_run(const Process& process, Attributes& out) {
  const dump::Header& h = process.header;
  out.text("service.name", service_name(process));
  out.text("gpuprof.job", h.job());
  out.text("gpuprof.run", h.run());
  out.text("gpuprof.attempt", h.attempt());
  if (h.world_size() > 0) out.whole("gpuprof.world_size", h.world_size());
}

}  // namespace

std::string service_name(const Process& process) {
  const std::vector<std::string> words = words_of(process.header);
  const std::string& first = words.empty() ? process.header.executable() : words.front();
  std::string_view name = file_name(first);
  if (name.starts_with("python")) {
    const std::string_view script = script_of(words);
    if (!script.empty()) name = script;
  }
  return name.empty() ? "unknown_service" : std::string(name);
}

Json process_resource(const Process& process) {
  const dump::Header& h = process.header;
  Attributes out;
  add_run(process, out);
  out.text("service.instance.id", instance_id(process));
  out.text("host.name", h.host());
  if (h.pid() > 0) out.whole("process.pid", h.pid());
  out.text("process.executable.path", h.executable());
  out.text("process.executable.name", file_name(h.executable()));
  if (!h.command().empty()) out.text("process.command", h.command(0));
  if (has_arguments(process)) out.texts("process.command_args", words_of(h));
  out.text("process.owner", h.user());
  if (h.rank() >= 0) out.whole("gpuprof.rank", h.rank());
  // Without a launcher's rank there is no local one either.
  if (process.has_header && h.rank() >= 0 && h.local_rank() >= 0) {
    out.whole("gpuprof.local_rank", h.local_rank());
  }
  return {{"attributes", out.take()}};
}

Json run_resource(const Process& process) {
  Attributes out;
  add_run(process, out);
  return {{"attributes", out.take()}};
}

Json scope_of(const Process& process) {
  Json out = {{"name", "gpuprof"}};
  const std::string& version = process.header.tool_version();
  if (!version.empty()) out["version"] = version;
  return out;
}

std::string trace_id(const Process& process, int64_t begin) {
  const dump::Header& h = process.header;
  std::string name = fmt::format("trace\n{}\n{}\n{}", h.job(), h.run(), h.attempt());
  if (h.job().empty() && h.run().empty() && h.attempt().empty()) name += fmt::format("\n{}", begin);
  std::string out;
  for (const uint8_t byte : uuid_of(name)) out += fmt::format("{:02x}", byte);
  return out;
}

std::string span_id(const Exported& source, const analysis::StepAnatomy& step) {
  const ptrdiff_t place = &step - source.steps->data();
  return fmt::format("{:016x}", fnv1a(fmt::format("{}\n{}\n{}", source.id, step.step, place)));
}

}  // namespace gpuprof::otlp
