# SPDX-License-Identifier: Apache-2.0
"""packaging/ci/gate.sh, which the GitHub Action and the GitLab job run, in an environment as a runner sets it."""
import json
import os
import random
import re

import pytest

import harness
from support import kineto_traces

GATE = harness.SOURCE / "packaging/ci/gate.sh"
STEPS = 40


def write_run(folder, seed, slower=0.0):
    """A trace of steps of some 300 us, each 2 % of noise longer or shorter; `slower`: by that part."""
    noise = random.Random(seed)
    trace = kineto_traces.training(steps=STEPS)
    marks = [e for e in trace.events if e["name"].startswith("ProfilerStep#")]
    ends = [e["ts"] + e["dur"] for e in marks]
    longer = [e["dur"] * (slower + 0.05 + noise.gauss(0, 0.02)) for e in marks]
    for event in trace.events:
        if not event["name"].startswith("ProfilerStep#"):
            event["ts"] += sum(l for end, l in zip(ends, longer) if end <= event["ts"])
    moved = 0
    for event, more in zip(marks, longer):
        event["ts"] += moved
        event["dur"] += more
        moved += more
    folder.mkdir(parents=True)
    (folder / "worker0.pt.trace.json").write_text(json.dumps(trace.document()))
    return folder


def recorder_of_copies(folder):
    """A gpuprof whose `run` lets the program put a run in place ($RUN) that was made before: no load slows it down."""
    recorder = folder / "gpuprof"
    recorder.write_text(f"""#!/bin/bash
[ "$1" = run ] || exec "{harness.BIN}" "$@"
export RUN=$3/$GPUPROF_RUN
mkdir -p "$3"
while [ "$1" != -- ]; do shift; done
exec "${{@:2}}"
""")
    recorder.chmod(0o755)
    return recorder


def copy_of(run):
    return f"mkdir -p \"$RUN\"; cp {run}/* \"$RUN\""


def yaml_of(file):
    return pytest.importorskip("yaml").safe_load(file.read_text())


class Runner:
    """What a runner gives to a job, with a `gh` and a `curl` that note how they are called."""

    def __init__(self, folder, **settings):
        self.folder = folder
        self.tools = folder / "tools"
        self.tools.mkdir()
        for name, notes in (("gh", f'echo "$GH_HOST $GH_TOKEN $GH_ENTERPRISE_TOKEN" >>"{folder}/token.txt"'), ("curl", f'cat >>"{folder}/stdin.txt"')):
            (self.tools / name).write_text(f'#!/bin/sh\necho "$*" >>"{folder}/{name}.txt"\n{notes}\n')
            (self.tools / name).chmod(0o755)
        self.env = harness.environment(PATH=f"{self.tools}:{os.environ['PATH']}", GPUPROF_BIN=harness.BIN,
                                       GPUPROF_GATE_BASELINE=folder / "baseline", GPUPROF_GATE_OUT=folder / "ci out") | {
                                           k: str(v) for k, v in settings.items()}
        for name in [n for n in self.env if n.startswith(("GITHUB_", "GH_", "CI_"))]:
            if name not in settings:
                del self.env[name]

    def gate(self, *command, **settings):
        env = {**self.env, **{k: str(v) for k, v in settings.items()}}
        return harness.run(["bash", GATE, *command], env=env, cwd=self.folder)

    def action(self, **inputs):
        """The action's steps as a runner runs them; the outcome is that of the gate's. Inputs have `_` for `-`."""
        action = yaml_of(GATE.parent / "action.yml")
        known = {f"inputs.{name}": row.get("default", "") for name, row in action["inputs"].items()}
        known |= {f"inputs.{name.replace('_', '-')}": str(value) for name, value in inputs.items()}
        outputs = self.folder / "outputs"
        outputs.write_text("")
        done = []
        for step in action["runs"]["steps"]:
            known |= {f"steps.gate.outputs.{line.partition('=')[0]}": line.partition("=")[2] for line in outputs.read_text().splitlines()}
            if any(not known.get(name) for name in re.findall(r"([\w.-]+) != ''", step.get("if", ""))):
                continue
            put = lambda text: re.sub(r"\$\{\{ ([\w.-]+) \}\}", lambda found: known.get(found[1], ""), text)
            env = {**self.env, **{name: put(text) for name, text in step["env"].items()},
                   "GITHUB_ACTION_PATH": str(GATE.parent), "GITHUB_OUTPUT": str(outputs)}
            (self.folder / "step.sh").write_text(step["run"])
            done.append(harness.run(["bash", "--noprofile", "--norc", "-eo", "pipefail", self.folder / "step.sh"], cwd=self.folder, env=env))
        assert [step.code for step in done[1:]] == [0] * len(done[1:])
        return done[0]

    def write_comment(self, *arguments, **settings):
        env = {**self.env, **{k: str(v) for k, v in settings.items()}}
        return harness.run(["bash", GATE.parent / "comment.sh", *arguments], env=env, cwd=self.folder)

    def comment(self):
        return (self.folder / "ci out/comment.md").read_text()


