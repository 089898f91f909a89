# SPDX-License-Identifier: Apache-2.0
"""CUDA graphs: captured and instantiated before, inside and across the window, timed by node or as a whole,
updated and destroyed inside it. Times are the simulator's, or stated as the whole graph's, or stated missing."""
import collections
import subprocess

import pytest

import harness
import truth

PROGRAM = harness.HAZARDS / "graphs"
FIRST, LAST = 4, 6  # steps of the window
WHEN = {"before": (0, 0), "inside": (FIRST, FIRST), "across": (0, FIRST)}  # captured, instantiated
CAPTURED_CALLS = 4  # two launches, a set and a copy
# A warm-up with time for CUPTI to be attached in and to have records of launches.
LONG = dict(SIMCUDA_KERNEL_NS=40_000_000, GPUPROF_SCHEDULE=f"skip_first={FIRST - 3},warmup=3,active={LAST - FIRST + 1}")


def profile(folder, when, update, destroy, activities, **settings):
    arguments = [*WHEN[when], 5 if update else -1, 6 if destroy else -1]
    bare = harness.run([PROGRAM, *arguments], harness.environment(SIMCUDA_TRUTH=""))
    done = harness.run([PROGRAM, *arguments], harness.preloaded(**{
        "GPUPROF_OUTPUT": folder / "out", "GPUPROF_STEP": "sync:1", "SIMCUDA_TRUTH": folder,
        "GPUPROF_SCHEDULE": f"skip_first={FIRST - 1},warmup=1,active={LAST - FIRST + 1}",
        "GPUPROF_ACTIVITIES": activities, **settings}))
    assert (done.code, done.out) == (bare.code, bare.out), done.err
    [dump] = harness.dumps(folder / "out")
    return Graphs(dump, folder), done


class Graphs:
    """A dump's records about graphs beside the simulator's."""

    def __init__(self, dump, folder):
        self.records = harness.records(dump)
        header = next(r for r in self.records if r["kind"] == "header")
        self.losses = next(r for r in self.records if r["kind"] == "summary").get("losses", {})
        self.begin, self.end = header["window_begin_mono_ns"], header["window_end_mono_ns"]
        self.truth = truth.load(folder, header["pid"])
        self.launches = [c for c in self.truth if c["t"] == "call" and c["name"] == "cudaGraphLaunch"
                         and self.begin < c["begin"] < self.end]
        self.of_launch = collections.defaultdict(list)
        for work in self.truth:
            if work["t"] == "gpu" and work.get("graph"):
                self.of_launch[work["corr"]].append(work)

    def work_of(self, launch):
        return [r for r in self.records if r["kind"].startswith("gpu_") and r.get("correlation") == launch["corr"]]

    def assert_nodes(self):
        """Each node of each launch once, at its time, and known where it was captured."""
        api = {"kernel": "cudaLaunchKernel", "memset": "cudaMemsetAsync", "memcpy": "cudaMemcpyAsync"}
        for launch in self.launches:
            works = sorted((w for w in self.of_launch[launch["corr"]] if w["type"] != "graph"), key=lambda w: w["node"])
            found = sorted(self.work_of(launch), key=lambda r: r["graph_node"])
            assert [w["node"] for w in works] == [r["graph_node"] for r in found]
            for work, record in zip(works, found):
                assert record["kind"] == truth.GPU_KINDS[work["type"]]
                assert abs(record["begin_mono_ns"] - work["begin"]) <= truth.GPU_TOLERANCE_NS
                assert abs(record["end_mono_ns"] - work["end"]) <= truth.GPU_TOLERANCE_NS
                assert record["captured_by"] == api[work["type"]]
                before, call = self.captured_call(work["original"])
                assert (before["end"] - truth.CALL_TOLERANCE_NS <= record["captured_mono_ns"]
                        <= call["begin"] + truth.CALL_TOLERANCE_NS)

    def captured_call(self, original):
        """The call that made this node, and the one before it: nodes are numbered in the order of the calls of
        their capture."""
        capture, number = original >> 32, original & 0xffffffff
        begins = [c for c in self.truth if c["t"] == "call" and c["name"] == "cudaStreamBeginCapture"]
        begin = begins[capture - 1]
        calls = [c for c in self.truth if c["t"] == "call" and c["begin"] > begin["begin"]
                 and truth.kind_of(c["name"]) in ("launch", "set", "copy")]
        return ([begin] + calls)[number - 1], calls[number - 1]

    def assert_whole(self):
        for launch in self.launches:
            [work] = [w for w in self.of_launch[launch["corr"]] if w["type"] == "graph"]
            [record] = self.work_of(launch)
            assert record["kind"] == "gpu_graph" and record["graph"] == work["graph"]
            assert abs(record["begin_mono_ns"] - work["begin"]) <= truth.GPU_TOLERANCE_NS
            assert abs(record["end_mono_ns"] - work["end"]) <= truth.GPU_TOLERANCE_NS

    def captured(self):
        return [r for r in self.records if r.get("captured")]


