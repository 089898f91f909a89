# SPDX-License-Identifier: Apache-2.0
"""Scripts that make a folder anew: they delete one of their own, and nothing else. What takes long is stood in for."""
import shutil

import pytest

import harness

TOOLS = harness.SOURCE / "tools"


def stand_in(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/bash\nset -eu\n{text}\n")
    path.chmod(0o755)


@pytest.fixture(name="demo")
def demo_in_a_tree(tmp_path):
    """The demo in a tree whose build is there, without a GPU. A command: demo(ARGUMENTS, cwd)."""
    tree, commands = tmp_path / "tree", tmp_path / "commands"
    (tree / "tools").mkdir(parents=True)
    for name in ("demo.sh", "progress.sh"):
        shutil.copy(TOOLS / name, tree / "tools")
    (tree / "tools/demo_summary.py").write_text("")
    stand_in(tree / "tools/setup.sh", "")
    stand_in(tree / "build/tools/gpuprof", '[ "$1" != run ] || { mkdir -p "$3/run"; touch "$3/run/x.gpuprof"; }')
    stand_in(commands / "cmake", "")
    stand_in(commands / "nvidia-smi", "exit 9")
    env = harness.environment(PATH=f"{commands}:{harness.environment()['PATH']}")
    return lambda *arguments: harness.run(["bash", tree / "tools/demo.sh", *arguments], env=env, cwd=tmp_path)


@pytest.fixture(name="sysroot")
def sysroot_of_stand_ins(tmp_path):
    """The script that unpacks arm64 packages, with one package that holds what the script names."""
    content, commands = tmp_path / "content", tmp_path / "commands"
    for name in ("usr/bin/qemu-aarch64-static", "usr/share/base-passwd/passwd.master", "usr/share/base-passwd/group.master"):
        (content / name).parent.mkdir(parents=True, exist_ok=True)
        (content / name).write_text("")
    stand_in(commands / "apt-get", f"""[ ! -e {tmp_path}/no_network ] || exit 100
case "$*" in
  *--download-only*) touch "$(sed -n 's/^Dir::Cache "\\(.*\\)";/\\1/p' "$APT_CONFIG")/archives/one.deb" ;;
  *download*) touch qemu-user-static_1.deb ;;
esac""")
    stand_in(commands / "dpkg-deb", f'[ "$1" != --fsys-tarfile ] || exec tar -C {content} -c .\necho one')
    env = harness.environment(PATH=f"{commands}:{harness.environment()['PATH']}")
    return lambda *arguments: harness.run(["bash", TOOLS / "aarch64_sysroot.sh", *arguments], env=env, cwd=tmp_path)


@pytest.mark.parametrize("script", ["demo", "sysroot"])
@pytest.mark.parametrize("kept", ["notes.txt", "run/x.gpuprof", "packages", ".hidden"])
def test_a_folder_that_others_filled_stays(script, kept, request, tmp_path):
    file = tmp_path / "mine" / kept
    file.parent.mkdir(parents=True)
    file.write_text("mine")
    for name in ("mine", "./mine/", tmp_path / "mine"):
        done = request.getfixturevalue(script)(name)
        assert done.code == 2 and not done.out, done.out
        assert done.err.count("\n") == 1 and f"{tmp_path}/mine holds what" in done.err and "name a new or an empty folder" in done.err
    assert file.read_text() == "mine"


@pytest.mark.parametrize("script", ["demo", "sysroot"])
@pytest.mark.parametrize("arguments", [["--help"], ["out", "more"]])
def test_what_is_no_folder_is_refused(script, arguments, request, tmp_path):
    done = request.getfixturevalue(script)(*arguments)
    assert done.code == 2 and done.err.startswith("usage: "), done.err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("script", ["demo", "sysroot"])
def test_a_folder_of_the_script_is_made_anew(script, request, tmp_path):
    """And one that is empty or not there; a relative path is the caller's."""
    made = request.getfixturevalue(script)
    (tmp_path / "empty").mkdir()
    for name in ("empty", "new/below"):
        done = made(name)
        assert done.code == 0, done.err
        assert len(list((tmp_path / name).iterdir())) > 1
    (tmp_path / "empty/older").write_text("")
    done = made("empty")
    assert done.code == 0 and not (tmp_path / "empty/older").exists(), done.err


def test_the_demo_has_a_folder_of_its_own(demo, tmp_path):
    done = demo()
    assert done.code == 0 and (tmp_path / "tree/gpuprof-out/demo/run/x.gpuprof").exists(), done.err


def test_packages_that_cannot_be_had_leave_the_folder(sysroot, tmp_path):
    assert sysroot("root").code == 0
    (tmp_path / "no_network").write_text("")
    assert sysroot("root").code != 0
    assert (tmp_path / "root/qemu-aarch64-static").exists() and not list(tmp_path.glob("root.*"))
