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


def one_process(folder, fill, steps=STEPS, every=10_000, length=10_000, **process):
    times = Times(**process)
    for step in range(steps):
        times.step(step, begin_of(step, every), length)
        fill(times, begin_of(step, every))
    return times.write(folder / "trace.json")


def saving(found, cause):
    return next(verdict["saves_pct"] for verdict in found["verdict"] if verdict["cause"] == cause)


@pytest.mark.parametrize("own, joint", [(range(11, 12), 1), (range(5, 12), 7)])
def test_savings_are_of_the_steps_that_all_ranks_have(tmp_path, own, joint):
    """7 ms of 20 ms are exposed communication in each step, whichever steps a rank has beside those of the other."""
    paths = []
    for rank, steps in enumerate((range(12), own)):
        times = Times(rank, 2)
        for step in steps:
            begin = begin_of(step)
            times.step(step, begin)
            times.kernels(20, begin + 10, begin + 50, 600)
            times.collective(begin + 220, begin + 12_055, 7000)
            times.kernel("adam", begin + 230, begin + 19_060, 500)
            times.wait(begin + 240, begin + 19_580)
        paths.append(times.write(tmp_path / f"rank{rank}.json"))
    found = report(*paths)
    assert found["verdict"][0]["cause"] == "communication"
    assert share(found, "communication") == pytest.approx(35, abs=0.1)
    assert saving(found, "communication") == pytest.approx(35, abs=0.5)
    assert f"have {'one step' if joint == 1 else f'{joint} steps'} in common" in finding(found, "joint_steps")


@pytest.mark.parametrize("pause", [0, 20_000])
def test_time_between_steps_is_in_no_share_and_no_saving(tmp_path, pause):
    """4 ms of each step of 10 ms is a wait for data; a validation lies between steps."""
    def fill(times, begin):
        times.loading(begin + 5, 4000)
        times.kernels(10, begin + 4010, begin + 4030, 589)
        times.wait(begin + 4150, begin + 9950)
        if pause:
            times.kernels(15, begin + 10_010, begin + 10_040, 990)
            times.wait(begin + 10_200, begin + 28_000)
    found = report(one_process(tmp_path, fill, every=10_000 + pause))
    assert share(found, "data_loading") == pytest.approx(40, abs=0.5)
    assert saving(found, "data_loading") == pytest.approx(40, abs=1)
    text = finding(found, "between_steps")
    assert (text is None) if pause == 0 else text.startswith("64 %"), text  # 7 of 20 ms beside 8 of 10 ms


@pytest.mark.parametrize("what", ["communication", "transfer"])
def test_no_limit_is_named_where_removing_it_gains_nothing(tmp_path, what):
    """The host begins a step each 10 ms, whatever the GPU does: faster kernels would make no step shorter."""
    def fill(times, begin):
        times.kernels(10, begin + 10, begin + 30, 550)
        if what == "transfer":
            times.copy("HtoD (Pinned -> Device)", begin + 120, begin + 5535, 4400, 100)
        else:
            times.collective(begin + 120, begin + 5540, 3500)
            times.kernel("adam", begin + 130, begin + 9045, 900)
    found = report(one_process(tmp_path, fill, rank=3, world=8))
    assert found["verdict"] == [] and what in found["reason"] and "no shorter" in found["reason"], found["reason"]


def test_a_host_that_waits_for_the_gpu_is_not_called_the_limit(tmp_path):
    """Compute and communication in turn on two streams, 30 us apart, and no recorded event says which waits for which."""
    def fill(times, begin):
        at = begin + 100
        for layer in range(4):
            times.kernels(2, begin + 10 + 100 * layer, at, 500)
            times.collective(begin + 40 + 100 * layer, at + 1030, 1300)
            at += 2360
        times.wait(begin + 500, at + 10)
    found = report(one_process(tmp_path, fill, rank=0, world=8))
    said = " ".join([found["reason"] or ""] + [line for verdict in found["verdict"] for line in verdict["evidence"]])
    assert "communication 52.0 %" in said and "most likely the host" not in said, said
    assert "waits for the GPU for 90 % of the time" in said and "not recorded" in said, said


def test_a_wait_for_data_is_one_whoever_copies_then(tmp_path):
    """A thread that prefetches makes its next copy just before the loader's batch is there."""
    def fill(times, begin):
        times.loading(begin + 5, 4000)
        times.copy("HtoD (Pinned -> Device)", begin + 3950, begin + 3965, 30, 1, thread=2)
        times.kernels(10, begin + 4010, begin + 4030, 550)
        times.wait(begin + 4200, begin + 9540)
    found = report(one_process(tmp_path, fill))
    assert found["verdict"][0]["cause"] == "data_loading" and share(found, "host_work") < 5
    assert saving(found, "data_loading") == pytest.approx(40, abs=1)


