# SPDX-License-Identifier: Apache-2.0
"""What the report claims of who waits for whom, of traces of which each time is given."""
import pytest
from support.kineto_times import ALLREDUCE, STEP, Times, begin_of
from test_real_traces import report
from test_report_claims import finding, saving, share


def a_step(times, begin, own, last, communicates=500, after=2900):
    """A rank's kernels take `own` us, those of the rank that comes last `last`; then all communicate. Its length in us."""
    times.kernels(20, begin + 10, begin + 50, own / 20)
    times.collective(begin + 220, begin + 55 + own, last - own + communicates)
    times.kernel("adam", begin + 240, begin + last + communicates + 60, after)
    times.wait(begin + 260, begin + last + communicates + after + 80)
    return last + communicates + after + 100


def a_part(times, ranks, called, begin, length, stream):
    """An AllReduce of these ranks alone."""
    times.kernel(ALLREDUCE, called, begin, length, stream, **{
        "Collective name": "allreduce", "In msg nelems": 1 << 20, "Out msg nelems": 1 << 20, "dtype": "Float",
        "Group size": len(ranks), "Process Group Name": str(ranks), "Process Group Ranks": str(ranks)})


def by_rank(found):
    return {row["rank"]: row for row in found["stragglers"]}


def test_waits_are_of_the_steps_that_all_ranks_have(tmp_path):
    """Rank 1 is late by 4 ms of 20 in each step; rank 2 was attached for the last three of 30."""
    paths = []
    for rank, steps in enumerate((range(30), range(30), range(27, 30))):
        times = Times(rank, 3)
        for step in steps:
            times.step(step, begin_of(step))
            length = a_step(times, begin_of(step), 16_000 if rank == 1 else 12_000, 16_000, 1000, 2400)
            assert length < STEP
        paths.append(times.write(tmp_path / f"rank{rank}.json"))
    found = report(*paths)
    rows = by_rank(found)
    assert [rows[rank]["waited_us"] for rank in range(3)] == pytest.approx([4000, 0, 4000], abs=10)
    assert [rows[rank]["last_pct"] for rank in range(3)] == [0, 100, 0]
    assert share(found, "communication") == pytest.approx(5, abs=0.1)


def late_now_and_then(folder, late, ranks=4, pause=lambda step: 0):
    """late(rank, step): by how many us a rank's kernels take more than 8 ms. A step is as long as its slowest rank makes it.
    pause(step): for how many us all do nothing first."""
    every = [Times(rank, ranks) for rank in range(ranks)]
    begin, lengths = 1000, []
    for step in range(20):
        last = 8000 + max(late(rank, step) for rank in range(ranks))
        for rank, times in enumerate(every):
            length = pause(step) + a_step(times, begin + pause(step), 8000 + late(rank, step), last)
            times.step(step, begin, length)
        begin += length
        lengths.append(length)
    paths = [times.write(folder / f"rank{rank}.json") for rank, times in enumerate(every)]
    return report(*paths), sum(lengths) / len(lengths)


def test_a_straggler_of_some_steps_costs_no_more_than_there_is(tmp_path):
    """The last of four ranks is late by 8 ms in 12 of 20 steps: the mean is 16.3 ms, and 11.51 without."""
    found, mean = late_now_and_then(tmp_path, lambda rank, step: (8000 if step % 5 < 3 else 10) * (rank == 3))
    assert saving(found, "straggler") == pytest.approx(100 * (mean - 11_510) / mean, abs=2)
    exposed = found["breakdown_pct"]["communication"]
    assert share(found, "straggler") == pytest.approx(exposed - 100 * 500 / mean, abs=0.2)
    assert share(found, "straggler") + share(found, "communication") <= exposed + 0.1