@pytest.mark.parametrize("destroy", [False, True], ids=["kept", "destroyed"])
@pytest.mark.parametrize("update", [False, True], ids=["as_is", "updated"])
@pytest.mark.parametrize("mode", ["node", "trace", "auto"])
@pytest.mark.parametrize("when", WHEN)
def test_matrix(tmp_path, when, mode, update, destroy):
    """Nodes, whenever the graph was instantiated; as a whole only where CUPTI was on then: else the launch would crash."""
    activities = "preset" if mode == "auto" else f"+graph:{mode}"
    graphs, done = profile(tmp_path, when, update, destroy, activities)
    assert len(graphs.launches) == 2 * (LAST - FIRST + 1)
    if mode != "trace":
        graphs.assert_nodes()
        assert not graphs.losses, done.err
    elif when == "before":
        graphs.assert_nodes()
        assert not graphs.losses, done.err
        assert "CUPTI cannot time graphs of before the window as a whole, and 1 is" in done.err
    else:
        graphs.assert_whole()
        assert not graphs.losses, done.err
    inside = (when == "inside") * CAPTURED_CALLS + update * (2 * CAPTURED_CALLS + 1)
    assert len(graphs.captured()) == inside
    assert all(r.get("partner") is None for r in graphs.captured())


@pytest.mark.parametrize("sticky", [True, False])
def test_a_window_after_one_that_timed_graphs_as_a_whole(sticky, tmp_path):
    """A graph was made between them, so that it cannot be timed as a whole, and CUPTI has ended the times of nodes."""
    done = harness.run([harness.HAZARDS / "marking_threads", 1, 6, 6, 14, 100000, "device"], harness.preloaded(
        GPUPROF_OUTPUT=tmp_path / "out", GPUPROF_STEP="sync:1", SIMCUDA_TRUTH=tmp_path, GPUPROF_ACTIVITIES="+graph:trace",
        GPUPROF_SCHEDULE="skip_first=1,warmup=1,active=2,wait=4,skip_first_wait=1,repeat=2",
        SIMCUDA_CUPTI="" if sticky else "sticky_graph_trace=0"))
    assert done.code == 0, done.err
    first, second = sorted((Graphs(dump, tmp_path) for dump in harness.dumps(tmp_path / "out")), key=lambda each: each.begin)
    assert not first.losses and len(second.launches) == 4, done.err
    assert "as a whole, and 1 is: none has GPU times, since CUPTI has ended those of nodes" in done.err
    untimed = "4 graph launches have no GPU times: CUPTI has timed graphs as a whole before in this process"
    assert second.losses == ({"graph_untimed": 4} if sticky else {}) and (untimed in done.err) == sticky, done.err


@pytest.mark.parametrize("when", WHEN)
def test_a_cupti_without_nodes_of_earlier_graphs(when, tmp_path):
    """The launches are counted and named."""
    graphs, done = profile(tmp_path, when, False, False, "preset", SIMCUDA_CUPTI="late_nodes=0", **LONG)
    assert len(graphs.launches) == 2 * (LAST - FIRST + 1)
    if when == "before":
        assert graphs.losses == {"graph_untimed": len(graphs.launches)}
        assert "6 graph launches have no GPU times" in done.err
    else:
        graphs.assert_nodes()
        assert not graphs.losses, done.err


