#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that libgpuprof.so can be loaded into anybody's program (docs/ARCHITECTURE.md): it needs only
glibc, and an old one, and exports only what it interposes and gpuprof's own names.

usage: check_library.py --source REPOSITORY (LIBRARY | --self-test [--compiler CC])
"""
import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile

NEEDED = {"libc.so.6", "libm.so.6", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"}
# Where libc.so.6 itself does not have these, before glibc 2.34, the program may not have them either.
IN_LIBDL_OR_LIBPTHREAD = {
    "dladdr", "dladdr1", "dlclose", "dlerror", "dlinfo", "dlopen", "dlsym", "dlvsym", "pthread_attr_setstacksize", "pthread_create",
    "pthread_detach", "pthread_getspecific", "pthread_join", "pthread_key_create", "pthread_key_delete", "pthread_kill", "pthread_once",
    "pthread_setspecific", "pthread_sigmask", "sem_init", "sem_post", "sem_timedwait", "sem_wait",
}
FLOOR = (pathlib.Path(__file__).resolve().parents[1] / "packaging/newest_glibc.txt").read_text().strip()
NEWEST_GLIBC = tuple(map(int, FLOOR.split(".")))
MOST_TLS = 256  # static TLS has about 1,600 bytes for all libraries that are opened later, 512 in new glibc
# By the dynamic linker, at each start of each process (collector/base/idle.h). GCC for aarch64 has tables of functions, which
# it makes by instructions on x86-64, in the data.
MOST_WRITTEN_PAGES, MOST_WRITTEN_PAGES_AARCH64 = 5, 7
# Code that every process runs which loads the library. Linux maps 16 pages around the one that is missing.
IDLE_FUNCTIONS = re.compile(r"^([0-9a-f]+) [tT] (_exit|execve|getenv|_ZN7gpuprof(?:14collector_initEv|14finish_sessionEPKc|15prepare_libraryEv))$",
                            flags=re.M)
FARTHEST = 16 * 1024
OWN_NAMES = re.compile(r"^(gpuprof_[a-z0-9_]+|InitializeInjection[A-Za-z0-9_]*|ncclProfiler_v[0-9]+)$")
# What is interposed of libc and the dynamic linker. CUDA's, CUPTI's and NCCL's names are the rows of preload/*.def.
LIBC_NAMES = {
    "dlsym", "dlvsym", "dlopen", "getenv", "_exit", "_Exit", "quick_exit",
    "execve", "execv", "execvp", "execvpe", "fexecve", "execveat", "execl", "execle", "execlp",
    "_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE", "_ZN3c1027reportMemoryUsageToProfilerEPvlllNS_6DeviceE",
    "_ZN3c1027reportOutOfMemoryToProfilerElmmNS_6DeviceE", "_ZN3c1027reportOutOfMemoryToProfilerElllNS_6DeviceE",
    "_ZN3c1025ProfiledCPUMemoryReporter3NewEPvm", "_ZN3c1025ProfiledCPUMemoryReporter6DeleteEPv",  # PyTorch's
}


def run(*command):
    """What it says, in English."""
    return subprocess.run(command, check=True, capture_output=True, text=True, env={**os.environ, "LC_ALL": "C"}).stdout


def table_names(source):
    """The symbols of the rows of preload's tables: GPUPROF_<something>(library, symbol, ...)."""
    names = set()
    for table in sorted((source / "preload").glob("*.def")):
        text = re.sub(r"//[^\n]*", "", table.read_text())
        names |= set(re.findall(r"^GPUPROF_[A-Z_]+\(\s*\w+\s*,\s*(\w+)", text, flags=re.M))
    return names


