# SPDX-License-Identifier: Apache-2.0
"""PyTorch training steps, Triton, JAX and a generation loop with CUDA graphs; kernels compared by name and count
with torch.profiler's in a second run of the same program."""
import collections
import json
import sys

from figures import differences
from lab import PROGRAMS, Failed, Skipped

PYTHON = sys.executable
WINDOW = {"GPUPROF_STEP": "nvtx:step", "GPUPROF_SCHEDULE": "skip_first=10,warmup=2,active=10,repeat=1"}
FIRST, LAST = 12, 21


_asked = {}


def need(lab, module, test):
    if module not in _asked:
        _asked[module] = lab.run([PYTHON, "-c", test], limit=60)
    if _asked[module].code != 0:
        raise Skipped(f"{PYTHON} has no {module} that sees the GPU: {_asked[module].why()}")


def need_torch(lab):
    need(lab, "torch", "import torch, sys; sys.exit(not torch.cuda.is_available())")


_by_torch = {}


def by_torch(lab, case, command, limit=90):
    """Kernels of steps FIRST to LAST by torch.profiler, in a run of its own; once for each command."""
    key = tuple(map(str, command))
    if key not in _by_torch:
        _by_torch[key] = run_by_torch(lab, case, command, limit)
    return _by_torch[key]


def run_by_torch(lab, case, command, limit):
    file = lab.out / f"{lab.part}-{case}.torch.json"
    done = lab.run([*command, "--torch-profiler", file, "--first", FIRST, "--last", LAST], limit=limit)
    if done.code != 0 or not file.exists():
        raise Failed(f"torch.profiler's run: {done.why()}")
    return json.loads(file.read_text())


def whole(dump):
    """What must hold of any dump."""
    wrong = []
    if dump.steps != list(range(FIRST, LAST + 1)):
        wrong.append(f"steps {dump.steps}")
    if dump.missing:
        wrong.append(f"GPU times missing: {dump.missing}")
    if dump.losses:
        wrong.append(f"losses {dump.losses}")
    if dump.joined != dump.launches:
        wrong.append(f"{dump.launches - dump.joined} of {dump.launches} launches without GPU work")
    return wrong


def same_result(profiled, bare):
    """Sums on a GPU are not of one order: the last digits of a loss differ from run to run."""
    return abs(profiled - bare) <= 0.05 * max(abs(bare), 1e-3)


def training(lab, case, command, how="preload"):
    """A program that prints its last loss: the same loss, and torch.profiler's kernels."""
    def run():
        need_torch(lab)
        bare = lab.run(command, limit=90)
        if bare.code != 0:
            raise Failed(f"bare: {bare.why()}")
        done, dump = lab.profile(case, command, how, limit=90, **WINDOW)
        lab.convert(case)
        theirs = by_torch(lab, case, command)
        wrong = whole(dump)
        differing = differences(dump.kernels, theirs["kernels"])
        (lab.out / f"{lab.part}-{case}.differences.json").write_text(json.dumps(differing, indent=1))
        if differing:
            name, ours, other = differing[0]
            wrong.append(f"{len(differing)} kernel names differ, the first {ours} to {other}: {name[:80]}")
        if not same_result(done.result()["result"], bare.result()["result"]):
            wrong.append(f"result {done.result()['result']}, bare {bare.result()['result']}")
        text = (f"{sum(dump.kernels.values())} kernels of {len(dump.kernels)} names as torch.profiler; {dump.launches} launches, "
                f"all joined; {dump.kinds['gpu_copy']} copies, torch.profiler {theirs['other'].get('Memcpy', 0)}")
        lab.add(case, "DIFFERS" if wrong else "ok", "; ".join(wrong) or text, kernels=sum(dump.kernels.values()),
                names=len(dump.kernels), theirs=sum(theirs["kernels"].values()), launches=dump.launches, joined=dump.joined)

    return case, run


