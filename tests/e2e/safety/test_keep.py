# SPDX-License-Identifier: Apache-2.0
"""GPUPROF_KEEP: a new run removes old runs, whoever begins, waits, forks, is killed or comes late beside it; no file of a
run in use goes, and nothing that is not gpuprof's. GPUPROF_LONG_TESTS=1: 200 seeds."""
import contextlib
import os
import pathlib
import random
import shutil
import subprocess
import threading
import time

import pytest

import harness

PROGRAM = harness.HAZARDS / "run_in_use"
REFUSED = harness.HAZARDS / "refused"
SEEDS = range(200 if os.environ.get("GPUPROF_LONG_TESTS") == "1" else 20)
HOUR = 3600
# A process as in a container: nobody here has its number, which is to be the one after the first word.
CONTAINED = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c", 'echo "$1" >/proc/sys/kernel/ns_last_pid && { "$0"; exit $?; }']
FIRST_CONTAINED = 3_000_000
CAN_CONTAIN = os.geteuid() == 0 and subprocess.run([*CONTAINED, "/bin/true", str(FIRST_CONTAINED)], capture_output=True).returncode == 0
# A window of two steps after the other, without end: each two steps leave a dump.
SETTINGS = {"GPUPROF_STEP": "sync:1", "GPUPROF_SCHEDULE": "skip_first=0,wait=0,warmup=0,active=2,repeat=0", "GPUPROF_CUPTI": "off",
            "GPUPROF_PRESET": "light", "GPUPROF_BUFFER_MB": 1}


def make_older(folder, seconds=HOUR, runs=None):
    """Sets all in the runs of `folder` to so long ago."""
    then = time.time() - seconds
    for run in runs or list_of(folder):
        for entry in [*list_of(run), run]:
            with contextlib.suppress(FileNotFoundError):
                os.utime(entry, (then, then), follow_symlinks=False)


def list_of(folder):
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        return [entry.path for entry in os.scandir(folder)]
    return []


@contextlib.contextmanager
def always_old(folder):
    """As if each moment were an hour: no run is spared for having changed lately."""
    over = threading.Event()

    def run():
        while not over.is_set():
            make_older(folder)
            over.wait(0.002)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


class Process:
    """One of a run, which does a thing at a time."""

    def __init__(self, out, run, keep=1, rank=0, number=None, **settings):
        """`number`: of a process in a namespace of its own."""
        env = harness.preloaded(**{**SETTINGS, "GPUPROF_OUTPUT": out, "GPUPROF_RUN": run, "GPUPROF_KEEP": keep, "RANK": rank,
                                   **settings})
        self.folder, self.steps, self.children, self.unanswered = pathlib.Path(out, run), 0, [], 0
        self.armed = settings.get("GPUPROF_MODE") == "armed"
        command = [PROGRAM] if number is None else [*CONTAINED, PROGRAM, str(number - 1)]
        self.contained = number is not None
        self.process = subprocess.Popen(command, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                        text=True)
        self.pid = number or self.process.pid

    def ask(self, what):
        self.process.stdin.write(what + "\n")
        self.process.stdin.flush()
        self.steps += 2 if what == "steps" else 0
        self.unanswered += 1

    def wait(self):
        """Until it has done what it was asked for."""
        for _ in range(self.unanswered):
            answer = self.process.stdout.readline()
            assert answer, self.process.stderr.read()
            if answer != "0\n":
                self.children.append(int(answer))
        self.unanswered = 0

    def tell(self, what):
        self.ask(what)
        self.wait()

    def files(self, *endings, pid=None):
        return {name for name in os.listdir(self.folder) if f"_{pid or self.pid}_" in name and name.endswith(endings)}

    def wait_for_windows(self, least, pid=None):
        """The last window may still be open, or on its way to the disk."""
        deadline = time.monotonic() + 60
        while len(self.files(".gpuprof", pid=pid)) < least:
            assert time.monotonic() < deadline, (self.pid, self.steps, list_of(self.folder))
            time.sleep(0.01)

    def check(self):
        """What it has written so far is there. The process is alive."""
        assert self.process.poll() is None, self.process.stderr.read()
        if self.steps:
            assert self.files(".gpuprof.ring"), (self.pid, list_of(self.folder))
            self.wait_for_windows(0 if self.armed else self.steps // 2 - 1)
        for child in self.children:
            self.wait_for_windows(1, child)

    def kill(self):
        self.process.kill()
        self.process.stdout.read()  # a container's processes die after it, and are not to see the end of their input before
        self.process.communicate()

    def end(self):
        """Its lines."""
        err = self.process.communicate()[1]
        assert self.process.returncode == 0, err
        return harness.our_lines(err)

    def end_children(self):
        for child in self.children:
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, 9)


