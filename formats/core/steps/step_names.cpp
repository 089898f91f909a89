// SPDX-License-Identifier: Apache-2.0
#include "formats/core/steps/step_names.h"

#include <cstring>

#include "formats/core/text.h"

namespace gpuprof {
namespace {

// Names that training loops give their step ranges; `auto` looks for these.
constexpr std::string_view kLikelyNames[] = {
    "step",         "train_step", "training_step", "train step", "training step",
    "ProfilerStep", "iteration",  "iter",          "train_iter", "train_iteration",
};

// vLLM's execute_context_1(512)_generation_3(3), before 0.11 execute_new_1_cached_3
// (vllm/v1/worker: gpu_worker.py); TensorRT-LLM's "[Executor] _forward_step 17: 0 ctx reqs, 32 gen
// reqs" (tensorrt_llm/_torch/pyexecutor/py_executor.py).
constexpr std::string_view kEngineNames[] = {
    "execute_context_*",
    "execute_new_*",
    "[Executor] _forward_step*",
};

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; }

bool equal_ignoring_case(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (lower(a[i]) != lower(b[i])) return false;
  }
  return true;
}

}  // namespace

std::string_view base_name(std::string_view message) {
  size_t end = message.size();
  while (end && message[end - 1] >= '0' && message[end - 1] <= '9') --end;
  if (end && end < message.size() && std::strchr(" #_:", message[end - 1])) --end;
  return slice(message, 0, end);
}

std::string_view xla_module(std::string_view message) {
  constexpr std::string_view kTitle = "XlaModule:#", kModule = "hlo_module=";
  if (slice(message, 0, kTitle.size()) != kTitle) return {};
  const size_t at = message.rfind(kModule);
  if (at == std::string_view::npos) return {};
  const std::string_view rest = slice(message, at + kModule.size());
  return slice(rest, 0, rest.find_first_of(",#"));
}

bool step_name_matches(std::string_view message, std::string_view name) {
  if (message == name || base_name(message) == name) return true;
  if (!name.empty() && name.back() == '*' && message.starts_with(slice(name, 0, name.size() - 1))) {
    return true;
  }
  const std::string_view module = xla_module(message);
  return !module.empty() && module == name;
}

std::string_view likely_step_name(std::string_view message) {
  const std::string_view base = base_name(message);
  for (const std::string_view likely : kLikelyNames) {
    if (equal_ignoring_case(base, likely)) return base;
  }
  return {};
}

std::string_view engine_step_name(std::string_view message) {
  for (const std::string_view name : kEngineNames) {
    if (step_name_matches(message, name)) return name;
  }
  return {};
}

}  // namespace gpuprof
