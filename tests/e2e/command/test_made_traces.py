# SPDX-License-Identifier: Apache-2.0
"""Traces of jobs of many shapes whose truth a small machine knows: GPU busy, steps, and what an expert would say."""
import random

import harness
import pytest
from support.kineto_machine import CUDA, HIP, MTIA, XPU, Machine
from test_real_traces import contradictions, report

STEPS = 8
ALLREDUCE = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"


def job(body, names=CUDA, marked=True, steps=STEPS, rank=None, world=None):
    machine = Machine(names, rank, world)
    for _ in range(steps):
        machine.step(lambda: body(machine), marked)
    return machine


def kernels(machine, count, length, **where):
    return [machine.kernel(f"gemm_{i % 5}", length, **where) for i in range(count)][-1]


def plain(machine):
    kernels(machine, 40, 200)
    machine.wait()


def two_streams(machine):
    for _ in range(40):
        machine.kernel("a", 200)
        machine.kernel("b", 150, stream=20)
    machine.wait()


def two_gpus(machine):
    for _ in range(30):
        machine.kernel("gemm", 400)
        machine.kernel("gemm", 400, device=1)
    machine.wait()


def gpus_in_turn(machine):
    first = kernels(machine, 30, 400)
    kernels(machine, 30, 400, device=1, after=first)
    machine.wait()


def overlapped_communication(machine):
    for i in range(50):
        end = machine.kernel("gemm", 180)
        if i % 10 == 5:
            machine.kernel("ncclDevKernel_Generic(ncclDevKernelArgsStorage<4096ul>)", 600, stream=22, after=end)
    machine.wait()


def exposed_communication(machine):
    end = kernels(machine, 20, 100)
    machine.kernel("ncclDevKernel_Generic(ncclDevKernelArgsStorage<4096ul>)", 6000, stream=22, after=end)
    machine.wait()


def decode_by_graph(machine):
    machine.graph([(f"layer_{i % 3}", 25 + i % 3) for i in range(108)])
    machine.copy("DtoH (Device -> Pinned)", 32, 2, blocking=True)
    machine.host(20)


def decode_by_graph_beside_python(machine):
    decode_by_graph(machine)
    machine.host(8000)


def eager(machine):
    for _ in range(300):
        begin = machine.now
        machine.host(20)
        machine.kernel("add", 5)
        machine.host(10)
        machine.event("cpu_op", "aten::add", machine.pid, begin, machine.now - begin)
    machine.copy("DtoH (Device -> Pageable)", 4, 2, blocking=True)


def pageable_batch(machine):
    machine.copy("HtoD (Pageable -> Device)", 60_000_000, 8000, blocking=True)
    plain(machine)


def copies_within(machine):
    for _ in range(40):
        machine.kernel("gemm", 200)
        machine.copy("DtoD (Device -> Device)", 100_000_000, 140)
    machine.wait()


def allocating(machine):
    for _ in range(40):
        machine.call("malloc", 300)
        machine.kernel("gemm", 200)
    machine.wait()


def loading(machine):
    machine.event("user_annotation", "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", machine.pid, machine.now, 12000)
    machine.host(12000)
    plain(machine)


def logging(machine):
    machine.host(6000)
    plain(machine)


# name: (job, the first cause; None: no verdict, with a reason)
JOBS = {
    "plain": (lambda: job(plain), "compute"),
    "two_streams": (lambda: job(two_streams), "compute"),
    "two_gpus": (lambda: job(two_gpus), "compute"),
    "gpus_in_turn": (lambda: job(gpus_in_turn), None),
    "amd_overlapped": (lambda: job(overlapped_communication, HIP, rank=0, world=8), "compute"),
    "amd_exposed": (lambda: job(exposed_communication, HIP, rank=0, world=8), "communication"),
    "mtia": (lambda: job(plain, MTIA), "compute"),
    "xpu_pageable": (lambda: job(pageable_batch, XPU), "transfer"),
    "decode_by_graph": (lambda: job(decode_by_graph, marked=False, steps=40), "compute"),
    "decode_beside_python": (lambda: job(decode_by_graph_beside_python, marked=False, steps=40), "host_work"),
    "eager": (lambda: job(eager), "kernel_launch"),
    "pageable_batch": (lambda: job(pageable_batch), "transfer"),
    "copies_within": (lambda: job(copies_within), "transfer"),
    "allocating": (lambda: job(allocating), "allocation"),
    "loading": (lambda: job(loading), "data_loading"),
    "logging": (lambda: job(logging), "host_work"),
    "one_step": (lambda: job(plain, steps=1), None),
}