@pytest.mark.parametrize("always", [5, 10, 300])
def test_waits_for_a_rank_that_is_slow_in_few_steps_are_named(tmp_path, always):
    """The last of four ranks is late by 8 ms in 8 of 20 steps. In the others a little, and so always the last."""
    found, mean = late_now_and_then(tmp_path, lambda rank, step: (8000 if step % 5 in (1, 3) else always) * (rank == 3))
    text = finding(found, "rank_jitter")
    assert f"for {100 * (3200 + 0.6 * always) * 3 / 4 / mean:.0f} % of step time" in text and "wait for rank 3" in text, text


def test_waits_are_for_the_rank_that_takes_the_time(tmp_path):
    """Rank 1 is last in nine of ten steps, by 5 us; rank 3 in the tenth, by 16 ms."""
    found, _ = late_now_and_then(tmp_path, lambda rank, step: 16_000 * (rank == 3) if step % 10 == 7 else 5 * (rank == 1))
    assert by_rank(found)[1]["last_pct"] == 90 and "100 % of it they wait for rank 3" in finding(found, "rank_jitter")


def test_the_straggler_named_is_the_one_that_the_saving_is_of(tmp_path):
    """Rank 3 is late by 2 ms in all steps, rank 0 by 6 ms in the last nine of 20: without rank 3's, the mean is 14.2 ms."""
    found, mean = late_now_and_then(tmp_path, lambda rank, step: 6000 * (rank == 0 and step > 10) or 2000 * (rank == 3))
    assert found["verdict"][0]["evidence"][0].startswith("rank 3 "), found["verdict"][0]
    assert saving(found, "straggler") == pytest.approx(100 * (mean - 14_200) / mean, abs=0.8)
    assert share(found, "straggler") == pytest.approx(100 * 2000 * 11 / 20 * 3 / 4 / mean, abs=0.2)


def test_a_straggler_saves_no_more_than_there_is_beside_a_pause(tmp_path):
    """Rank 3 is late by 4 ms in all steps, and all pause for 400 ms in one of 20: 4 ms of a mean of 35.5."""
    found, mean = late_now_and_then(tmp_path, lambda rank, step: 4000 * (rank == 3), pause=lambda step: 400_000 * (step == 10))
    assert saving(found, "straggler") == pytest.approx(100 * 4000 / mean, abs=0.5)
    assert share(found, "straggler") == pytest.approx(100 * 3000 / mean, abs=0.1)
    assert found["verdict"][0]["cause"] == "straggler", "what lies in one step alone comes after it"
    assert "of the median step, 15.500 ms, it saves 25.8 %" in found["verdict"][0]["evidence"][-1]


def test_what_the_straggler_explains_is_a_part_of_all_waits(tmp_path):
    """Rank 3 is late by 3 ms in 19 of 20 steps, rank 1 by 200 ms in the other one, of a mean of 24.35 ms."""
    found, mean = late_now_and_then(tmp_path, lambda rank, step: 200_000 * (rank == 1 and step == 7) or 3000 * (rank == 3))
    text = finding(found, "rank_jitter")
    assert f"the straggler explains {100 * 3000 * 19 / 20 * 3 / 4 / mean:.0f} %: 78 % of it they wait for rank 1" in text


@pytest.mark.parametrize("late,said", [
    (lambda step: step > 10, "Rank 0: kernels 1.55 x the median rank's, 6.000 ms more, in 9 steps since step 11"),
    (lambda step: step % 3 == 1, "Rank 0: kernels 1.55 x the median rank's, 6.000 ms more, in one of every 3 steps from step 1 on")],
    ids=["since", "every"])
def test_waits_for_a_rank_that_is_slow_again_and_again_are_its(tmp_path, late, said):
    found, _ = late_now_and_then(tmp_path, lambda rank, step: 6000 * (rank == 0 and late(step)))
    text = finding(found, "rank_jitter")
    assert "100 % of it they wait for rank 0" in text and text.endswith(said), text


