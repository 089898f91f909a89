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
_NOT_UNDER_QEMU = {
    "end-raw_exit": "qemu-user has a thread of its own in each process, which counts as the program's",
    "main_thread_first": "qemu-user has a thread of its own in each process, which counts as the program's",
    "passes_a_death_by_signal[SIGSEGV]": "qemu-user says on standard error that its program has crashed",
    "stays_within_its_budget[stacks-2]": _SLOW,
    "what_a_lost_record_costs": _SLOW,
    "what_is_left_out_stays_so": _SLOW,
    "a_window_too_short_for_a_look": _SLOW,
    "early_window_decides_for_itself_alone[costly-": _SLOW,
    "faults_in_fresh_buffers": _SLOW,
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