def test_healthy_pairs_pass_and_a_planted_slow_down_fails(tmp_path):
    runner = Runner(tmp_path)
    first = runner.gate(GPUPROF_GATE_RUN=write_run(tmp_path / "base", 0), GPUPROF_GATE_UPDATE="yes")
    assert first.code == 0, first.err
    assert "nothing to compare" in runner.comment()
    for number in range(1, 21):
        done = runner.gate(GPUPROF_GATE_RUN=write_run(tmp_path / f"healthy{number}", number))
        assert done.code == 0, f"pair {number}: {done.out}{done.err}"
    done = runner.gate(GPUPROF_GATE_RUN=write_run(tmp_path / "slow", 99, slower=0.10), GPUPROF_GATE_PAGE="https://example.org/1")
    assert done.code == 1, done.out + done.err
    assert "[The whole report](https://example.org/1)" in runner.comment()
    assert re.search(r"\|.*\|", runner.comment()) and (tmp_path / "ci out/report.html").stat().st_size > 100_000


def test_a_slower_run_does_not_join_the_baseline(tmp_path):
    runner = Runner(tmp_path, GPUPROF_GATE_UPDATE="yes")
    assert runner.gate(GPUPROF_GATE_RUN=write_run(tmp_path / "base", 0)).code == 0
    assert runner.gate(GPUPROF_GATE_RUN=write_run(tmp_path / "slow", 1, slower=0.10)).code == 1
    assert len(os.listdir(tmp_path / "baseline")) == 1
    assert runner.gate(GPUPROF_GATE_RUN=write_run(tmp_path / "good", 2)).code == 0
    assert len(os.listdir(tmp_path / "baseline")) == 2


def test_without_a_baseline_a_request_passes_and_makes_none(tmp_path):
    runner = Runner(tmp_path)
    assert runner.gate(GPUPROF_GATE_RUN=write_run(tmp_path / "run", 0)).code == 0
    assert "no baseline yet" in runner.comment() and not (tmp_path / "baseline").exists()


def test_a_required_baseline_that_is_missing_is_said_before_the_program_starts(tmp_path):
    runner = Runner(tmp_path, GPUPROF_GATE_REQUIRE_BASELINE="yes", GPUPROF_BIN=recorder_of_copies(tmp_path))
    program = ["bash", "-c", f"touch started; {copy_of(write_run(tmp_path / 'run', 0))}"]
    for update in ("no", "yes"):  # one that got lost is not made anew unasked
        done = runner.gate(*program, GPUPROF_GATE_UPDATE=update)
        assert done.code == 2 and done.err.startswith(f"gate.sh: {tmp_path}/baseline holds no good run; "), done.err
    assert not (tmp_path / "started").exists() and not (tmp_path / "baseline").exists()
    assert runner.gate(*program, GPUPROF_GATE_UPDATE="yes", GPUPROF_GATE_REQUIRE_BASELINE="no").code == 0
    assert runner.gate(*program).code == 0