@pytest.mark.parametrize("size,groups", [(2, 1), (3, 1), (2, 4)])
def test_an_exchange_in_small_groups_may_be_no_pipeline(tmp_path, size, groups):
    """In turn one rank of each group comes 3 ms later; then all send to all of the group."""
    every = [Times(rank, size * groups) for rank in range(size * groups)]
    for step in range(12):
        begin = begin_of(step)
        for rank, times in enumerate(every):
            own = 8000 + 3000 * ((rank + step) % size == 0)
            group = [peer for peer in range(size * groups) if peer // size == rank // size]
            times.step(step, begin)
            times.kernels(20, begin + 10, begin + 50, own / 20)
            for i, peer in enumerate(peer for peer in group if peer != rank):
                for way, side in ("send", "Dst Rank"), ("recv", "Src Rank"):
                    stream = 20 + 2 * i + (way == "recv")
                    times.kernel("ncclDevKernel_SendRecv", begin + 300 + 10 * stream, begin + 55 + own, 11_500 - own, stream, **{
                        "Collective name": way, side: peer, "In msg nelems": 1 << 20, "Out msg nelems": 1 << 20, "dtype": "Float",
                        "Group size": size, "Process Group Name": str(group), "Process Group Ranks": str(group)})
            times.kernel("adam", begin + 700, begin + 11_600, 1000)
            times.wait(begin + 720, begin + 19_900)
    text = finding(report(*(times.write(tmp_path / f"rank{rank}.json") for rank, times in enumerate(every))), "rank_jitter")
    assert "sends and receives of all with all in groups of two or three" in text, text


def test_a_straggler_has_all_waits(tmp_path):
    found, _ = late_now_and_then(tmp_path, lambda rank, step: 3000 * (rank == 3))
    assert found["verdict"][0]["cause"] == "straggler" and finding(found, "rank_jitter") is None


def test_waits_of_several_streams_at_a_time_are_one(tmp_path):
    """Rank 1 waits for 6 ms of 13.75, in three collectives at the same time; a fourth, for rank 2, begins 2 ms later."""
    paths = []
    for rank in range(3):
        times = Times(rank, 3)
        for step in range(10):
            begin, own = begin_of(step, 13_750), 6000 if rank == 1 else 12_000
            times.step(step, begin, 13_750)
            times.kernels(20, begin + 10, begin + 50, own / 20)
            for stream in range(3):
                if rank < 2:
                    a_part(times, [0, 1], begin + 300 + 20 * stream, begin + 60 + own, 12_500 - own, 20 + stream)
            if rank > 0:
                ready = begin + 60 + own + 2000 * (rank == 1)
                a_part(times, [1, 2], begin + 380, ready, begin + 12_560 - ready, 23)
            times.kernel("adam", begin + 400, begin + 12_565, 1000)
            times.wait(begin + 420, begin + 13_700)
        paths.append(times.write(tmp_path / f"rank{rank}.json"))
    found = report(*paths)
    assert [by_rank(found)[rank]["waited_us"] for rank in range(3)] == pytest.approx([0, 6000, 0], abs=1)
    assert found["rank_waits"]["us"][1] == pytest.approx([40_000, 0, 20_000], abs=10), "2 ms for rank 0 alone, 4 ms for both"


@pytest.mark.parametrize("ahead", [0, -1000, -3000, -5000, 3_000_000])
@pytest.mark.parametrize("slow", [0, 1])
def test_a_straggler_is_one_whatever_its_clock_says(tmp_path, slow, ahead):
    """One of two ranks is late by 4 ms of 20; the clock of rank 1's host is off."""
    paths = []
    for rank in range(2):
        times = Times(rank, 2)
        for step in range(10):
            begin = 10_000_000 + begin_of(step) + ahead * rank
            times.step(step, begin)
            a_step(times, begin, 16_000 if rank == slow else 12_000, 16_000, 1000, 2400)
        paths.append(times.write(tmp_path / f"rank{rank}.json"))
    found = report(*paths)
    assert found["verdict"][0]["cause"] == "straggler"
    assert share(found, "straggler") == pytest.approx(10, abs=0.1) and saving(found, "straggler") == pytest.approx(20, abs=0.5)