@pytest.mark.parametrize("name", JOBS)
def test_known_truth(tmp_path, name):
    make, cause = JOBS[name]
    machine = make()
    path = machine.write(tmp_path / "trace.json")
    found = report(path)
    assert found["gpu"]["utilization_pct"] == pytest.approx(machine.busy_pct(), abs=0.5)
    assert len(found["steps"]) == len(machine.steps)
    assert (found["verdict"][0]["cause"] if found["verdict"] else None) == cause, (found["verdict"], found["reason"])
    assert contradictions(found, harness.checked("report", path).out) == []


@pytest.mark.parametrize("share", [0.13, 0.37, 0.71])
def test_a_window_cut_anywhere(tmp_path, share):
    machine = job(logging, marked=False, steps=30)
    begin = machine.steps[0][0] + share * (machine.steps[-1][1] - machine.steps[0][0])
    path = machine.write(tmp_path / "trace.json", lambda e: begin <= e["ts"] and e["ts"] + e["dur"] <= begin + 140_000)
    found = report(path)
    assert found["verdict"][0]["cause"] == "host_work", found["reason"]
    assert found["gpu"]["utilization_pct"] == pytest.approx(machine.busy_pct(), abs=6)  # part of a step at either end


def test_a_host_far_ahead_of_the_window(tmp_path):
    """The first recorded work waits for that of before: no time of it is made up."""
    machine = Machine()
    for _ in range(14):
        machine.step(lambda: kernels(machine, 100, 200))
        machine.now = max(machine.now, machine.free[(0, 7)] - 15_000)  # a full queue
    begin = machine.steps[5][0] + 3000
    found = report(machine.write(tmp_path / "trace.json", lambda e: e["ts"] >= begin))
    first = found["verdict"][0]["cause"] if found["verdict"] else None
    assert first in ("compute", None)
    assert found["gpu"]["utilization_pct"] + found["breakdown_pct"]["unknown"] == pytest.approx(100, abs=0.5)


def test_a_server_that_waits(tmp_path):
    """Its GPU is idle for want of requests: neither the GPU nor launches are its limit."""
    pick = random.Random(5)
    machine = Machine()

    def request():
        machine.host(pick.uniform(5000, 40000))
        kernels(machine, 30, 40)
        machine.wait()
    for _ in range(40):
        machine.step(request, marked=False)
    found = report(machine.write(tmp_path / "trace.json"))
    assert found["gpu"]["utilization_pct"] == pytest.approx(machine.busy_pct(), abs=0.5)
    assert found["verdict"][0]["cause"] == "host_work"
    assert "waiting for requests" in found["verdict"][0]["advice"]


@pytest.mark.parametrize("kept", [("cpu_op",), ("cpu_op", "cuda_runtime")])
def test_without_gpu_work(tmp_path, kept):
    machine = job(eager)
    found = report(machine.write(tmp_path / "trace.json", lambda e: e["cat"] in ("user_annotation", *kept)))
    assert not found["verdict"] and "no GPU" in found["reason"]


def test_kernels_without_calls(tmp_path):
    machine = job(logging, steps=30)
    found = report(machine.write(tmp_path / "trace.json", lambda e: e["cat"] == "kernel"))
    assert not found["verdict"] and "calls were not recorded" in found["reason"]


def evidence(found, cause):
    verdict = next(verdict for verdict in found["verdict"] if verdict["cause"] == cause)
    return " ".join(verdict["evidence"]), verdict["advice"]


def test_what_is_said_of_copies(tmp_path):
    assert "pinned" in evidence(report(job(pageable_batch).write(tmp_path / "a.json")), "transfer")[1]
    within = evidence(report(job(copies_within).write(tmp_path / "b.json")), "transfer")[1]
    assert "pinned" not in within and "clone()" in within


