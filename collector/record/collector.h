// SPDX-License-Identifier: Apache-2.0
// What preload/ (and the exported C functions) may ask of the collector besides recording
// (recorder.h). No function here throws, and none blocks for longer than stated.
#pragma once

#include <cstddef>
#include <cstdint>

#include "collector/record/recorder.h"

namespace gpuprof {

// ---- process life ------------------------------------------------------------------------------

// From the library's constructor, which hooks may precede, after it has filled g_host. Notes the
// time and where the program was started; opens and allocates nothing.
void collector_init();
// In its place, in a second copy of this library: for good, every hook calls the real function at
// once.
void collector_stays_off();

// First traced call of the process: reads the settings and starts the session, or switches all
// hooks off. Returns the flags now in force for `api`. Other threads wait for the starting one, 10
// s at most, and 2 s for a window that begins with the session.
uint8_t wake_session(ApiId api);

// CUDA's driver is starting, and will call start_in_driver() on this thread. Until it has, other
// threads do not start the session, but wait, 1 s at most.
void expect_start_in_driver();
void not_in_driver();  // on the same thread: it was not the driver

// Starts the session if that has not happened, on a thread on which CUDA's driver is starting.
// Other threads' calls of CUPTI may wait until this returns, so it waits for none.
void start_in_driver();

// Ends the session: closes an open window (flagged partial), waits for its dump. Idempotent; at
// most 10 s (longer only while the dump grows). `reason` as in Summary.end_reason.
void finish_session(const char* reason);

// Before and after exec: the new program must find the dump complete on disk; should exec fail, the
// recording goes on, if the first said true. Waits for the drain thread, 10 s at most.
bool save_before_exec();
void go_on_after_failed_exec();

// In the child of fork: the parent's session is not ours; asleep again.
void forget_session_in_child();

// Whether a session of this very process (not of a vfork parent) is running.
bool session_is_live();

// True unless GPUPROF_MODE=off stands in the environment: whether to answer NVTX's look-up.
bool wants_injection();

// ---- steps -------------------------------------------------------------------------------------

// What a call is about, for the step sources that count some calls and not others.
struct StepSubject {
  const void* object = nullptr;  // launch: function; graph launch: graph; collective: communicator
  uint64_t detail = 0;           // collective: tells one of a step from another
  bool captured = false;         // collective: it became part of a CUDA graph
};
// After a call whose flags held kHookStep, that succeeded and became no node of a graph, as far as
// its hook knows.
void step_after_call(ApiId api, const StepSubject& subject);
// gpuprof_step(): the end of one step.
void step_manual();
// After a step of one of PyTorch's optimizers, on the thread that made it. Starts a session only
// where GPUPROF_STEP names this source.
void step_optimizer(const void* optimizer);
// A module is called from outside of any. `trains`: gradients are wanted; `may_train`: there is an
// optimizer.
void step_forward(const void* module, bool trains, bool may_train);

// ---- names and communicators -------------------------------------------------------------------

// From __cudaRegisterFunction: `name` must stay valid until unregister_functions(module).
void register_function(const void* module, const void* host_function, const char* name);
void unregister_functions(const void* module);
// From __cudaGetKernel: `kernel` stands for `host_function`.
void register_kernel(const void* kernel, const void* host_function);

// From the driver's cuModuleGetFunction and cuLibraryGetKernel: `name` is copied.
void register_driver_function(const void* function, const char* name);

struct CommunicatorPlace {
  uint16_t rank_count;  // 0: unknown
  uint16_t rank;
  bool asks_group = false;  // once for each: whose group it is, is to be found out
};
void register_communicator(const void* communicator, CommunicatorPlace place);
void forget_communicator(const void* communicator);
// Whether its size and rank were never registered; false where there is no room for one more.
bool is_new_communicator(const void* communicator);
// Between two ranks; `peer` -1: a collective of all of them.
struct MessagePath {
  int peer = -1;
  bool sends = false;
};
// Place, and the next sequence number: the call's index on its communicator, among collectives or
// on that path, over the whole run. A call that failed (`usable` false) counts where the
// communicator is known: it may be one that is gone, whose address the next one has.
CommunicatorPlace note_collective(const void* communicator, uint32_t* sequence,
                                  MessagePath path = {}, bool usable = true);

}  // namespace gpuprof