def problems_of(library, interposed):
    """Every broken rule, one line each."""
    problems = []
    dynamic = run("readelf", "-dW", library)
    for name in re.findall(r"\(NEEDED\).*\[(.*)\]", dynamic):
        if name not in NEEDED:
            problems.append(f"needs {name}; allowed: {' '.join(sorted(NEEDED))}")
    for tag in ("RPATH", "RUNPATH", "TEXTREL"):
        if f"({tag})" in dynamic:
            problems.append(f"has a {tag} entry")

    for version in sorted(set(re.findall(r"Name: (\S+)\s+Flags", run("readelf", "-VW", library)))):
        if version.startswith("GPUPROF"):
            continue  # our own version node
        match = re.fullmatch(r"GLIBC_(\d+)\.(\d+)(?:\.\d+)?", version)
        if not match:
            problems.append(f"needs symbol version {version}; only GLIBC_2.x up to {FLOOR} may be needed")
        elif (int(match[1]), int(match[2])) > NEWEST_GLIBC:
            users = [s for s in run("nm", "-D", "--undefined-only", library).split() if s.endswith("@" + version)]
            problems.append(f"needs {version} (newest allowed: GLIBC_{FLOOR}), for {' '.join(users) or 'the linker'}")

    for line in run("nm", "-D", "--defined-only", library).splitlines():
        name = line.split()[-1].split("@")[0]
        if line.split()[-2] == "A":  # the version node itself
            continue
        if name not in interposed and name not in LIBC_NAMES and not OWN_NAMES.match(name):
            problems.append(f"exports {name}, which is neither interposed nor one of gpuprof's own names")

    for name in re.findall(r" (_GLOBAL__sub_I_\S+)", run("nm", library)):
        problems.append(f"has {name}: an object with a constructor or destructor, but hooks are called before and after both")

    for kind, name, version in re.findall(r"^\s+([A-Za-z]) (\w+)(@\S+)?", run("nm", "-D", "--undefined-only", library), flags=re.M):
        if kind != "U" and version and name in IN_LIBDL_OR_LIBPTHREAD:
            problems.append(f"needs {name} with a version ({version}), which names libc.so.6: an ld.so before glibc 2.30 ends the "
                            "program; take the version away (collector/base/glibc_compat.h)")
        if kind == "U" and name in IN_LIBDL_OR_LIBPTHREAD:
            problems.append(f"needs {name}, which is not in libc.so.6 before glibc 2.34; declare it weak (collector/base/glibc_compat.h)")

    stack = re.search(r"GNU_STACK.*", run("readelf", "-lW", library))
    if not stack or re.search(r"\bRWE\b", stack[0]):
        problems.append("asks for an executable stack")
    thread_local = re.search(r"^\s+TLS(?:\s+0x[0-9a-f]+){4}\s+(0x[0-9a-f]+)", run("readelf", "-lW", library), flags=re.M)
    if thread_local and int(thread_local[1], 16) > MOST_TLS:
        problems.append(f"has {int(thread_local[1], 16)} bytes of TLS (at most {MOST_TLS}): CUDA's driver could not open it late")
    written = {int(at, 16) >> 12 for at in re.findall(r"^([0-9a-f]+)\s+[0-9a-f]+\s+R_", run("readelf", "-rW", library), flags=re.M)}
    most = MOST_WRITTEN_PAGES_AARCH64 if "AArch64" in run("readelf", "-hW", library) else MOST_WRITTEN_PAGES
    if len(written) > most:
        problems.append(f"has addresses to write on {len(written)} pages (at most {most}): keep those of idle processes "
                        "together (collector/base/idle.h), and texts of tables in place")
    idle = {name: int(at, 16) for at, name in IDLE_FUNCTIONS.findall(run("nm", library))}
    if idle and max(idle.values()) - min(idle.values()) > FARTHEST:
        problems.append(f"has {min(idle, key=idle.get)} and {max(idle, key=idle.get)} {max(idle.values()) - min(idle.values())} bytes apart "
                        f"(at most {FARTHEST}): each page is a fault of every process; say GPUPROF_IDLE_CODE (collector/base/idle.h)")
    return problems


def wrong_pages(source, library):
    """What pages say the library takes of static TLS, where it takes something else."""
    header = re.search(r"^\s+TLS(?:\s+0x[0-9a-f]+){4}\s+(0x[0-9a-f]+)", run("readelf", "-lW", library), flags=re.M)
    taken = int(header[1], 16) if header else 0
    said = [(page, int(number)) for page in ("docs/LIMITS.md", "docs/design/RECORDING.md")
            for number in re.findall(r"(\d+) bytes of static TLS", (source / page).read_text())]
    problems = [f"takes {taken} bytes of static TLS, {page} says {number}" for page, number in said if number != taken]
    return problems if said else ["takes static TLS, and no page says how much"]


def report(library, interposed, source):
    problems = problems_of(library, interposed) + wrong_pages(source, library)
    print("\n".join([f"{library}: {p}" for p in problems] + [f"check_library: {len(problems)} problems"]))
    return 1 if problems else 0


