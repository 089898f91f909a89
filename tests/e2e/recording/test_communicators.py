# SPDX-License-Identifier: Apache-2.0
"""The rank and size of a communicator, however it was made; where nobody knows them they are absent, not 0."""
import json
import sys

import pytest

import harness

# Two GPUs of one process. Each way makes a communicator of two ranks, or of one, and uses it once.
PROGRAM = """
import ctypes, sys
cuda, nccl = ctypes.CDLL("libcudart.so.13"), ctypes.CDLL("libnccl.so.2")
P = ctypes.c_void_p
class Id(ctypes.Structure):
    _fields_ = [("bytes", ctypes.c_char * 128)]
def check(result):
    assert result == 0, result
def comms(count=2):
    return (P * count)()
def at(array, i):
    return ctypes.byref(array, i * ctypes.sizeof(P))
def all_ranks(call):
    check(nccl.ncclGroupStart())
    for i in range(2):
        check(cuda.cudaSetDevice(i))
        check(call(i))
    check(nccl.ncclGroupEnd())
def use(made, count=2):
    all_ranks(lambda i: nccl.ncclAllReduce(None, None, ctypes.c_size_t(64), 7, 0, P(made[i]), None) if i < count else 0)
identity = Id()
check(nccl.ncclGetUniqueId(ctypes.byref(identity)))
base, made = comms(), comms()
way = sys.argv[1]
if way == "scalable":
    all_ranks(lambda i: nccl.ncclCommInitRankScalable(at(made, i), 2, i, 1, ctypes.byref(identity), None))
    use(made)
else:
    all_ranks(lambda i: nccl.ncclCommInitRank(at(base, i), 2, identity, i))
if way == "split":
    all_ranks(lambda i: nccl.ncclCommSplit(P(base[i]), 0, -i, at(made, i), None))
    use(made)
if way == "shrink":
    excluded = (ctypes.c_int * 1)(0)
    check(cuda.cudaSetDevice(1))
    check(nccl.ncclCommShrink(P(base[1]), excluded, 1, at(made, 1), None, 0))
    check(nccl.ncclAllReduce(None, None, ctypes.c_size_t(64), 7, 0, P(made[1]), None))
if way == "unhooked":  # as one that was made before the library was there
    real = ctypes.CDLL("libnccl.so.2").pncclCommInitRank
    all_ranks(lambda i: real(at(made, i), 2, identity, i))
    use(made)
for i in range(2):
    check(cuda.cudaSetDevice(i))
    check(cuda.cudaDeviceSynchronize())
"""


def places(folder, way):
    done = harness.run([sys.executable, "-c", PROGRAM, way],
                       env=harness.preloaded(GPUPROF_OUTPUT=folder / "out", SIMCUDA_DEVICES=2, **harness.WHOLE_RUN))
    assert done.code == 0, done.err
    [dump] = harness.dumps(folder / "out")
    return [(r.get("rank"), r.get("rank_count")) for r in harness.of_kind(harness.records(dump), "collective")]


@pytest.mark.parametrize("way, expected", [("scalable", [(0, 2), (1, 2)]), ("split", [(1, 2), (0, 2)]), ("shrink", [(0, 1)]),
                                           ("unhooked", [(0, 2), (1, 2)])])
def test_rank_and_size(tmp_path, way, expected):
    assert places(tmp_path, way) == expected


# ncclConfig_t of 2.28 gives a communicator its name.
CONFIG = """
i32, text = ctypes.c_int, ctypes.c_char_p
class Config(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("magic", ctypes.c_uint), ("version", ctypes.c_uint), ("blocking", i32), ("cga", i32),
                ("min_ctas", i32), ("max_ctas", i32), ("net", text), ("split_share", i32), ("traffic", i32), ("name", text),
                ("collnet", i32), ("policy", i32), ("shrink_share", i32), ("nvls_ctas", i32), ("channels", i32), ("nvlink", i32)]
unset = -2**31
config = Config(ctypes.sizeof(Config), 0xcafebeef, 22809, *[unset] * 4, None, unset, unset, b"tensor", *[unset] * 6)
"""

