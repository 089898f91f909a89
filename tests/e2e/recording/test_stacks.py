# SPDX-License-Identifier: Apache-2.0
"""Native stacks: tests/programs/chain makes calls of each kind from functions whose names are known, through
a library and inlined code, and `gpuprof parse` names them."""
import json
import re
import shutil
import subprocess

import pytest

import harness

STACKS = {  # API: functions of the program around it, innermost first
    "cudaMalloc": ["allocate", "train_step", "main"],
    "cudaFree": ["train_step", "main"],
    "cudaLaunchKernel": ["hazard_launch", "launch_kernel", "inlined_layer", "forward", "forward", "forward",
                         "train_step", "main"],
    "ncclAllReduce": ["reduce_gradients", "call_back", "chain_through_library", "train_step", "main"],
    "cudaDeviceSynchronize": ["wait_for_gpu", "train_step", "main"],
}
SETTINGS = {"launch": "cudaLaunchKernel", "sync": "cudaDeviceSynchronize", "alloc": "cudaMalloc", "nccl": "ncclAllReduce"}


def record(folder, *command, stacks="launch,sync,alloc,nccl", code=0, **settings):
    """Runs the command; its dump, and the run."""
    env = harness.preloaded(GPUPROF_OUTPUT=folder / "out", GPUPROF_STACKS=stacks, **harness.WHOLE_RUN, **settings)
    done = harness.run(command, env)
    assert done.code == code, done.err
    return harness.dumps(folder / "out")[0], done


def profile(folder, rounds, *arguments, **options):
    dump, done = record(folder, harness.HAZARDS / "chain", rounds, *arguments, **options)
    return harness.records(dump), done


def parse(dump, *options):
    return [json.loads(line) for line in harness.checked("parse", "--format", "json", *options, dump).out.splitlines()]


def functions(stack):
    """The plain names of a stack's functions down to main; all of it where main has no name."""
    names = [re.sub(r".*::", "", re.sub(r" ?\(.*", "", line.replace("(anonymous namespace)::", ""))) for line in stack]
    return names[:names.index("main") + 1] if "main" in names else names


def of_api(records, name):
    return [r for r in records if r.get("name") == name and r["kind"] != "nvtx_range"]


def assert_known(records, rounds):
    for name, expected in STACKS.items():
        calls = of_api(records, name)
        assert len(calls) == rounds, name
        for call in calls:
            assert functions(call["stack"]) == expected, call["stack"]


def test_names_of_a_known_chain_of_calls(tmp_path):
    records, done = profile(tmp_path, 3)
    assert_known(records, 3)
    header, = harness.of_kind(records, "header")
    assert header["stack_note"] == ""
    summary, = harness.of_kind(records, "summary")
    assert summary["losses"] == {}
    assert not any("stack" in r for r in of_api(records, "ncclCommDestroy"))
    launch = of_api(records, "cudaLaunchKernel")[0]["stack"]
    assert re.search(r"chain\.cpp:\d+\)$", launch[1]), "lines come from debug info"
    assert harness.our_lines(done.err)[:-1] == []


def test_stacks_of_a_killed_process(tmp_path):
    records, _ = profile(tmp_path, 2, "kill", code=-9)
    assert_known(records, 2)


def test_no_stacks_unless_asked_for(tmp_path):
    records, _ = profile(tmp_path, 1, stacks="preset")
    assert of_api(records, "cudaLaunchKernel") and not any("stack" in r for r in records)


def test_the_full_preset_has_stacks(tmp_path):
    records, _ = profile(tmp_path, 1, stacks="preset", GPUPROF_PRESET="full")
    assert_known(records, 1)


def test_one_call_in_so_many_of_the_kinds_asked_for(tmp_path):
    records, _ = profile(tmp_path, 7, stacks="launch:3,sync")
    having = {name: [i for i, r in enumerate(of_api(records, name)) if "stack" in r] for name in STACKS}
    # Launches that NCCL makes are of the same kind.
    assert having["cudaDeviceSynchronize"] == list(range(7))
    assert having["cudaMalloc"] == having["ncclAllReduce"] == []
    launches = sorted(harness.of_kind(records, "launch"), key=lambda r: r["begin_mono_ns"])
    assert ["stack" in r for r in launches] == [i % 3 == 0 for i in range(len(launches))]


def test_calls_that_release_memory_have_stacks(tmp_path):
    """cudaFree waits for the GPU, so it takes more than cudaMalloc. Of one in two each kind of call has its own turn."""
    for every in 1, 2:
        dump, _ = record(tmp_path / str(every), harness.SIMTRAIN, "--steps", "8", "--layers", "1", "--malloc-per-step", "4",
                         "--markers", "sync", stacks=f"alloc:{every}")
        in_step = [r for r in harness.records(dump) if r.get("name") in ("cudaMalloc", "cudaFree")
                   and any("allocate_in_step" in line for line in r.get("stack", ()))]
        counts = {name: sum(r["name"] == name for r in in_step) for name in ("cudaMalloc", "cudaFree")}
        assert counts["cudaFree"] >= 12 and counts["cudaMalloc"] >= 12, counts
        found = report(dump)
        rows = [row for row in found["places"] if row["kind"] == "allocation" and "allocate_in_step" in row["place"]]
        calls = {row["name"]: row for row in found["allocations"]}
        assert sum(row["count"] for row in rows) > calls["cudaMalloc"]["count"] * 1.5 / every, (rows, calls)


