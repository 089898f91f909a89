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
