# SPDX-License-Identifier: Apache-2.0
"""Runs programs bare and profiled, each under a time limit of its own, and keeps the rows of the table."""
import dataclasses
import functools
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

from figures import Dump

HERE = pathlib.Path(__file__).resolve().parent
PROGRAMS = HERE / "programs"

# The window is open from the first call to the last; each device synchronization is a step.
WHOLE_RUN = {"GPUPROF_STEP": "sync:1",
             "GPUPROF_SCHEDULE": "skip_first=0,wait=0,warmup=0,active=1000000,repeat=1,max_s=0,max_mb=0"}


class Skipped(Exception):
    """A part, or a case of it, cannot run here; the text says why."""


class Failed(Exception):
    pass


@dataclasses.dataclass
class Done:
    code: int  # exit code, minus the signal, or None when the time was up
    out: str
    err: str

    def result(self):
        """The JSON line that the program printed last."""
        return json.loads(self.out.strip().splitlines()[-1])

    def why(self):
        lines = [line for line in self.err.strip().splitlines() if line] or ["nothing on standard error"]
        return f"exit {self.code}: {lines[-1][:300]}" if self.code is not None else "its time was up"


class Lab:
    def __init__(self, prebuilt, out, seconds):
        self.out = out
        self.deadline = time.monotonic() + seconds
        self.rows = []
        self.added = lambda: None  # called after each row
        self.part = ""
        self.prebuilt = prebuilt
        self.gpuprof, self.library = self._find(prebuilt)
        self.built = out / "built"
        self.built.mkdir(parents=True, exist_ok=True)

    @staticmethod
    def _find(folder):
        for command, library in (("gpuprof", "libgpuprof.so"), ("tools/gpuprof", "preload/libgpuprof.so")):
            if os.access(folder / command, os.X_OK) and (folder / library).exists():
                return folder / command, folder / library
        raise SystemExit(f"tests/gpu/run.sh: no gpuprof and libgpuprof.so in {folder}")

    # -- the table -----------------------------------------------------------------------------------

    def add(self, case, verdict, text="", **numbers):
        self.rows.append({"part": self.part, "case": case, "verdict": verdict, "text": text, "numbers": numbers})
        self.added()
        print(f"{self.part:12} {case:24} {verdict:8} {text}", flush=True)

    # -- programs ------------------------------------------------------------------------------------

    def left(self):
        return self.deadline - time.monotonic()

    def run(self, command, env=None, limit=60):
        """Never longer than `limit` seconds, nor than the whole test has left."""
        limit = min(limit, self.left())
        if limit < 1:
            return Done(None, "", "")
        clean = {k: v for k, v in os.environ.items() if not k.startswith(("GPUPROF_", "CUDA_INJECTION", "NVTX_INJECTION"))
                 and k != "LD_PRELOAD"}
        clean["PYTHONUNBUFFERED"] = "1"
        if command[0] != sys.executable:  # Python's packages know where their own libraries are
            clean["LD_LIBRARY_PATH"] = os.pathsep.join(filter(None, [clean.get("LD_LIBRARY_PATH"), *runtime_folders()]))
        process = subprocess.Popen([str(c) for c in command], env={**clean, **(env or {})}, cwd=self.out, text=True,
                                   errors="replace", stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, start_new_session=True)
        try:
            out, err = process.communicate(timeout=limit)
            return Done(process.returncode, out, err)
        except subprocess.TimeoutExpired:
            stacks = stacks_of(process.pid)
            os.killpg(process.pid, signal.SIGKILL)
            out, err = process.communicate()
            return Done(None, out, err + stacks)

    def settings(self, folder, how="preload", **settings):
        """The environment of a profiled program whose dumps go to `folder`."""
        env = {"GPUPROF_OUTPUT": str(folder), "GPUPROF_RUN": "run", "GPUPROF_LOG": "info"}
        if how in ("preload", "both"):
            env["LD_PRELOAD"] = str(self.library)
        if how in ("injection", "both"):
            env["CUDA_INJECTION64_PATH"] = env["NVTX_INJECTION64_PATH"] = str(self.library)
        return {**env, **settings}

    def folder(self, case):
        folder = self.out / "dumps" / f"{self.part}-{case}"
        shutil.rmtree(folder, ignore_errors=True)
        return folder

    def profiled(self, case, command, env, limit):
        """The outcome of a program that ends well, or Failed; what it said lies beside the dumps either way."""
        done = self.run(command, env, limit)
        (self.out / "dumps").mkdir(exist_ok=True)
        (self.out / "dumps" / f"{self.part}-{case}.stderr").write_text(done.err)
        if done.code != 0:
            raise Failed(done.why())
        return done

    def profile(self, case, command, how="preload", limit=60, **settings):
        """The program's outcome and its dump. Raises Failed where either is missing."""
        folder = self.folder(case)
        done = self.profiled(case, command, self.settings(folder, how, **settings), limit)
        return done, self.dump_in(folder, done)

    def windows(self, case, command, limit=60, **settings):
        """The program's outcome and the dumps of all its windows."""
        folder = self.folder(case)
        done = self.profiled(case, command, self.settings(folder, **settings), limit)
        return done, [self.parsed(dump) for dump in sorted(folder.rglob("*.gpuprof"))]

    def dump_in(self, folder, done):
        dumps = sorted(folder.rglob("*.gpuprof"))
        if not dumps:
            said = [line for line in done.err.splitlines() if line.startswith("gpuprof:")]
            raise Failed(f"no dump: {said[-1] if said else 'and gpuprof said nothing'}")
        return self.parsed(dumps[0])

    def parsed(self, dump):
        parsed = self.run([self.gpuprof, "parse", "--format", "json", dump], limit=90)
        if parsed.code != 0:
            raise Failed(f"gpuprof parse: {parsed.why()}")
        return Dump(parsed.out.splitlines())

    def convert(self, case):
        """A trace beside the dump, to look at."""
        folder = self.out / "dumps" / f"{self.part}-{case}"
        done = self.run([self.gpuprof, "convert", folder, "--to", "perfetto", "-o", folder / "trace.perfetto-trace"])
        if done.code != 0:
            raise Failed(f"gpuprof convert: {done.why()}")

    def cases(self, cases):
        """Runs (name, function) pairs; one that fails does not stop the others."""
        for name, function in cases:
            if self.left() < 5:
                self.add(name, "skipped", "the time of the whole test was up")
                continue
            try:
                function()
            except Skipped as reason:
                self.add(name, "skipped", str(reason))
            except Failed as reason:
                self.add(name, "FAILED", str(reason))
            except Exception as error:  # a defect of the test itself is not to stop the other cases
                self.add(name, "FAILED", f"{type(error).__name__}: {error}")