@pytest.fixture(name="dump", scope="module")
def fixture_dump(tmp_path_factory):
    """A dump, to copy."""
    out = tmp_path_factory.mktemp("dump")
    done = harness.run([REFUSED.parent / "end", "exit"], harness.preloaded(GPUPROF_OUTPUT=out, **harness.WHOLE_RUN))
    path, = harness.dumps(out)
    assert path.suffix == ".gpuprof", done.err
    return path


def make_run(out, name, dump, seconds=HOUR):
    folder = pathlib.Path(out, name)
    folder.mkdir(mode=0o700, parents=True)
    shutil.copy(dump, folder / f"h_r0_4194303_{int(time.time() - seconds) * 10**9}_w0.gpuprof")
    make_older(out, seconds, [folder])
    return folder


def new_run(out, name, **settings):
    """A process that begins a run and ends. Its lines."""
    process = Process(out, name, **settings)
    process.tell("steps")
    return process.end()


def names(out):
    return sorted(entry.name for entry in os.scandir(out))


@pytest.mark.parametrize("keep,left", [("all", "abcdn"), ("1", "n"), ("3", "abn"), ("2.5d", "abn"), ("4,1.5d", "an"), ("1.2GB", "abn"), ("10GB", "abcdn")])
def test_the_newest_stay(tmp_path, dump, keep, left):
    for days, name in enumerate("abcd", 1):
        folder = make_run(tmp_path, name, dump, days * 24 * HOUR)
        big = folder / f"h_r0_4194303_{days}_w1.gpuprof"
        with big.open("wb") as file:
            os.posix_fallocate(file.fileno(), 0, 500_000_000)
        make_older(tmp_path, days * 24 * HOUR, [folder])
    lines = new_run(tmp_path, "n", keep=keep, GPUPROF_LOG="info")
    assert names(tmp_path) == sorted([*left, "latest"])
    gone = 5 - len(left)
    assert [line for line in lines if "old runs" in line] == ([f"gpuprof: GPUPROF_KEEP={keep}: removed {gone} old runs beside "
                                                               f"{tmp_path}/n ({gone * 0.5:.1f} GB)"] if gone else [])
    harness.checked("info", *harness.dumps(tmp_path / "n"))


def test_a_run_that_goes_on_removes_between_its_windows(tmp_path, dump):
    make_run(tmp_path, "a", dump)
    process = Process(tmp_path, "n", GPUPROF_MODE="armed")
    process.tell("steps")
    deadline = time.monotonic() + 60
    while (tmp_path / "a").exists():
        assert time.monotonic() < deadline
        time.sleep(0.01)
    process.end()


def test_what_changed_lately_or_is_the_latest_stays(tmp_path, dump):
    make_run(tmp_path, "latest-one", dump, 9 * HOUR)
    make_run(tmp_path, "recent", dump, 4 * 60)
    make_run(tmp_path, "old", dump, 6 * 60)
    (tmp_path / "latest").symlink_to("latest-one")
    # Armed: it writes no dump, which would be the latest.
    process = Process(tmp_path, "n", GPUPROF_MODE="armed")
    process.tell("steps")
    process.end()
    assert names(tmp_path) == ["latest", "latest-one", "n", "recent"]


def test_a_process_that_joins_a_run_removes_nothing(tmp_path, dump):
    make_run(tmp_path, "old", dump)
    make_run(tmp_path, "job", dump)
    new_run(tmp_path, "job", rank=1)
    assert names(tmp_path) == ["job", "latest", "old"]


def test_a_bad_value_is_one_line(tmp_path, dump):
    make_run(tmp_path, "old", dump)
    lines = new_run(tmp_path, "n", keep="20runs")
    assert len(lines) == 1 and 'GPUPROF_KEEP="20runs": must be all, or a list of N (runs)' in lines[0], lines
    assert names(tmp_path) == ["old"]
    config = harness.gpuprof("config", env=harness.environment(GPUPROF_KEEP="20,50GB"))
    assert "20,50GB" in config.out and config.code == 0, config


def test_without_locks_nothing_goes(tmp_path, dump):
    make_run(tmp_path, "old", dump)
    env = harness.preloaded(**{**SETTINGS, "GPUPROF_OUTPUT": tmp_path, "GPUPROF_RUN": "n", "GPUPROF_KEEP": 1})
    done = harness.run([REFUSED, "no_locks", "--", REFUSED.parent / "end", "exit"], env)
    lines = [line for line in harness.our_lines(done.err) if "KEEP" in line]
    assert len(lines) == 1 and "run folders cannot be locked (No locks available)" in lines[0], done.err
    assert names(tmp_path) == ["latest", "n", "old"] and harness.dumps(tmp_path / "n")


