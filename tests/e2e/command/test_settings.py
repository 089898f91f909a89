# SPDX-License-Identifier: Apache-2.0
"""Settings and surroundings that are wrong, or that leave nothing to record: one clear line, the right exit
code, and a program that is none the worse."""
import os
import re
import subprocess

import pytest

import harness

PROGRAM = [harness.HAZARDS / "end", "return"]  # exits 3 after 20 launches
BARE_OUTPUT = "worked\natexit handler\n"

WRONG = [  # variable, value, what the message must hold besides both
    ("GPUPROF_MODE", "fast", "on, armed or off"),
    ("GPUPROF_SCHEDULE", "active=-1", "active"),
    ("GPUPROF_SCHEDULE", "active=ten", "ten"),
    ("GPUPROF_SCHEDULE", "skip_frist=1", "skip_first"),
    ("GPUPROF_SCHEDULE", "active=99999999999999999999", "active"),
    ("GPUPROF_STEP", "optimiser", "manual"),
    ("GPUPROF_STEP", "nvtx:", "nvtx:step"),
    ("GPUPROF_STEP", "sync:0", "sync"),
    ("GPUPROF_STEP", "profiler:2", "profiler (cudaProfilerStart/Stop)"),
    ("GPUPROF_STEP", "nccl:AllReduce:2", "ncclAllReduce"),
    ("GPUPROF_STEP", "kernel:gemm", "kernel:adam:1"),
    ("GPUPROF_STEP", "kernel:gemm(:1", "regular expression"),
    ("GPUPROF_STEP", "graph:none", "graph:1"),
    ("GPUPROF_STEP", "time:-5", "time"),
    ("GPUPROF_PRESET", "heavy", "light, default or full"),
    ("GPUPROF_ACTIVITIES", "+kernels", "kernel"),
    ("GPUPROF_MEMORY", "yes", "0 or 1"),
    ("GPUPROF_WORKERS", "all", "0 or 1"),
    ("GPUPROF_RANKS", "1-", "0,8-15"),
    ("GPUPROF_BUFFER_MB", "0", "1 to 65536"),
    ("GPUPROF_BUFFER_MB", "64M", "1 to 65536"),
    ("GPUPROF_BUDGET", "101", "from 0.1 to 100"),
    ("GPUPROF_LOG", "loud", "debug"),
    ("GPUPROF_OUTPUT", "out-%z", "%"),
    ("GPUPROF_ON_TRACE_READY", "cp '{}", "quote"),
    ("GPUPROF_CONFIG", "/nonexistent/gpuprof.conf", "no such file"),
]


def assert_unharmed(run):
    assert (run.code, run.out) == (3, BARE_OUTPUT), run.err


@pytest.mark.parametrize("variable, value, hint", WRONG)
def test_wrong_value_in_a_preloaded_program(variable, value, hint, tmp_path):
    settings = {"GPUPROF_OUTPUT": tmp_path / "out", **harness.WHOLE_RUN, variable: value}
    run = harness.run(PROGRAM, harness.preloaded(**settings), cwd=tmp_path)
    assert_unharmed(run)
    lines = run.err.splitlines()
    assert len(lines) == 1 and lines[0].startswith("gpuprof:"), run.err
    assert value in lines[0] and hint in lines[0]
    if variable != "GPUPROF_CONFIG":
        assert variable in lines[0]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("variable, value, hint", WRONG)
def test_wrong_value_under_run(variable, value, hint, tmp_path):
    run = harness.gpuprof("run", "--set", f"{variable}={value}", "--", *PROGRAM, cwd=tmp_path)
    assert (run.code, run.out) == (2, "")
    assert len(run.err.splitlines()) == 1
    assert value in run.err and hint in run.err
    assert list(tmp_path.iterdir()) == []


def test_wrong_value_is_silent_where_no_gpu_is_used(tmp_path):
    run = harness.run(["/bin/true"], harness.preloaded(GPUPROF_MODE="fast"), cwd=tmp_path)
    assert (run.code, run.out, run.err) == (0, "", "")


def test_unknown_name_is_warned_of(tmp_path):
    run = harness.run(PROGRAM, harness.preloaded(GPUPROF_OUTPUT=tmp_path / "out", GPUPROF_SCHEDUL="active=1",
                                                 **harness.WHOLE_RUN))
    assert_unharmed(run)
    warnings = [line for line in harness.our_lines(run.err) if "GPUPROF_SCHEDUL " in line]
    assert len(warnings) == 1 and "GPUPROF_SCHEDULE" in warnings[0]
    assert harness.dumps(tmp_path / "out")


