// SPDX-License-Identifier: Apache-2.0
// Our subscription to CUPTI, and who has it instead of us (taken_by).
#include <cstdio>
#include <cstring>
#include <string_view>

#include "collector/base/log.h"
#include "collector/cupti/cupti_buffers.h"
#include "collector/cupti/cupti_callback.h"
#include "collector/cupti/cupti_graphs.h"
#include "collector/cupti/cupti_link.h"
#include "collector/cupti/cupti_sharing.h"
#include "collector/record/session.h"
#include "collector/record/shed.h"

namespace gpuprof {
namespace {

const char* text_of(CUptiResult result) {
  const char* text = nullptr;
  if (g_link.api.GetResultString(result, &text) != CUPTI_SUCCESS || !text) text = "unknown error";
  return text;
}

// The names of the rows of preload's table tell which callbacks we want: "cudaLaunchKernel_v7000"
// is the callback of row "cudaLaunchKernel". The driver's have the names of its symbols.
// `order`: those that the order of graph launches hangs on, else all.
CUptiResult enable_callbacks(CUpti_CallbackDomain domain, Library library, bool order) {
  CUptiResult worst = CUPTI_SUCCESS;
  for (uint32_t id = 1; id < kMaxCallbackIds; ++id) {
    const char* name = nullptr;
    if (g_link.api.GetCallbackName(domain, id, &name) != CUPTI_SUCCESS || !name) continue;
    const char* end = std::strrchr(name, '_');
    if (domain == CUPTI_CB_DOMAIN_DRIVER_API || !end || end[1] != 'v')
      end = name + std::strlen(name);
    const std::string_view base(name, static_cast<size_t>(end - name));
    for (size_t api = 0; api < api_count(); ++api) {
      const ApiRow& row = api_rows()[api];
      if (row.library != library || row.kind == Kind::none || base != row.name) continue;
      const bool ends_context = row.role == ApiRole::end_context;
      if (!ends_context && !activity_on(activity_of(row))) continue;
      set_callback_api(domain, id, static_cast<ApiId>(api));
      if (!ends_context && (order || is_shed(row)) && !orders_graphs(domain, id)) continue;
      const CUptiResult result = g_link.api.EnableCallback(1, g_link.subscriber, domain, id);
      if (result != CUPTI_SUCCESS) worst = result;
    }
  }
  return worst;
}

bool taken_by(const char* name) {
  g_link.try_again = true;
  std::snprintf(g_link.holder, sizeof g_link.holder, "%s", name);
  std::snprintf(g_link.missing, sizeof g_link.missing, "%s uses CUPTI, which has room for one user",
                name);
  return false;
}

bool refused_v2(const char* call, CUptiResult result) {
  log_line(LogLevel::debug, "%s: %s (%d): CUPTI's functions for one user are used", call,
           text_of(result), static_cast<int>(result));
  return false;
}

// As one of several subscribers (CUPTI 13.3 and drivers from R610 on). Its functions cannot be
// mixed with the older ones: where the program has used those, so do we.
bool join_subscribers() {
  if (!g_link.api.has_v2 || g_link.v2_fails || host_has_used_v1()) return false;
  g_link.first_name[0] = '\0';
  g_link.refused_several = false;
  CuptiV2SubscriberParams params{};
  params.structSize = sizeof params;
  params.subscriberName = "gpuprof";
  params.oldSubscriberName = g_link.first_name;
  params.oldSubscriberSize = sizeof g_link.first_name;
  params.allowMultipleSubscribers = 1;
  CUpti_SubscriberHandle handle = nullptr;
  CUptiResult result = g_link.api.Subscribe_v2(&handle, on_callback_beside_others, nullptr,
                                               reinterpret_cast<CUpti_SubscriberParams*>(&params));
  g_link.first_name[sizeof g_link.first_name - 1] = '\0';
  g_link.refused_several = result == CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
  if (result != CUPTI_SUCCESS) return refused_v2("cuptiSubscribe_v2", result);
  const CuptiActivities joined{&g_link.api, handle};
  uint8_t several = 0;
  result = joined.attribute(CuptiV2Attribute::multiple_subscriber_state, &several);
  uint64_t now = 0;
  if (result == CUPTI_SUCCESS && several != 1) result = CUPTI_ERROR_NOT_SUPPORTED;
  if (result == CUPTI_SUCCESS) result = joined.timestamp(&now);
  if (result != CUPTI_SUCCESS) {
    g_link.api.Unsubscribe(handle);
    g_link.v2_fails = true;
    return refused_v2("as one of several subscribers", result);
  }
  if (std::strstr(g_link.first_name, "gpuprof")) g_link.first_name[0] = '\0';
  g_link.activities = joined;
  g_link.subscriber = handle;
  g_link.shared = false;
  g_link.v2_used = true;
  return true;
}

}  // namespace

bool fail(const char* call, CUptiResult result) {
  std::snprintf(g_link.missing, sizeof g_link.missing, "%s: %s (%d)", call, text_of(result),
                static_cast<int>(result));
  return false;
}

bool taken_by_host() {
  char name[96];
  host_cupti_name(name, sizeof name);
  return taken_by(name);
}

bool subscribe() {
  g_link.activities = {&g_link.api};
  if (join_subscribers()) return true;
  if (CUpti_SubscriberHandle const other = host_subscription()) {
    g_link.subscriber = other;
    g_link.shared = true;
    return true;
  }
  g_link.shared = false;
  char other[64] = "";
  CUptiResult result = CUPTI_ERROR_UNKNOWN;
  if (g_link.api.Subscribe_v2) {
    CUpti_SubscriberParams params{};
    params.structSize = CUpti_SubscriberParams_STRUCT_SIZE;
    params.subscriberName = "gpuprof";
    params.oldSubscriberName = other;
    params.oldSubscriberSize = sizeof other;
    result = g_link.api.Subscribe_v2(&g_link.subscriber, on_api_callback, nullptr, &params);
  }
  if (result != CUPTI_SUCCESS && result != CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED) {
    result = g_link.api.Subscribe(&g_link.subscriber, on_api_callback, nullptr);
  }
  if (result == CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED) {
    other[sizeof other - 1] = '\0';
    return taken_by(other[0] ? other : "another tool (torch.profiler, Nsight or a debugger)");
  }
  g_link.serves_one = result == CUPTI_SUCCESS && g_link.refused_several;
  return result == CUPTI_SUCCESS || fail("cuptiSubscribe", result);
}

// Both domains, and ids that only a newer library than these headers has: it tells their names.
void enable_callbacks(bool order) {
  const CUptiResult runtime = enable_callbacks(CUPTI_CB_DOMAIN_RUNTIME_API, Library::cudart, order);
  const CUptiResult driver = enable_callbacks(CUPTI_CB_DOMAIN_DRIVER_API, Library::driver, order);
  const CUptiResult worst = runtime != CUPTI_SUCCESS ? runtime : driver;
  if (worst == CUPTI_SUCCESS || order) return;
  log_line(LogLevel::warn,
           "CUPTI refuses callbacks (cuptiEnableCallback: %s): GPU work is not joined to its calls",
           text_of(worst));
}

namespace {
void disable_callbacks(bool (*goes)(CUpti_CallbackDomain domain, uint32_t id)) {
  constexpr struct {
    CUpti_CallbackDomain domain;
    uint32_t end_id;
  } kDomains[] = {{CUPTI_CB_DOMAIN_RUNTIME_API, kMaxCallbackIds},
                  {CUPTI_CB_DOMAIN_DRIVER_API, kMaxCallbackIds},
                  {CUPTI_CB_DOMAIN_RESOURCE, CUPTI_CBID_RESOURCE_SIZE + 1}};
  for (const auto& row : kDomains) {
    for (uint32_t id = 1; id < row.end_id; ++id) {
      if (!callback_is_ours(row.domain, id) || !goes(row.domain, id)) continue;
      if (g_link.shared && host_wants_callback(row.domain, id)) continue;
      g_link.api.EnableCallback(0, g_link.subscriber, row.domain, id);
    }
  }
}
}  // namespace

void disable_callbacks() {
  disable_callbacks([](CUpti_CallbackDomain, uint32_t) { return true; });
}

void disable_shed_callbacks() {
  disable_callbacks([](CUpti_CallbackDomain domain, uint32_t id) {
    return domain != CUPTI_CB_DOMAIN_RESOURCE && !orders_graphs(domain, id) &&
           is_shed(api_rows()[callback_api(domain, id)]);
  });
}

void unsubscribe() {
  if (!g_link.shared) {
    g_link.api.Unsubscribe(g_link.subscriber);
    return;
  }
  share_host_subscription(false);
  disable_callbacks();
}

void leave_subscribers() {
  g_link.api.Unsubscribe(g_link.subscriber);
  read_as_subscriber(nullptr);
  take_back_subscriber_buffers();
  g_link.activities = {&g_link.api};
}

bool others_record() {
  uint32_t kinds = 0;
  return g_link.api.v2.ActivityGetEnabledKinds(nullptr, nullptr, nullptr, &kinds) !=
             CUPTI_SUCCESS ||
         kinds != 0;
}

}  // namespace gpuprof
