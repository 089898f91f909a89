# SPDX-License-Identifier: Apache-2.0
"""What the report claims of traces of which each time is given, so that the truth can be worked out by hand."""
import pytest
from support.kineto_times import Times, begin_of
from test_real_traces import report

STEPS = 8


def share(found, cause):
    return next((verdict["share_pct"] for verdict in found["verdict"] if verdict["cause"] == cause), 0)


def finding(found, kind):
    return next((each["text"] for each in found["findings"] if each["kind"] == kind), None)


def two_ranks(folder, fill, steps=range(STEPS)):
    """fill(times, rank, step, begin) of each rank and step."""
    paths = []
    for rank in range(2):
        times = Times(rank, 2)
        for step in steps:
            times.step(step, begin_of(step))
            fill(times, rank, step, begin_of(step))
        paths.append(times.write(folder / f"rank{rank}.json"))
    return paths


def a_wait_under_compute(waits):
    """Both ranks compute for 15 ms, and then communicate for 3 ms. `waits(rank, step)`: us for which a collective under the
    compute waits for the other rank."""
    def fill(times, rank, step, begin):
        times.kernels(20, begin + 10, begin + 50, 750)
        waited = waits(rank, step)
        times.collective(begin + 220, begin + 8000 - waited, 500 + waited)
        times.collective(begin + 230, begin + 15_060, 3000)
        times.kernel("adam", begin + 240, begin + 18_065, 500)
        times.wait(begin + 260, begin + 18_595)
    return fill


@pytest.mark.parametrize("waits", [lambda rank, step: 0, lambda rank, step: 6500 * (rank == 0),
                                   lambda rank, step: 6500 * ((rank + step) % 2)], ids=["none", "of one rank", "in turn"])
def test_waits_under_compute_are_no_exposed_time(tmp_path, waits):
    found = report(*two_ranks(tmp_path, a_wait_under_compute(waits)))
    assert found["verdict"][0]["cause"] == "communication", found["verdict"]
    assert share(found, "communication") == pytest.approx(15, abs=0.1)
    assert share(found, "straggler") == 0 and finding(found, "rank_jitter") is None


def test_a_straggler_has_what_of_the_waits_is_exposed(tmp_path):
    """Rank 1's kernels take 10 % longer. Rank 0 waits for it under its compute, and for 1.5 ms of 20 ms after it."""
    def fill(times, rank, step, begin):
        length = 825 if rank else 750
        times.kernels(20, begin + 10, begin + 50, length)
        ready = begin + 50 + (7 * 825 + 3000 if rank else 7 * 750)
        times.collective(begin + 220, ready, begin + 50 + 7 * 825 + 3400 - ready)
        last = begin + 50 + 20 * 825 + 5
        times.collective(begin + 230, begin + 55 + 20 * length, last - begin - 55 - 20 * length + 1500)
        times.kernel("adam", begin + 240, last + 1505, 500)
        times.wait(begin + 260, last + 2025)
    found = report(*two_ranks(tmp_path, fill))
    assert share(found, "straggler") == pytest.approx(3.75, abs=0.1)  # 1.5 ms of 20 ms, on one rank of two
    assert share(found, "communication") == pytest.approx(7.5, abs=0.1)
