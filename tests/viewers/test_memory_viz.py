# SPDX-License-Identifier: Apache-2.0
"""The memory snapshot is a pickle that memory_viz's own reader takes (it knows few opcodes, and no classes), with the
keys that it reads, and holds what the simulator allocated. memory_viz itself draws that, in headless Chromium."""
import contextlib
import pickle
import pickletools
import re
import sys

import pytest

import browser
import harness
import memory_viz_page

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


# -- the page ------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def viewer(tmp_path_factory):
    """Function that opens the page with a snapshot."""
    reason = "no chromium here" if not browser.CHROMIUM else memory_viz_page.files()
    if reason:
        pytest.skip(reason)

    @contextlib.contextmanager
    def opened(data):
        shown = memory_viz_page.MemoryViz(tmp_path_factory.mktemp("page") / "files", data)
        try:
            yield shown
        finally:
            shown.close()

    return opened


def size_of(allocation):
    return int(re.search(r"Size: [^(]*\((\d+) bytes\)", allocation["text"])[1])


def sizes_and_peak(calls):
    """Of cudaMalloc's and cudaFree's calls: sizes in their order, and the most that was allocated at a time."""
    held, sizes, peak = {}, [], 0
    for call in calls:
        if call["name"] == "cudaMalloc":
            held[call["ptr"]] = call["bytes"]
            sizes.append(call["bytes"])
        elif call["name"] == "cudaFree":
            held.pop(call["ptr"], None)
        peak = max(peak, sum(held.values()))
    return sizes, peak


def test_the_page_draws_each_allocation(viewer, data, profiled):
    with viewer(data) as shown:
        assert shown.drawn() and shown.devices() == ["0", "1"]
        for rank, truth in profiled.truths.items():
            shown.show(rank)
            allocations = shown.allocations()
            sizes, peak = sizes_and_peak(sorted(truth.calls, key=lambda call: call["begin"]))
            assert [size_of(each) for each in allocations] == sizes and len(sizes) == 30
            assert max(each["top"] for each in allocations) == peak
            assert all(each["text"].endswith(":cudaMalloc") for each in allocations)
            assert all(len(each["points"].split()) >= 4 for each in allocations)
        assert shown.errors() == [] and shown.elsewhere() == []


def test_a_damaged_snapshot_is_found(viewer, data):
    with viewer(data[:-100]) as shown:
        assert not shown.drawn() and "RangeError" in shown.errors()[0]
    with viewer(b"\x80\x02\xff" + data[3:]) as shown:
        assert not shown.drawn() and "UNKNOWN OPCODE: 255" in shown.errors()[0]
    at = data.index(b"cudaMalloc", data.index(b"X\x05\x00\x00\x00alloc"))
    with viewer(data[:at] + b"cudaOther_" + data[at + 10:]) as shown:
        assert shown.drawn()
        assert [each["text"].endswith(":cudaMalloc") for each in shown.allocations()] == [False] + [True] * 29


OWNERS = """
import ctypes
cuda = ctypes.CDLL("libcudart.so.13")


def allocate(mib):
    block = ctypes.c_void_p()
    assert cuda.cudaMalloc(ctypes.byref(block), ctypes.c_size_t(mib << 20)) == 0
    return block


def weights():
    return allocate(3)


def activations():
    return allocate(5)


kept = weights()
for _ in range(4):
    cuda.cudaFree(activations())
    cuda.cudaDeviceSynchronize()
weights()
"""


def test_owners_are_lines_of_python(viewer, tmp_path):
    script = tmp_path / "model.py"
    script.write_text(OWNERS)
    env = harness.environment(GPUPROF_STACKS="alloc", GPUPROF_OUTPUT=tmp_path / "out", **harness.WHOLE_RUN)
    done = harness.gpuprof("run", "--", sys.executable, script, env=env)
    assert done.code == 0, done.err
    harness.checked("convert", *harness.dumps(tmp_path / "out"), "--to", "memory-viz", "-o", tmp_path / "snapshot.pickle")
    with viewer((tmp_path / "snapshot.pickle").read_bytes()) as shown:
        assert shown.drawn()
        allocations = shown.allocations()
        assert [size_of(each) >> 20 for each in allocations] == [3, 5, 5, 5, 5, 3]
        assert max(each["top"] for each in allocations) == 8 << 20
        line = OWNERS.splitlines().index("    return allocate(5)") + 1
        owners = [f"{script}:{line}:activations" in each["text"].splitlines() for each in allocations]
        assert owners == [False, True, True, True, True, False]
        assert shown.errors() == [] and shown.elsewhere() == []
