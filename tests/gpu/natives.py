# SPDX-License-Identifier: Apache-2.0
"""CUDA programs in each way in, and CUDA graphs. Compiled here with nvcc, or taken from DIR/programs."""
import collections
import os
import pathlib
import re

import lab as lab_module
from figures import of_cupti, of_log
from lab import PROGRAMS, WHOLE_RUN, Failed, Skipped

STEPS = 20
KERNELS_A_SESSION = 20 * 500 + 3  # of detach.cu: rounds of launches, and a graph's


def builds(cuda_library):
    """name: how to compile it, {out} standing for the result."""
    nvcc = ["-O2", "-std=c++17", "-o", "{out}"]
    shared, ways = ["-cudart", "shared"], str(PROGRAMS / "ways.cu")
    return {
        "ways_shared": [*shared, *nvcc, ways],
        "ways_static": ["-cudart", "static", *nvcc, ways],
        "libways_plugin.so": [*shared, *nvcc, "-shared", "-Xcompiler", "-fPIC", "-DWAYS_PLUGIN", ways],
        "graphs": [*shared, *nvcc, str(PROGRAMS / "graphs.cu")],
        "plugin_host": ["-cudart", "none", "-o", "{out}", str(PROGRAMS / "plugin_host.c"), "-ldl"],
        "driver_opened": ["-cudart", "none", "-o", "{out}", str(PROGRAMS / "driver.c"), "-ldl"],
        "driver_linked": ["-cudart", "none", "-DLINKED", "-o", "{out}", str(PROGRAMS / "driver.c"), "-ldl",
                          *(["-Xlinker", cuda_library] if cuda_library else ["-lcuda"])],
        **{name: [*shared, *nvcc, *cupti_headers(), str(PROGRAMS / f"{name}.cu"), "-ldl"] for name in ("detach", "stages")},
        "ways.ptx": ["-ptx", "-arch=compute_75", "-o", "{out}", ways],
    }


def cupti_headers():
    root = lab_module.toolkit()
    return ["-I", str(root / "extras/CUPTI/include")] if root and (root / "extras/CUPTI/include").exists() else []


def find_driver(root):
    """A libcuda.so to link to: the driver's, or the toolkit's stub; None: the linker is to look for it."""
    folders = [pathlib.Path(f) for f in os.environ.get("LD_LIBRARY_PATH", "").split(":") if f]
    folders += [pathlib.Path(f) for f in ("/usr/lib/x86_64-linux-gnu", "/usr/local/nvidia/lib64", "/usr/lib64")]
    for path in [*(f / "libcuda.so.1" for f in folders), root / "lib64/stubs/libcuda.so"]:
        if path.exists():
            return str(path)
    return None


def program(lab, name):
    """The path of a native program; raises Skipped where it can be neither found nor compiled."""
    for folder in (lab.prebuilt / "programs", lab.built):
        if (folder / name).exists():
            return folder / name
    root = lab_module.toolkit()
    if not root:
        raise Skipped("no nvcc on the PATH, and no programs/ in the folder of the binaries")
    target = lab.built / name
    command = [c.replace("{out}", str(target)) for c in builds(find_driver(root))[name]]
    done = lab.run([root / "bin/nvcc", *command], limit=100)
    if done.code != 0:
        raise Failed(f"nvcc: {done.why()}")
    return target


def check_counts(expected, dump, kernels_only=False):
    """What is wrong with a dump of a program that says what it did; empty when nothing is."""
    wrong = []
    wanted = collections.Counter(expected["kernels"])
    if dump.kernels != wanted:
        wrong.append(f"kernels {dict(dump.kernels)}, made {dict(wanted)}")
    for kind, key in (("gpu_copy", "copies"), ("gpu_set", "sets")):
        if dump.kinds[kind] != expected[key]:
            wrong.append(f"{kind} {dump.kinds[kind]}, made {expected[key]}")
    if not kernels_only:
        total = sum(wanted.values())
        if dump.launches != total:
            wrong.append(f"launches {dump.launches}, made {total}")
        if dump.joined != dump.launches:
            wrong.append(f"{dump.launches - dump.joined} launches without their kernel")
        for kind, key in (("copy", "copies"), ("set", "sets")):
            if dump.kinds[kind] != expected[key]:
                wrong.append(f"{kind} {dump.kinds[kind]}, made {expected[key]}")
    if dump.missing:
        wrong.append(f"GPU times missing: {dump.missing}")
    if dump.losses:
        wrong.append(f"losses {dump.losses}")
    return wrong


