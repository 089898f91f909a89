# SPDX-License-Identifier: Apache-2.0
"""Native stacks: tests/programs/chain makes calls of each kind from functions whose names are known, through
a library and inlined code, and `gpuprof parse` names them."""
import re

import harness

STACKS = {  # API: functions of the program around it, innermost first
    "cudaMalloc": ["allocate", "train_step", "main"],
    "cudaLaunchKernel": ["hazard_launch", "launch_kernel", "inlined_layer", "forward", "forward", "forward",
                         "train_step", "main"],
    "ncclAllReduce": ["reduce_gradients", "call_back", "chain_through_library", "train_step", "main"],
    "cudaDeviceSynchronize": ["wait_for_gpu", "train_step", "main"],
}
SETTINGS = {"launch": "cudaLaunchKernel", "sync": "cudaDeviceSynchronize", "alloc": "cudaMalloc", "nccl": "ncclAllReduce"}


def profile(folder, rounds, *arguments, stacks="launch,sync,alloc,nccl", code=0, **settings):
    env = harness.preloaded(GPUPROF_OUTPUT=folder / "out", GPUPROF_STACKS=stacks, **harness.WHOLE_RUN, **settings)
    done = harness.run([harness.HAZARDS / "chain", rounds, *arguments], env)
    assert done.code == code, done.err
    dump = next(p for p in harness.dumps(folder / "out"))
    return harness.records(dump), done


def functions(stack):
    """The plain names of a stack's functions down to main."""
    names = [re.sub(r".*::", "", re.sub(r" \[clone.*", "", re.sub(r"(\(.*| \(.*)", "", line.replace("(anonymous namespace)::", "")))) for line in stack]
    return names[:names.index("main") + 1]


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
    assert not any("stack" in r for r in records if r.get("name") in ("cudaFree", "ncclCommDestroy"))
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
