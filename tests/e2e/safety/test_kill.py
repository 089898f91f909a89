# SPDX-License-Identifier: Apache-2.0
"""A killed process loses nothing that was committed, and nothing of it is read twice."""
from support import kill


def test_random_kills():
    compared, problems, phases = kill.soak(60, seed=20)
    assert problems == []
    assert compared > 10000
    assert {"waiting", "active", "ended"} <= set(phases), phases