@pytest.mark.parametrize("update", ["true", "Yes", "1"])
def test_a_wrong_yes_or_no_is_said(update, tmp_path):
    """Else each run would pass for want of a baseline."""
    runner = Runner(tmp_path, GPUPROF_GATE_RUN=write_run(tmp_path / "run", 0))
    done = runner.gate(GPUPROF_GATE_UPDATE=update)
    assert done.code == 2 and done.err == f"gate.sh: GPUPROF_GATE_UPDATE={update}: allowed are yes and no\n"
    done = runner.gate(GPUPROF_GATE_REQUIRE_BASELINE=update)
    assert done.code == 2 and done.err == f"gate.sh: GPUPROF_GATE_REQUIRE_BASELINE={update}: allowed are yes and no\n"
    assert runner.gate(GPUPROF_GATE_UPDATE="no").code == 0 and not (tmp_path / "baseline").exists()
    assert runner.gate(GPUPROF_GATE_UPDATE="").code == 0 and not (tmp_path / "baseline").exists()


@pytest.mark.parametrize("kept", [".gitkeep", "README.md", "0000/x", "notes/x"])
def test_a_baseline_that_holds_no_run_is_none(kept, tmp_path):
    file = tmp_path / "baseline" / kept
    file.parent.mkdir(parents=True)
    file.write_text("")
    runner = Runner(tmp_path, GPUPROF_GATE_RUN=write_run(tmp_path / "run", 0))
    done = runner.gate()
    assert done.code == 0 and "no baseline yet" in runner.comment(), done.err
    assert runner.gate(GPUPROF_GATE_UPDATE="yes").code == 0
    assert (tmp_path / "baseline/0001").is_dir()
    assert runner.gate().code == 0 and "no baseline yet" not in runner.comment()


def test_a_run_of_one_step_makes_no_baseline(tmp_path):
    (tmp_path / "run.json").write_text(kineto_traces.training(steps=1).text())
    runner = Runner(tmp_path, GPUPROF_GATE_RUN=tmp_path / "run.json", GPUPROF_GATE_UPDATE="yes")
    done = runner.gate()
    assert done.code == 2 and "it has one step" in done.err and "cannot be the first" in runner.comment(), done.err
    assert not (tmp_path / "baseline").exists()


def test_what_cannot_be_recorded_is_no_failure_of_the_program(tmp_path):
    """And is a line that names the setting."""
    runner = Runner(tmp_path)
    done = runner.gate("true", GPUPROF_BIN="no-such-gpuprof")
    assert done.code == 2 and done.err == "gate.sh: no-such-gpuprof: no such command; install gpuprof, or set GPUPROF_BIN to it\n"
    for options in ("--no-such-option", "--set GPUPROF_STEP=no-such-source", "--step sync:1\n--no-such-option\n"):  # YAML's "|"
        done = runner.gate("true", GPUPROF_GATE_OPTIONS=options)
        assert done.code == 2 and f"gate.sh: GPUPROF_GATE_OPTIONS={' '.join(options.split())}: " in done.err, done.err
        assert "the program ended" not in done.err
    done = runner.gate("no-such-program")
    assert done.code == 3 and "the program ended with 127;" in done.err, done.err


def test_a_program_is_recorded_and_its_failure_is_the_jobs(tmp_path):
    program = "import ctypes, time; c = ctypes.CDLL('libcudart.so.13'); [(time.sleep(0.002), c.cudaDeviceSynchronize()) for _ in range(60)]"
    runner = Runner(tmp_path, GPUPROF_GATE_UPDATE="yes", GPUPROF_GATE_OPTIONS="--step sync:1 --preset light")
    done = runner.gate(harness.PYTHON, "-c", program)
    assert done.code == 0, done.err
    assert len(os.listdir(tmp_path / "baseline")) == 1
    for own in (1, 2, 7):  # none is taken for a slower run, or for one that cannot be compared
        failed = runner.gate(harness.PYTHON, "-c", f"raise SystemExit({own})")
        assert failed.code == 3 and f"the program ended with {own};" in failed.err, failed.err
        assert not (tmp_path / "ci out/comment.md").exists()  # the last call's says nothing of this one
    assert "GPUPROF_GATE" not in done.err and "GPUPROF_BIN" not in done.err, done.err


