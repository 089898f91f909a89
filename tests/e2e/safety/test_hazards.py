# SPDX-License-Identifier: Apache-2.0
"""Each hazard program ends the same way and prints the same with and without the library, whatever the
schedule, and what it did on the GPU is in its dump."""
import dataclasses
import re
import signal

import pytest

import harness
import truth

ANY = None  # as many launches as the clock allowed
DEFAULT_SCHEDULE = {}
OFF = {"GPUPROF_MODE": "off"}


@dataclasses.dataclass
class Hazard:
    program: str
    case: str = ""
    launches: tuple = ()  # of each process that used the GPU, in any order
    killed: bool = False  # the dump is what the kernel kept of a process that could not write one
    lossy: bool = False   # no dump can be asked for: no room, no descriptor, no memory

    def command(self):
        return [harness.HAZARDS / self.program] + ([self.case] if self.case else [])

    def __str__(self):
        return f"{self.program}-{self.case}".rstrip("-")


HAZARDS = [
    Hazard("end", "return", (20,)),
    Hazard("end", "exit", (20,)),
    Hazard("end", "exit_unsynced", (27,)),
    Hazard("end", "_exit", (20,)),
    Hazard("end", "_Exit", (20,)),
    Hazard("end", "quick_exit", (20,)),
    Hazard("end", "abort", (20,), killed=True),
    Hazard("end", "sigterm", (20,), killed=True),
    Hazard("end", "sigkill", (20,), killed=True),
    Hazard("end", "segv", (20,), killed=True),
    Hazard("end", "exit_in_handler", (20,)),
    Hazard("end", "exit_from_thread", (20,)),
    Hazard("end", "main_thread_first", (22,)),
    Hazard("end", "raw_exit", (20,)),
    Hazard("end", "raw_exit_outlived", (20,)),
    Hazard("end", "while_others_launch", ANY),
    # Its exit handler runs after ours, when CUDA itself may be gone: not recorded, and not harmed.
    Hazard("end", "work_in_atexit", (20,)),
    Hazard("process", "fork", (20,)),
    Hazard("process", "fork_gpu", (20,)),
    Hazard("process", "fork_first", (6,)),
    Hazard("process", "fork_exit", (15,)),
    Hazard("process", "fork_levels", (1, 2, 3)),
    Hazard("process", "fork_many", (5,)),
    Hazard("process", "fork_files", (20,)),
    Hazard("process", "fork_threads", ANY),
    Hazard("process", "vfork", (20,)),
    Hazard("process", "posix_spawn", (20,)),
    Hazard("process", "system", (20,)),
    Hazard("process", "wait_any", (20,)),
    Hazard("process", "daemon", (6,)),
    Hazard("exec", "shell", (15,)),
    Hazard("exec", "at", (15,)),
    Hazard("exec", "self", (6, 15)),
    Hazard("exec", "fails", (30,)),
    Hazard("exec", "environment", (15,)),
    Hazard("exec", "thread", (15,)),
    Hazard("signals", "handler", (20,)),
    Hazard("signals", "read", (10,)),
    Hazard("signals", "quiet", (10,)),
    Hazard("signals", "storm", (2000,)),
    Hazard("signals", "state", (20,)),
    Hazard("signals", "sigchld", (40,)),
    Hazard("signals", "sigterm_exit", (20,)),
    Hazard("signals", "sigwait", (20,)),
    Hazard("signals", "small_alternate_stack", (20,)),
    Hazard("threads", "many", (3001,)),
    Hazard("threads", "detached", (41,)),
    Hazard("threads", "small_stack", (61,)),
    Hazard("threads", "big_stack", (4,)),
    # 2 launches, the thread_local's destructor, and the key's three times; then hazard_steps' own
    Hazard("threads", "tls_destructor", (61,)),
    Hazard("threads", "cancel", (41,)),
    Hazard("threads", "first_call", (80,)),
    Hazard("threads", "one_by_one", (80,)),
    Hazard("cancelled", "_exit", (6,)),
    Hazard("cancelled", "exit", (6,)),
    Hazard("cancelled", "quick_exit", (6,)),
    Hazard("cancelled", "exec", (6,)),
    Hazard("cancelled", "start", (10,)),
    Hazard("elsewhere", "_exit"),
    Hazard("elsewhere", "exec"),
    Hazard("elsewhere", "vfork"),
    Hazard("elsewhere", "handler"),
    # The thread that writes the dump may wait for the loader, and is given 10 s.
    Hazard("elsewhere", "recorded", lossy=True),
    Hazard("chosen", "", (10,)),
    Hazard("own_functions"),
    Hazard("own_walk", "", (10,)),
    Hazard("unwinding", "exceptions", (1051,)),
    Hazard("unwinding", "uncaught", (10,), killed=True),
    Hazard("unwinding", "longjmp", (1001,)),
    Hazard("early_late", "", (12,)),
    Hazard("next", "", (10,)),
    Hazard("environment", "unchanged", (20,)),
    Hazard("environment", "changed", (21,)),
    Hazard("environment", "threads", (20,)),
    Hazard("resources", "closed_standard", (40,)),
    Hazard("resources", "close_all", (530,)),
    Hazard("resources", "few_descriptors", lossy=True),
    Hazard("resources", "small_files", lossy=True),
    Hazard("resources", "small_files_later", lossy=True),
    Hazard("resources", "little_memory", lossy=True),
    Hazard("resources", "no_mappings_later", lossy=True),
    Hazard("resources", "no_processes", lossy=True),
    Hazard("resources", "unwritable_folder", (20,)),
    Hazard("resources", "chdir", (20,)),
    Hazard("resources", "umask", (20,)),
    Hazard("dynamic", "local", (10,)),
    Hazard("dynamic", "lazy", (10,)),
    Hazard("dynamic", "global", (10,)),
    Hazard("dynamic", "deepbind", (10,)),
    Hazard("dynamic", "repeat", (40,)),
    Hazard("dynamic", "semantics"),
]


