// SPDX-License-Identifier: Apache-2.0
// Our connection to CUPTI: how it is taken and given back. cupti_session.h says when. Drain thread
// only, but for what is atomic.
#pragma once

#include <atomic>
#include <cstdint>

#include "collector/cupti/cupti_api.h"
#include "collector/cupti/cupti_records.h"

namespace gpuprof {

struct CuptiLink {
  CuptiApi api{};
  bool loaded = false;
  CUpti_SubscriberHandle subscriber = nullptr;
  // The functions of our subscriber alone (V2), while one of several; else those of the process
  // (V1).
  CuptiActivities activities{&api};
  CuptiRecordContext context{};
  char missing[512] = "";  // why there are no GPU times; "" while attached
  bool v2_fails = false;   // in this process: not tried again
  std::atomic<bool> v2_used{false};
  bool refused_several = false;         // by the newest attempt to be one of several
  std::atomic<bool> serves_one{false};  // and nobody else was there
  char first_name[64] = "";             // of the subscriber that was there before ours
  bool shared = false;         // callbacks reach us through a subscription of the program's
  bool try_again = false;      // another user of CUPTI may end, or CUDA start
  bool awaits_cuda = false;    // the latter: the program has made no call of it
  bool awaits_driver = false;  // or has, and its driver has not started yet
  char holder[96] = "";        // that one
  uint32_t sessions = 0;       // so far, with this one
  bool asked_for_ids = false;  // activities of API calls are on for their correlation ids

  bool is_subscriber() const { return activities.subscriber != nullptr; }
};
extern CuptiLink g_link;

// "Correlation IDs are generated only when CUDA API activity kinds [...] are enabled" (CUPTI guide,
// 2.3.4). Profilers that join by callbacks have them without; so this is asked for where they lack.
inline constexpr CUpti_ActivityKind kApiKinds[] = {CUPTI_ACTIVITY_KIND_RUNTIME,
                                                   CUPTI_ACTIVITY_KIND_DRIVER};

// ---- cupti_attach.cpp
// ----------------------------------------------------------------------------

// Everything that the settings ask for is on, or nothing; then `missing` says why. Where functions
// of V2 are there and fail, those of V1 are tried in the same attempt.
bool attach_cupti();
// Everything off, and CUPTI as the program expects to find it.
void give_back_cupti();

// ---- cupti_subscribe.cpp
// -------------------------------------------------------------------------

bool subscribe();
void unsubscribe();
// Our subscriber of V2 goes, and with it what CUPTI still holds for it.
void leave_subscribers();
// Whether any other subscriber records, once we do not. A flush is for all of them, and a forced
// one would take the times from what they have not had yet.
bool others_record();
// The program's own profiler has CUPTI. False.
bool taken_by_host();
// The callbacks of API calls; `order`: those that the order of graph launches hangs on, else all.
void enable_callbacks(bool order);
void disable_callbacks();
void disable_shed_callbacks();  // of calls that are left out (record/shed.h)

// False; `missing` says that `call` failed.
bool fail(const char* call, CUptiResult result);

}  // namespace gpuprof