def test_the_program_gets_no_setting_of_the_gate(tmp_path):
    tokens = {"GPUPROF_GITLAB_TOKEN", "GH_TOKEN", "GITHUB_TOKEN"}
    runner = Runner(tmp_path, GPUPROF_GATE_OPTIONS="--set GPUPROF_MODE=off", **dict.fromkeys(tokens, "secret"))
    runner.gate("sh", "-c", f"env >'{tmp_path}/environment'")
    names = {line.partition("=")[0] for line in (tmp_path / "environment").read_text().splitlines()}
    assert "GPUPROF_RUN" in names and not names & {"GPUPROF_BIN", *tokens}
    assert not [n for n in names if n.startswith("GPUPROF_GATE")]


def test_each_call_compares_its_own_run(tmp_path):
    """Two calls with one folder; the recorder puts a run in place that was made before."""
    runner = Runner(tmp_path, GPUPROF_BIN=recorder_of_copies(tmp_path), GPUPROF_GATE_UPDATE="yes")
    for seed in (0, 1):
        done = runner.gate("bash", "-c", copy_of(write_run(tmp_path / f"run{seed}", seed)))
        assert done.code == 0, done.err
    runs = list((tmp_path / "ci out/runs").iterdir())
    assert [len(os.listdir(run)) for run in runs] == [1, 1]


@pytest.mark.parametrize("change", ["true", "cp slow/* baseline/10", "cp -r slow baseline/0011", "rm -r baseline"])
def test_a_request_is_compared_with_what_the_main_branch_kept(change, tmp_path):
    """Whatever its program does to the folder: puts its own run there, in place of the good one or after it, or removes all."""
    runner = Runner(tmp_path, GPUPROF_BIN=recorder_of_copies(tmp_path), TMPDIR=tmp_path / "tmp")
    (tmp_path / "tmp").mkdir()
    write_run(tmp_path / "baseline/0009", 0, slower=0.10)
    write_run(tmp_path / "baseline/10", 1)  # the newest, by its number
    write_run(tmp_path / "slow", 2, slower=0.10)
    done = runner.gate("bash", "-c", f"{change}; {copy_of('slow')}")
    assert done.code == 1, done.out + done.err
    assert not list((tmp_path / "tmp").iterdir())


def test_only_slower_steps_are_exit_code_1(tmp_path):
    """What the gate itself cannot do is 2, whatever bash or gpuprof would end with."""
    (tmp_path / "file").write_text("")
    run = write_run(tmp_path / "run", 0)
    runner = Runner(tmp_path, GPUPROF_GATE_RUN=run, GITHUB_OUTPUT=tmp_path / "output")
    assert runner.gate(GPUPROF_GATE_BASELINE="").code == 2
    assert runner.gate(GPUPROF_GATE_OUT=tmp_path / "file/below").code == 2
    assert runner.gate(GPUPROF_GATE_UPDATE="yes", GPUPROF_GATE_BASELINE=tmp_path / "file/below").code == 2
    assert (tmp_path / "output").read_text().count("exit-code=2\n") == 3


def test_github_gets_a_summary_and_outputs(tmp_path):
    runner = Runner(tmp_path, GITHUB_STEP_SUMMARY=tmp_path / "summary.md", GITHUB_OUTPUT=tmp_path / "output",
                    GITHUB_REF="refs/pull/12/merge", GITHUB_REPOSITORY="a/b", GH_TOKEN="secret")
    runner.gate(GPUPROF_GATE_RUN=write_run(tmp_path / "run", 0))
    assert (tmp_path / "summary.md").read_text() == runner.comment()
    assert dict(line.split("=") for line in (tmp_path / "output").read_text().splitlines()) == {
        "exit-code": "0", "comment": f"{tmp_path}/ci out/comment.md", "report": f"{tmp_path}/ci out/report.html"}
    assert not (tmp_path / "gh.txt").exists()  # the comment is another step's


