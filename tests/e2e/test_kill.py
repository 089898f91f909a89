# SPDX-License-Identifier: Apache-2.0
"""A killed process loses nothing that was committed."""
from support import kill


def test_random_kills():
    compared, problems = kill.soak(20, seed=20)
    assert problems == []
    assert compared > 1000
