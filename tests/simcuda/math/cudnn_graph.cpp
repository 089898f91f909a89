// SPDX-License-Identifier: Apache-2.0
// cuDNN's graph API: descriptors that keep what they are given. Heuristics find one engine for
// every graph of operations; its plan needs no workspace and runs one kernel, named after the first
// operation.
#include <cstdint>
#include <cstring>
#include <map>
#include <vector>

#include "tests/simcuda/math/library_kernel.h"

using namespace gpuprof::simcuda;

namespace {

enum : int { kSuccess = 0, kBadParameter = 2000, kNotSupported = 3000, kExecutionFailed = 5000 };

// Values are those of cudnnBackendDescriptorType_t, cudnnBackendAttributeName_t and
// cudnnBackendAttributeType_t.
enum : int { kConvolution = 10, kFilterGradient = 11, kDataGradient = 12 };
enum : int { kConfigKnobs = 302, kPlanJson = 405, kEngineKnobs = 1302 };
enum : int { kInt64 = 3, kNumericalNote = 11, kDescriptorType = 15, kBehaviorNote = 19 };

struct Attribute {
  int64_t count;
  std::vector<char> bytes;
};

struct Descriptor {
  int type;
  const char* kernel = nullptr;  // of the operation that it is, or leads to
  std::map<int, Attribute> attributes;
};

const char* kernel_of(int type) {
  switch (type) {
    case kConvolution: return "sim_cudnn_convolution_forward";
    case kFilterGradient: return "sim_cudnn_convolution_wgrad";
    case kDataGradient: return "sim_cudnn_convolution_dgrad";
    default: return nullptr;
  }
}

// Of cudnnBackendAttributeType_t; 0: larger than what is kept here.
size_t size_of(int type) {
  constexpr uint8_t kSizes[] = {8, 4, 1, 8, 4, 8, 8, 4, 4, 4, 4, 4, 4, 4, 4,
                                8, 4, 4, 4, 4, 4, 4, 4, 4, 1, 4, 8, 4, 4, 4};
  return type >= 0 && type < static_cast<int>(sizeof kSizes) ? kSizes[type] : 0;
}

int give(const Attribute& attribute, int64_t wanted, int64_t* count, void* out) {
  if (count != nullptr) *count = attribute.count;
  if (out == nullptr || attribute.count == 0) return kSuccess;
  const size_t each = attribute.bytes.size() / static_cast<size_t>(attribute.count);
  const auto given = static_cast<size_t>(wanted < attribute.count ? wanted : attribute.count);
  std::memcpy(out, attribute.bytes.data(), given * each);
  return kSuccess;
}

}  // namespace

extern "C" {

SIM_EXPORT(cudnnBackendCreateDescriptor, (int type, Descriptor** out)) {
  *out = new Descriptor{type, kernel_of(type), {}};
  return kSuccess;
}
SIM_EXPORT(cudnnBackendDestroyDescriptor, (Descriptor * descriptor)) {
  delete descriptor;
  return kSuccess;
}
SIM_EXPORT(cudnnBackendFinalize, (Descriptor*)) { return kSuccess; }

SIM_EXPORT(cudnnBackendSetAttribute,
           (Descriptor * descriptor, int name, int type, int64_t count, const void* values)) {
  const size_t bytes = size_of(type) * static_cast<size_t>(count);
  if (descriptor == nullptr || values == nullptr) return kBadParameter;
  const auto* const first = static_cast<const char*>(values);
  descriptor->attributes[name] = Attribute{count, {first, first + bytes}};
  if (type != kDescriptorType) return kSuccess;
  const auto* const links = static_cast<const Descriptor* const*>(values);
  for (int64_t i = 0; i < count && descriptor->kernel == nullptr; ++i) {
    if (links[i] != nullptr) descriptor->kernel = links[i]->kernel;
  }
  return kSuccess;
}

// A descriptor that is asked for is filled in, not handed over: the caller made it.
SIM_EXPORT(cudnnBackendGetAttribute, (Descriptor * descriptor, int name, int type, int64_t wanted,
                                      int64_t* count, void* values)) {
  if (descriptor == nullptr) return kBadParameter;
  const bool list = name == kConfigKnobs || name == kEngineKnobs;
  if (type == kDescriptorType) {
    if (count != nullptr) *count = list ? 0 : 1;
    auto* const links = static_cast<Descriptor**>(values);
    if (!list && links != nullptr && wanted > 0) links[0]->kernel = descriptor->kernel;
    return kSuccess;
  }
  const auto set = descriptor->attributes.find(name);
  if (set != descriptor->attributes.end()) return give(set->second, wanted, count, values);
  if (name == kPlanJson) return give(Attribute{3, {'{', '}', '\0'}}, wanted, count, values);
  if (type == kNumericalNote || type == kBehaviorNote)
    return give(Attribute{0, {}}, 0, count, nullptr);
  if (type == kInt64) return give(Attribute{1, std::vector<char>(8)}, wanted, count, values);
  return kNotSupported;
}

SIM_EXPORT(cudnnBackendExecute, (MathHandle * handle, Descriptor* plan, Descriptor*)) {
  const char* const kernel = plan->kernel != nullptr ? plan->kernel : "sim_cudnn_graph";
  return launch_library_kernel(kernel, handle->stream) ? kSuccess : kExecutionFailed;
}

}  // extern "C"