def test_github_gets_a_comment(tmp_path):
    """Of the gate that passes and of the one that fails; on the main branch, or without a token, none."""
    runner = Runner(tmp_path, GITHUB_REF="refs/pull/12/merge", GITHUB_REPOSITORY="a/b")
    inputs = {"baseline": tmp_path / "baseline", "out": tmp_path / "ci out"}
    assert runner.action(run=write_run(tmp_path / "run", 0), update="yes", token="secret", **inputs).code == 0
    assert runner.action(run=write_run(tmp_path / "slow", 1, slower=0.10), token="secret", **inputs).code == 1
    assert (tmp_path / "token.txt").read_text() == "github.com secret secret\n" * 2
    assert (tmp_path / "gh.txt").read_text() == f"pr comment 12 --repo github.com/a/b --body-file {tmp_path}/ci out/comment.md\n" * 2
    runner.action(run=tmp_path / "run", **inputs)
    assert runner.action(command="false", token="secret", **inputs).code == 3
    runner.env["GITHUB_REF"] = "refs/heads/main"
    runner.action(run=tmp_path / "run", token="secret", **inputs)
    assert (tmp_path / "gh.txt").read_text().count("\n") == 2


def test_a_server_of_ones_own_gets_the_comment(tmp_path):
    runner = Runner(tmp_path, GITHUB_REF="refs/pull/12/merge", GITHUB_REPOSITORY="a/b", GITHUB_SERVER_URL="https://git.example:8443")
    (tmp_path / "comment.md").write_text("No slower.\n")
    assert runner.write_comment("comment.md", GH_TOKEN="secret").code == 0
    assert (tmp_path / "token.txt").read_text() == "git.example:8443 secret secret\n"
    assert (tmp_path / "gh.txt").read_text() == "pr comment 12 --repo git.example:8443/a/b --body-file comment.md\n"


def test_gitlab_gets_a_note_and_its_token_is_in_no_argument(tmp_path):
    runner = Runner(tmp_path, CI_MERGE_REQUEST_IID="5", CI_API_V4_URL="https://gitlab.example/api/v4", CI_PROJECT_ID="3",
                    GPUPROF_GITLAB_TOKEN="secret")
    runner.gate(GPUPROF_GATE_RUN=write_run(tmp_path / "run", 0))
    assert not (tmp_path / "curl.txt").exists()  # the comment is another job's
    assert runner.write_comment("ci out/comment.md").code == 0
    said = (tmp_path / "curl.txt").read_text()
    assert "https://gitlab.example/api/v4/projects/3/merge_requests/5/notes" in said and "secret" not in said
    assert (tmp_path / "stdin.txt").read_text() == 'header = "PRIVATE-TOKEN: secret"\n'


def test_a_comment_that_cannot_be_written_is_said(tmp_path):
    github, gitlab = {"GITHUB_REF": "refs/pull/12/merge"}, {"CI_MERGE_REQUEST_IID": "5"}
    runner = Runner(tmp_path, GITHUB_REPOSITORY="a/b", CI_API_V4_URL="https://gitlab.example", CI_PROJECT_ID="3")
    assert runner.write_comment(**github).err.startswith("comment.sh: gpuprof-ci/comment.md: no comment; ")
    (tmp_path / "gpuprof-ci").mkdir()
    (tmp_path / "gpuprof-ci/comment.md").write_text("No slower.\n")
    assert runner.write_comment().code == 0  # no request
    assert "set GH_TOKEN" in runner.write_comment(**github).err and "set GPUPROF_GITLAB_TOKEN" in runner.write_comment(**gitlab).err
    for name in ("gh", "curl"):
        (runner.tools / name).write_text("#!/bin/sh\nexit 1\n")
    for settings in ({**github, "GH_TOKEN": "secret"}, {**gitlab, "GPUPROF_GITLAB_TOKEN": "secret"}):
        done = runner.write_comment(**settings)
        assert done.code == 1 and done.err == "comment.sh: the comment could not be written; it is in gpuprof-ci/comment.md\n"


# What each process from the program to the runner was started with.
ANCESTORS = "p=$$; while [ $p -gt 1 ]; do cat /proc/$p/environ; p=$(sed -n 's/^PPid:[[:space:]]*//p' /proc/$p/status); done 2>/dev/null"