def report(dump, *options):
    return json.loads(harness.checked("report", "--format", "json", *options, dump).out)


def test_the_report_names_functions_and_lines(copy, tmp_path):
    """Of the program's own code, where it waits and allocates; of a stripped program the place in its file."""
    path = copy("chain")
    dump, _ = record(tmp_path, path, 4)
    found = report(dump)
    steps = len(found["steps"])
    assert steps >= 3
    places = {row["kind"]: row for row in found["places"] if "train_step" not in row["place"]}
    for kind, function in ("synchronization", "wait_for_gpu"), ("allocation", "allocate"):
        assert re.fullmatch(rf"chain\.cpp:\d+ chain::\(anonymous namespace\)::{function}\(\)", places[kind]["place"]), places
        assert places[kind]["count"] >= steps - 1
    owners = [row["name"] for row in found["memory_owners"]]
    assert any(re.match(r"chain\.cpp:\d+ .*::allocate\(\)", name) for name in owners), owners
    text = harness.checked("report", dump).out
    assert "Lines of code that wait" in text and re.search(r"synchronization +chain\.cpp:\d+", text), text
    assert max(map(len, text.splitlines())) <= 80, text
    # Its debug info by --debug-dir; without it, where it is.
    place = tmp_path / "debug/.build-id" / build_id_of(path)[:2] / f"{build_id_of(path)[2:]}.debug"
    place.parent.mkdir(parents=True)
    tool("objcopy", "--only-keep-debug", path, place)
    tool("strip", path)
    assert report(dump, "--debug-dir", tmp_path / "debug")["places"] == found["places"]
    stripped = {row["kind"]: row["place"] for row in report(dump)["places"]}
    assert re.fullmatch(r"chain\+0x[0-9a-f]+", stripped["synchronization"]), stripped


# Programs as they are shipped.

@pytest.fixture(name="copy")
def copy_of_chain(tmp_path):
    """Makes a copy of the program that can be changed."""
    def make(program):
        target = tmp_path / "bin" / program
        target.parent.mkdir()
        shutil.copy(harness.HAZARDS / program, target)
        return target
    return make


def tool(*command):
    subprocess.run([str(part) for part in command], check=True, capture_output=True)


def build_id_of(program):
    return re.search(r"Build ID: ([0-9a-f]+)", harness.binutils("readelf", "-n", program))[1]


def launch_functions(records):
    return functions(of_api(records, "cudaLaunchKernel")[0]["stack"])


def test_debug_info_by_build_id_where_paths_are_redacted(tmp_path):
    """The dump tells no directory of a file of code, and its build id."""
    dump, _ = record(tmp_path, harness.HAZARDS / "chain", 1, GPUPROF_REDACT="paths")
    bare = of_api(parse(dump), "cudaLaunchKernel")[0]["stack"]
    assert any(line.startswith("chain+0x") for line in bare), bare
    for file in harness.HAZARDS / "chain", *harness.HAZARDS.glob("*chain*.so"):
        place = tmp_path / "debug/.build-id" / build_id_of(file)[:2] / f"{build_id_of(file)[2:]}.debug"
        place.parent.mkdir(parents=True, exist_ok=True)
        tool("objcopy", "--only-keep-debug", file, place)
    assert_known(parse(dump, "--debug-dir", tmp_path / "debug"), 1)


@pytest.mark.parametrize("program", ["chain", "chain_fixed"])
def test_stripped_program_with_debug_info_by_build_id(program, copy, tmp_path):
    path = copy(program)
    build_id = build_id_of(path)
    place = tmp_path / "debug/.build-id" / build_id[:2] / f"{build_id[2:]}.debug"
    place.parent.mkdir(parents=True)
    tool("objcopy", "--only-keep-debug", path, place)
    tool("strip", path)
    dump, _ = record(tmp_path, path, 1)
    bare = of_api(parse(dump), "cudaLaunchKernel")[0]["stack"]
    assert all(re.fullmatch(program + r"\+0x[0-9a-f]+", line) for line in bare[:5]), bare
    assert_known(parse(dump, "--debug-dir", tmp_path / "debug"), 1)
    path.unlink()  # the dump may be read where the program is not
    assert_known(parse(dump, "--debug-dir", tmp_path / "debug"), 1)
    out = tmp_path / "out.json"
    harness.checked("convert", "--to", "chrome", "--debug-dir", tmp_path / "debug", "-o", out, dump)
    document = json.loads(out.read_text())
    launch = next(e for e in document["traceEvents"] if e.get("name") == "cudaLaunchKernel")
    lines, at = [], launch["sf"]
    while at:
        frame = document["stackFrames"][at]
        lines.append(frame["name"])
        at = frame.get("parent")
    assert functions(lines) == STACKS["cudaLaunchKernel"]


