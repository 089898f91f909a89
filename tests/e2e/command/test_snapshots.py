# SPDX-License-Identifier: Apache-2.0
"""Memory snapshots and flame graphs of what tells less: no addresses, no GPU times, no calls."""
import collections
import json
import pickle

import harness
import pytest
from support import kineto_traces


def snapshot(source, place, *notes):
    """Each GPU's entries, and what the command says of them on standard error."""
    done = harness.gpuprof("convert", source, "--to", "memory-viz", "-o", place)
    assert done.code == 0 and len(done.err.splitlines()) == len(notes), done.err
    for note in notes:
        assert note in done.err, done.err
    return pickle.loads(place.read_bytes())["device_traces"]


def peak_of(entries):
    """As memory_viz counts: a release is of the block at its address."""
    live, peak = {}, 0
    for entry in entries:
        if entry["action"] == "alloc":
            assert entry["addr"] not in live
            live[entry["addr"]] = entry["size"]
        elif entry["action"] == "free_completed":
            assert live.pop(entry["addr"]) == entry["size"]
        peak = max(peak, sum(live.values()))
    return peak


def with_memory(folder, *changes):
    """A trace of a step with [memory] events of these arguments."""
    trained = kineto_traces.training(steps=1)
    trained.events[:] = [event for event in trained.events if event["name"] != "[memory]"]
    for number, arguments in enumerate(changes):
        trained.put("i", "cpu_instant_event", "[memory]", trained.pid, trained.thread, trained.now + 1000 * number, None,
                    **{"Device Type": 1, "Device Id": 0, **arguments})
    file = folder / "trace.json"
    file.write_text(json.dumps(trained.document()))
    return file


def test_blocks_without_addresses_are_told_apart(tmp_path):
    """As in traces of PyTorch 1.8 to 1.10."""
    sizes = [512, 512, 2048, -512, 512, -2048, 4096, -512, -512, -4096]
    entries, = snapshot(with_memory(tmp_path, *({"Bytes": size} for size in sizes)), tmp_path / "x.pickle", "no addresses")
    assert [entry["size"] for entry in entries if entry["action"] == "alloc"] == [512, 512, 2048, 512, 4096]
    assert peak_of(entries) == 5120
    told, = snapshot(with_memory(tmp_path, *({"Bytes": size, "Addr": 4096 + abs(size)} for size in (512, 1024, -512, -1024))),
                     tmp_path / "y.pickle")
    assert peak_of(told) == 1536


def test_a_release_without_addresses_of_what_was_there_before(tmp_path):
    """It takes no block of another size."""
    entries, = snapshot(with_memory(tmp_path, {"Bytes": 512}, {"Bytes": -1024}, {"Bytes": -512}), tmp_path / "x.pickle",
                        "no addresses")
    places = collections.defaultdict(list)
    for entry in entries:
        places[entry["addr"]].append((entry["action"], entry["size"]))
    assert sorted(places.values()) == [
        [("alloc", 512), ("free_requested", 512), ("free_completed", 512)], [("free_requested", 1024), ("free_completed", 1024)]]


def test_a_gpu_of_an_absurd_number_has_the_next_one(tmp_path):
    traces = snapshot(with_memory(tmp_path, {"Bytes": 512, "Addr": 4096, "Device Id": 3_000_000_000}), tmp_path / "x.pickle")
    assert [len(entries) for entries in traces] == [0, 1]


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """Function that records two ranks that allocate; returns the folder."""
    def record(**settings):
        folder = tmp_path_factory.mktemp("ranks")
        done = harness.run([harness.SIMTRAIN, "--steps", 6, "--ranks", 2, "--malloc-per-step", 1, "--comm-mb", 1],
                           harness.preloaded(GPUPROF_OUTPUT=folder, **settings, **harness.WHOLE_RUN))
        assert done.code == 0, done.err
        return folder
    return record


def test_ranks_without_gpu_times_have_snapshots_of_their_own(recorded, tmp_path):
    """Addresses are those of a process."""
    folder = recorded(GPUPROF_CUPTI="off")
    allocated = [len([r for r in harness.records(dump) if r["kind"] == "alloc" and "Host" not in r["name"]])
                 for dump in harness.dumps(folder)]
    traces = snapshot(folder, tmp_path / "x.pickle")
    assert [sum(entry["action"] == "alloc" for entry in entries) for entries in traces] == allocated and len(traces) == 2


def test_windows_of_a_process_show_its_blocks_once(tmp_path):
    """What the memory log lists at each window's begin."""
    done = harness.run([harness.SIMTRAIN, "--steps", 30, "--malloc-per-step", 2], harness.preloaded(
        GPUPROF_OUTPUT=tmp_path / "out", GPUPROF_STEP="nvtx:step", GPUPROF_MEMORY="1",
        GPUPROF_SCHEDULE="skip_first=3,wait=3,warmup=0,active=3,repeat=3"))
    assert done.code == 0 and len(harness.dumps(tmp_path / "out")) == 3, done.err
    entries, = snapshot(tmp_path / "out", tmp_path / "x.pickle")
    report = json.loads(harness.checked("report", tmp_path / "out", "--format", "json").out)
    assert peak_of(entries) == report["memory"]["peak_bytes"] > 0
    live = sum({"alloc": 1, "free_completed": -1}.get(entry["action"], 0) * entry["size"] for entry in entries)
    assert live == report["memory"]["end_bytes"] > 0


def test_steps_of_torch_profiler_follow_each_other(tmp_path):
    """They lie a microsecond apart here."""
    source = tmp_path / "trace.json"
    source.write_text(kineto_traces.training(steps=5).text())

    def of_steps(steps):
        return harness.gpuprof("convert", source, "--to", "memory-viz", "-o", tmp_path / "x.pickle", "--steps", steps)

    done = of_steps("4-6")
    assert done.code == 0, done.err
    traces = pickle.loads((tmp_path / "x.pickle").read_bytes())["device_traces"]
    assert sum(entry["action"] == "alloc" for entry in traces[0]) == 4 * (1 + 3)  # those of step 3 are there before
    done = of_steps("4,6")
    assert done.code == 2 and "needs steps that follow each other" in done.err


def test_flame_graphs_have_work_without_calls(recorded, tmp_path):
    """The preset `light` records no launches."""
    folder = recorded(GPUPROF_PRESET="light")
    place = tmp_path / "x.json"
    harness.checked("convert", folder, "--to", "speedscope", "-o", place)
    scope = json.loads(place.read_text())
    names = [frame["name"] for frame in scope["shared"]["frames"]]
    for dump, busy in zip(harness.dumps(folder), scope["profiles"][::2]):
        work = [r for r in harness.records(dump) if r["kind"] in ("gpu_kernel", "gpu_copy", "gpu_set")]
        assert busy["endValue"] == sum(r["duration_ns"] for r in work) > 0
        stacks = [[names[frame] for frame in stack] for stack in busy["samples"]]
        assert sorted(stacks) == sorted(["no recorded call", name] for name in {r["label"] for r in work})
    assert all(idle["endValue"] > 0 for idle in scope["profiles"][1::2])