@pytest.mark.parametrize("update", [False, True], ids=["as_is", "updated"])
def test_nodes_that_cannot_be_told_apart_have_no_call(update, tmp_path):
    """CUPTI was off, and ids are in no order that is known: the set and the copy look like no other node."""
    command = [PROGRAM, 0, 0, 1 if update else -1, -1]
    done = harness.run(command, harness.preloaded(
        GPUPROF_OUTPUT=tmp_path / "out", GPUPROF_STEP="sync:1", SIMCUDA_TRUTH=tmp_path, SIMCUDA_REVERSED_NODE_IDS="1",
        GPUPROF_SCHEDULE=f"skip_first={FIRST - 1},warmup=1,active={LAST - FIRST + 1}"))
    assert done.code == 0, done.err
    [dump] = harness.dumps(tmp_path / "out")
    nodes = [r for r in harness.records(dump) if r.get("graph_node")]
    told = {r["kind"]: r.get("captured_by") for r in nodes}
    assert told == {"gpu_kernel": None, "gpu_set": "cudaMemsetAsync", "gpu_copy": "cudaMemcpyAsync"}
    kernels = sum(r["kind"] == "gpu_kernel" for r in nodes)
    assert f"{len(nodes) - kernels} of {len(nodes)}" in harness.checked("info", tmp_path / "out").out


def test_an_update_before_the_window_is_what_is_replayed(tmp_path):
    """Of the calls that the graph was updated with, not of those that it was instantiated with."""
    done = harness.run([PROGRAM, 0, 0, 2, -1], harness.preloaded(
        GPUPROF_OUTPUT=tmp_path / "out", GPUPROF_STEP="sync:1", SIMCUDA_TRUTH=tmp_path,
        GPUPROF_SCHEDULE=f"skip_first={FIRST - 1},warmup=1,active={LAST - FIRST + 1}"))
    assert done.code == 0, done.err
    [dump] = harness.dumps(tmp_path / "out")
    graphs = Graphs(dump, tmp_path)
    begins = [c["begin"] for c in graphs.truth if c["t"] == "call" and c["name"] == "cudaStreamBeginCapture"]
    nodes = [r for r in graphs.records if r.get("graph_node")]
    assert len(nodes) == 2 * (LAST - FIRST + 1) * CAPTURED_CALLS
    assert all(begins[1] < r["captured_mono_ns"] < begins[2] for r in nodes)


@pytest.mark.parametrize("when, mode", [("before", "node"), ("before", "auto"), ("inside", "auto")])
def test_the_last_launches_are_waited_for(when, mode, tmp_path):
    """To their last node: they are still at work when the window ends."""
    steps = {"before": {"GPUPROF_STEP": "graph:2"},
             "inside": {"GPUPROF_STEP": "time:100", "GPUPROF_SCHEDULE": "skip_first=0,warmup=1,active=6"}}[when]
    graphs, done = profile(tmp_path, when, False, False, "preset" if mode == "auto" else f"+graph:{mode}", **{**LONG, **steps})
    assert len(graphs.launches) >= 2
    assert max(work["end"] for work in graphs.of_launch[graphs.launches[-1]["corr"]]) > graphs.end
    graphs.assert_nodes()
    assert not graphs.losses, done.err


@pytest.mark.parametrize("kinds", ["kh", "h", "e"])
def test_earlier_graphs_of_nodes_without_records(kinds, tmp_path):
    """Launches of which nothing can come are said to be untimed, not unfinished."""
    graphs, done = profile_kinds(tmp_path, kinds, 0, "preset", **LONG)
    if kinds == "kh":
        assert_same_work(graphs)
        assert not graphs.losses, done.err
    else:
        assert graphs.losses == {"graph_untimed": len(graphs.launches)}


# Graphs of other kinds of nodes than kernels, copies and sets (graph_nodes.c).
KINDS = {"all": "kcsahegw0", "allocation": "ka", "host_first": "hk", "host_last": "kh", "host_around": "hkh", "events": "keks",
         "child": "g", "loop": "kw", "only_loop": "w", "skipped": "k0", "only_skipped": "0", "only_host": "h",
         "only_events": "e", "parameters": "pkk", "clone": "kcsl", "captured_child": "kms"}
NODES = harness.HAZARDS / "graph_nodes"