SELF_TEST = [  # what, source, link options, part of the expected problem (None: the library is fine)
    ("fine", "void gpuprof_step(void) {}", [], None),
    ("fine: interposes dlsym", "void *dlsym(void *h, const char *n) { (void)h; (void)n; return 0; }", [], None),
    ("leaks a name", "void helper(void) {}", [], "exports helper"),
    ("stands in front of what it need not", "int close(int f) { return f; }", [], "exports close"),
    ("C++ runtime", "void gpuprof_step(void) {}", ["-Wl,--no-as-needed", "-l:libstdc++.so.6"], "needs libstdc++.so.6"),
    ("run path", "void gpuprof_step(void) {}", ["-Wl,-rpath,/opt"], "PATH entry"),
    ("executable stack", "void gpuprof_step(void) {}", ["-Wl,-z,execstack"], "executable stack"),
    ("static constructor", "__attribute__((used)) static void _GLOBAL__sub_I_x(void) {}", [], "_GLOBAL__sub_I_x"),
    ("much TLS", "__thread char gpuprof_t[300]; char *gpuprof_f(void) { return gpuprof_t; }", ["-ftls-model=initial-exec"], "bytes of TLS"),
    ("addresses all over its data", "char gpuprof_x; void *gpuprof_p[5000] = {" + ",".join(f"[{i}] = &gpuprof_x" for i in range(0, 5000, 600)) + "};",
     [], "has addresses to write"),
    ("idle code far apart", "char *getenv(const char *n) { (void)n; return 0; }\n"
     "__attribute__((aligned(65536))) void _exit(int c) { (void)c; for (;;) {} }", ["-nostartfiles"], "bytes apart"),
    ("of libpthread", "int pthread_detach(unsigned long); int gpuprof_d(void) { return pthread_detach(0); }", [], "needs pthread_detach"),
    ("of libpthread, weak, with a version",
     "#pragma weak pthread_detach\nint pthread_detach(unsigned long), getpid(void);\n"
     "int gpuprof_d(void) { return pthread_detach ? pthread_detach(0) : getpid(); }",
     [], "needs pthread_detach with a version"),
    ("new glibc", "unsigned arc4random(void); unsigned gpuprof_r(void) { return arc4random(); }", [], "GLIBC_2.36"),
]


def self_test(compiler, interposed):
    wrong = 0
    for what, text, options, expected in SELF_TEST:
        with tempfile.TemporaryDirectory() as folder:
            source, library = pathlib.Path(folder) / "l.c", pathlib.Path(folder) / "l.so"
            source.write_text(text)
            subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", library, source, *options], check=True,
                           capture_output=True)
            problems = problems_of(library, interposed)
        good = not problems if expected is None else any(expected in p for p in problems)
        if not good:
            print(f"{what}: expected {expected!r}, got {problems}")
            wrong += 1
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        (folder / "docs/design").mkdir(parents=True)
        (folder / "l.c").write_text("__thread char gpuprof_t[96]; char *gpuprof_f(void) { return gpuprof_t; }")
        subprocess.run([compiler, "-shared", "-fPIC", "-o", folder / "l.so", folder / "l.c"], check=True)
        for page, number in (("docs/LIMITS.md", 96), ("docs/design/RECORDING.md", 92)):
            (folder / page).write_text(f"It takes {number} bytes of static TLS.")
        found = wrong_pages(folder, folder / "l.so")
        if found != ["takes 96 bytes of static TLS, docs/design/RECORDING.md says 92"]:
            print(f"a page with another number: got {found}")
            wrong += 1
    print(f"check_library: self-test, {len(SELF_TEST) + 1} cases, {wrong} wrong")
    return 1 if wrong else 0


def main():
    parser = argparse.ArgumentParser(usage=__doc__.strip().splitlines()[-1].removeprefix("usage: "))
    parser.add_argument("--source", type=pathlib.Path, required=True)
    parser.add_argument("--self-test", action="store_true")
    parser.add_argument("--compiler", default="cc")
    parser.add_argument("library", nargs="?")
    options = parser.parse_args()
    interposed = table_names(options.source)
    if options.self_test:
        return self_test(options.compiler, interposed)
    if not options.library:
        parser.error("name a library")
    return report(options.library, interposed, options.source)


if __name__ == "__main__":
    sys.exit(main())