def test_no_process_that_the_program_can_read_has_the_token(tmp_path):
    runner = Runner(tmp_path, GITHUB_REF="refs/pull/12/merge", GITHUB_REPOSITORY="a/b", GPUPROF_BIN=recorder_of_copies(tmp_path))
    command = f"({ANCESTORS}) >seen; {copy_of(write_run(tmp_path / 'run', 0))}"
    done = runner.action(command=command, baseline=tmp_path / "baseline", update="yes", token="a-secret")
    assert done.code == 0 and (tmp_path / "token.txt").read_text() == "github.com a-secret a-secret\n", done.err
    seen = (tmp_path / "seen").read_text()
    assert "GPUPROF_GATE_BASELINE=" in seen and "COMMAND=" in seen and "a-secret" not in seen


def test_the_action_hands_each_input_to_a_script():
    """By the environment, and none is written into the script itself. The token is not among those of the gate's step."""
    action = yaml_of(GATE.parent / "action.yml")
    gate, comment = action["runs"]["steps"]
    used = [set(re.findall(r"inputs\.([\w-]+)", json.dumps(step["env"]))) for step in (gate, comment)]
    assert used == [set(action["inputs"]) - {"token"}, {"token"}]
    assert "${{" not in gate["run"] + comment["run"]
    documented = re.findall(r"^# (GPUPROF_GATE_\w+)", GATE.read_text(), flags=re.M)
    assert {n for n in gate["env"] if n.startswith("GPUPROF_GATE")} == set(documented) | {"GPUPROF_GATE_RUN"}


def test_the_action_runs_its_command(tmp_path):
    command = f"{harness.PYTHON} -c \"import ctypes; c = ctypes.CDLL('libcudart.so.13'); [c.cudaDeviceSynchronize() for _ in range(60)]\""
    runner = Runner(tmp_path)
    done = runner.action(command=command, baseline=tmp_path / "baseline", update="yes", options="--step sync:1", out="ci out")
    assert done.code == 0, done.err
    assert (tmp_path / "ci out/report.html").exists() and (tmp_path / "baseline/0001").exists()


# Programs that fail, as people write them: behind a pipe, and in a line that is not the last.
FAILING = {"a pipe": "sh -c 'exit 7' | cat", "an earlier line": "sh -c 'exit 7'\n{more}", "a list": "sh -c 'exit 7'; {more}"}


@pytest.mark.parametrize("how", FAILING)
def test_the_actions_command_fails_if_a_part_of_it_does(how, tmp_path):
    more = copy_of(write_run(tmp_path / "run", 0))
    runner = Runner(tmp_path, GPUPROF_BIN=recorder_of_copies(tmp_path))
    done = runner.action(command=more, baseline=tmp_path / "baseline")
    assert done.code == 0, done.err
    done = runner.action(command=FAILING[how].format(more=more), baseline=tmp_path / "baseline")
    assert done.code == 3 and "the program ended with 7;" in done.err, done.out + done.err


