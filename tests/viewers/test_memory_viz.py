# SPDX-License-Identifier: Apache-2.0
"""The memory snapshot is a pickle that memory_viz's own reader takes (it knows few opcodes, and no classes), with the
keys that it reads, and holds what the simulator allocated."""
import pickle
import pickletools

import pytest

# MemoryViz.js of PyTorch unpickles these; a snapshot needs no more.
OPCODES = {"PROTO", "EMPTY_DICT", "EMPTY_LIST", "MARK", "SETITEMS", "APPENDS", "BINUNICODE", "BININT", "LONG1", "TUPLE2",
           "NEWTRUE", "NEWFALSE", "STOP"}


@pytest.fixture(scope="module")
def data(profiled):
    return profiled.convert("memory-viz").read_bytes()


def test_opcodes(data):
    for opcode, argument, _ in pickletools.genops(data):
        assert opcode.name in OPCODES
        if opcode.name == "LONG1":
            assert -2**63 <= argument < 2**63


def test_allocations_are_the_simulators(data, profiled):
    traces = pickle.loads(data)["device_traces"]
    assert len(traces) == 2
    for rank, truth in profiled.truths.items():
        allocated = [(int(c["ptr"], 0), c["bytes"]) for c in truth.calls if c["name"] == "cudaMalloc"]
        freed = [int(c["ptr"], 0) for c in truth.calls if c["name"] == "cudaFree"]
        assert len(allocated) == 30
        for action in ("segment_alloc", "alloc"):
            assert [(e["addr"], e["size"]) for e in traces[rank] if e["action"] == action] == allocated
        for action in ("free_requested", "free_completed", "segment_free"):
            assert [e["addr"] for e in traces[rank] if e["action"] == action] == freed
        times = [e["time_us"] for e in traces[rank]]
        assert times == sorted(times)
        for entry in traces[rank]:
            assert entry["frames"][0]["name"] == ("cudaMalloc" if "alloc" in entry["action"] else "cudaFree")


def test_blocks_cover_their_segments(data):
    snapshot = pickle.loads(data)
    assert set(snapshot) == {"segments", "device_traces", "allocator_settings"}
    for segment in snapshot["segments"]:
        at = segment["address"]
        for block in segment["blocks"]:
            assert block["address"] == at and block["state"] in ("active_allocated", "inactive")
            at += block["size"]
        assert at == segment["address"] + segment["total_size"]
