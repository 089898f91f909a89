# SPDX-License-Identifier: Apache-2.0
"""packaging/release.sh in a tree of its own, in which what builds, packs and fetches is stood in for."""
import os
import shutil

import pytest

import harness

pytestmark = pytest.mark.skipif(not shutil.which("git"), reason="no git here")
MADE = {"SHA256SUMS", "gpuprof-0.1.0-linux-x86_64.tar.gz", "gpuprof-0.1.0-py3-none-x86_64.whl", "gpuprof_0.1.0_amd64.deb"}


def stand_in(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/bash\nset -eu\n{text}\n")
    path.chmod(0o755)


class Tree:
    """A repository with the script, and a folder beside it from which it is called."""

    def __init__(self, folder):
        self.here = folder / "here"
        self.tree = folder / "tree"
        self.here.mkdir()
        commands = folder / "commands"
        packaging = self.tree / "packaging"
        packaging.mkdir(parents=True)
        shutil.copy(harness.SOURCE / "packaging/release.sh", packaging)
        (self.tree / "CMakeLists.txt").write_text("project(gpuprof VERSION 0.1.0 LANGUAGES C CXX)\n")
        (self.tree / "CHANGELOG.md").write_text("## 0.1.0 (2026-01-01)\n")
        (self.tree / ".gitignore").write_text((harness.SOURCE / ".gitignore").read_text())
        stand_in(packaging / "release_tools.sh", f"echo {commands}")
        stand_in(packaging / "third_party.sh", "echo glibc=1")
        stand_in(packaging / "check_release.sh", '[ -s "$1/SHA256SUMS" ] && [ -z "${FAIL_CHECK:-}" ]')
        (packaging / "make_wheel.py").write_text("import os, sys\nos.mkdir(sys.argv[2])\n")
        stand_in(commands / "cmake", """case $1 in
  --preset) mkdir -p "$4"; [ ! -e "$4/old" ]; touch "$4/CMakeCache.txt" "$4/old" ;;
  --build) [ -z "${FAIL_BUILD:-}" ] ;;
esac""")
        stand_in(commands / "cpack", 'mkdir "$4"\necho "$SOURCE_DATE_EPOCH" >"$4/gpuprof-0.1.0-linux-x86_64.tar.gz"; touch "$4/gpuprof_0.1.0_amd64.deb" "$4/x.sha256"')
        stand_in(commands / "wheel", 'touch "$3/gpuprof-0.1.0-py3-none-x86_64.whl"')
        self.env = harness.environment(PATH=f"{commands}:{os.environ['PATH']}", HOME=folder, GIT_CONFIG_NOSYSTEM="1")
        self.git("init", "-q", "-b", "main")
        self.git("add", "-A")
        self.git("-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "All")

    def git(self, *arguments):
        done = harness.run(["git", "-C", self.tree, *arguments], env=self.env)
        assert done.code == 0, done.err

    def release(self, *arguments, sources="--no-sources", **settings):
        env = {**self.env, **{k: str(v) for k, v in settings.items()}}
        return harness.run(["bash", self.tree / "packaging/release.sh", *[sources][:bool(sources)], *arguments], env=env, cwd=self.here)

    def beside(self):
        """What lies in the folder from which it is called."""
        return {path.name for path in self.here.iterdir()}


@pytest.fixture(name="tree")
def tree_of_stand_ins(tmp_path):
    return Tree(tmp_path)


def names(folder):
    return {path.name for path in folder.iterdir()}


def test_a_release_is_made_in_the_callers_folder(tree):
    for _ in range(2):  # the second takes the place of the first
        done = tree.release("new/out")
        assert done.code == 0, done.err
        assert names(tree.here / "new/out") == MADE and tree.beside() == {"new"} and names(tree.here / "new") == {"out"}
    assert tree.release().code == 0
    assert names(tree.tree / "build-portable/release") == MADE


def test_options_stand_before_or_after_the_folder(tree):
    done = tree.release("out", "--no-sources", "--arch", "x86_64", sources="")
    assert done.code == 0 and names(tree.here / "out") == MADE, done.err
    for arguments, said in ((["out", "more"], "'more' is one folder too many"), (["out", "--no-such"], "unknown option '--no-such'"),
                            (["out", "--arch", "arm"], "--arch 'arm': allowed are")):
        done = tree.release(*arguments)
        assert done.code == 1 and done.err.startswith(f"release: {said}"), done.err
    assert tree.beside() == {"out"}


@pytest.mark.parametrize("kept", ["notes.txt", ".hidden", "gpuprof-thesis.pdf", "gpuprof-src.tar/x", "debian.iso"])
def test_a_folder_with_other_files_stays(kept, tree):
    """Such as images that somebody fetched with their SHA256SUMS."""
    file = tree.here / "out" / kept
    file.parent.mkdir(parents=True)
    file.write_text("mine")
    (tree.here / "out/SHA256SUMS").write_text("")
    done = tree.release("out")
    assert done.code == 1 and "is not of a release" in done.err and "name a new folder or empty it" in done.err, done.err
    assert file.read_text() == "mine" and tree.beside() == {"out"}
    (tree.here / "file").write_text("mine")
    assert tree.release("file").code == 1 and (tree.here / "file").read_text() == "mine"


def test_a_release_that_fails_leaves_the_one_of_before(tree):
    assert tree.release("out").code == 0
    before = (tree.here / "out").stat().st_ino
    assert tree.release("out", FAIL_BUILD=1).code != 0
    assert tree.beside() == {"out"}
    done = tree.release("out", FAIL_CHECK=1)
    assert done.code == 1 and (tree.here / "out").stat().st_ino == before
    kept, = tree.beside() - {"out"}
    assert done.err.endswith(f"it is in {tree.here}/{kept}\n") and names(tree.here / kept) == MADE, done.err


def test_packages_without_their_sums_are_replaced(tree):
    (tree.here / "out").mkdir()
    (tree.here / "out/gpuprof-0.1.0-py3-none-x86_64.whl").write_text("")
    done = tree.release("out")
    assert done.code == 0 and names(tree.here / "out") == MADE, done.err


def test_a_release_is_built_from_nothing(tree):
    """Else the command may hold an older glibc than the one whose source is shipped. The stand-in for cmake fails on an older build."""
    for _ in range(2):
        done = tree.release("out")
        assert done.code == 0, done.err
    build = tree.tree / "build-release-x86_64"
    (build / "CMakeCache.txt").unlink()
    done = tree.release("out")
    assert done.code == 1 and done.err.endswith(f"release: {build} is no folder of a build; rename or delete it\n") and build.exists()


@pytest.mark.parametrize("change", ["tools/stray.cpp", "CMakeLists.txt", "notes.txt", "build-dev/x"])
def test_a_tagged_release_has_the_sources_of_the_tag_alone(change, tree):
    file = tree.tree / change
    file.parent.mkdir(exist_ok=True)
    file.write_text(file.read_text() + "# more\n" if file.exists() else "")
    done = tree.release("out")
    compiled = change in ("tools/stray.cpp", "CMakeLists.txt")
    assert done.code == 0 and ("with changes that are not committed" in done.err) == compiled, done.err
    tree.git("tag", "v0.1.0")
    done = tree.release("tagged")
    assert done.code == compiled, done.err
    assert ("release: the tag is v0.1.0, and the tree differs from it: " in done.err) == compiled, done.err


def test_packages_bear_the_time_of_the_commit(tree):
    assert tree.release("out").code == 0
    time = harness.run(["git", "-C", tree.tree, "log", "-1", "--format=%ct"], env=tree.env).out
    assert (tree.here / "out/gpuprof-0.1.0-linux-x86_64.tar.gz").read_text() == time


def test_what_is_shipped_has_the_same_bytes_wherever_it_is_built(tmp_path):
    """A program that holds a file's name, compiled with the options of what is shipped."""
    if not shutil.which("c++"):
        pytest.skip("no compiler here")
    made = []
    for place, build in (("one", "build"), ("another/and deeper", "build-other")):
        tree = tmp_path / place
        tree.mkdir(parents=True)
        (tree / "CMakeLists.txt").write_text(f"""cmake_minimum_required(VERSION 3.22)
project(x CXX)
set(GPUPROF_STATIC ON)
include("{harness.SOURCE}/cmake/gpuprof_options.cmake")
file(WRITE ${{CMAKE_BINARY_DIR}}/made.cpp "const char* made() {{ return __FILE__; }}")
add_executable(program main.cpp ${{CMAKE_BINARY_DIR}}/made.cpp)
target_link_options(program PRIVATE -Wl,--build-id=sha1)
""")
        (tree / "main.cpp").write_text("const char* made();\nint main() { return made()[0] == __FILE__[0]; }\n")
        env = {**harness.environment(), "CXXFLAGS": "-g"}
        for command in (["cmake", "-S", tree, "-B", tree / build], ["cmake", "--build", tree / build]):
            done = harness.run(command, env=env)
            assert done.code == 0, done.out + done.err
        made.append((tree / build / "program").read_bytes())
    assert made[0] == made[1] and str(tmp_path).encode() not in made[0]


def test_others_can_read_a_careful_users_release(tree):
    done = harness.run(["sh", "-c", 'umask 077; exec "$@"', "sh", "bash", tree.tree / "packaging/release.sh", "--no-sources", "new/out"],
                       env=tree.env, cwd=tree.here)
    assert done.code == 0, done.err
    closed = [path for path in tree.here.rglob("*") if path.stat().st_mode & 0o444 != 0o444]
    assert not closed and (tree.here / "new/out/SHA256SUMS").exists()


ONE_LINE = """# This machine's.
deb http://deb.example.org/debian bookworm main
deb-src http://deb.example.org/debian bookworm main
  deb [arch=amd64] http://deb.example.org/debian bookworm-updates main
"""
DEB822 = "Types: deb\nURIs: http://deb.example.org/debian\nSuites: bookworm bookworm-updates\nComponents: main\n"


@pytest.mark.parametrize("formats", ["one line", "deb822", "both"])
def test_sources_come_from_the_machines_in_either_format(formats, tree, tmp_path):
    """apt-get itself reads them."""
    apt = shutil.which("apt-get")
    if not apt:
        pytest.skip("no apt-get here")
    (tmp_path / "etc/parts").mkdir(parents=True)
    if formats != "deb822":
        (tmp_path / "etc/sources.list").write_text(ONE_LINE)
    if formats != "one line":
        (tmp_path / "etc/parts/debian.sources").write_text(DEB822)
    (tmp_path / "apt.conf").write_text(f'Dir::Etc::sourcelist "{tmp_path}/etc/sources.list";\nDir::Etc::sourceparts "{tmp_path}/etc/parts";\n')
    stand_in(tmp_path / "commands/apt-get", f"""case "$*" in
  *update*) {apt} --print-uris "${{@:1:6}}" update >{tmp_path}/uris; cp -r "$(sed -n 's/^Dir::Etc::sourceparts=//p' <<<"${{4}}")" {tmp_path}/read ;;
  *source*) touch glibc_1.dsc ;;
esac""")
    done = tree.release("out", sources="", APT_CONFIG=tmp_path / "apt.conf")
    assert done.code == 0 and names(tree.here / "out") > MADE, done.err
    for suite in ("bookworm", "bookworm-updates"):
        assert f"/dists/{suite}/main/source/Sources" in (tmp_path / "uris").read_text()
    for file in (tmp_path / "read").iterdir():
        assert not [line for line in file.read_text().splitlines() if line.startswith(("deb ", "Types: deb\n"))], file.read_text()
    held = harness.run(["tar", "-tf", tree.here / "out/gpuprof-0.1.0-third-party-sources.tar"]).out
    assert held == "sources/\nsources/glibc_1.dsc\n"


@pytest.mark.parametrize("fails", ["update", "source"])
def test_sources_that_cannot_be_had_stop_a_release_before_it_is_built(fails, tree, tmp_path):
    stand_in(tmp_path / "commands/apt-config", "")
    stand_in(tmp_path / "commands/apt-get", f'case "$*" in *{fails}*) exit 100 ;; esac')
    done = tree.release("out", sources="")
    assert done.code == 100 and not tree.beside() and not list(tree.tree.glob("build*/CMakeCache.txt")), done.err