# Made in groups; the second pair has a name.
GROUPED = PROGRAM.split("way = ")[0] + CONFIG + """
all_ranks(lambda i: nccl.ncclCommInitRank(at(base, i), 2, identity, i))
all_ranks(lambda i: nccl.ncclCommSplit(P(base[i]), 0, -i, at(made, i), ctypes.byref(config)))
use(made)
print(*base, *made)
"""


def check_pairs(dumps, printed):
    """Of two pairs, in the order of their handles in what the program printed."""
    [dump] = dumps
    known = {c["handle"]: c for c in harness.info(dump)["files"][0]["communicators"]}
    base, made = [[known[int(handle)] for handle in pair] for pair in (printed.split()[:2], printed.split()[2:])]
    assert [c["name"] for c in base + made] == ["", "", "tensor", "tensor"]
    assert [(c["rank"], c["rank_count"]) for c in base + made] == [(0, 2), (1, 2), (1, 2), (0, 2)]
    first, second = ({c["identity"] for c in pair} for pair in (base, made))
    assert len(first) == len(second) == 1 and first != second and "" not in first | second


@pytest.mark.parametrize("nvtx", [{}, {"NCCL_NVTX_DISABLE": 1}], ids=["nvtx", "no_nvtx"])
def test_identity_and_name_of_what_a_group_makes(tmp_path, nvtx):
    done = harness.run([sys.executable, "-c", GROUPED], env=harness.preloaded(
        GPUPROF_OUTPUT=tmp_path / "out", SIMCUDA_DEVICES=2, **nvtx, **harness.WHOLE_RUN))
    assert done.code == 0, done.err
    check_pairs(harness.dumps(tmp_path / "out"), done.out)


# Of NCCL 2.32 the simulated one has the collectives with a configuration, and nothing else.
LATER = """
import ctypes
cuda, nccl, own = (ctypes.CDLL(name) for name in ("libcudart.so.13", "libnccl.so.2", None))
P, size = ctypes.c_void_p, ctypes.c_size_t
comm, device = P(), ctypes.c_int(0)
assert nccl.ncclCommInitAll(ctypes.byref(comm), 1, ctypes.byref(device)) == 0
for name in ("ncclCommGrow", "ncclCommRevoke", "ncclCommGetUniqueId", "ncclCommSuspend", "ncclCommResume", "ncclPutSignal", "ncclSignal",
             "ncclWaitSignal"):
    assert not hasattr(nccl, name), name + " is not in this NCCL"
for step in range(2):
    own.gpuprof_step()
    assert nccl.ncclAllReduce(None, None, size(8), 7, 0, comm, None) == 0
    for name in ("AllReduce", "ReduceScatter"):
        assert getattr(nccl, "nccl" + name + "Config")(None, None, size(9), 7, 2, comm, None, None) == 0
    assert nccl.ncclReduceConfig(None, None, size(9), 7, 2, 0, comm, None, None) == 0
    for name in ("Broadcast", "Gather", "Scatter"):
        assert getattr(nccl, "nccl" + name + "Config")(None, None, size(9), 7, 0, comm, None, None) == 0
    for name in ("AllGather", "AlltoAll"):
        assert getattr(nccl, "nccl" + name + "Config")(None, None, size(9), 7, comm, None, None) == 0
    cuda.cudaDeviceSynchronize()
own.gpuprof_step()
"""


