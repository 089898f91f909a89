// SPDX-License-Identifier: Apache-2.0
// What the program itself does with CUPTI (torch.profiler and the like), as preload's wrappers tell
// it. CUPTI has one subscriber, one pair of buffer callbacks, one clock and one set of activity
// kinds: while the program uses them we do not. A subscription of the program's that rests is
// shared: older Kineto never gives its own back.
#pragma once

#include <cupti.h>

#include <cstddef>
#include <cstdint>

namespace gpuprof {

// ---- for preload's wrappers, on the program's threads ----

// Whether to follow this call. False: it is one of ours, or gpuprof is off.
bool host_cupti_is_followed();

// Around a call by which the program takes or changes what is shared. The drain thread gives CUPTI
// up before the constructor returns (3 s at most), and does not take it before the destructor.
class HostTakesCupti {
 public:
  explicit HostTakesCupti(const void* return_address);
  ~HostTakesCupti();
  HostTakesCupti(const HostTakesCupti&) = delete;
  HostTakesCupti& operator=(const HostTakesCupti&) = delete;
};

// The program's subscriber was refused so, within a HostTakesCupti. Where it was for ours, that is
// waited for once more, 10 s at most. True: it has been given up, CUPTI is to be asked again.
bool cupti_makes_room(CUptiResult refusal);

// A subscriber that allows others beside it (CUPTI 13.3). It is no user of what is shared: nothing
// is given up for it, unless we hold CUPTI by functions that exclude it.
bool host_wants_several(const CUpti_SubscriberParams* params);
void host_has_joined(CUpti_SubscriberHandle handle, const char* name);  // name: may be null
bool host_leaves(CUpti_SubscriberHandle handle);                        // false: it has not joined
// CUPTI has answered a call by which the program takes it: it may refuse that for what we did.
void host_was_answered(CUptiResult result);

// The callback to subscribe with in place of the program's, which it calls. `name` may be null.
CUpti_CallbackFunc host_subscribes(CUpti_CallbackFunc callback, void* user, const char* name);
void host_has_subscribed(CUpti_SubscriberHandle handle);
void host_has_unsubscribed();
// Which callbacks the program wants; id 0: all of the domain, domain 0: of all domains. Returns
// whether CUPTI is to be told: not where a callback goes off that we need, too.
bool host_enables_callback(bool on, CUpti_SubscriberHandle handle, uint32_t domain, uint32_t id);

// The completion callback to register in place of the program's, which it calls for its buffers.
CUpti_BuffersCallbackCompleteFunc host_registers_buffers(
    CUpti_BuffersCallbackRequestFunc request, CUpti_BuffersCallbackCompleteFunc complete);
void host_registers_clock(CUpti_TimestampCallbackFunc clock);
void host_has_enabled(CUpti_ActivityKind kind, bool on);
bool host_has_kind(CUpti_ActivityKind kind);
void host_has_flushed();
void host_has_finalized();

// ---- for cupti_session, on the drain thread ----

// Uses CUPTI now, or did a moment ago.
bool host_is_at_cupti();
bool host_was_ever_at_cupti();
// It asks for CUPTI, it ends, or its next window is near: nothing of CUPTI's is to be waited for.
// Else the drain thread's wait counts as progress.
bool cupti_is_asked_for();
bool host_has_used_v1();  // functions of which CUPTI serves one user
// Of a subscriber that has joined, or nothing.
void joined_host_name(char* out, size_t size);
void host_cupti_name(char* out, size_t size);
CUpti_SubscriberHandle host_subscription();       // null: none
CUpti_BuffersCallbackRequestFunc host_request();  // null: never registered
CUpti_TimestampCallbackFunc host_clock();         // null: never registered
bool host_wants_callback(uint32_t domain, uint32_t id);
// A buffer that is not ours.
void host_buffer_completed(CUcontext context, uint32_t stream, uint8_t* buffer, size_t size,
                           size_t valid);
// on_api_callback() for a subscriber beside others: the word from a call's entry to its exit is not
// CUPTI's, which may be of all.
void CUPTIAPI on_callback_beside_others(void*, CUpti_CallbackDomain domain, CUpti_CallbackId id,
                                        const void* data);
// Our callbacks arrive through the program's subscription.
void share_host_subscription(bool shared);
void forget_host_cupti();  // in the child after fork

}  // namespace gpuprof