def visible(text):
    """What the program printed, less the settings that this test itself put into its environment."""
    return [line for line in text.splitlines() if not line.startswith(("LD_PRELOAD=", "GPUPROF_"))]


@pytest.fixture(scope="module")
def bare_runs():
    """How each program runs without us, run once."""
    known = {}

    def get(hazard):
        if str(hazard) not in known:
            known[str(hazard)] = harness.run(hazard.command())
        return known[str(hazard)]

    return get


def launches_of(folder):
    """Launches of each process that left dumps in `folder`. After exec it counts as another process."""
    by_process = {}
    for process in harness.info(folder)["files"]:
        name = re.sub(r"(_w[0-9]+)?\.gpuprof(\.part|\.ring)?$", "", process["path"])
        by_process[name] = by_process.get(name, 0) + process["events"].get("launch", 0)
    return tuple(sorted(count for count in by_process.values() if count))


def assert_same(profiled, bare):
    assert profiled.code == bare.code, f"stderr:\n{profiled.err}"
    assert visible(profiled.out) == visible(bare.out)


if harness.SANITIZER:  # its code takes more of a stack
    HAZARDS = [hazard for hazard in HAZARDS if hazard.case != "small_alternate_stack"]
    # Its runtime has a getenv of its own, which is not ready either.
    HAZARDS = [hazard for hazard in HAZARDS if hazard.program != "chosen"]
if harness.SANITIZER == "address":  # its runtime refuses RTLD_DEEPBIND
    HAZARDS = [hazard for hazard in HAZARDS if hazard.case != "deepbind" and hazard.program != "own_functions"]


@pytest.mark.parametrize("hazard", HAZARDS, ids=str)
def test_recorded_whole(hazard, bare_runs, tmp_path):
    bare = bare_runs(hazard)
    profiled = harness.run(hazard.command(), harness.preloaded(
        GPUPROF_OUTPUT=tmp_path / "out", GPUPROF_RUN="run", GPUPROF_PRESET="full", **harness.WHOLE_RUN),
        timeout=30)
    assert_same(profiled, bare)
    if hazard.lossy or hazard.launches == ():
        return
    found = launches_of(tmp_path / "out")
    if hazard.launches is ANY:
        assert found and min(found) > 0
    else:
        assert found == tuple(sorted(hazard.launches)), profiled.err
    left = [p for p in harness.dumps(tmp_path / "out") if p.suffix != ".gpuprof"]
    assert bool(left) == (hazard.killed and bool(hazard.launches)), f"left behind: {left}"


@pytest.mark.parametrize("hazard", HAZARDS, ids=str)
def test_before_the_window(hazard, bare_runs, tmp_path):
    profiled = harness.run(hazard.command(), harness.preloaded(GPUPROF_OUTPUT=tmp_path / "out"), timeout=30)
    assert_same(profiled, bare_runs(hazard))


@pytest.mark.parametrize("hazard", HAZARDS, ids=str)
def test_off(hazard, bare_runs, tmp_path):
    profiled = harness.run(hazard.command(), harness.preloaded(GPUPROF_OUTPUT=tmp_path / "out", GPUPROF_MODE="off"), timeout=30)
    assert_same(profiled, bare_runs(hazard))
    assert not (tmp_path / "out").exists()
    assert not harness.our_lines(profiled.err)


