# SPDX-License-Identifier: Apache-2.0
"""Several copies of one of NVIDIA's libraries in a process: each call reaches the copy that it reaches without gpuprof."""
import shutil

import harness
import pytest

COPIES = harness.HAZARDS / "copies"
LIBRARY = {name: str(COPIES / f"library{name}.so") for name in ("12", "13", "14", "_renamed", "_plain")}
RUNTIME12, RUNTIME13 = str(COPIES / "libcudart.so.12"), str(COPIES / "libcudart.so.13")
MODES = {"off": {"GPUPROF_MODE": "off"}, "armed": {"GPUPROF_MODE": "armed"}, "on": {}, "all": {"GPUPROF_SCHEDULE": "all"}}
RUNTIMES = {
    "one_after_the_other": [LIBRARY["12"], LIBRARY["13"]],
    "newer_first": [LIBRARY["13"], LIBRARY["12"]],
    "both_open_before_calls": ["all", LIBRARY["12"], LIBRARY["13"]],
    "newer_open_first": ["all", LIBRARY["13"], LIBRARY["12"]],
    "one_for_everybody": ["global", RUNTIME13, LIBRARY["12"], LIBRARY["13"]],
    "for_everybody_later": ["all", LIBRARY["12"], "global", RUNTIME13, LIBRARY["13"]],
    "looked_up_then_another": ["look", RUNTIME12, "global", RUNTIME13, LIBRARY["13"]],
    "looked_up_then_both": ["look", RUNTIME12, "all", "global", RUNTIME13, LIBRARY["13"], LIBRARY["12"]],
    "without_kernels": ["all", LIBRARY["13"], LIBRARY["_plain"], RUNTIME13],  # looked at before the last one is opened
    "renamed": [LIBRARY["_renamed"]],
    "not_known_yet": [LIBRARY["14"]],
    "renamed_beside_another": ["all", LIBRARY["13"], LIBRARY["_renamed"]],
}


def as_bare(command, folder, **settings):
    settings["LD_LIBRARY_PATH"] = f"{COPIES}:{harness.SIMCUDA}"
    bare = harness.run(command, harness.environment(**settings))
    done = harness.run(command, harness.preloaded(GPUPROF_OUTPUT=folder / "out", **settings))
    assert (done.code, done.out) == (bare.code, bare.out), done.out + done.err
    return done


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("case", RUNTIMES)
def test_runtimes(tmp_path, case, mode):
    done = as_bare([harness.HAZARDS / "copies_open", *RUNTIMES[case]], tmp_path, **MODES[mode])
    assert done.code == 0 and "launch of its kernel" in done.out
    if mode == "all":
        dump, = harness.dumps(tmp_path / "out")
        events = harness.info(dump)["files"][0]["events"]
        # Those of the copy that hooks call; CUPTI, which is not here, would tell of the others.
        led_apart, looked_up = case == "looked_up_then_another", case.startswith("looked_up")
        assert events.get("launch", 0) == (0 if led_apart else 2), events
        assert events["alloc"] == (0 if led_apart else 3) + looked_up, events


def test_what_is_beside_is_said(tmp_path):
    done = as_bare([harness.HAZARDS / "copies_open", *RUNTIMES["newer_first"]], tmp_path, GPUPROF_LOG="info")
    said = [line for line in harness.our_lines(done.err) if "libcudart.so.12" in line]
    assert len(said) == 1 and "through CUPTI alone" in said[0], done.err


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("looked_up", [[], ["one"]], ids=["all", "one"])
def test_looking_up_another_nccl_moves_no_call(tmp_path, looked_up, mode):
    done = as_bare([harness.HAZARDS / "copies_two_nccl", COPIES / "libnccl-1a2b3c4d.so.2", *looked_up], tmp_path, **MODES[mode])
    assert done.code == 0 and "A: sum, communicator of A" in done.out


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("version", ["12", "13"])
@pytest.mark.parametrize("way", ["linked", "opened"])
def test_constructors_run_in_their_turn(tmp_path, way, version, mode):
    """glibc's dlopen of a loaded library runs the constructors that have not run yet, of all that it is linked to."""
    if way == "linked" and harness.SANITIZER in ("address", "thread"):
        pytest.skip("its runtime is made after constructors of what is not linked to it")
    linked = [harness.HAZARDS / f"copies_registry_{version}"]
    opened = [harness.HAZARDS / "copies_open", COPIES / f"registry_work{version}.so"]
    done = as_bare(linked if way == "linked" else opened, tmp_path, **MODES[mode])
    assert done.code == 0 and "  1 in the registry" in done.out, done.out + done.err


