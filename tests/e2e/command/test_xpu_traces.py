# SPDX-License-Identifier: Apache-2.0
"""Traces of Intel's GPUs as Kineto's plug-in writes them (libkineto/src/plugin/xpupti)."""
import pytest
from support.kineto_machine import XPU, Machine
from test_real_traces import report

ZE_WAITS = ["zeEventHostSynchronize", "zeFenceHostSynchronize", "zeCommandListHostSynchronize", "zeCommandQueueSynchronize"]


def synchronous(names=XPU):
    """A job that waits for each of its kernels."""
    machine = Machine(names)

    def body():
        for _ in range(20):
            machine.kernel("gemm", 300)
            machine.wait()
            machine.host(50)
    for _ in range(6):
        machine.step(body)
    return machine


def waits_as(machine, *kinds):
    """Of each wait an event per (category, name) in `kinds`."""
    out = []
    for event in machine.events:
        if event["name"] != XPU["wait"]:
            out.append(event)
            continue
        for category, name in kinds:
            of_sync = category == "xpu_sync"
            args = {**event["args"], **({"Type": "HOST_EVENT", "Return_code": 0} if of_sync else {})}
            out.append({**event, "cat": category, "name": name, "args": args, "pid": -1 if of_sync else event["pid"]})
    machine.events = out
    return machine


@pytest.mark.parametrize("kinds", [*[[("xpu_driver", name)] for name in ZE_WAITS], [("xpu_sync", ZE_WAITS[0])],
                                   [("xpu_driver", ZE_WAITS[0]), ("xpu_sync", ZE_WAITS[0])]], ids=str)
def test_waits_of_level_zero_are_waits(tmp_path, kinds):
    usual = report(synchronous().write(tmp_path / "usual.json"))
    found = report(waits_as(synchronous(), *kinds).write(tmp_path / "trace.json"))
    assert [v["cause"] for v in usual["verdict"]] == ["synchronization"]
    assert [v["cause"] for v in found["verdict"]] == ["synchronization"], found["reason"]
    assert found["breakdown_pct"] == usual["breakdown_pct"]
    assert [row["count"] for row in found["synchronizations"]] == [row["count"] for row in usual["synchronizations"]]


def test_barriers_on_a_device_are_no_waits_of_the_host(tmp_path):
    machine = waits_as(synchronous(), ("xpu_sync", "zeCommandListAppendBarrier"))
    for event in machine.events:
        if event["cat"] == "xpu_sync":
            event["args"]["Type"] = "GPU_BARRIER_EXECUTION"
    found = report(machine.write(tmp_path / "trace.json"))
    assert found["synchronizations"] == [] and "synchronization" not in [v["cause"] for v in found["verdict"]]


def reducing(name):
    """A job whose all-reduce is not hidden, with what PyTorch says of it."""
    machine = Machine(XPU, rank=0, world=2)
    said = {"Collective name": "allreduce", "In msg nelems": 25_000_000, "Out msg nelems": 25_000_000, "Group size": 2, "dtype": "Half",
            "Process Group Name": "0", "Process Group Description": "default_pg", "Process Group Ranks": "[0, 1]"}

    def body():
        end = [machine.kernel("gemm", 100) for _ in range(20)][-1]
        machine.kernel(name, 6000, stream=22, after=end, **said)
        machine.wait()
    for _ in range(8):
        machine.step(body)
    return machine


@pytest.mark.parametrize("name", ["oneccl_allreduce_pcie<half, Rt64_128_PCIE, RingTransmit>", "an_own_all_reduce"])
def test_a_kernel_is_communication_by_what_is_said_of_it(tmp_path, name):
    usual = report(reducing("ncclDevKernel_AllReduce_Sum_f16_RING_LL").write(tmp_path / "usual.json"))
    found = report(reducing(name).write(tmp_path / "trace.json"))
    assert found["verdict"][0]["cause"] == "communication", found["reason"]
    assert found["breakdown_pct"] == usual["breakdown_pct"]
    assert found["collectives"] == usual["collectives"] and len(found["collectives"]) == 1
    assert {row["name"]: row["count"] for row in found["kernel_families"]} == {row["name"]: row["count"] for row in usual["kernel_families"]}


def test_what_a_collective_copies_is_no_communication(tmp_path):
    found = report(reducing("oneccl_kernel_memcpy_typed<half>").write(tmp_path / "trace.json"))
    assert found["breakdown_pct"]["communication"] == 0 and found["collectives"] == []