@pytest.mark.parametrize("library, lines", [
    ("hazard_hooks", ["42", "another dlopen", "opened: yes", "8 MiB: error 0", "another _exit"]),
    ("hazard_hooks_old", ["42", "another dlopen", "opened: yes", "8 MiB: error 0", "another _exit"]),
    ("hazard_quota", ["no answer", "opened: yes", "quota refuses", "8 MiB: error 2"]),
])
@pytest.mark.parametrize("order", ["before", "after"])
@pytest.mark.skipif(harness.SANITIZER == "address", reason="its runtime must be the first library")
def test_functions_of_another_preloaded_library_run(order, library, lines, tmp_path):
    """Of getenv, dlopen, _exit, and of cudaMalloc beside dlsym, which both have, that one's run as they do without us."""
    other = str(harness.HAZARDS / f"lib{library}.so")
    env = harness.preloaded(GPUPROF_OUTPUT=tmp_path / "out", **harness.WHOLE_RUN)
    both = [other, env["LD_PRELOAD"]] if order == "before" else [env["LD_PRELOAD"], other]
    env["LD_PRELOAD"] = ":".join(both)
    bare = harness.run([harness.HAZARDS / "hooked"], {"LD_PRELOAD": other})
    assert visible(bare.out) == lines
    assert_same(harness.run([harness.HAZARDS / "hooked"], env), bare)
    assert launches_of(tmp_path / "out") == (10,)


# The programs hold what they promise without us: else the comparisons above compare nothing.
@pytest.mark.parametrize("case, code, line", [
    ("end return", 3, "atexit handler"),
    ("end _exit", 5, "worked"),
    ("end quick_exit", 7, "at_quick_exit handler"),
    ("end sigterm", -signal.SIGTERM, "worked"),
    ("end sigkill", -signal.SIGKILL, "worked"),
    ("end abort", -signal.SIGABRT, "worked"),
    ("end segv", -signal.SIGSEGV, "worked"),
    ("end exit_from_thread", 9, "atexit handler"),
    ("process wait_any", 0, "then none: -1, errno 10"),
    ("process fork_levels", 0, "level: exit 3"),
    ("process daemon", 0, "daemon: done"),
    ("exec shell", 3, "from sh"),
    ("exec fails", 5, "exec failed with errno 2"),
    ("signals quiet", 0, "undisturbed waits: 12"),
    ("signals read", 0, "read: -1, errno 4, signals 1"),
    ("unwinding exceptions", 0, "caught 100, the last from the library"),
    ("resources closed_standard", 20, None),
    ("resources close_all", 0, "files intact: 60 of 60, closed or changed: 0"),
    ("next", 0, "value 42"),
    ("early_late", 0, "freed in a destructor: 0"),
])
def test_programs_do_what_they_say(case, code, line, bare_runs):
    program, _, name = case.partition(" ")
    bare = bare_runs(Hazard(program, name))
    assert bare.code == code, bare.err
    assert line is None or line in bare.out.splitlines()


def test_threads_wait_for_a_session_that_is_slow_to_start(tmp_path):
    """16 threads make the first call at once; one starts the session, for three seconds, and no other loses a call."""
    env = harness.preloaded(GPUPROF_OUTPUT=tmp_path / "out", GPUPROF_RUN="run", **harness.WHOLE_RUN)
    env["LD_PRELOAD"] += f":{harness.HAZARDS / 'libslow_start.so'}"
    done = harness.run([harness.HAZARDS / "threads", "first_call"], env)
    assert done.code == 0 and "another thread" not in done.err, done.err
    assert launches_of(tmp_path / "out") == (80,)


def test_threads_wait_for_the_first_window_to_open(tmp_path):
    """The same where the session's start is quick and CUPTI, for the window that begins with it, is not."""
    env = harness.preloaded(GPUPROF_OUTPUT=tmp_path / "out", GPUPROF_RUN="run", SIMCUDA_CUPTI="subscribe_ms=700", **harness.WHOLE_RUN)
    done = harness.run([harness.HAZARDS / "threads", "one_by_one"], env)
    assert done.code == 0 and "another thread" not in done.err, done.err
    assert launches_of(tmp_path / "out") == (80,)


def test_threads_do_not_wait_for_ever_for_a_window(tmp_path):
    """CUPTI may wait for what a waiting thread holds: the window comes late then, but it comes."""
    env = harness.preloaded(GPUPROF_OUTPUT=tmp_path / "out", GPUPROF_RUN="run", SIMCUDA_CUPTI="subscribe_ms=2500",
                            SIMCUDA_TRUTH=tmp_path / "truth", **harness.WHOLE_RUN)
    done = harness.run([harness.HAZARDS / "threads", "one_by_one"], env)
    assert done.code == 0
    assert "gpuprof: another thread has been opening the first window for 2 s; calls made meanwhile are not recorded" in done.err
    assert 0 < launches_of(tmp_path / "out")[0] < 80
    # The window begins when it holds the calls of all threads, and not with the program.
    dump, = harness.dumps(tmp_path / "out")
    comparison = truth.Comparison(dump, tmp_path / "truth", by_clock=True, gpu=False)
    assert comparison.problems == [] and comparison.counts["launch"] > 0


@pytest.mark.skipif(bool(harness.SANITIZER), reason="a sanitizer's runtime allocates")
def test_a_program_without_cuda_costs_no_allocation():
    program = [harness.HAZARDS / "allocations"]
    bare, seen = harness.run(program), harness.run(program, harness.preloaded())
    assert bare.out == "0 allocations, error: none\n"
    assert (seen.code, seen.out, seen.err) == (bare.code, bare.out, bare.err)