def way(lab, name, command, how="preload"):
    def run():
        made = lab.run(command)
        if made.code != 0:
            raise Failed(f"bare: {made.why()}")
        done, dump = lab.profile(name, command, how, GPUPROF_LOG="debug", **WHOLE_RUN)
        wrong = check_counts(made.result(), dump)
        hooks = ""
        if how == "preload":
            _, alone = lab.profile(name + "-hooks", command, how, GPUPROF_CUPTI="off", **WHOLE_RUN)
            hooks = f", {alone.launches} by hooks alone"
            if alone.launches != dump.launches:
                wrong.append(f"without CUPTI {alone.launches} launches")
        text = (f"{dump.launches} launches ({dump.from_callback} by CUPTI's callback{hooks}), {sum(dump.kernels.values())} kernels, "
                f"{len(dump.steps)} steps by {dump.source}")
        lab.add(name, "DIFFERS" if wrong else "ok", "; ".join(wrong) or text, launches=dump.launches,
                from_callback=dump.from_callback, kernels=dict(dump.kernels), steps=len(dump.steps),
                same_addresses=made.result().get("same_addresses"), **of_cupti(dump), **of_log(done.err))

    return name, run


def ways(lab):
    """Each way to reach CUDA, by LD_PRELOAD, and by CUDA_INJECTION64_PATH."""
    def with_program(name, arguments, label, how="preload"):
        def run():
            way(lab, label, [program(lab, name), *arguments()], how)[1]()

        return label, run

    def steps():
        return [STEPS]

    def plugin():
        return [program(lab, "libways_plugin.so"), STEPS]

    def driver(kind):
        return lambda: [kind, program(lab, "ways.ptx"), STEPS]

    lab.cases([
        with_program("ways_shared", steps, "linked"),
        with_program("ways_static", steps, "static"),
        with_program("plugin_host", plugin, "deepbind"),
        with_program("driver_linked", driver("linked"), "driver-linked"),
        with_program("driver_opened", driver("dlsym"), "driver-dlsym"),
        with_program("driver_opened", driver("ask"), "driver-ask"),
        with_program("ways_shared", steps, "linked-injection", "injection"),
        with_program("ways_static", steps, "static-injection", "injection"),
        with_program("driver_opened", driver("ask"), "driver-ask-injection", "injection"),
        with_program("ways_shared", steps, "linked-both", "both"),
    ])


# Steps: captured, instantiated, updated, destroyed. The window is steps 6 to 11 of 14.
GRAPHS = {
    "before": (0, 0, -1, -1), "inside": (7, 7, -1, -1), "across": (0, 7, -1, -1),
    "before-updated": (0, 0, 8, -1), "inside-updated": (7, 7, 9, -1), "inside-destroyed": (7, 7, -1, 10),
    "before-destroyed": (0, 0, -1, 9),
}