@pytest.mark.parametrize("output", ["/proc/gpuprof-out", "/dev/null/out", "{tmp}/file/out"])
def test_unwritable_output(output, tmp_path):
    (tmp_path / "file").write_text("in the way")
    output = output.replace("{tmp}", str(tmp_path))
    run = harness.run(PROGRAM, harness.preloaded(GPUPROF_OUTPUT=output, **harness.WHOLE_RUN))
    assert_unharmed(run)
    lines = run.err.splitlines()
    assert len(lines) == 1 and lines[0].startswith("gpuprof:") and output in lines[0], run.err


def test_files_are_private(tmp_path):
    old = os.umask(0)
    try:
        run = harness.run(PROGRAM, harness.preloaded(GPUPROF_OUTPUT=tmp_path / "out", **harness.WHOLE_RUN))
    finally:
        os.umask(old)
    assert_unharmed(run)
    dump, = harness.dumps(tmp_path / "out")
    assert dump.stat().st_mode & 0o777 == 0o600
    assert dump.parent.stat().st_mode & 0o777 == 0o700
    assert (tmp_path / "out").stat().st_mode & 0o777 == 0o700
    assert (tmp_path / "out" / "latest").resolve() == dump.parent


RANKS = f"""import os, subprocess, sys
sys.path.insert(0, {str(harness.SOURCE / "tests/programs/python")!r})
def work(count):
    import gpu
    for _ in range(count):
        gpu.work()
if sys.argv[1] == "child":
    work(6)
elif sys.argv[1] == "uses no GPU":
    for rank in range(2):
        subprocess.run([sys.executable, __file__, "child"], check=True, env={{**os.environ, "LOCAL_RANK": str(rank)}})
elif sys.argv[1] == "is rank 0 later":
    subprocess.run([sys.executable, __file__, "child"], check=True, env={{**os.environ, "LOCAL_RANK": "1", "NODE_RANK": "0"}})
    work(2)
else:
    work(2)
    subprocess.run(["sh", "-c", '"$0" "$@"; true', sys.executable, __file__, "child"], check=True)
    work(2)
"""


@pytest.mark.parametrize("way", ["is rank 0", "is rank 0 later", "uses no GPU"])
def test_processes_of_one_job_have_one_directory(way, tmp_path):
    """Ranks that another one starts, as Lightning's rank 0 does, and those of a launcher."""
    script = tmp_path / "ranks.py"
    script.write_text(RANKS)
    done = harness.run([harness.PYTHON, script, way], harness.preloaded(GPUPROF_OUTPUT=tmp_path / "out", **harness.WHOLE_RUN))
    assert done.code == 0, done.err
    dumps = harness.dumps(tmp_path / "out")
    assert len(dumps) == 2 and len({dump.parent for dump in dumps}) == 1
    assert (tmp_path / "out/latest").resolve() == dumps[0].parent


DAEMON = f"""import os, sys, time
if os.fork():
    os._exit(0)
os.setsid()
leader = os.getpid()
if os.fork():
    os._exit(0)
while os.getppid() == leader:
    time.sleep(0.001)
sys.path.insert(0, {str(harness.SOURCE / "tests/programs/python")!r})
import gpu
gpu.work()
print(os.getppid(), flush=True)
"""


def folders_of(commands, folder):
    """How many runs the programs are, one after the other."""
    for command in commands:
        out = subprocess.run(command, env=harness.preloaded(GPUPROF_OUTPUT=folder, GPUPROF_SCHEDULE="all"),
                             stdout=subprocess.PIPE, text=True, check=True).stdout
        yield out.strip(), {dump.parent for dump in harness.dumps(folder)}


def test_daemons_are_runs_of_their_own(tmp_path):
    """init is the parent of all daemons of a machine since it was started."""
    # Each ends once its output is closed, which is after its dump is written.
    parents, folders = zip(*folders_of([[harness.PYTHON, "-c", DAEMON]] * 2, tmp_path), strict=True)
    if set(parents) != {"1"}:
        pytest.skip(f"another process takes the children of one that ended: {parents[0]}")
    assert [len(found) for found in folders] == [1, 2]