def profile_kinds(folder, kinds, when, activities, **settings):
    bare = harness.run([NODES, when, kinds])
    done = harness.run([NODES, when, kinds], harness.preloaded(**{
        "GPUPROF_OUTPUT": folder / "out", "GPUPROF_STEP": "sync:1", "SIMCUDA_TRUTH": folder, "GPUPROF_ACTIVITIES": activities,
        "GPUPROF_SCHEDULE": f"skip_first={FIRST - 1},warmup=1,active={LAST - FIRST + 1}", **settings}))
    assert (done.code, done.out) == (bare.code, bare.out) and done.code == 0, done.out + done.err
    [dump] = harness.dumps(folder / "out")
    return Graphs(dump, folder), done


def work_of(graphs, launch):
    return [w for w in graphs.of_launch[launch["corr"]] if w["type"] in truth.GPU_KINDS]


def assert_same_work(graphs, hidden=()):
    """Each piece of work of each launch is there, but for that of nodes in `hidden`, with its node and its times."""
    for launch in graphs.launches:
        works = sorted((w for w in work_of(graphs, launch) if w["node"] not in hidden), key=lambda w: w["begin"])
        found = sorted(graphs.work_of(launch), key=lambda r: r["begin_mono_ns"])
        assert [w["node"] for w in works] == [r["graph_node"] for r in found]
        for work, record in zip(works, found):
            assert record["kind"] == truth.GPU_KINDS[work["type"]]
            assert abs(record["begin_mono_ns"] - work["begin"]) <= truth.GPU_TOLERANCE_NS
            assert abs(record["end_mono_ns"] - work["end"]) <= truth.GPU_TOLERANCE_NS
            assert record.get("grid") == work.get("grid")


@pytest.mark.parametrize("mode", ["node", "trace"])
@pytest.mark.parametrize("when", ["before", "inside"])
@pytest.mark.parametrize("kinds", KINDS)
def test_kinds_of_nodes(kinds, when, mode, tmp_path):
    graphs, done = profile_kinds(tmp_path, KINDS[kinds], FIRST if when == "inside" else 0, f"+graph:{mode}")
    assert len(graphs.launches) == 2 * (LAST - FIRST + 1)
    # What gives no record is not waited for, nor called unfinished.
    assert graphs.losses.get("unfinished_gpu", 0) == 0, done.err
    if mode == "trace" and when == "inside":
        graphs.assert_whole()
        records = harness.of_kind(graphs.records, "gpu_graph")
        assert records and {r["lane"]["device"] for r in records} == {0}
        assert "graph_untimed" not in graphs.losses
    else:
        assert_same_work(graphs)
        # Of nodes without records CUPTI says nothing where it was off when they were made; of conditional ones never.
        silent = {"only_skipped"} | ({"only_host", "only_events"} if when == "before" else set())
        if kinds in silent:
            assert graphs.losses["graph_untimed"] == len(graphs.launches)
        else:
            assert "graph_untimed" not in graphs.losses


@pytest.mark.parametrize("kinds", ["kcsl", "kms", "kmsl"])
def test_nodes_of_cloned_graphs_have_their_calls(kinds, tmp_path):
    """A clone and a graph within another have handles of their own."""
    graphs, done = profile_kinds(tmp_path, kinds, FIRST, "+graph:node")
    api = {"gpu_kernel": "cudaLaunchKernel", "gpu_set": "cudaMemsetAsync", "gpu_copy": "cudaMemcpyAsync"}
    found = [record for launch in graphs.launches for record in graphs.work_of(launch)]
    assert len(found) == len(graphs.launches) * (5 if "m" in kinds else 3), done.err
    assert all(record.get("captured_by") == api[record["kind"]] for record in found), found
    assert graphs.losses == {}


# What is captured: three sets, the second of which is refused. Prints when each was about to be, and what it gave.
SETS = """
import ctypes, sys, time
cuda = ctypes.CDLL("libcudart.so.13")
memory, stream, graph, exec = (ctypes.c_void_p() for _ in range(4))
assert cuda.cudaMalloc(ctypes.byref(memory), 4096) == 0 and cuda.cudaStreamCreate(ctypes.byref(stream)) == 0
assert cuda.cudaStreamBeginCapture(stream, 2) == 0
for size in (1000, 2000, 3000):
    time.sleep(0.01)
    print(size, time.monotonic_ns(), cuda.cudaMemsetAsync(memory, 0, ctypes.c_size_t(size), stream), flush=True)
time.sleep(0.01)
assert cuda.cudaStreamEndCapture(stream, ctypes.byref(graph)) == 0
assert cuda.cudaGraphInstantiateWithFlags(ctypes.byref(exec), graph, ctypes.c_ulonglong(0)) == 0
for _ in range(3):
    assert cuda.cudaGraphLaunch(exec, stream) == 0 and cuda.cudaDeviceSynchronize() == 0
"""