def test_the_pages_yaml_can_be_read():
    """What docs/CI.md and docs/RUNNING.md give to be pasted."""
    yaml = pytest.importorskip("yaml")
    found = [block for page in ("CI", "RUNNING") for block in
             re.findall(r"^```yaml\n(.*?)^```", (harness.SOURCE / f"docs/{page}.md").read_text(), flags=re.M | re.S)]
    assert len(found) == 3
    github, gitlab, pod = [yaml.safe_load(block) for block in found]
    action = yaml_of(GATE.parent / "action.yml")
    steps = github["jobs"]["speed"]["steps"]
    # A request's job reads the main branch's baseline, and does not write it.
    restored, saved = [s for s in steps if "actions/cache" in s.get("uses", "")]
    assert restored["uses"].startswith("actions/cache/restore@") and "if" not in restored
    assert saved["uses"].startswith("actions/cache/save@") and saved["if"] == "github.ref == 'refs/heads/main'"
    assert {name: restored["with"][name] for name in ("path", "key")} == saved["with"]
    assert restored["with"]["key"].startswith(restored["with"]["restore-keys"])
    # By the kind of machine: a runner of one job has a name of its own.
    assert "runner" not in restored["with"]["key"] and "$" not in restored["with"]["restore-keys"] + gitlab["speed"]["cache"]["key"]
    step, = [s for s in steps if "packaging/ci" in s.get("uses", "")]
    assert set(step["with"]) <= set(action["inputs"])
    assert steps[0]["with"] == {"persist-credentials": False}  # else the program can read the token in .git/config
    speed, comment = gitlab["speed"], gitlab["speed-comment"]
    assert any("packaging/ci/gate.sh" in line for line in speed["script"])
    # The job with the token runs no program, and only for merge requests.
    assert comment["script"] == ["gpuprof/packaging/ci/comment.sh"] and comment["needs"] == ["speed"]
    assert [(rule["if"], rule["when"]) for rule in comment["rules"]] == [('$CI_PIPELINE_SOURCE == "merge_request_event"', "always")]
    assert comment["environment"]["name"] == "gpuprof-comment" and "environment" not in speed
    # Merge requests have pipelines, read the main branch's baseline, and do not write it.
    main, request = speed["rules"]
    assert "DEFAULT_BRANCH" in main["if"] and "merge_request_event" in request["if"] and "variables" not in request
    assert main["variables"] == {"GPUPROF_GATE_UPDATE": "yes", "BASELINE_POLICY": "pull-push"}
    assert speed["cache"]["unprotect"] is True and speed["cache"]["policy"] == "$BASELINE_POLICY"
    assert speed["variables"]["BASELINE_POLICY"] == "pull" and "GPUPROF_GATE_UPDATE" not in speed["variables"]
    volumes = {v["name"] for v in pod["spec"]["volumes"]}
    mounts = {m["name"] for c in pod["spec"]["containers"] + pod["spec"]["initContainers"] for m in c["volumeMounts"]}
    assert pod["kind"] == "Pod" and mounts == volumes


def test_reference_jobs_of_every_week(tmp_path):
    """One job stays as fast, one becomes slower, two fail, and a line is none."""
    copy = lambda seed, slower=0.0: copy_of(write_run(tmp_path / f"run{seed}", seed, slower))
    jobs = tmp_path / "jobs.txt"
    weekly = lambda: harness.run(["bash", GATE.parent / "weekly.sh", jobs, tmp_path / "weekly"], cwd=tmp_path,
                                 env=harness.environment(GPUPROF_BIN=recorder_of_copies(tmp_path)))
    jobs.write_text(f"# name command\nsteady {copy(0)}\nchanged {copy(1)}")  # without a last newline
    first = weekly()
    assert first.code == 0 and first.out.count("no slower") == 2, first.out + first.err
    jobs.write_text(f"steady {copy(2)}\nchanged {copy(3, slower=0.10)}\n")
    second = weekly()
    outcomes = dict(re.findall(r"^(\w+) +(no slower|SLOWER|FAILED|NOT COMPARED)", second.out, flags=re.M))
    assert (second.code, outcomes) == (1, {"steady": "no slower", "changed": "SLOWER"}), second.out + second.err
    jobs.write_text(f"breaks exit 7\nwrong exit 1\npiped false | cat\nearlier false; {copy(6)}\nbad/name true\n")
    third = weekly()
    outcomes = dict(re.findall(r"^(\w+) +(no slower|SLOWER|FAILED|NOT COMPARED)", third.out, flags=re.M))
    assert (third.code, outcomes) == (2, dict.fromkeys(["breaks", "wrong", "piped", "earlier"], "FAILED")), third.out + third.err
    assert "'bad/name true'" in third.err
    jobs.write_text("\n")
    assert weekly().code == 2
    jobs.write_text(f"steady {copy(4)}\nsteady {copy(5)}\n")  # their runs would lie in one folder
    twice = weekly()
    assert twice.code == 2 and twice.out.count("no slower") == 1 and "'steady' is there twice" in twice.err, twice.out + twice.err