def test_collectives_with_a_configuration(tmp_path):
    done = harness.run([sys.executable, "-c", LATER], env=harness.preloaded(
        GPUPROF_OUTPUT=tmp_path / "out", GPUPROF_STEP="manual", SIMCUDA_DEVICES=1, GPUPROF_SCHEDULE="skip_first=2,warmup=0,active=1"))
    assert done.code == 0, done.err
    [dump] = harness.dumps(tmp_path / "out")
    found = harness.of_kind(harness.records(dump), "collective")
    names = ["ncclAllReduceConfig", "ncclReduceScatterConfig", "ncclReduceConfig", "ncclBroadcastConfig", "ncclGatherConfig",
             "ncclScatterConfig", "ncclAllGatherConfig", "ncclAlltoAllConfig"]
    assert [record["name"] for record in found] == ["ncclAllReduce"] + names
    assert [record["sequence"] for record in found] == list(range(9, 18)), "one series, counted outside the window, too"
    assert [record["count"] for record in found] == [8] + [9] * 8
    assert {record["rank_count"] for record in found} == {1}


# A group that is only simulated has an end, too: what comes after it is not of it.
SIMULATED = """
import ctypes
cuda, nccl = ctypes.CDLL("libcudart.so.13"), ctypes.CDLL("libnccl.so.2")
P, size = ctypes.c_void_p, ctypes.c_size_t
class Simulation(ctypes.Structure):
    _fields_ = [("size", size), ("magic", ctypes.c_uint), ("version", ctypes.c_uint), ("estimated", ctypes.c_float)]
def check(result):
    assert result == 0, result
comms = (P * 2)()
check(nccl.ncclCommInitAll(comms, 2, None))
def reduce(count):
    check(nccl.ncclGroupStart())
    for i in range(2):
        check(cuda.cudaSetDevice(i))
        check(nccl.ncclAllReduce(None, None, size(count), 7, 0, P(comms[i]), None))
reduce(5)
simulation = Simulation(size=ctypes.sizeof(Simulation), magic=0x74685283, version=22809)
check(nccl.ncclGroupSimulateEnd(ctypes.byref(simulation)))
assert simulation.estimated > 0
reduce(7)
check(nccl.ncclGroupEnd())
for i in range(2):
    check(cuda.cudaSetDevice(i))
    check(cuda.cudaDeviceSynchronize())
"""


def test_a_simulated_group_ends(tmp_path):
    done = harness.run([sys.executable, "-c", SIMULATED],
                       env=harness.preloaded(GPUPROF_OUTPUT=tmp_path / "out", SIMCUDA_DEVICES=2, **harness.WHOLE_RUN))
    assert done.code == 0, done.err
    [dump] = harness.dumps(tmp_path / "out")
    records = harness.records(dump)
    assert [r["count"] for r in harness.of_kind(records, "collective")] == [5, 5, 7, 7]
    assert "ncclGroupSimulateEnd" in {r["name"] for r in harness.of_kind(records, "call")}
    harness.checked("convert", dump, "--to", "chrome", "-o", tmp_path / "trace.json")
    kernels = [e for e in json.loads((tmp_path / "trace.json").read_text())["traceEvents"] if e.get("cat") == "kernel"]
    assert len(kernels) == 2 and all(e["args"]["In msg nelems"] == 7 for e in kernels)


# Two GPUs of one process, in groups or not; each operation goes on when its call has returned (ncclInProgress). What a
# split makes is there when its parent is no longer in progress.
NOT_BLOCKING = """
import ctypes, sys
cuda, nccl = ctypes.CDLL("libcudart.so.13"), ctypes.CDLL("libnccl.so.2")
P, in_progress, grouped = ctypes.c_void_p, 7, sys.argv[1] == "grouped"
class Id(ctypes.Structure):
    _fields_ = [("bytes", ctypes.c_char * 128)]
def settle(comm):
    state = ctypes.c_int(in_progress)
    while state.value == in_progress:
        assert nccl.ncclCommGetAsyncError(comm, ctypes.byref(state)) == 0
    assert state.value == 0
def at(array, i):
    return ctypes.byref(array, i * ctypes.sizeof(P))
""" + CONFIG + """
def all_ranks(call, comms):
    assert not grouped or nccl.ncclGroupStart() == 0
    for i in range(2):
        assert cuda.cudaSetDevice(i) == 0
        assert call(i) == (0 if grouped else in_progress)
    assert not grouped or nccl.ncclGroupEnd() == in_progress
    for comm in comms:
        settle(P(comm))
identity, base, made = Id(), (P * 2)(), (P * 2)()
assert nccl.ncclGetUniqueId(ctypes.byref(identity)) == 0
all_ranks(lambda i: nccl.ncclCommInitRank(at(base, i), 2, identity, i), base)
all_ranks(lambda i: nccl.ncclCommSplit(P(base[i]), 0, -i, at(made, i), ctypes.byref(config)), base)
print(*base, *made)
for elements in 10, 20, 30:
    for more, comms in enumerate((base, made)):
        all_ranks(lambda i: nccl.ncclAllReduce(None, None, ctypes.c_size_t(elements + more), 7, 0, P(comms[i]), None), comms)
for i in range(2):
    assert cuda.cudaSetDevice(i) == 0 == cuda.cudaDeviceSynchronize()
"""