def stacks_of(pid):
    """Stacks of a program that does not end, where a debugger is here."""
    debugger = shutil.which("gdb") or shutil.which("cuda-gdb") or shutil.which("cuda-gdb", path="/usr/local/cuda/bin")
    if not debugger:
        return ""
    command = [debugger, "-p", str(pid), "-batch", "-ex", "thread apply all bt 30"]
    try:
        return subprocess.run(command, text=True, errors="replace", stdin=subprocess.DEVNULL, capture_output=True, timeout=30).stdout
    except subprocess.TimeoutExpired:
        return ""


def toolkit():
    """The CUDA toolkit's folder, or None."""
    nvcc = shutil.which("nvcc") or shutil.which("nvcc", path="/usr/local/cuda/bin")
    return pathlib.Path(nvcc).resolve().parent.parent if nvcc else None


@functools.lru_cache(maxsize=None)
def runtime_folders():
    """Where libcudart and libcupti lie for the native programs: in the toolkit, else in Python's packages."""
    root = toolkit()
    folders = [root / "lib64", root / "lib", root / "extras/CUPTI/lib64"] if root else []
    folders += [pathlib.Path(p) / "nvidia" / part / "lib" for p in sys.path for part in ("cu13", "cuda_runtime", "cuda_cupti")]
    return [str(folder) for folder in folders if list(folder.glob("libcudart.so*")) + list(folder.glob("libcupti.so*"))]
