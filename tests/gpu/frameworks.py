# SPDX-License-Identifier: Apache-2.0
"""PyTorch programs, Triton and JAX. Kernels and operators are compared by name and count with torch.profiler's in a run of its
own of the same program, memory with what PyTorch says of it in the profiled run."""
import json
import sys

import equalities
import judge
from figures import differences, of_cupti, of_log
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


def need_triton(lab):
    need(lab, "triton", "import triton, torch, sys; sys.exit(not torch.cuda.is_available())")


_known = {}


def once(ask):
    """`ask(lab, case, command, limit)`, but for each command once."""
    def known(lab, case, command, limit):
        key = (ask.__name__, *map(str, command))
        if key not in _known:
            _known[key] = ask(lab, case, command, limit)
        return _known[key]

    return known


@once
def bare_result(lab, case, command, limit):
    done = lab.run(command, limit=limit)
    if done.code != 0:
        raise Failed(f"bare: {done.why()}")
    return done.result()["result"]


@once
def by_torch(lab, case, command, limit):
    """What torch.profiler says of steps FIRST to LAST, in a run of its own; in others, where it saw no GPU work: in a window of some
    milliseconds CUPTI may not have asked it for a buffer in time."""
    file = lab.out / f"{lab.part}-{case}.torch.json"
    for _ in range(5):
        done = lab.run([*command, "--torch-profiler", file, "--with-cpu", "--first", FIRST, "--last", LAST], limit=limit)
        if done.code != 0 or not file.exists():
            raise Failed(f"torch.profiler's run: {done.why()}")
        told = json.loads(file.read_text())
        if told["kernels"]:
            break
    return told


def whole(dump):
    """What must hold of any dump."""
    wrong = []
    if dump.steps != list(range(FIRST, LAST + 1)):
        wrong.append(f"steps {dump.steps}")
    if dump.missing:
        wrong.append(f"GPU times missing: {dump.missing}")
    return wrong


def joined(dump):
    wrong = [f"losses {dump.losses}"] if dump.losses else []
    if dump.joined != dump.launches:
        wrong.append(f"{dump.launches - dump.joined} of {dump.launches} launches without GPU work")
    return wrong


def same_result(profiled, bare):
    """Sums on a GPU are not of one order: the last digits of a loss differ from run to run."""
    return abs(profiled - bare) <= 0.05 * max(abs(bare), 1e-3)


def compare(lab, case, dump, theirs, told, expected):
    """What is wrong with a dump against torch.profiler's counts and PyTorch's own account of its memory."""
    wrong = whole(dump)
    if expected.kernels:
        wrong += joined(dump) + judge.kernels(dump, theirs["kernels"])
        differing = differences(dump.kernels, theirs["kernels"])
        (lab.out / f"{lab.part}-{case}.differences.json").write_text(json.dumps(differing, indent=1))
    else:
        wrong += judge.graphs(dump)
    wrong += judge.operators(dump, theirs["operators"])
    wrong += judge.owners(dump) if expected.owners else []
    return wrong + (judge.memory(dump, told) if expected.memory else [])


def said(dump, theirs, told, expected):
    """What was found, where nothing is wrong."""
    operators = equalities.recorded_operators(dump.records)
    copies = f"{dump.kinds['gpu_copy']} copies, torch.profiler {theirs['other'].get('Memcpy', 0)}"
    kernels = (f"{sum(dump.kernels.values())} kernels of {len(dump.kernels)} names as torch.profiler; {dump.launches} launches, all joined"
               if expected.kernels else f"{dump.graph_launches} graph launches: {sum(dump.kernels.values())} kernels (torch.profiler "
               f"{sum(theirs['kernels'].values())}), {dump.kinds['gpu_graph']} timed as a whole, "
               f"{dump.losses.get('graph_untimed', 0)} said to have no time")
    memory = f"memory as PyTorch says, at most {max(peak for _, peak in told[FIRST:LAST + 1]) >> 20} MiB" if expected.memory else "memory not seen"
    return (f"{kernels}{', in operators' if expected.owners else ''}; {copies}; {sum(operators.values())} operators of {len(operators)} names "
            f"as torch.profiler; {memory}")