@pytest.mark.parametrize("nvtx", [{}, {"NCCL_NVTX_DISABLE": 1}], ids=["nvtx", "no_nvtx"])
@pytest.mark.parametrize("how", ["grouped", "single"])
def test_communicators_that_do_not_block(tmp_path, how, nvtx):
    """NCCL makes them, and launches on them, in a thread of its own."""
    done = harness.run([sys.executable, "-c", NOT_BLOCKING, how], env=harness.preloaded(
        GPUPROF_OUTPUT=tmp_path / "out", SIMCUDA_DEVICES=2, NCCL_COMM_BLOCKING=0, **nvtx, **harness.WHOLE_RUN))
    assert done.code == 0, done.err
    [dump] = harness.dumps(tmp_path / "out")
    check_pairs([dump], done.out)
    found = harness.of_kind(harness.records(dump), "collective")
    assert [(r["rank"], r["rank_count"]) for r in found] == [(0, 2), (1, 2), (1, 2), (0, 2)] * 3
    assert [r["sequence"] for r in found] == [0] * 4 + [1] * 4 + [2] * 4
    harness.checked("convert", dump, "--to", "chrome", "-o", tmp_path / "trace.json")
    kernels = [e for e in json.loads((tmp_path / "trace.json").read_text())["traceEvents"] if e.get("cat") == "kernel"]
    assert [e["args"].get("In msg nelems") for e in sorted(kernels, key=lambda e: e["ts"])] == [
        n + more for n in (10, 20, 30) for more in (0, 0, 1, 1)]


# The program sees by the handle itself that the split is over; where that was is gone when it asks the parent.
UNASKED = NOT_BLOCKING.split("all_ranks(lambda i: nccl.ncclCommSplit")[0] + """
libc = ctypes.CDLL(None)
libc.mmap.restype, libc.mmap.argtypes, libc.munmap.argtypes = P, [P, ctypes.c_size_t, i32, i32, i32, ctypes.c_long], [P, ctypes.c_size_t]
place = libc.mmap(None, 4096, 3, 0x22, -1, 0)
there = (P * 2).from_address(place)
for i in range(2):
    assert cuda.cudaSetDevice(i) == 0 and nccl.ncclCommSplit(P(base[i]), 0, i, at(there, i), None) == in_progress
while not (there[0] and there[1]):
    pass
made = list(there)
assert libc.munmap(place, 4096) == 0
for i in range(2):
    assert cuda.cudaSetDevice(i) == 0
    assert nccl.ncclAllReduce(None, None, ctypes.c_size_t(10), 7, 0, P(made[i]), None) == in_progress
for comm in [*base, *made]:
    settle(P(comm))
for i in range(2):
    assert cuda.cudaSetDevice(i) == 0 == cuda.cudaDeviceSynchronize()
"""


def test_where_a_handle_was_is_not_read_once_the_program_goes_on(tmp_path):
    done = harness.run([sys.executable, "-c", UNASKED, "single"], env=harness.preloaded(
        GPUPROF_OUTPUT=tmp_path / "out", SIMCUDA_DEVICES=2, NCCL_COMM_BLOCKING=0, **harness.WHOLE_RUN))
    assert done.code == 0, done.err
    [dump] = harness.dumps(tmp_path / "out")
    assert len(harness.of_kind(harness.records(dump), "collective")) == 2


