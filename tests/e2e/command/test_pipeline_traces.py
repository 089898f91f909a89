# SPDX-License-Identifier: Apache-2.0
"""Ranks of a pipeline that send to each other, in torch.profiler's traces: a send and its receive are one transfer,
though each rank does others in between."""
import json

import harness
import pytest

STEPS, MS = 8, 1000.0


class Rank:
    """One stage: work on its compute stream and on one for transfers, each issued by a launch."""

    def __init__(self, rank):
        self.rank, self.events, self.correlation = rank, [], 0

    def put(self, category, name, tid, begin, length, **args):
        gpu = category == "kernel"
        self.events.append({"ph": "X", "cat": category, "name": name, "pid": 0 if gpu else 100 + self.rank, "tid": tid,
                            "ts": begin, "dur": length, "args": {**({"device": 0, "stream": tid} if gpu else {}), **args}})

    def work(self, name, stream, issued, begin, end, **args):
        self.correlation += 1
        self.put("cuda_runtime", "cudaLaunchKernel", 100 + self.rank, issued, 2, correlation=self.correlation)
        self.put("kernel", name, stream, begin, end - begin, correlation=self.correlation, **args)

    def transfer(self, kind, peer, issued, begin, end):
        self.work("ncclDevKernel_SendRecv", 20, issued, begin, end, **{
            "Collective name": kind, "Dst Rank" if kind == "send" else "Src Rank": peer,
            "Process Group Name": "pp", "Process Group Ranks": "[0, 1, 2]"})

    def write(self, folder):
        (folder / f"rank{self.rank}.pt.trace.json").write_text(json.dumps({
            "schemaVersion": 1, "distributedInfo": {"rank": self.rank, "world_size": 3}, "traceEvents": self.events}))


def pipeline(folder, lengths_ms, ahead_ms=(0, 0, 0)):
    """Three stages, one micro-batch a step: forward only. Each waits in its receive for the stage before. Clocks are ahead."""
    ranks, now = [Rank(rank) for rank in range(3)], [1e9] * 3
    for step in range(STEPS):
        arrived, begins = 0.0, list(now)
        for stage, rank in enumerate(ranks):
            issued = now[stage]
            at = issued + 5
            if stage:
                rank.transfer("recv", stage - 1, issued, at, max(arrived, at) + 50)
                at = max(arrived, at) + 50
            rank.work("gemm", 7, issued + 3, at + 1, at + 1 + lengths_ms[stage] * MS)
            at += 1 + lengths_ms[stage] * MS
            if stage < 2:
                arrived = at + 1
                rank.transfer("send", stage + 1, issued + 6, arrived, arrived + 50)
                at = arrived + 50
            rank.put("cuda_runtime", "cudaDeviceSynchronize", 100 + stage, issued + 9, at + 3 - issued - 9)
            now[stage] = at + 10
        for stage, rank in enumerate(ranks):
            rank.put("user_annotation", f"ProfilerStep#{step}", 100 + stage, begins[stage], now[stage] - begins[stage])
    for rank, ahead in zip(ranks, ahead_ms):
        for event in rank.events:
            event["ts"] += ahead * MS
        rank.write(folder)


def test_a_send_and_its_receive_are_one(tmp_path):
    pipeline(tmp_path, (10, 4, 4))
    found = json.loads(harness.checked("report", "--format", "json", tmp_path).out)
    assert found["replay_error_pct"] < 2
    waits = {row["rank"]: row["waited_us"] for row in found["stragglers"]}
    assert waits[0] == pytest.approx(0, abs=60)
    assert waits[1] == pytest.approx(6 * MS, rel=0.1)
    assert found["verdict"][0]["cause"] == "straggler" and found["verdict"][0]["evidence"][0].startswith("rank 0 ")
    assert found["verdict"][0]["saves_pct"] == pytest.approx(60, abs=5)


@pytest.mark.parametrize("ahead", [(0, 1, 2), (0, 5, 10), (0, -3, -1), (0, 30, 10), (0, -20, 30), (0, 0, -5)])
def test_stages_meet_on_one_clock(tmp_path, ahead):
    """Nothing but sends and receives joins hosts whose clocks differ."""
    pipeline(tmp_path, (10, 4, 4), ahead)
    found = json.loads(harness.checked("report", "--format", "json", tmp_path).out)
    assert found["verdict"][0]["cause"] == "straggler", found["reason"]
    assert found["verdict"][0]["saves_pct"] == pytest.approx(60, abs=5)


def test_no_saving_is_known_where_data_is_there_before_it_is_sent(tmp_path):
    """Each stage comes as its data does, and so no rank waits: nothing tells by how much the last one's clock is off."""
    pipeline(tmp_path, (4, 4, 4), (0, 0, -5))
    found = json.loads(harness.checked("report", "--format", "json", tmp_path).out)
    assert not found["verdict"] and "rank 2 has data" in found["reason"] and "before rank 1 sends it" in found["reason"]
