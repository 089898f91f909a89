# SPDX-License-Identifier: Apache-2.0
"""A machine without a GPU, and NVIDIA's own libcupti of several releases: a program that gpuprof records ends as without
it, its dump says why there are no GPU times, and `gpuprof doctor` knows the library. Once without a driver, and once with
the stub of CUDA's toolkit in its place, which refuses every call, where there is one.

    cupti_without_driver.py [CACHE]    exit 0 all is so, 1 something is not, 77 the wheels or the compiler cannot be had"""
import glob
import pathlib
import shutil
import subprocess
import sys
import tempfile

import cupti_layout

sys.path.insert(0, str(cupti_layout.SOURCE / "tests/e2e"))
import harness  # noqa: E402

# Steps of NVTX alone. With an argument a library is opened, as a framework opens the driver.
PROGRAM = r"""
#include <dlfcn.h>
#include <nvtx3/nvToolsExt.h>
#include <stdio.h>
#include <unistd.h>
int main(int count, char** arguments) {
  if (count > 1 && !dlopen(arguments[1], RTLD_NOW)) return 9;
  for (int i = 0; i < 30; ++i) {
    nvtxRangePushA("step");
    usleep(1000);
    nvtxRangePop();
  }
  puts("done");
  return 3;
}
"""
SETTINGS = {"GPUPROF_STEP": "nvtx:step", "GPUPROF_SCHEDULE": "skip_first=3,warmup=2,active=5,repeat=2,wait=2"}


def build(folder):
    source, program = folder / "steps.c", folder / "steps"
    source.write_text(PROGRAM)
    subprocess.run(["cc", "-w", f"-I{cupti_layout.cuda_headers()}", source, "-o", program, "-ldl"], check=True)
    return program


def drivers(folder):
    """Arguments of the program by what is there of the driver."""
    found = {"no driver": []}
    stubs = glob.glob("/usr/local/cuda*/lib*/stubs/libcuda.so")
    if stubs:
        place = folder / "libcuda.so.1"
        place.symlink_to(stubs[0])
        found["a stub"] = [place]
    return found


def problem(program, arguments, cupti, folder):
    """What is wrong with a run; empty: nothing."""
    bare = harness.run([program, *arguments], harness.environment(LD_LIBRARY_PATH=folder), timeout=60)
    done = harness.run([program, *arguments], harness.preloaded(
        GPUPROF_OUTPUT=folder / "out", GPUPROF_CUPTI=cupti, LD_LIBRARY_PATH=folder, **SETTINGS), timeout=60)
    if bare.code != 3 or (done.code, done.out) != (bare.code, bare.out):
        return f"exit code {done.code} and {done.out!r} for {bare.code} and {bare.out!r}"
    dumps = harness.dumps(folder / "out")
    if len(dumps) != 2:
        return f"{len(dumps)} dumps for 2: {done.err}"
    missing = [harness.info(dump)["files"][0]["gpu_times_missing"] for dump in dumps]
    if not all(missing):
        return f"gpu_times_missing is {missing}"
    doctor = harness.gpuprof("doctor", env=harness.environment(GPUPROF_CUPTI=cupti, LD_LIBRARY_PATH=folder)).out
    return "" if f"{cupti}, " in doctor else f"doctor does not know {cupti}: {doctor}"


def main():
    cache = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else cupti_layout.default_cache()
    cache.mkdir(parents=True, exist_ok=True)
    if not shutil.which("cc"):
        print("skipped: there is no C compiler")
        return 77
    folders = {wheel: cupti_layout.unpack(wheel, cache) for wheel in cupti_layout.WHEELS}
    missing = [wheel for wheel, folder in folders.items() if folder is None]
    if missing:
        print(f"skipped: these wheels cannot be had here: {', '.join(missing)}")
        return 77
    wrong = 0
    with tempfile.TemporaryDirectory() as temporary:
        program = build(pathlib.Path(temporary))
        for wheel, folder in folders.items():
            cupti = next((folder / "lib").glob("libcupti.so.1*"))
            place = pathlib.Path(temporary) / wheel
            place.mkdir()
            for driver, arguments in drivers(place).items():
                found = problem(program, arguments, cupti, place)
                wrong += bool(found)
                print(f"{wheel}, {driver}: {found or 'as without gpuprof'}")
                shutil.rmtree(place / "out", ignore_errors=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