def test_one_rank_of_several_is_said_to_be(tmp_path):
    one = job(exposed_communication, rank=0, world=8).write(tmp_path / "one.json")
    assert "1 of the job's 8 ranks is here: what it waits for the others" in evidence(report(one), "communication")[0]


def test_gpus_in_turn_are_named(tmp_path):
    found = report(job(gpus_in_turn).write(tmp_path / "turn.json"))
    assert "none for more than 50.0 %" in found["reason"]
    assert [f["kind"] for f in found["findings"]] == ["gpus_in_turn"]
    assert report(job(two_gpus).write(tmp_path / "both.json"))["findings"] == []


def ranks(folder, slow=1.0, world=4):
    """Each waits for the slowest in an all-reduce."""
    machines, paths = [Machine(rank=rank, world=world) for rank in range(world)], []
    for _ in range(10):
        begin = machines[0].now
        ends = [kernels(m, 40, 200 * (slow if m.rank == 3 else 1)) for m in machines]
        for machine, end in zip(machines, ends):
            machine.run("kernel", ALLREDUCE, 0, stream=22, after=end, end=max(ends) + 800,
                        **{"Collective name": "allreduce", "Group size": world, "Process Group Name": "0"})
            machine.call("launch", 6)
            machine.wait()
            machine.step(lambda: None, marked=False)
            machine.event("user_annotation", f"ProfilerStep#{len(machine.steps) - 1}", machine.pid, begin, machine.now - begin)
    for machine in machines:
        paths.append(machine.write(folder / f"rank{machine.rank}.json"))
    return paths


def test_a_slow_rank(tmp_path):
    first = report(*ranks(tmp_path, slow=1.5))["verdict"][0]
    assert first["cause"] == "straggler" and first["evidence"][0].startswith("rank 3 waits least"), first
    # The slow rank waits for nobody: no time of other causes is in what it would save.
    assert not any("of these" in line for line in first["evidence"])


def stages(folder, world=4, batches=8):
    """Forward passes of micro-batches through stages, all alike: they wait while the pipeline fills."""
    machines = [Machine(rank=rank, world=world) for rank in range(world)]
    for step in range(STEPS):
        begin, sent = machines[0].now, {}
        for batch in range(batches):
            for m in machines:
                peers = {"Group size": world, "Process Group Name": "1", "Seq": step * batches + batch}
                ready = m.free.get((0, 7), 0)
                if m.rank > 0:
                    ready = m.run("kernel", "ncclDevKernel_SendRecv", 0, stream=22, after=ready,
                                  end=max(sent[m.rank - 1] + 20, ready + 20, m.now + 30, m.free.get((0, 22), 0) + 20),
                                  **{"Collective name": "recv", "Src Rank": m.rank - 1, "Dst Rank": m.rank, **peers})
                    m.call("launch", 6)
                sent[m.rank] = m.kernel("forward", 1000, after=ready)
                if m.rank + 1 < world:
                    m.run("kernel", "ncclDevKernel_SendRecv", 20, stream=22, after=sent[m.rank],
                          **{"Collective name": "send", "Src Rank": m.rank, "Dst Rank": m.rank + 1, **peers})
                    m.call("launch", 6)
        end = max(max(m.free.values()) for m in machines) + 50
        for m in machines:
            m.call("wait", end - m.now)
            m.event("user_annotation", f"ProfilerStep#{step}", m.pid, begin, m.now - begin)
    return [m.write(folder / f"rank{m.rank}.json") for m in machines]


@pytest.mark.parametrize("world", [3, 4])
def test_the_bubbles_of_a_pipeline(tmp_path, world):
    """Of three stages the middle one takes part in most messages."""
    found = report(*stages(tmp_path, world))
    assert not any(verdict["cause"] in ("straggler", "compute") for verdict in found["verdict"])
    jitter = [f["text"] for f in found["findings"] if f["kind"] == "rank_jitter"]
    assert jitter and "sends and receives" in jitter[0], (found["findings"], found["verdict"], found["reason"])
