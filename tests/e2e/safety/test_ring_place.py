# SPDX-License-Identifier: Apache-2.0
"""Live buffers lie where a full disk cannot end the program: not on file systems that write pages anew."""
import contextlib
import os
import shutil
import subprocess
import time

import harness
import pytest

# Linux's linux/magic.h, OpenZFS's include/sys/zfs_vfsops.h, bcachefs' bcachefs_format.h.
ANEW = {"btrfs": 0x9123683e, "ZFS": 0x2fc12fc1, "bcachefs": 0xca451a4e, "NILFS2": 0x3434, "UBIFS": 0x24051905,
        "overlay above btrfs": 0x794c7630}
ENDLESS = [harness.SIMTRAIN, "--steps", "1000000", "--markers", "sync"]


def preloaded(folder, kind, under, **settings):
    env = harness.preloaded(GPUPROF_OUTPUT=folder / "out", NETWORK_DISK=hex(ANEW[kind]), NETWORK_DISK_UNDER=under, GPUPROF_STEP="sync:1",
                            GPUPROF_SCHEDULE="skip_first=1,warmup=1,active=20,repeat=0", **settings)
    env["LD_PRELOAD"] += f":{harness.HAZARDS / 'libnetwork_disk.so'}"
    return env


@contextlib.contextmanager
def running(env, log, command=(*ENDLESS,)):
    """The program, once it has written two windows."""
    with open(log, "w") as said, subprocess.Popen([*map(str, command)], env=env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                                  stderr=said) as process:
        try:
            end = time.monotonic() + 60
            while sum(path.suffix == ".gpuprof" for path in (log.parent / "out").rglob("*")) < 2:
                assert process.poll() is None and time.monotonic() < end, log.read_text()
                time.sleep(0.02)
            yield process
        finally:
            process.kill()


def rings(folder):
    return [path for path in folder.rglob("*.ring") if not path.is_symlink()]


@pytest.mark.parametrize("kind", ANEW)
def test_another_folder_is_taken(tmp_path, kind):
    (tmp_path / "near").mkdir()
    with running(preloaded(tmp_path, kind, tmp_path / "out", TMPDIR=tmp_path / "near"), tmp_path / "log"):
        [ring] = rings(tmp_path)
        assert ring.parent == tmp_path / "near"
        [link] = (tmp_path / "out").rglob("*.ring")
        assert link.resolve() == ring
    assert "buffers" not in (tmp_path / "log").read_text()


@pytest.mark.parametrize("kind", ANEW)
def test_memory_where_no_folder_suits(tmp_path, kind):
    with running(preloaded(tmp_path, kind, "/", TMPDIR=tmp_path), tmp_path / "log"):
        assert rings(tmp_path) == []
    lines = [line for line in harness.our_lines((tmp_path / "log").read_text()) if "buffers" in line]
    assert len(lines) == 1 and f"is on {kind}, where a full disk would end the program (GPUPROF_SCRATCH takes " in lines[0], lines
    assert lines[0].endswith("buffers are in memory only, a killed process loses its window")


def test_memory_where_the_chosen_folder_does_not_suit(tmp_path):
    (tmp_path / "scratch").mkdir()
    with running(preloaded(tmp_path, "btrfs", tmp_path / "scratch", GPUPROF_SCRATCH=tmp_path / "scratch"), tmp_path / "log"):
        assert rings(tmp_path) == []
    assert (tmp_path / "log").read_text().count(f"{tmp_path}/scratch/") == 1


@pytest.fixture(name="btrfs")
def small_btrfs(tmp_path):
    """A folder on a btrfs of 400 MB."""
    if os.geteuid() != 0 or not shutil.which("mkfs.btrfs"):
        pytest.skip("needs root and mkfs.btrfs (btrfs-progs)")
    image, folder = tmp_path / "image", tmp_path / "disk"
    folder.mkdir()
    with open(image, "wb") as file:
        file.truncate(400 << 20)
    subprocess.run(["mkfs.btrfs", "-q", image], check=True, capture_output=True)
    if subprocess.run(["mount", "-o", "loop", image, folder], check=False, capture_output=True).returncode:
        pytest.skip("no btrfs can be mounted here")
    yield folder
    for _ in range(50):
        if subprocess.run(["umount", folder], check=False, capture_output=True).returncode == 0:
            break
        time.sleep(0.1)


@pytest.mark.parametrize("overlay", [False, True])
def test_a_full_btrfs_ends_no_program(tmp_path, btrfs, overlay):
    """With the buffers on it the next page that is written raises SIGBUS, though it had a block."""
    scratch, wrapper = btrfs, []
    if overlay:
        for name in ("upper", "work", "lower"):
            (btrfs / name).mkdir()
        scratch = tmp_path / "merged"
        scratch.mkdir()
        options = f"lowerdir={btrfs}/lower,upperdir={btrfs}/upper,workdir={btrfs}/work"
        wrapper = ["unshare", "--mount", "sh", "-c", f'mount -t overlay overlay -o {options} {scratch} && exec "$@"', "sh"]
        if subprocess.run([*wrapper, "true"], check=False, capture_output=True).returncode:
            pytest.skip("no overlay can be mounted here")
    env = harness.preloaded(GPUPROF_OUTPUT=tmp_path / "out", GPUPROF_SCRATCH=scratch, GPUPROF_STEP="sync:1", GPUPROF_PRESET="full",
                            GPUPROF_SCHEDULE="skip_first=1,warmup=1,active=20,repeat=0")
    preload = env.pop("LD_PRELOAD")
    command = [*wrapper, "env", f"LD_PRELOAD={preload}", *ENDLESS]
    with running(env, tmp_path / "log", command) as process:
        with open(btrfs / "filler", "wb") as file, contextlib.suppress(OSError):
            while file.write(bytes(1 << 20)):
                file.flush()
        os.sync()
        time.sleep(3)
        assert process.poll() is None, (tmp_path / "log").read_text()