# A watchdog aborts what another thread waits in; then both go on with a new communicator at the same address.
ABORTED = """
import ctypes, threading, time, gpu
gpu.work()
nccl = ctypes.CDLL(sys.argv[1])
P = ctypes.c_void_p
class Id(ctypes.Structure):
    _fields_ = [("bytes", ctypes.c_char * 128)]
def make():
    identity, made = Id(), P()
    assert nccl.ncclGetUniqueId(ctypes.byref(identity)) == 0
    assert nccl.ncclCommInitRank(ctypes.byref(made), 2, identity, 0) == 0
    return made
def use(made):
    return nccl.ncclAllReduce(None, None, ctypes.c_size_t(64), 7, 0, made, None)
first = make()
waiting = threading.Thread(target=use, args=[first])
waiting.start()
time.sleep(0.1)
assert nccl.ncclCommAbort(first) == 0
waiting.join()
second = make()
assert second.value == first.value and [use(second) for _ in range(3)] == [0, 0, 0]
print(nccl.asked_about_dead())
"""


def aborted(folder, **settings):
    """How often NCCL was asked about it while another thread's call on it still returned."""
    library = harness.HAZARDS / "own_nccl/libnccl.so.2"
    done = harness.run([sys.executable, "-c", "import sys" + ABORTED, library], harness.preloaded(
        GPUPROF_OUTPUT=folder, PYTHONPATH=harness.SOURCE / "tests/programs/python", **settings))
    assert done.code == 0, done.err
    return int(done.out)


def test_what_counts_steps_asks_nothing_of_an_aborted_communicator(tmp_path):
    assert aborted(tmp_path, GPUPROF_STEP="nccl:ncclAllReduce:1") == 0


def test_a_communicator_that_a_watchdog_aborts(tmp_path):
    """The calls of the next one, at its address, count from 0."""
    assert aborted(tmp_path / "out", **harness.WHOLE_RUN) == 0
    [dump] = harness.dumps(tmp_path / "out")
    found = [r for r in harness.of_kind(harness.records(dump), "collective") if not r.get("result")]
    assert [r.get("sequence", 0) for r in found] == [0, 1, 2] and {r["rank_count"] for r in found} == {2}, found


# Another library's functions of NCCL's names: what each is passed must reach it as it is.
OTHER_ARGUMENTS = """
import ctypes, gpu
gpu.work()
nccl = ctypes.CDLL(sys.argv[1])
nccl.passed.restype = ctypes.c_ulong
def reaches(function, *words):
    assert function(*(each if isinstance(each, ctypes.c_int) else ctypes.c_ulong(each) for each in words)) == 0
    return [nccl.passed(at) for at in range(len(words))] == [each.value if isinstance(each, ctypes.c_int) else each for each in words]
number = ctypes.c_int
for _ in range(3):
    assert reaches(nccl.ncclPutSignal, 0x7fabcdef0010, 5_000_000_000, number(7), number(1), 6_000_000_000, 0x7f1234567890, 0x7fabcdef0120)
    assert reaches(nccl.ncclSignal, number(1), 0x7f1234567890, 0x7fabcdef0120)
print("all reached")
"""


@pytest.mark.parametrize("mode", ["on", "off"])
def test_functions_of_another_library_with_ncclx_arguments(mode, tmp_path):
    done = harness.run([sys.executable, "-c", "import sys" + OTHER_ARGUMENTS, harness.HAZARDS / "own_nccl/libnccl.so.2"], harness.preloaded(
        GPUPROF_OUTPUT=tmp_path, PYTHONPATH=harness.SOURCE / "tests/programs/python", GPUPROF_MODE=mode, **(
            harness.WHOLE_RUN if mode == "on" else {})))
    assert (done.code, done.out) == (0, "all reached\n"), done.err