def training(lab, case, command, how="preload", expected=judge.Expected(), limit=90, **settings):
    """A program that prints its last result: the same one, and the same equalities."""
    def run():
        need_torch(lab)
        bare = bare_result(lab, case, command, limit)
        done, dump = lab.profile(case, [*command, "--memory"], how, limit=limit, **WINDOW, **settings)
        lab.convert(case)
        theirs = by_torch(lab, case, command, limit)
        told = done.result()["memory"]
        wrong = compare(lab, case, dump, theirs, told, expected)
        if not same_result(done.result()["result"], bare):
            wrong.append(f"result {done.result()['result']}, bare {bare}")
        lab.add(case, "DIFFERS" if wrong else "ok", "; ".join(wrong) or said(dump, theirs, told, expected),
                kernels=sum(dump.kernels.values()), names=len(dump.kernels), theirs=sum(theirs["kernels"].values()),
                launches=dump.launches, joined=dump.joined, graph_launches=dump.graph_launches, whole=dump.kinds["gpu_graph"],
                untimed=dump.losses.get("graph_untimed", 0), operators=sorted(equalities.recorded_operators(dump.records)),
                **of_cupti(dump), **of_log(done.err))

    return case, run


def beside_torch(lab, case, command, expected=judge.Expected(), limit=120, **settings):
    """torch.profiler and gpuprof in one process, one after the other, over as many steps each: the same kernels; and where
    torch.profiler is on, gpuprof says who has CUPTI."""
    def run():
        need_torch(lab)
        file = lab.out / f"{lab.part}-{case}.torch.json"
        file.unlink(missing_ok=True)
        first = LAST + 5
        done, dump = lab.profile(case, [*command, "--torch-profiler", file, "--first", first, "--last", first + LAST - FIRST],
                                 limit=limit, GPUPROF_LOG="debug", **WINDOW, **settings)
        if not file.exists():
            raise Failed(f"torch.profiler said nothing: {done.why()}")
        theirs = json.loads(file.read_text())
        wrong = whole(dump) + (joined(dump) if expected.kernels else judge.graphs(dump)) + judge.kernels(dump, theirs["kernels"])
        if not theirs["kernels"]:
            wrong.append("torch.profiler saw no kernel after gpuprof's window")
        lab.add(case, "DIFFERS" if wrong else "ok", "; ".join(wrong) or f"{sum(dump.kernels.values())} kernels of {len(dump.kernels)} names in "
                f"both; attached in {dump.attach_s:.3f} s", kernels=sum(dump.kernels.values()), theirs=sum(theirs["kernels"].values()),
                **of_cupti(dump), **of_log(done.err))

    return case, run


def training_steps(lab):
    """ResNet-50, a GPT, that under FSDP, and as a CUDA graph."""
    command = [PYTHON, PROGRAMS / "train.py", "--steps", 40, "--model"]
    longer = [PYTHON, PROGRAMS / "train.py", "--steps", 45, "--model", "gpt"]
    return [training(lab, "resnet50", [*command, "resnet50"]), training(lab, "gpt", [*command, "gpt"]),
            training(lab, "gpt-injection", [*command, "gpt"], "injection", GPUPROF_ACTIVITIES="+sync:gpu"),
            training(lab, "gpt-fsdp", [*command, "gpt", "--fsdp"]),
            beside_torch(lab, "gpt-same-run", longer), beside_torch(lab, "gpt-taken-down", longer, GPUPROF_CUPTI_TEARDOWN="1"),
            training(lab, "gpt-graph", [*command, "gpt", "--graph"], expected=judge.Expected(kernels=False))]