def graph_case(lab, name, mode, arguments, bare_runs):
    def run():
        command = [program(lab, "graphs"), *arguments, 14]
        bare = bare_runs.get(name) or lab.run(command)
        bare_runs[name] = bare
        if bare.code != 0:
            raise Failed(f"bare: {bare.why()}")
        done, dump = lab.profile(f"{name}-{mode}", command, GPUPROF_STEP="sync:1",
                                 GPUPROF_SCHEDULE="skip_first=4,warmup=2,active=6,repeat=1",
                                 GPUPROF_ACTIVITIES="preset" if mode == "auto" else f"+graph:{mode}")
        launches, whole, nodes = dump.graph_launches, dump.kinds["gpu_graph"], dump.kernels["graph_kernel"]
        untimed = dump.losses.get("graph_untimed", 0)
        others = {k: v for k, v in dump.losses.items() if k != "graph_untimed"}
        # Every launch has its nodes' times, or its own, or is said to have none.
        told = whole + untimed + nodes // bare.result()["kernels_per_launch"]
        good = launches > 0 and told == launches and not others and not dump.missing
        text = f"{launches} launches: {nodes} node kernels, {whole} timed as a whole, {untimed} said to have no time"
        lab.add(f"{name}-{mode}", "ok" if good else "DIFFERS", text + (f"; losses {others}" if others else ""),
                launches=launches, nodes=nodes, whole=whole, untimed=untimed,
                transfers=dump.kinds["gpu_copy"] + dump.kinds["gpu_set"], **of_cupti(dump))

    return f"{name}-{mode}", run


def three_windows(lab, name, **settings):
    """Three windows of one process: from the second on CUPTI's correlation ids of graph launches may be wrong."""
    def run():
        command = [program(lab, "graphs"), *GRAPHS["before"], 3000]
        done, dumps = lab.windows(name, command, GPUPROF_STEP="sync:1", **settings,
                                  GPUPROF_SCHEDULE="skip_first=4,wait=900,skip_first_wait=1,warmup=4,active=4,repeat=3")
        order = re.findall(r"CUPTI's ids of (\d+) graph records are those of their launches, of (\d+) they are not", done.err)
        agreed, differed = (sum(int(pair[i]) for pair in order) for i in (0, 1))
        wrong = [f"{len(dumps)} windows"] if len(dumps) != 3 else []
        wrong += [f"window {number}: {dump.losses or dump.missing}" for number, dump in enumerate(dumps) if dump.losses or dump.missing]
        lab.add(name, "DIFFERS" if wrong else "ok", "; ".join(wrong) or f"{agreed} ids right, {differed} wrong",
                launches=sum(dump.graph_launches for dump in dumps), ids_agreed=agreed, ids_differed=differed,
                **(of_cupti(dumps[-1]) if dumps else {}))

    return name, run


def after(lab):
    """What a launch costs once CUPTI is detached as gpuprof does it, and by cuptiFinalize. Each attaches twice. And what each
    part of an attached CUPTI adds to it."""
    def case(way):
        def run():
            done = lab.run([program(lab, "detach"), way])
            if done.code != 0:
                raise Failed(done.why())
            found = done.result()
            wrong = [f"session {i}: {found[f'records{i}']} records" for i in (1, 2) if found[f"records{i}"] != KERNELS_A_SESSION]
            lab.add(way, "DIFFERS" if wrong else "ok", "; ".join(wrong) or "us a launch: " + ", ".join(
                f"{name} {found[name]:.3f}" for name in ("bare", "attached1", "after1", "attached2", "after2")), **found)

        return way, run

    def stages(name, *options):
        def run():
            done = lab.run([program(lab, "stages"), *options])
            if done.code != 0:
                raise Failed(done.why())
            found = done.result()
            lab.add(name, "ok", "us a launch, of its thread and of the GPU: " + ", ".join(
                f"{stage} {host:.2f} {whole:.2f}" for stage, (host, whole) in found.items()), stages=found)

        return name, run

    lab.cases([case("keep"), case("finalize"), stages("stages"), stages("stages-pinned", "pinned"), stages("stages-zeroed", "zeroed")])


def graphs(lab):
    """Graphs before, inside and across the window, by node, as a whole, and as gpuprof chooses."""
    bare_runs = {}
    lab.cases([graph_case(lab, name, mode, arguments, bare_runs) for name, arguments in GRAPHS.items()
               for mode in ("auto", "node", "trace")] + [three_windows(lab, "three-windows"), three_windows(lab, "three-windows-taken-down", GPUPROF_CUPTI_TEARDOWN="1")])