def train(lab):
    """Convolution and transformer training steps."""
    command = [PYTHON, PROGRAMS / "train.py", "--steps", 40, "--model"]
    lab.cases([training(lab, "conv", [*command, "conv"]), training(lab, "transformer", [*command, "transformer"]),
               training(lab, "transformer-injection", [*command, "transformer"], "injection")])


def triton(lab):
    """Triton's kernels."""
    def run():
        need(lab, "triton", "import triton, torch, sys; sys.exit(not torch.cuda.is_available())")
        training(lab, "kernels", [PYTHON, PROGRAMS / "triton_steps.py"])[1]()

    lab.cases([("kernels", run)])


def jax(lab):
    """JAX has no marks of steps: two runs see the same kernels a step, each launch with its kernel."""
    def run():
        need(lab, "jax", "import jax, sys; sys.exit(jax.devices()[0].platform != 'gpu')")
        settings = {"GPUPROF_STEP": "time:100", "GPUPROF_SCHEDULE": "skip_first=0,warmup=0,active=100000,max_s=0,max_mb=0"}
        command = [PYTHON, PROGRAMS / "jax_steps.py", "--steps", 100]
        env = {"XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
        found = []
        for number in (1, 2):
            done, dump = lab.profile(f"run{number}", command, limit=90, **settings, **env)
            found.append(dump)
        first, second = found
        wrong = [f"GPU times missing: {first.missing}"] if first.missing else []
        untimed = first.losses.pop("graph_untimed", 0)
        if first.losses:
            wrong.append(f"losses {first.losses}")
        # A hundred steps: what a step runs comes a hundred times, whatever autotuning ran besides.
        steady = {name for name, count in first.kernels.items() if count >= 100}
        again = {name for name, count in second.kernels.items() if count >= 100}
        if not steady or steady != again:
            wrong.append(f"kernels of a step: {len(steady)} names, in another run {len(again)}")
        if first.joined + untimed < first.launches:
            wrong.append(f"{first.launches - first.joined} of {first.launches} launches without GPU work, {untimed} of them said")
        lab.add("step", "DIFFERS" if wrong else "ok", "; ".join(wrong) or f"{len(steady)} kernels a step, {first.launches} launches, all joined",
                kernels=sum(first.kernels.values()), launches=first.launches)

    lab.cases([("step", run)])


def generate(lab):
    """A generation loop whose graph is captured before the window, and inside it; torch.profiler's count beside."""
    command = [PYTHON, PROGRAMS / "generate.py", "--steps", 30]

    def case(name, mode, capture_at):
        def run():
            need_torch(lab)
            arguments = [*command, "--capture-at", capture_at]
            done, dump = lab.profile(name, arguments, limit=90, GPUPROF_ACTIVITIES=mode, **WINDOW)
            theirs = collections.Counter(by_torch(lab, name, arguments)["kernels"])
            whole_graphs, untimed = dump.kinds["gpu_graph"], dump.losses.get("graph_untimed", 0)
            kernels = sum(dump.kernels.values())
            others = {k: v for k, v in dump.losses.items() if k != "graph_untimed"}
            told = dump.joined + untimed >= dump.launches
            wrong = [] if dump.graph_launches and told and not others and not dump.missing else [f"losses {dump.losses} {dump.missing}"]
            lab.add(name, "DIFFERS" if wrong else "ok",
                    "; ".join(wrong + [f"{dump.graph_launches} graph launches: {kernels} kernels (torch.profiler {sum(theirs.values())}), "
                                       f"{whole_graphs} timed as a whole, {untimed} said to have no time"]),
                    graph_launches=dump.graph_launches, kernels=kernels, theirs=sum(theirs.values()), whole=whole_graphs, untimed=untimed)

        return name, run

    lab.cases([case("before", "preset", 0), case("before-node", "+graph:node", 0), case("inside", "preset", 14),
               case("inside-node", "+graph:node", 14)])
