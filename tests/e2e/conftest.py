# SPDX-License-Identifier: Apache-2.0
"""The rooms' tests share what lies here, and import each other's helpers."""
import pathlib
import signal
import sys

import pytest

_HERE = pathlib.Path(__file__).resolve().parent
for _room in (_HERE, _HERE / "recording", _HERE / "safety", _HERE / "command"):
    if str(_room) not in sys.path:
        sys.path.insert(0, str(_room))

import harness  # noqa: E402

# A shell's background job ignores it, and all programs that are started here would.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Where tests/aarch64.sh has made the arm64 folder the root. What follows is the emulator's, by a part of the test's name.
_EMULATED = pathlib.Path("/qemu-aarch64-static").exists()
_SLOW = "a call takes many times as long under qemu-user, so that the program makes fewer, or costs more"
_NO_CLONE = "qemu-user refuses the clone() that starts the program of GPUPROF_ON_TRACE_READY"
_NO_SECCOMP = "qemu-user refuses PR_SET_SECCOMP, by which the program is refused what this is about"
_OTHER_START = "qemu-user tells a process a later start of its own than the kernel tells others, and another one after exec"
_OWN_THREAD = "qemu-user has a thread of its own in each process, which counts as the program's"
_NOT_UNDER_QEMU = {
    "end-raw_exit": _OWN_THREAD,
    "main_thread_first": _OWN_THREAD,
    "first_thread_ends_before_ours[raw_exit": _OWN_THREAD,
    "in_the_control_group": "qemu-user takes threads and memory of its own from the group",
    "constructor_that_uses_cuda_is_not_held_up": "/proc tells which system call of x86-64 a thread waits in",
    "passes_a_death_by_signal[SIGSEGV]": "qemu-user says on standard error that its program has crashed",
    "stays_within_its_budget[stacks-2]": _SLOW,
    "stays_within_its_budget[stacks-5]": _SLOW,
    "what_a_lost_record_costs": _SLOW,
    "what_is_left_out_stays_so": _SLOW,
    "a_window_too_short_for_a_look": _SLOW,
    "early_window_decides_for_itself_alone[costly-": _SLOW,
    "faults_in_fresh_buffers": _SLOW,
    "what_the_profiler_took_is_in_no_cause": _SLOW,
    "test_very_many_take_no_square": _SLOW,
    "test_leaks_are_found_as_ever": "LeakSanitizer stops a process's threads by ptrace, which qemu-user has not",
    "test_little_address_space": "qemu-user lets no RLIMIT_AS through to the kernel",
    "shares_are_the_kernels[0]": "a sample costs many times as much under qemu-user, so that fewer are taken",
    "another_profiler_has_cupti_in_the_window[clock]": _SLOW,
    "test_ready.py::test_the_dump_written_at_exit": _NO_CLONE,
    "test_ready.py::test_once_for_each_window": _NO_CLONE,
    "test_ready.py::test_a_program_that_is_not_there": _NO_CLONE,
    "test_ready.py::test_before_exec": _NO_CLONE,
    "test_samples.py::test_in_a_container": _NO_SECCOMP,
    "test_samples.py::test_a_container": _NO_SECCOMP,
    "test_refused.py::test_writes_that_fail": _NO_SECCOMP,
    "test_refused.py::test_files_that_cannot_be_made": _NO_SECCOMP,
    "test_refused.py::test_a_file_system_without": _NO_SECCOMP,
    "test_refused.py::test_no_thread_can_be_started": _NO_SECCOMP,
    "test_keep.py::test_without_locks": _NO_SECCOMP,
    "test_every_step_is_in_the_log[file-": "qemu-user keeps what it has translated in the memory of the process",
    "test_a_program_without_python": "where a thread waits, /proc tells of a place in qemu-user",
    "test_a_main_thread_that_has_ended_has_no_samples": "qemu-user aborts once the main thread has ended",
    "workers_know_when_their_process_started": _OTHER_START,
    "the_rank_that_stands_is_named[stopped-": _OTHER_START,
    "test_recorded_whole[exec-self]": _OTHER_START,
    "test_a_program_is_not_disturbed[exec-self]": _OTHER_START,
    "test_a_program_is_not_disturbed[process-fork_levels]": _OTHER_START,
    "resources-no_mappings_later": "qemu-user needs mappings of its own",
    "test_an_output_that_was_there_stays": "qemu-user catches each signal from the start, so it is not seen when the program does",
    "1 processes left over": "qemu-user refuses PR_SET_CHILD_SUBREAPER",
    "stress_that_is_interrupted_leaves_nothing": "qemu-user refuses PR_SET_CHILD_SUBREAPER",
    "leaves_ignored_signals_ignored": "qemu-user handles each signal that ends a program, ignored or not, and the next exec forgets that",
}


@pytest.fixture(scope="module", name="ahead_of_other_tests")
def before_what_other_tests_start():
    with harness.ahead_of_other_tests():
        yield


def pytest_collection_modifyitems(items):
    for item in items if _EMULATED else []:
        for part, reason in _NOT_UNDER_QEMU.items():
            if part in item.nodeid:
                item.add_marker(pytest.mark.skip(reason=reason))