def test_a_ring_elsewhere_goes_with_its_run(tmp_path):
    scratch, out = tmp_path / "scratch", tmp_path / "out"
    scratch.mkdir()
    killed = Process(out, "old", GPUPROF_SCRATCH=scratch)
    killed.tell("steps")
    killed.kill()
    assert len(list(scratch.iterdir())) == 1
    (out / "latest").unlink()
    make_older(out)
    new_run(out, "n", GPUPROF_SCRATCH=scratch)
    assert names(out) == ["latest", "n"] and list(scratch.iterdir()) == []


def test_a_program_that_closes_our_descriptors_keeps_its_run(tmp_path):
    process = Process(tmp_path, "job")
    process.tell("steps")
    with always_old(tmp_path):
        for number in range(5):
            process.tell("close")
            process.tell("steps")
            new_run(tmp_path, f"n{number}")
            process.check()
        process.wait_for_windows(process.steps // 2 - 1)
        harness.checked("info", *harness.dumps(tmp_path / "job"))
    assert not [line for line in process.end() if "cannot" in line]


@pytest.mark.skipif(not CAN_CONTAIN, reason="needs root, and high numbers of processes")
def test_a_process_of_another_namespace_keeps_its_run(tmp_path):
    process = Process(tmp_path, "job", number=FIRST_CONTAINED)
    process.tell("steps")
    with always_old(tmp_path):
        for number in range(3):
            process.tell("steps")
            new_run(tmp_path, f"n{number}")
            process.check()
    assert names(tmp_path) == ["job", "latest", "n2"]
    process.end()


class Others:
    """What a run's removal must leave: it is not gpuprof's, or not this user's."""

    def __init__(self, folder, out, dump):
        elsewhere = make_run(folder, "elsewhere", dump)
        (out / "link").symlink_to(elsewhere)
        run = make_run(out, "with-notes", dump)
        ours, = run.iterdir()
        (run / "notes.txt").write_text("mine")
        (run / ours.name.replace("_w0", "_w1")).symlink_to(next(elsewhere.iterdir()))
        (out / "file").write_text("mine")
        (out / "plain").mkdir()
        (out / "plain/weights.bin").write_text("mine")
        if harness.can_give_files_to_somebody():
            theirs = make_run(out, "theirs", dump)
            for path in [theirs, *theirs.iterdir()]:
                os.chown(path, harness.SOMEBODY, harness.SOMEBODY)
        self.roots, self.ours = [elsewhere, *(out / name for name in ("link", "with-notes", "file", "plain", "theirs"))], ours
        self.before = self.look()

    def look(self):
        found = {}
        for root in self.roots:
            for path in [root, *root.rglob("*")]:
                found[path] = os.readlink(path) if path.is_symlink() else path.read_bytes() if path.is_file() else None
        return {path: contents for path, contents in found.items() if path != self.ours}

    def check(self):
        assert self.look() == self.before
        assert not self.ours.exists()


class Trial:
    """Runs that begin, wait, record, fork, close descriptors, lose a rank and get late ones, while others come and remove."""

    def __init__(self, folder, seed, dump):
        self.draw, self.out = random.Random(seed), folder / "out"
        self.out.mkdir()
        # A process is known by its lock or by its number. Without its descriptors it has only that, which nobody in another
        # namespace knows: a trial has containers, or programs that close descriptors.
        self.contains = CAN_CONTAIN and self.draw.random() < 0.5
        self.others = Others(folder, self.out, dump)
        self.old = [make_run(self.out, f"old{number}", dump) for number in range(3)]
        self.live, self.short, self.gone, self.lines, self.number = [], [], [], [], FIRST_CONTAINED

    def settings(self):
        return {"keep": self.draw.choice([1, 2, "1,10d", "0.000001GB"]),
                "GPUPROF_MODE": self.draw.choice(["on", "on", "armed"])}

    def begin(self):
        """A process of a run that others live in, or of a new one."""
        run = self.draw.choice([self.draw.choice(self.live).folder.name if self.live else "job", f"job{self.draw.randrange(3)}"])
        number = None
        if self.contains and self.draw.random() < 0.4:
            self.number += 10
            number = self.number
        process = Process(self.out, run, rank=self.draw.randrange(4), number=number, **self.settings())
        if self.draw.random() < 0.2 and not process.armed and not process.contained:
            process.ask("fork")
        process.ask("steps")
        self.live.append(process)

    def come_and_go(self):
        """Two that begin and end at the same moment, in a run that may be going just now."""
        for _ in range(2):
            process = Process(self.out, self.draw.choice(["short0", "short1", "job0", "job1"]), **self.settings())
            process.ask("steps")
            process.process.stdin.close()
            process.process.stdin = None
            self.short.append(process)

    def lose(self):
        """A rank of a run in which another one lives is killed: what it left stays."""
        victim = self.draw.choice(self.live)
        victim.wait()
        if any(other is not victim and other.folder == victim.folder for other in self.live) and not victim.children:
            self.live.remove(victim)
            victim.check()
            before = victim.files(".gpuprof", ".gpuprof.ring")
            victim.kill()
            self.gone.append((victim, before))

    def leave(self):
        """A process ends; its dumps stay while another one of the run lives, as its child."""
        process = self.draw.choice(self.live)
        self.live.remove(process)
        process.wait()
        process.check()
        before = process.files(".gpuprof")
        self.lines += process.end()
        self.gone.append((process, before))
        # A run that nobody uses any more may go, also if another one of its name comes.
        self.gone = [(gone, before) for gone, before in self.gone if self.holder_of(gone.folder)]

    def holder_of(self, folder):
        return any(process.folder == folder for process in self.live) or any(
            gone.folder == folder and gone.children for gone, _ in self.gone)

    def check(self):
        for process in self.live:
            process.check()
        for gone, before in self.gone:
            assert before <= gone.files(".gpuprof", ".gpuprof.ring"), (gone.pid, before, list_of(gone.folder))
            for child in gone.children:
                gone.wait_for_windows(1, child)

    def act(self):
        actions = [self.begin, self.begin, self.come_and_go, self.come_and_go]
        if len(self.live) > 1:
            actions += [self.lose, self.leave, self.move, self.close]
        self.draw.choice(actions)()

    def move(self):
        self.draw.choice(self.live).ask("steps")

    def close(self):
        """Its lock goes with its descriptors: until the drain thread has it again only its number tells that it lives."""
        if not self.contains:
            self.draw.choice(self.live).ask("close")

    def run(self):
        try:
            with always_old(self.out):
                for _ in range(4):
                    for _ in range(3):
                        self.act()
                    for process in self.live:
                        process.wait()
                    self.check()
                self.finish()
        finally:
            for process in [*self.live, *self.short, *(gone for gone, _ in self.gone)]:
                process.end_children()
                process.process.kill()

    def finish(self):
        self.lines += [line for process in self.short for line in process.end()]
        # Nobody records now, and nobody removes but one more.
        self.lines += new_run(self.out, "last", keep=1)
        self.check()
        kept = [path for process in self.live for path in harness.dumps(process.folder)]
        if kept:
            harness.checked("info", *set(kept))
        self.others.check()
        left = [folder.name for folder in self.old if folder.exists()]
        assert left == [], "old runs were not removed"
        for process in self.live:
            self.lines += process.end()
        bad = [line for line in self.lines if "cannot" in line or "lost" in line and " 0 lost" not in line]
        assert bad == []


@pytest.mark.parametrize("seed", SEEDS)
def test_no_run_in_use_loses_a_file(tmp_path, seed, dump):
    Trial(tmp_path, seed, dump).run()


# Linux's linux/magic.h, and what Lustre, GPFS, AFS and BeeGFS say of themselves.
NETWORK = {"nfs": 0x6969, "smb1": 0xff534d42, "smb2": 0xfe534d42, "fuse": 0x65735546, "ceph": 0x00c36400, "afs": 0x5346414f,
           "lustre": 0x0bd00bd0, "gpfs": 0x47504653, "beegfs": 0x19830326}
LOCAL = {"ext": 0xef53, "xfs": 0x58465342, "btrfs": 0x9123683e, "tmpfs": 0x01021994, "overlay": 0x794c7630, "9p": 0x01021997}


@pytest.mark.parametrize("kind", [*NETWORK, *LOCAL])
def test_a_network_file_system_is_known(kind, tmp_path):
    """Nothing is removed there, which one line says."""
    env = harness.preloaded(GPUPROF_OUTPUT=tmp_path, GPUPROF_KEEP="1", NETWORK_DISK=hex({**NETWORK, **LOCAL}[kind]), **SETTINGS)
    env["LD_PRELOAD"] += f":{harness.HAZARDS / 'libnetwork_disk.so'}"
    done = harness.run([harness.HAZARDS / "end", "return"], env)
    assert done.code == 3 and ("locks on a network file system" in done.err) == (kind in NETWORK), done.err