@pytest.mark.skipif(harness.SANITIZER == "address", reason="its runtime refuses RTLD_DEEPBIND")
@pytest.mark.parametrize("mode", MODES)
def test_constructor_opens_a_library(tmp_path, mode):
    done = as_bare([harness.HAZARDS / "copies_open", "first", COPIES / "registry_work_opens.so"], tmp_path, **MODES[mode])
    assert done.code == 0 and "  1 in the registry" in done.out, done.out + done.err


SPY = str(COPIES / "libncclspy.so")
PRELOADED = {
    "spy_first": [SPY, "gpuprof"],
    "spy_last": ["gpuprof", SPY],
    "two_files": ["gpuprof", "other gpuprof"],
    "spy_between": ["gpuprof", SPY, "other gpuprof"],
    "spy_before_two": [SPY, "gpuprof", "other gpuprof"],
}
OPENED = {"nothing": [], "the_spy": [SPY], "runtime": [COPIES / "libcudart.so.13"], "nccl": [COPIES / "libnccl.so.2"]}
# A tool's library that is opened, and behind two files of gpuprof, is not found.
PROBED = [(names, opened) for names in PRELOADED for opened in OPENED if (names, opened) != ("two_files", "the_spy")]


def preloading(command, preloaded, folder, mode):
    """As with the tools alone."""
    other = shutil.copy(harness.LIB, folder / "libother.so")
    files = {"gpuprof": harness.LIB, "other gpuprof": str(other)}
    runs = []
    for names in ([name for name in preloaded if name not in files], preloaded):
        env = harness.environment(LD_LIBRARY_PATH=COPIES, GPUPROF_OUTPUT=folder / "out", **MODES[mode])
        env["LD_PRELOAD"] = ":".join(filter(None, [harness.RUNTIME, *[files.get(name, name) for name in names]]))
        runs.append(harness.run(command, env, timeout=20))
    bare, done = runs
    assert (done.code, done.out) == (bare.code, bare.out), done.out + done.err
    return done


@pytest.mark.parametrize("mode", ["off", "on"])
def test_a_tool_behind_is_not_passed_by(tmp_path, mode):
    """The program looks a function up that the tool does not have; what the tool has still comes to it."""
    command = [harness.HAZARDS / "copies_open", "global", RUNTIME13, "look", RUNTIME13, LIBRARY["13"]]
    done = preloading(command, ["gpuprof", SPY], tmp_path, mode)
    assert "  spy: cudaMalloc" in done.out, done.out


@pytest.mark.parametrize("mode", ["off", "on"])
@pytest.mark.parametrize("preloaded, opened", PROBED)
def test_looking_up_what_may_not_be_there(tmp_path, preloaded, opened, mode):
    """Nothing leads back from a tool's function to the hook that called it."""
    preloading([harness.HAZARDS / "copies_probe", *OPENED[opened]], PRELOADED[preloaded], tmp_path, mode)


@pytest.mark.parametrize("mode", MODES)
def test_who_changes_the_drivers_code_finds_it(tmp_path, mode):
    """Led to a hook, UCX gives up its CUDA hooks, and with them its registration cache."""
    done = as_bare([harness.HAZARDS / "copies_open", COPIES / "libucm.so.0"], tmp_path, **MODES[mode])
    assert done.out.count("is in libcuda.so.1") == 4, done.out
