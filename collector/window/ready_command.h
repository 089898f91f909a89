// SPDX-License-Identifier: Apache-2.0
// GPUPROF_ON_TRACE_READY: the user's command, once for each dump. Drain thread only.
//
// The program must not notice. A process that execs gets SIGCHLD as its exit signal back, whatever
// it was cloned with, so a direct child would be reaped by the program's wait(-1). Hence a helper
// between the two, which never execs and was cloned with exit signal 0: it starts the command and
// ends, and the command is inherited by init. Where orphans would come back to the program (it is
// process 1 of its container, or a subreaper), the helper stays as the command's parent.
#pragma once

namespace gpuprof {

// Starts the command for the dump at `path`; waits for its exec only. The command has /dev/null as
// input, the program's standard error as output, no other descriptors, no LD_PRELOAD, and default
// signals.
void run_ready_command(const char* path);
// The same once exec has replaced the program, or it has ended within exec: then no more comes to
// the dump. One command at a time waits so.
void run_ready_command_after_exec(const char* path);
// exec has failed, and the dump goes on. Of a command that has begun it is too late.
void cancel_ready_command();
// Waits for commands that still run, 30 s at most: the end of the program may be the end of its
// container, or of its job.
void wait_for_ready_commands();

}  // namespace gpuprof