def test_containers_are_runs_of_their_own(tmp_path):
    """The first process of each has no parent that it can see."""
    contained = ["unshare", "--user", "--map-root-user", "--pid", "--fork", "--mount-proc"]
    if harness.run([*contained, "true"]).code != 0:
        pytest.skip("no user namespaces with processes of their own")
    command = [*contained, harness.PYTHON, "-c", RANKS, "child"]
    found = [len(folders) for _, folders in folders_of([command, ["sleep", "1.1"], command], tmp_path)]
    assert found == [1, 1, 2]


def test_rays_jobs_of_two_clusters_are_runs_of_their_own(tmp_path):
    """The first job of each cluster has the same number. Workers of one node have its raylet in common, and not their parent."""
    raylets = [subprocess.Popen(["sleep", "1000"]) for _ in range(2)]
    try:
        found = []
        for raylet, job in [(0, 1), (0, 1), (0, 2), (1, 1)]:
            env = harness.preloaded(GPUPROF_OUTPUT=tmp_path, RAY_JOB_ID=f"0{job}000000", RAY_RAYLET_PID=raylets[raylet].pid,
                                    **harness.WHOLE_RUN)
            assert_unharmed(harness.run(PROGRAM, env))
            found.append((tmp_path / "latest").resolve().name)
    finally:
        for raylet in raylets:
            raylet.kill()
            raylet.wait()
    assert found[0] == found[1] and len(set(found)) == 3, found
    assert found[2].endswith(f"-{raylets[0].pid}.02000000")


@pytest.mark.parametrize("command", [
    ["/bin/true"],
    ["bash", "-c", "for i in 1 2 3; do /bin/true; done; echo $((6 * 7)) | cat; ls / >/dev/null"],
    [harness.PYTHON, "-c", "import json, threading; print(json.dumps([1]))"],
], ids=["true", "bash", "python"])
def test_asleep_without_a_gpu(command, tmp_path):
    bare = harness.run(command, cwd=tmp_path)
    run = harness.run(command, harness.preloaded(), cwd=tmp_path)
    assert (run.code, run.out, run.err) == (bare.code, bare.out, bare.err)
    assert list(tmp_path.iterdir()) == []


def test_program_that_ends_before_its_window(tmp_path):
    run = harness.run(PROGRAM, harness.preloaded(GPUPROF_OUTPUT=tmp_path / "out", GPUPROF_STEP="sync:1"))
    assert_unharmed(run)
    lines = harness.our_lines(run.err)
    assert len(lines) == 2 and "early window" in lines[0] and "Next: gpuprof report" in lines[1], run.err
    assert "GPUPROF_SCHEDULE" in lines[0] and "skip_first" in lines[0], run.err
    assert [dump.name.endswith("_early0.gpuprof") for dump in harness.dumps(tmp_path / "out")] == [True]


def test_ranks_not_selected(tmp_path):
    settings = {"GPUPROF_OUTPUT": tmp_path / "out", "GPUPROF_RANKS": "0,8-15", "WORLD_SIZE": 16, **harness.WHOLE_RUN}
    run = harness.run(PROGRAM, harness.preloaded(RANK=3, LOCAL_RANK=3, **settings))
    assert_unharmed(run)
    assert run.err == "" and not (tmp_path / "out").exists()
    assert_unharmed(harness.run(PROGRAM, harness.preloaded(RANK=9, LOCAL_RANK=1, **settings)))
    dump, = harness.dumps(tmp_path / "out")
    assert "_r9_" in dump.name


def test_a_process_without_a_rank_is_rank_0(tmp_path):
    """As for the tools. Who did not expect that is told."""
    settings = {"GPUPROF_OUTPUT": tmp_path / "out", **harness.WHOLE_RUN}
    run = harness.run(PROGRAM, harness.preloaded(GPUPROF_RANKS="8-15", **settings))
    assert_unharmed(run)
    assert run.err == ("gpuprof: GPUPROF_RANKS=8-15 leaves this program out: no variable of a launcher tells its rank, so that it is "
                       "rank 0\n") and not (tmp_path / "out").exists()
    assert_unharmed(harness.run(PROGRAM, harness.preloaded(GPUPROF_RANKS="0,8", **settings)))
    assert len(harness.dumps(tmp_path / "out")) == 1


