# SPDX-License-Identifier: Apache-2.0
"""What the end-to-end tests share: where this build's things are, and how to run a program bare, under
the preloaded library, or under `gpuprof run`, and read its dumps back."""
import contextlib
import dataclasses
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("GPUPROF_TEST_BUILD", SOURCE / "build"))
BIN = os.environ.get("GPUPROF_BIN", str(BUILD / "tools/gpuprof"))
LIB = os.environ.get("GPUPROF_LIB", str(BUILD / "preload/libgpuprof.so"))
SIMCUDA = os.environ.get("GPUPROF_SIMCUDA", str(BUILD / "simcuda/lib"))  # beside it: lib_nocupti
HAZARDS = BUILD / "tests/programs/hazards"
SIMTRAIN = os.environ.get("GPUPROF_SIMTRAIN", str(BUILD / "tests/programs/simtrain/simtrain"))
SANITIZER = os.environ.get("GPUPROF_TEST_SANITIZER", "")
RUNTIME = os.environ.get("GPUPROF_TEST_RUNTIME", "")  # a sanitizer's, to be preloaded
PYTHON = sys.executable
SOMEBODY = 54321  # the number of a user who is neither root nor the one who runs the tests

# The window is open from the first call to the last; each cudaDeviceSynchronize is a step.
WHOLE_RUN = {
    "GPUPROF_STEP": "sync:1",
    "GPUPROF_SCHEDULE": "skip_first=0,wait=0,warmup=0,active=1000000,repeat=1,max_s=0,max_mb=0",
}


@dataclasses.dataclass
class Run:
    code: int  # exit code, or minus the signal
    out: str
    err: str


def environment(**settings):
    """This process's, without gpuprof's and the simulator's settings, plus `settings`."""
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("GPUPROF_", "SIMCUDA_", "LD_", "PYTEST_"))}
    clean["LD_LIBRARY_PATH"] = SIMCUDA
    if RUNTIME:
        clean["LD_PRELOAD"] = RUNTIME
        clean["ASAN_OPTIONS"] = "detect_leaks=0:handle_segv=0:handle_abort=0:verify_asan_link_order=0"
        clean["TSAN_OPTIONS"] = "report_bugs=0:handle_segv=0:handle_abort=0"
    clean.update({k: str(v) for k, v in settings.items()})
    return clean


def preloaded(**settings):
    """environment() with the library preloaded."""
    result = environment(**settings)
    result["LD_PRELOAD"] = ":".join(filter(None, [RUNTIME, LIB]))
    return result


def run(command, env=None, cwd=None, timeout=120):
    """How the command went. One that stands still fails with the stacks of its threads, where gdb is."""
    with subprocess.Popen([str(c) for c in command], env=env or environment(), cwd=cwd, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        try:
            out, err = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            print(stacks_of(process.pid))
            process.kill()
            raise
        except BaseException:
            process.kill()
            raise
    return Run(process.returncode, out.decode(errors="replace"), err.decode(errors="replace"))


def run_within(wrapper, command, env, **options):
    """run() of a command that `wrapper` starts, which is not preloaded itself. Without a wrapper run() as it is."""
    if not wrapper:
        return run(command, env, **options)
    bare = {name: value for name, value in env.items() if name != "LD_PRELOAD"}
    return run([*wrapper, "env", f"LD_PRELOAD={env['LD_PRELOAD']}", *command], bare, **options)


def with_mounts(commands):
    """A wrapper whose program sees what these commands of the shell mount; None where namespaces are not to be had."""
    wrapper = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", f'{commands} && exec "$@"', "sh"]
    return None if subprocess.run([*wrapper, "true"], capture_output=True, check=False).returncode else wrapper


@contextlib.contextmanager
def ahead_of_other_tests():
    """What is started meanwhile gets a processor before what other tests start, where this user may ask for that: for programs
    whose shares of time are looked at."""
    before = os.getpriority(os.PRIO_PROCESS, 0)
    with contextlib.suppress(PermissionError):
        os.setpriority(os.PRIO_PROCESS, 0, -10)
    try:
        yield
    finally:
        os.setpriority(os.PRIO_PROCESS, 0, before)


def can_give_files_to_somebody():
    """As root, unless its user namespace has no second user: chown(2) answers EINVAL there."""
    with tempfile.NamedTemporaryFile() as file:
        try:
            os.chown(file.name, SOMEBODY, SOMEBODY)
        except OSError:
            return False
    return True


def stacks_of(pid):
    if not shutil.which("gdb"):
        return "its stacks are not known: there is no gdb"
    own = {k: v for k, v in os.environ.items() if not k.startswith("LD_")}
    looked = subprocess.run(["gdb", "-q", "-batch", "-p", str(pid), "-ex", "thread apply all bt 20"], env=own,
                            stdin=subprocess.DEVNULL, capture_output=True, timeout=60)
    return "\n".join(line for line in looked.stdout.decode(errors="replace").splitlines() if line.startswith(("Thread", "#")))


def binutils(tool, *arguments):
    """What readelf or nm say, in English; standard error after standard output."""
    done = run([tool, *arguments], env=environment(LC_ALL="C"))
    return done.out + done.err


def gpuprof(*arguments, env=None, cwd=None, timeout=300):
    return run([BIN, *arguments], env=env, cwd=cwd, timeout=timeout)


# Root may read and write everywhere; without these rights it may not.
BOUND_BY_MODES = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"] if os.geteuid() == 0 else []


def checked(*arguments, **options):
    """gpuprof(), which must succeed."""
    done = gpuprof(*arguments, **options)
    assert done.code == 0, f"gpuprof {' '.join(map(str, arguments))}: exit {done.code}\n{done.err}"
    return done


def dumps(folder):
    """Dumps and what killed processes left, below `folder`, without what `latest` links to."""
    found = []
    for path, _, names in os.walk(folder):
        found += [pathlib.Path(path) / n for n in names if n.endswith((".gpuprof", ".gpuprof.part", ".gpuprof.ring"))]
    return sorted(found)


def info(*paths):
    return json.loads(checked("info", "--format", "json", *paths).out)


def steady_run(record, tries=5):
    """The folder of a run in which no step stands out, else of that in which one does least: where the machine holds a program
    up for longer than a step takes, the mean of its steps says nothing of the program. `record(number)` returns the folder."""
    found = []
    for number in range(tries):
        with ahead_of_other_tests():
            folder = record(number)
        lengths = [step["duration_us"] for step in json.loads(checked("report", "--format", "json", folder).out)["steps"]]
        found.append((max(lengths) / statistics.median(lengths), folder))
        if found[-1][0] < 1.5:
            break
    return min(found)[1]


def records(path):
    """Every record of one dump, as `gpuprof parse --format json` gives them: one JSON object a line."""
    return [json.loads(line) for line in checked("parse", "--format", "json", path).out.splitlines()]


def of_kind(found, *kinds):
    return [record for record in found if record.get("kind") in kinds]


def our_lines(text):
    """What the library says, but for how long CUPTI took, which a busy machine makes worth a line."""
    return [line for line in text.splitlines() if line.startswith("gpuprof:") and "attaching CUPTI took" not in line]