def compiled_steps(lab):
    """The GPT through torch.compile, whose caches hold for the runs that follow what the first has compiled."""
    def case(name, mode, expected):
        def run():
            need_triton(lab)
            training(lab, name, [PYTHON, PROGRAMS / "train.py", "--steps", 40, "--model", "gpt", "--compile", mode], expected=expected,
                     limit=120)[1]()

        return name, run

    def same_run(name, mode, expected):
        def run():
            need_triton(lab)
            beside_torch(lab, name, [PYTHON, PROGRAMS / "train.py", "--steps", 45, "--model", "gpt", "--compile", mode], expected)[1]()

        return name, run

    graphs = judge.Expected(kernels=False)
    return [case("gpt", "default", judge.Expected()), case("gpt-graphs", "reduce-overhead", graphs),
            same_run("gpt-same-run", "default", judge.Expected()), same_run("gpt-graphs-same-run", "reduce-overhead", graphs)]


def triton_kernels(lab):
    """Triton's kernels, which are launched by no operator."""
    def run():
        need_triton(lab)
        training(lab, "kernels", [PYTHON, PROGRAMS / "triton_steps.py"], expected=judge.Expected(owners=False))[1]()

    return [("kernels", run)]


# What programs/slow.py is slow for, and what the report must name first; of compute, that it is the limit, and the finding.
SLOW = {"small": "kernel_launch", "loader": "data_loading", "host": "host_work", "pageable": "transfer", "fp32": "compute"}
FINDINGS = {"fp32": "without_tensor_cores"}


def names(report, reason):
    """Whether a report names what slow.py was slow for. Beside a GPU that is the limit other causes may be there, and small."""
    if FINDINGS.get(reason, "") not in ["", *(finding["kind"] for finding in report["findings"])]:
        return False
    verdict = report["verdict"]
    if SLOW[reason] == "compute" and verdict and "the GPU's own work is the limit" in verdict[-1]["evidence"][-1]:
        return True
    return bool(verdict) and verdict[0]["cause"] == SLOW[reason]


def slow_steps(lab):
    """The reason that the report names first, and what it promises."""
    def case(reason):
        def run():
            need_torch(lab)
            lab.profile(reason, [PYTHON, PROGRAMS / "slow.py", reason], limit=90, GPUPROF_SCHEDULE="skip_first=15,warmup=2,active=20,repeat=1")
            told = lab.run([lab.gpuprof, "report", "--format", "json", lab.out / "dumps" / f"{lab.part}-{reason}"])
            if told.code != 0:
                raise Failed(f"gpuprof report: {told.why()}")
            report = json.loads(told.out)
            first = report["verdict"][0] if report["verdict"] else {"cause": f"none: {report['reason']}", "saves_pct": 0}
            lab.add(reason, "ok" if names(report, reason) else "DIFFERS", f"{first['cause']}, without it {first['saves_pct']:.1f} % shorter",
                    cause=first["cause"])

        return reason, run

    return [case(reason) for reason in SLOW]


def jax_steps(lab):
    """JAX has no marks of steps: two runs see the same kernels a step, each launch with its kernel."""
    def run():
        need(lab, "jax", "import jax, sys; sys.exit(jax.devices()[0].platform != 'gpu')")
        settings = {"GPUPROF_STEP": "time:100", "GPUPROF_SCHEDULE": "skip_first=0,warmup=0,active=100000,max_s=0,max_mb=0"}
        command = [PYTHON, PROGRAMS / "jax_steps.py", "--steps", 100]
        # Tuning measures, and may choose other kernels in each run.
        env = {"XLA_PYTHON_CLIENT_PREALLOCATE": "false", "XLA_FLAGS": "--xla_gpu_autotune_level=0"}
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

    return [("step", run)]


def requests(lab):
    """A generation loop: as it is, and with its graph captured before the window, and inside it."""
    command = [PYTHON, PROGRAMS / "generate.py", "--steps", 30, "--capture-at"]
    graph = judge.Expected(kernels=False)

    def case(name, activities, capture_at, expected):
        return training(lab, name, [*command, capture_at], expected=expected, GPUPROF_ACTIVITIES=activities)

    return [case("eager", "preset", -1, judge.Expected()), case("before", "preset", 0, graph),
            case("before-node", "+graph:node", 0, graph), case("inside", "preset", 14, graph),
            case("inside-node", "+graph:node", 14, graph)]