def test_armed_and_the_whole_program_exclude_each_other(tmp_path):
    settings = {"GPUPROF_OUTPUT": tmp_path / "out", "GPUPROF_MODE": "armed", "GPUPROF_SCHEDULE": "all"}
    run = harness.run(PROGRAM, harness.preloaded(**settings))
    assert_unharmed(run)
    line, = run.err.splitlines()
    assert "GPUPROF_SCHEDULE=all" in line and "GPUPROF_MODE=armed" in line and "set one of them" in line
    run = harness.gpuprof("run", "--", *PROGRAM, env=harness.environment(**settings))
    assert (run.code, run.out) == (2, "") and len(run.err.splitlines()) == 1
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("level, said", [("error", 0), ("warn", 0), ("info", 1), (None, 1)])
def test_what_is_said_by_level(level, said, tmp_path):
    """Of a run in which all goes well the closing line; of one in which something is wrong what that is, from `warn` on."""
    settings = {"GPUPROF_OUTPUT": tmp_path / "out", **({"GPUPROF_LOG": level} if level else {}), **harness.WHOLE_RUN}
    run = harness.run(PROGRAM, harness.preloaded(**settings))
    assert_unharmed(run)
    assert len(run.err.splitlines()) == said, run.err
    run = harness.run(PROGRAM, harness.preloaded(GPUPROF_SCRATCH="/nonexistent/folder", **settings))
    assert (len(run.err.splitlines()) > said) == (level != "error"), run.err


@pytest.mark.parametrize("asked, changed, missing", [("launch,nccl", "-api", {"launch": "api"}), ("alloc,sync", "-alloc,-sync", {"alloc": "alloc", "sync": "sync"}),
                                                     ("launch,sync,alloc,nccl", "preset", {}), ("preset", "-api", {})])
def test_stacks_of_calls_that_are_not_recorded(asked, changed, missing, tmp_path):
    run = harness.run(PROGRAM, harness.preloaded(GPUPROF_OUTPUT=tmp_path / "out", GPUPROF_STACKS=asked, GPUPROF_ACTIVITIES=changed,
                                                 **harness.WHOLE_RUN))
    assert_unharmed(run)
    lines = [line for line in run.err.splitlines() if "GPUPROF_STACKS" in line]
    assert len(lines) == len(missing), run.err
    for kind, activity in missing.items():
        assert any(f"no stacks of {kind}: the activity {activity} is not recorded" in line for line in lines), lines


@pytest.mark.parametrize("ranks, speaks", [("9", True), ("9,10", True), ("all", False), ("8-9", False), ("8,10", False)])
def test_the_first_selected_rank_of_a_host_speaks(ranks, speaks, tmp_path):
    """Rank 9 is the second of its host, after rank 8."""
    run = harness.run(PROGRAM, harness.preloaded(GPUPROF_OUTPUT=tmp_path / "out", GPUPROF_RANKS=ranks, WORLD_SIZE=16, RANK=9,
                                                 LOCAL_RANK=1, **harness.WHOLE_RUN))
    assert_unharmed(run)
    assert ("Next: gpuprof report" in run.err) == speaks, run.err


def test_config_file_and_precedence(tmp_path):
    file = tmp_path / "gpuprof.conf"
    file.write_text(f"# a comment\nGPUPROF_OUTPUT={tmp_path / 'from_file'}\nGPUPROF_STEP='sync:1'\nGPUPROF_RUN=r\n"
                    f"GPUPROF_SCHEDULE={harness.WHOLE_RUN['GPUPROF_SCHEDULE']}\n")
    assert_unharmed(harness.run(PROGRAM, harness.preloaded(GPUPROF_CONFIG=file)))
    assert len(harness.dumps(tmp_path / "from_file" / "r")) == 1
    assert_unharmed(harness.run(PROGRAM, harness.preloaded(GPUPROF_CONFIG=file, GPUPROF_OUTPUT=tmp_path / "from_env")))
    assert len(harness.dumps(tmp_path / "from_env" / "r")) == 1


def gpu_records(dump):
    return harness.of_kind(harness.records(dump), "gpu_kernel", "gpu_copy", "gpu_set")


def assert_hooks_only(run, folder, *reason):
    """The calls are there with kernel names, no GPU record is, and the dump says why."""
    assert_unharmed(run)
    dump, = harness.dumps(folder)
    launches = harness.of_kind(harness.records(dump), "launch")
    assert len(launches) == 20
    assert all("hazard_kernel" in str(launch) for launch in launches)
    assert gpu_records(dump) == []
    why = harness.info(dump)["files"][0]["gpu_times_missing"]
    assert why and all(word in why for word in reason), why