@pytest.mark.parametrize("where", ["", ".debug"])
@pytest.mark.parametrize("build_id", [True, False], ids=["build_id", "checksum"])
def test_stripped_program_with_debug_info_by_link(where, build_id, copy, tmp_path):
    path = copy("chain")
    if not build_id:
        tool("objcopy", "--remove-section=.note.gnu.build-id", path)
    link = path.parent / where / "chain.debug"
    link.parent.mkdir(exist_ok=True)
    tool("objcopy", "--only-keep-debug", path, link)
    tool("strip", path)
    tool("objcopy", f"--add-gnu-debuglink={link}", path)
    dump, _ = record(tmp_path, path, 1)
    assert_known(parse(dump), 1)
    # Another file of that name does not belong to it.
    tool("objcopy", "--remove-section=.note.gnu.build-id", "--remove-section=.comment", link)
    assert "launch_kernel" not in launch_functions(parse(dump))


def test_a_program_that_was_built_anew_gives_no_wrong_names(copy, tmp_path):
    path = copy("chain")
    dump, _ = record(tmp_path, path, 1)
    assert_known(parse(dump), 1)
    path.unlink()
    shutil.copy(harness.HAZARDS / "chain_fixed", path)
    stack = of_api(parse(dump), "cudaLaunchKernel")[0]["stack"]
    assert all(re.fullmatch(r"chain\+0x[0-9a-f]+", line) for line in stack[:5]), stack


THROUGH_LIBRARY = ["hazard_launch", "launch_one", "{}", "chain_through_library", "through", "main"]


def test_library_that_was_opened_and_closed(tmp_path):
    dump, _ = record(tmp_path, harness.HAZARDS / "chain_reload", harness.HAZARDS / "libchain_other.so")
    expected = [name.format("call_other") for name in THROUGH_LIBRARY]
    assert launch_functions(parse(dump)) == expected


def test_libraries_at_the_same_place_one_after_the_other(tmp_path):
    """Which of them an address was in is not known: no name is better than a wrong one."""
    libraries = [harness.HAZARDS / "libchain_other.so", harness.HAZARDS / "libchain_library.so"]
    dump, done = record(tmp_path, harness.HAZARDS / "chain_reload", *libraries)
    first, second = of_api(parse(dump), "cudaLaunchKernel")
    places = done.out.split()
    if places[0] != places[1]:
        pytest.skip("the loader chose another place")
    for launch in (first, second):
        stack = launch["stack"]
        assert all(re.fullmatch("0x[0-9a-f]+", line) for line in stack[2:4]), stack
        assert functions(stack[:2] + stack[4:]) == THROUGH_LIBRARY[:2] + THROUGH_LIBRARY[4:]


def test_more_stacks_than_there_is_room_for(tmp_path):
    records, done = profile(tmp_path, 14000, "many", stacks="launch")
    launches = of_api(records, "cudaLaunchKernel")
    assert len(launches) == 14000
    without = sum("stack" not in r for r in launches)
    assert without > 0 and "stack" in launches[0]
    summary, = harness.of_kind(records, "summary")
    assert summary["losses"] == {"stack_table_full": without}
    assert f"{without} call stacks for which there was no room" in done.err


@pytest.mark.parametrize("instantiated", [4, 0], ids=["inside", "before"])
def test_nodes_of_a_graph_know_the_stack_of_their_capture(instantiated, tmp_path):
    """Captured before the window, when no call is recorded."""
    done = harness.run([harness.HAZARDS / "graphs", 0, instantiated, -1, -1], harness.preloaded(
        GPUPROF_OUTPUT=tmp_path, GPUPROF_STACKS="launch", GPUPROF_STEP="sync:1", GPUPROF_ACTIVITIES="+graph:node",
        GPUPROF_SCHEDULE="skip_first=3,warmup=1,active=3"))
    assert done.code == 0, done.err
    dump, = harness.dumps(tmp_path)
    kernels = [r for r in parse(dump) if r["kind"] == "gpu_kernel" and r.get("graph_node")]
    assert kernels
    for kernel in kernels:
        assert functions(kernel["captured_stack"])[-1] == "main"
        assert "hazard_launch" in kernel["captured_stack"][0]
    out = tmp_path / "out.json"
    harness.checked("convert", "--to", "chrome", "-o", out, dump)
    drawn = [e for e in json.loads(out.read_text())["traceEvents"] if e.get("cat") == "kernel" and "graph node id" in e["args"]]
    assert len(drawn) == len(kernels) and all("sf" in e for e in drawn)
