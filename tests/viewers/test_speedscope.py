# SPDX-License-Identifier: Apache-2.0
"""Flame graphs for speedscope: its file format's rules (file-format-spec.ts of its sources), and the simulator's times. The viewer
itself is in no registry of Debian's or Python's."""
import json

import pytest


@pytest.fixture(scope="module")
def scope(profiled):
    return json.loads(profiled.convert("speedscope").read_text())


def test_format(scope):
    assert scope["$schema"] == "https://www.speedscope.app/file-format-schema.json"
    assert set(scope) == {"$schema", "exporter", "shared", "profiles"} and set(scope["shared"]) == {"frames"}
    assert isinstance(scope["exporter"], str)
    frames = scope["shared"]["frames"]
    assert all(isinstance(frame["name"], str) for frame in frames)
    assert all(set(frame) == {"name"} for frame in frames)
    assert len({frame["name"] for frame in frames}) == len(frames)
    assert len(scope["profiles"]) == 4  # two for each rank
    for profile in scope["profiles"]:
        assert set(profile) == {"type", "name", "unit", "startValue", "endValue", "samples", "weights"}
        assert profile["type"] == "sampled" and profile["unit"] == "nanoseconds" and isinstance(profile["name"], str)
        assert all(isinstance(weight, (int, float)) and weight >= 0 for weight in profile["weights"])
        assert len(profile["samples"]) == len(profile["weights"]) > 0
        assert all(0 <= frame < len(frames) for sample in profile["samples"] for frame in sample)
        assert profile["startValue"] == 0 and profile["endValue"] == sum(profile["weights"])


@pytest.mark.parametrize("rank", [0, 1])
def test_times(scope, rank, profiled):
    busy, idle = (p for p in scope["profiles"] if p["name"].startswith(f"rank {rank}:"))
    truth = profiled.truths[rank]
    work = sorted(((w["begin"], w["end"]) for w in truth.work if w["type"] != "sync"))
    assert busy["endValue"] == pytest.approx(sum(end - begin for begin, end in work), rel=0.001)
    gaps, done = 0, work[0][0]
    for begin, end in work:
        gaps += max(0, begin - done)
        done = max(done, end)
    assert idle["endValue"] == pytest.approx(gaps, rel=0.01)
    names = [frame["name"] for frame in scope["shared"]["frames"]]
    stacks = {tuple(names[frame] for frame in sample): weight for sample, weight in zip(busy["samples"], busy["weights"])}
    gemm = [stack for stack in stacks if stack[-1].startswith("gemm_fwd")]
    assert [stack[:-1] for stack in gemm] == [("step", "cudaLaunchKernel")]
    assert stacks[gemm[0]] == pytest.approx(sum(w["end"] - w["begin"] for w in truth.work if w["name"].startswith("_Z8gemm_fwd")), rel=0.001)