def test_cupti_turned_off(tmp_path):
    run = harness.run(PROGRAM, harness.preloaded(GPUPROF_OUTPUT=tmp_path, GPUPROF_CUPTI="off", **harness.WHOLE_RUN))
    assert_hooks_only(run, tmp_path, "GPUPROF_CUPTI")


def test_no_cupti_on_the_machine(tmp_path):
    run = harness.run(PROGRAM, harness.preloaded(
        GPUPROF_OUTPUT=tmp_path, LD_LIBRARY_PATH=harness.SIMCUDA + "_nocupti", **harness.WHOLE_RUN))
    assert_hooks_only(run, tmp_path, "upti")


def test_cupti_taken_by_another_tool(tmp_path):
    run = harness.run(PROGRAM, harness.preloaded(GPUPROF_OUTPUT=tmp_path, SIMCUDA_CUPTI="subscriber_taken",
                                                 **harness.WHOLE_RUN))
    assert_hooks_only(run, tmp_path)


def test_cupti_drops_are_counted(tmp_path):
    run = harness.run(PROGRAM, harness.preloaded(GPUPROF_OUTPUT=tmp_path, SIMCUDA_CUPTI="drop=2",
                                                 **harness.WHOLE_RUN))
    assert_unharmed(run)
    dump, = harness.dumps(tmp_path)
    lost = harness.info(dump)["losses"]
    assert lost.get("cupti_dropped", 0) > 0
    assert len(harness.of_kind(harness.records(dump), "gpu_kernel")) < 20


def test_zero_gpu_timestamps_are_flagged(tmp_path):
    run = harness.run(PROGRAM, harness.preloaded(GPUPROF_OUTPUT=tmp_path, SIMCUDA_CUPTI="zero_ts=2",
                                                 **harness.WHOLE_RUN))
    assert_unharmed(run)
    dump, = harness.dumps(tmp_path)
    assert harness.info(dump)["losses"].get("bad_timestamp", 0) > 0


def test_the_page_lists_the_settings_in_their_order():
    printed = re.findall(r"^(GPUPROF_[A-Z_]+) = ", harness.checked("config").out, re.M)
    listed = re.findall(r"^\| `(GPUPROF_[A-Z_]+)`", (harness.SOURCE / "docs/SETTINGS.md").read_text(), re.M)
    assert len(printed) > 5 and listed == printed


# gpuprof itself on what is no dump.
@pytest.mark.parametrize("content", [b"", b"hello\n", os.urandom(4096), b"\0" * 100000, b"{}"],
                         ids=["empty", "text", "random", "zeros", "json"])
@pytest.mark.parametrize("command", [["info"], ["parse"], ["convert", "--to", "chrome"]], ids=lambda c: c[0])
def test_not_a_dump(command, content, tmp_path):
    file = tmp_path / "bad.gpuprof"
    file.write_bytes(content)
    run = harness.gpuprof(*command, file, cwd=tmp_path)
    assert run.code == 2
    assert len(run.err.splitlines()) == 1 and str(file) in run.err, run.err
    assert [p.name for p in tmp_path.iterdir()] == ["bad.gpuprof"]


def test_missing_input(tmp_path):
    for command in (["info"], ["parse"], ["convert", "--to", "perfetto"]):
        run = harness.gpuprof(*command, tmp_path / "nothing.gpuprof", cwd=tmp_path)
        assert run.code == 2 and len(run.err.splitlines()) == 1 and "nothing.gpuprof" in run.err


def test_truncated_dump_loses_only_its_tail(tmp_path):
    run = harness.run(PROGRAM, harness.preloaded(GPUPROF_OUTPUT=tmp_path / "out", **harness.WHOLE_RUN))
    assert_unharmed(run)
    dump, = harness.dumps(tmp_path / "out")
    whole = dump.read_bytes()
    cut = tmp_path / "cut.gpuprof"
    most = 0
    for share in range(0, 100, 7):
        cut.write_bytes(whole[:len(whole) * share // 100])
        run = harness.gpuprof("parse", "--format", "json", cut)
        assert run.code in (0, 2) and len(harness.our_lines(run.err)) <= 1
        count = len(run.out.splitlines()) if run.code == 0 else 0
        assert count >= most, "a longer piece gave fewer records"
        most = count