def test_advice_on_copies_goes_by_those_that_are_exposed(tmp_path):
    """2.5 ms of a copy from pageable memory are exposed; a longer one within the GPU lies under compute."""
    def fill(times, begin):
        times.copy("HtoD (Pageable -> Device)", begin + 10, begin + 100, 2500, 30, api="cudaMemcpy", call=2600)
        times.kernels(10, begin + 2620, begin + 2640, 700)
        times.copy("DtoD (Device -> Device)", begin + 2720, begin + 2800, 6000, 300, stream=9)
        times.wait(begin + 2800, begin + 9650)
    found = report(one_process(tmp_path, fill))
    verdict, = (verdict for verdict in found["verdict"] if verdict["cause"] == "transfer")
    assert "pinned" in verdict["advice"] and "clone" not in verdict["advice"]
    rows = [line for line in verdict["evidence"] if line.startswith("Memcpy")]
    assert "HtoD" in rows[0] and "under compute" in rows[1], rows


def test_a_graph_a_step_is_not_told_to_use_graphs(tmp_path):
    def fill(times, begin):
        correlation = times.call("cudaGraphLaunch", begin + 800, 30)
        for node in range(30):
            times.on_gpu("kernel", "decode", correlation, begin + 815 + node * 10, 9, grid=[1000, 1, 1], block=[256, 1, 1],
                         **{"graph id": 3, "graph node id": node})
    found = report(one_process(tmp_path, fill, steps=40, every=900, length=900))
    verdict = found["verdict"][0]
    assert verdict["cause"] == "kernel_launch" and "use CUDA graphs" not in verdict["advice"] and "between" in verdict["advice"]


@pytest.mark.parametrize("kernels, later, in_turn", [(10, 280, False), (5, 3500, True)])
def test_gpus_work_in_turn_only_where_they_hardly_overlap(tmp_path, kernels, later, in_turn):
    def fill(times, begin):
        for gpu in range(2):
            times.kernels(kernels, begin + 10 + gpu * 100, begin + 2650 + gpu * later, 700, gpu=gpu, stream=7 + gpu)
        times.wait(begin + 300, begin + 9940)
    found = report(one_process(tmp_path, fill, gpus=2))
    assert (finding(found, "gpus_in_turn") is not None) == in_turn
    assert ("in turn" in (found["reason"] or "")) <= in_turn


def test_nobody_is_last_most_often_where_all_are_so(tmp_path):
    """Each of four ranks loads for 5 ms in every fourth step, and comes last then."""
    paths = []
    for rank in range(4):
        times = Times(rank, 4)
        for step in range(STEPS):
            begin, load = begin_of(step), 5000 if step % 4 == rank else 500
            times.step(step, begin)
            times.loading(begin + 2, load)
            ready, last = begin + load + 10 + 20 + 9005, begin + 5000 + 10 + 20 + 9005
            times.kernels(10, begin + load + 10, begin + load + 30, 900)
            times.collective(begin + load + 130, ready, last - ready + 1000)
            times.kernel("adam", begin + load + 140, last + 1005, 800)
            times.wait(begin + load + 150, last + 1815)
        paths.append(times.write(tmp_path / f"rank{rank}.json"))
    text = finding(report(*paths), "rank_jitter")
    assert "they wait about as long for several" in text


def test_a_95th_of_100_steps_is_a_step(tmp_path):
    """Nine steps of 10 ms and one of 210 ms: none took 120 ms."""
    times = Times()
    begin = 1000
    for step in range(10):
        length = 210_000 if step == 6 else 10_000
        times.step(step, begin, length)
        times.kernels(10, begin + 10, begin + 30, 950)
        times.wait(begin + 120, begin + 9600)
        begin += length
    found = report(times.write(tmp_path / "trace.json"))
    assert found["step_time_us"] == pytest.approx({"median": 10_000, "mean": 30_000, "p95": 210_000})


@pytest.mark.parametrize("long", [False, True])
def test_marks_that_cover_the_issuing_alone_give_no_verdict(tmp_path, long):
    """1 ms of 10 is marked; the GPU does 7 ms of work for it, nearly all after that."""
    times = Times(0, 8)
    for step in range(10):
        begin = begin_of(step, 10_000)
        times.step(step, begin, 10_000 if long else 1000)
        times.kernels(4, begin + 10, begin + 100, 500)
        times.collective(begin + 300, begin + 2105, 5000)
        times.wait(begin + 1050, begin + 7130)
    found = report(times.write(tmp_path / "trace.json"))
    if long:
        assert share(found, "host_work") == pytest.approx(28.8, abs=0.2) and not found["reason"]
    else:
        assert found["verdict"] == [] and "the marks cover the issuing of work" in found["reason"], found["reason"]