def test_a_refused_call_is_no_nodes(tmp_path):
    """The node before it stays that of its own call."""
    done = harness.run([harness.PYTHON, "-c", SETS], harness.preloaded(
        GPUPROF_OUTPUT=tmp_path, GPUPROF_ACTIVITIES="+graph:node", SIMCUDA_FAIL="cudaMemsetAsync:2:9", **harness.WHOLE_RUN))
    assert done.code == 0, done.err
    began = {int(size): int(time) for size, time, _ in map(str.split, done.out.splitlines())}
    assert [line.split()[2] for line in done.out.splitlines()] == ["0", "9", "0"]
    sets = harness.of_kind(harness.records(*harness.dumps(tmp_path)), "gpu_set")
    assert [each["bytes"] for each in sets] == [1000, 3000] * 3
    for each in sets:
        captured = each["captured_mono_ns"]
        assert began[1000] < captured < began[2000] if each["bytes"] == 1000 else began[3000] < captured, (each, began)


def test_conditional_nodes_beside_work_that_goes_on(tmp_path):
    """CUPTI keeps a buffer back while a kernel of after the window, in it too, still runs. The graph's nodes may have no records."""
    graphs, _ = profile_kinds(tmp_path, KINDS["all"], FIRST, "+graph:node", SIMCUDA_KERNEL_NS=20_000_000)
    assert len(graphs.launches) == 2 * (LAST - FIRST + 1)
    assert_same_work(graphs)
    assert graphs.losses == {}


@pytest.mark.parametrize("kinds", ["loop", "only_loop"])
def test_a_cupti_that_does_not_see_into_conditional_nodes(kinds, tmp_path):
    """What it does see is right; a launch of which it saw nothing is said to be untimed."""
    graphs, done = profile_kinds(tmp_path, KINDS[kinds], FIRST, "+graph:node", SIMCUDA_CUPTI="no_body_records")
    inside = {w["node"] for launch in graphs.launches for w in work_of(graphs, launch) if w["block"] == [96, 1, 1]}
    assert len(inside) == 1
    assert_same_work(graphs, hidden=inside)
    assert graphs.losses == ({"graph_untimed": len(graphs.launches)} if kinds == "only_loop" else {})
    assert ("have no GPU times" in done.err) == (kinds == "only_loop")


@pytest.mark.parametrize("way", ["inside", "across", "killed"])
def test_stacks_of_captured_calls(way, tmp_path):
    """A kernel of a graph is launched by the graph; who asked for it is seen at capture, mostly before the window."""
    if way == "killed":
        arguments = [NODES, FIRST, "ksX"]
        settings = dict(harness.WHOLE_RUN)
    else:
        arguments = [PROGRAM, *WHEN[way], -1, -1]
        settings = {"GPUPROF_STEP": "sync:1", "GPUPROF_SCHEDULE": f"skip_first={FIRST - 1},warmup=1,active={LAST - FIRST + 1}"}
    done = harness.run(arguments, harness.preloaded(GPUPROF_OUTPUT=tmp_path / "out", GPUPROF_STACKS="launch",
                                                    GPUPROF_ACTIVITIES="+graph:node", **settings))
    assert done.code == (-9 if way == "killed" else 0), done.err
    dump = harness.dumps(tmp_path / "out")[0]
    found = harness.records(dump)
    kernels = [r for r in harness.of_kind(found, "gpu_kernel") if r.get("captured_by")]
    assert len(kernels) >= 2
    for record in kernels:
        stack = record["captured_stack"]
        assert "hazard_launch" in stack[0] and any(line.startswith("main") for line in stack), stack
        assert any("capture" in line for line in stack)
    assert all("captured_stack" not in r for r in harness.of_kind(found, "gpu_set"))  # only launches were asked for


@pytest.mark.parametrize("when", ["at_once", "later"])
def test_what_is_known_of_nodes_survives_a_kill(when, tmp_path):
    """At once it is in the ring only; later the drain thread has written it, and CUPTI given the first records."""
    done = harness.run([NODES, FIRST, "kcsk" + ("x" if when == "at_once" else "X")], harness.preloaded(
        GPUPROF_OUTPUT=tmp_path / "out", SIMCUDA_TRUTH=tmp_path, SIMCUDA_TRUTH_SYNC=1, GPUPROF_ACTIVITIES="+graph:node",
        **harness.WHOLE_RUN))
    assert done.code == -9
    info, = harness.info(tmp_path / "out")["files"]
    assert info["graph_nodes"] == 4 and info["recovered"]
    if when == "at_once":
        return
    [part] = [path for path in harness.dumps(tmp_path / "out") if path.suffix == ".part"]
    graphs = Graphs(part, tmp_path)
    graphs.launches = [c for c in graphs.truth if c["t"] == "call" and c["name"] == "cudaGraphLaunch"]
    assert len(graphs.launches) == 2
    graphs.assert_nodes()


def test_without_cupti(tmp_path):
    graphs, _ = profile(tmp_path, "inside", True, True, "preset", GPUPROF_CUPTI="off")
    assert len([r for r in graphs.records if r.get("name") == "cudaGraphLaunch"]) == len(graphs.launches) == 6
    assert len(graphs.captured()) == 3 * CAPTURED_CALLS + 1
    assert not graphs.losses


def test_viewers_show_where_a_node_was_captured(tmp_path):
    profile(tmp_path, "inside", False, False, "preset")
    [dump] = harness.dumps(tmp_path / "out")
    trace = tmp_path / "trace.json"
    harness.checked("convert", dump, "--to", "chrome", "-o", trace)
    assert '"captured by":"cudaLaunchKernel"' in trace.read_text()


def test_a_wrong_way_to_time_graphs_is_refused():
    done = harness.gpuprof("run", "--set", "GPUPROF_ACTIVITIES=+graph:nodes", "--", "true")
    assert done.code == 2 and "graph:trace, graph:node" in done.err


UPDATES = harness.HAZARDS / "graph_updates"


def test_a_graph_that_was_updated_many_times(tmp_path):
    """900,000 calls were captured; those of the last update are what is replayed."""
    done = harness.run([UPDATES, "update", 3000], harness.preloaded(
        GPUPROF_OUTPUT=tmp_path, GPUPROF_STEP="sync:1", GPUPROF_STACKS="launch:1", GPUPROF_SCHEDULE="skip_first=1,warmup=1,active=3"))
    [dump] = harness.dumps(tmp_path)
    assert done.code == 0 and "missing" not in done.err, done.err
    kernels = harness.of_kind(harness.records(dump), "gpu_kernel")
    assert len(kernels) == 900 and all(each.get("captured_by") == "cudaLaunchKernel" for each in kernels)


def test_graphs_that_are_made_and_destroyed_for_ever(tmp_path):
    """What is known of captured calls stays within 40 MB."""
    bare = harness.run([UPDATES, "capture", 10000], timeout=400)
    done = harness.run([UPDATES, "capture", 10000], harness.preloaded(GPUPROF_OUTPUT=tmp_path, GPUPROF_MODE="armed"), timeout=400)
    assert done.code == 0 and int(done.out) - int(bare.out) < 40_000, (done.out, bare.out)


def test_a_capture_that_ends_with_an_error_is_over(tmp_path):
    """Else CUPTI would not be taken down, as within captures, and each launch would be looked at for one."""
    env = harness.preloaded(GPUPROF_OUTPUT=tmp_path, GPUPROF_STEP="sync:1", GPUPROF_CUPTI_TEARDOWN="1", GPUPROF_LOG="debug",
                            GPUPROF_SCHEDULE="skip_first=5,warmup=2,active=3")
    with subprocess.Popen([UPDATES, "invalid"], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True) as process:
        said = []
        for line in process.stderr:
            said.append(line)
            if "CUPTI is taken down" in line:
                process.stdin.close()
        assert process.wait() == 0 and process.stdout.read() == "end: 901\n", said
    assert any("CUPTI is taken down" in line for line in said), said
