# SPDX-License-Identifier: Apache-2.0
"""What `cmake --install` puts where, and the pages that are made from the tables of options."""
import os
import pathlib
import pty
import re
import select
import shutil
import subprocess

import pytest

import harness

COMMANDS = re.findall(r'^    \{"(\w+)",', (harness.SOURCE / "tools/main.cpp").read_text(), flags=re.M)
pytestmark = pytest.mark.skipif(bool(harness.SANITIZER), reason="a sanitized build is not installed")


def page(kind):
    return harness.checked("completion", kind).out


def options_of(command):
    """Each option that `gpuprof COMMAND --help` lists."""
    text = harness.checked(command, "--help").out
    return {name for line in text.splitlines() if line.startswith("  -") for name in re.findall(r"(?<![\w-])--?[a-z][a-z-]*", line[:20])}


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("a blank") / "in stalled"
    for name in ("gpuprof", "gpuprof-probe"):
        assert (harness.BUILD / "tools" / name).exists()
    subprocess.run(["cmake", "--install", harness.BUILD, "--prefix", folder], check=True, stdout=subprocess.DEVNULL)
    return folder


def test_the_installation_is_stripped_and_complete(installed):
    for name in ("bin/gpuprof", "lib/gpuprof/libgpuprof.so", "lib/gpuprof/gpuprof-probe", "share/man/man1/gpuprof.1",
                 "share/bash-completion/completions/gpuprof", "share/zsh/site-functions/_gpuprof",
                 "share/fish/vendor_completions.d/gpuprof.fish", "share/doc/gpuprof/LICENSE", "share/doc/gpuprof/NOTICE"):
        assert (installed / name).stat().st_size > 0, name
    for name in ("bin/gpuprof", "lib/gpuprof/libgpuprof.so", "lib/gpuprof/gpuprof-probe"):
        assert "no symbols" in harness.binutils("nm", installed / name), name
    assert sum(f.stat().st_size for f in installed.rglob("*") if f.is_file()) < 20e6


@pytest.fixture(scope="module")
def packages(tmp_path_factory):
    """Folders with what the tarball and the .deb hold, made under a umask that closes them to others."""
    if not shutil.which("cpack"):
        pytest.skip("no cpack here")
    made = tmp_path_factory.mktemp("packages")
    kinds = ["TGZ", "DEB"] if shutil.which("dpkg-deb") else ["TGZ"]
    as_a_careful_user(["cpack", "--config", harness.BUILD / "CPackConfig.cmake", "-G", ";".join(kinds), "-B", made / "made",
                       "-D", "CPACK_COMPONENTS_ALL=runtime"])
    tarball, = (made / "made").glob("*.tar.gz")
    (made / "TGZ").mkdir()
    subprocess.run(["tar", "-xpf", tarball, "-C", made / "TGZ"], check=True)
    for deb in (made / "made").glob("*.deb"):
        subprocess.run(["dpkg-deb", "-x", deb, made / "DEB"], check=True)
    return {kind: made / kind for kind in kinds}, tarball


def test_the_tarball_unpacks_into_one_folder_and_the_deb_into_usr(packages):
    """Into the folder that docs/INSTALL.md and docs/RUNNING.md name."""
    folders, tarball = packages
    unpacked = folders["TGZ"] / tarball.name[:-len(".tar.gz")]
    assert list(folders["TGZ"].iterdir()) == [unpacked] and "-linux-" in unpacked.name
    assert harness.run([unpacked / "bin/gpuprof", "lib"]).out == f"{unpacked}/lib/gpuprof/libgpuprof.so\n"
    if "DEB" in folders:
        assert (folders["DEB"] / "usr/bin/gpuprof").exists() and os.listdir(folders["DEB"]) == ["usr"]


def closed_to_others(folder):
    """What they cannot read, or, of folders and programs, not use."""
    needed = lambda path: 0o555 if path.is_dir() or path.parent.name == "bin" or path.name in ("gpuprof-probe", "libgpuprof.so") else 0o444
    return [str(path.relative_to(folder)) for path in folder.rglob("*") if path.stat().st_mode & needed(path) != needed(path)]


def as_a_careful_user(command):
    subprocess.run(["sh", "-c", 'umask 077; exec "$@"', "sh", *command], check=True, stdout=subprocess.DEVNULL)


def test_others_can_use_what_a_careful_user_installs(tmp_path):
    for component in ("runtime", "debug"):
        as_a_careful_user(["cmake", "--install", harness.BUILD, "--prefix", tmp_path / component, "--component", component])
        assert next((tmp_path / component).rglob("*")) and not closed_to_others(tmp_path / component)


def test_others_can_use_what_a_careful_user_packs(packages):
    for folder in packages[0].values():
        assert not closed_to_others(folder)


def test_shells_find_the_completions_of_the_deb(packages):
    """In the folders where Debian's shells look for those of packages."""
    if "DEB" not in packages[0]:
        pytest.skip("no dpkg-deb here")
    share = packages[0]["DEB"] / "usr/share"
    for file in ("bash-completion/completions/gpuprof", "zsh/vendor-completions/_gpuprof", "fish/vendor_completions.d/gpuprof.fish"):
        assert (share / file).stat().st_size > 0
    if shutil.which("zsh") and pathlib.Path("/etc/debian_version").exists():
        assert "/usr/share/zsh/vendor-completions" in harness.run(["zsh", "-fc", "print -l $fpath"]).out.split()


def test_debug_information_is_found_by_build_id(installed, tmp_path):
    subprocess.run(["cmake", "--install", harness.BUILD, "--prefix", tmp_path, "--component", "debug"], check=True,
                   stdout=subprocess.DEVNULL)
    notes = harness.binutils("readelf", "-n", installed / "lib/gpuprof/libgpuprof.so")
    build_id = re.search(r"Build ID: ([0-9a-f]+)", notes)[1]
    debug = tmp_path / f"lib/debug/.build-id/{build_id[:2]}/{build_id[2:]}.debug"
    assert ".debug_info" in harness.binutils("readelf", "-SW", debug)


def french_readelf(folder):
    """The machine's, with the words that French has for what is looked for, unless the caller asks for C."""
    folder.mkdir()
    (folder / "readelf").write_text(f"""#!/bin/bash
[ "${{LC_ALL:-}}" != C ] || exec {shutil.which("readelf")} "$@"
LC_ALL=C {shutil.which("readelf")} "$@" | sed -e 's/Build ID:/ID de construction:/' -e 's/Name:/Nom:/' -e 's/Machine:/Machine :/'
""")
    (folder / "readelf").chmod(0o755)
    return folder / "readelf"


def test_files_are_stripped_in_every_language(tmp_path):
    for part, made in (("runtime", "bin/gpuprof"), ("debug", "lib/debug/.build-id/*/*.debug")):
        (tmp_path / "root/bin").mkdir(parents=True, exist_ok=True)
        values = {"FILE": harness.BIN, "NAME": "gpuprof", "ROOT": tmp_path / "root", "DESTINATION": "bin", "PART": part,
                  "OBJCOPY": shutil.which("objcopy"), "READELF": french_readelf(tmp_path / part)}
        done = harness.run(["cmake", *[f"-D{name}={value}" for name, value in values.items()], "-P", harness.SOURCE / "cmake/split_debug.cmake"],
                           env=harness.environment(LC_ALL="fr_FR.UTF-8"))
        assert done.code == 0 and len(list((tmp_path / "root").glob(made))) == 1, done.err


def test_a_wheel_is_looked_at_in_every_language(tmp_path):
    """A program that needs a newer glibc than wheels may is found."""
    folder, tools = tmp_path / "wheel/gpuprof", french_readelf(tmp_path / "tools").parent
    for name in ("bin/gpuprof", "lib/libgpuprof.so", "lib/gpuprof-probe"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(shutil.which("true"), folder / name)
    (tools / "auditwheel").write_text("#!/bin/sh\n")
    (tools / "auditwheel").chmod(0o755)
    shutil.make_archive(tmp_path / "gpuprof", "zip", tmp_path / "wheel")
    done = harness.run([harness.SOURCE / "packaging/check_wheel.sh", tmp_path / "gpuprof.zip", tools / "auditwheel", os.uname().machine],
                       env=harness.environment(PATH=f"{tools}:{os.environ['PATH']}", LC_ALL="fr_FR.UTF-8"))
    assert done.code == 1 and "bin/gpuprof needs glibc 2." in done.err and "is not for" not in done.err, done.err


def test_setup_and_cmake_look_for_cudas_headers_in_the_same_folders(tmp_path):
    """Those of GPUPROF_CUDA_INCLUDE, which tools/setup.sh advises, before all others."""
    headers = ["cuda_runtime_api.h", "cupti.h", "nvtx3/nvToolsExt.h", "nccl.h"]
    folders = [tmp_path / "tool kit/include", tmp_path / "nccl"]
    for name in headers:
        file = folders[name == "nccl.h"] / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("")
    env = harness.environment(GPUPROF_CUDA_INCLUDE=";".join(map(str, folders)), CUDA_HOME="", CUDA_PATH="")
    project = tmp_path / "project"
    project.mkdir()
    (project / "CMakeLists.txt").write_text(f"""cmake_minimum_required(VERSION 3.22)
project(x NONE)
include("{harness.SOURCE}/cmake/gpuprof_cuda_headers.cmake")
get_target_property(found gpuprof_cuda_headers INTERFACE_INCLUDE_DIRECTORIES)
file(WRITE ${{CMAKE_BINARY_DIR}}/found "${{found}}")
""")
    done = harness.run(["cmake", "-S", project, "-B", tmp_path / "build"], env=env)
    assert done.code == 0 and (tmp_path / "build/found").read_text() == env["GPUPROF_CUDA_INCLUDE"], done.err
    function = re.search(r"^has_cuda_header\(\) \{.*?^\}", (harness.SOURCE / "tools/setup.sh").read_text(), flags=re.M | re.S)[0]
    looks = f"set -euo pipefail\n{function.replace('/usr/', '/none/')}\nfor name in {' '.join(headers)}; do has_cuda_header $name; done"
    assert harness.run(["bash", "-c", looks], env=env, cwd=tmp_path).code == 0
    assert harness.run(["bash", "-c", looks], env={**env, "GPUPROF_CUDA_INCLUDE": ""}, cwd=tmp_path).code == 1


def test_an_installation_in_a_path_with_blanks_is_used(installed, tmp_path):
    """LD_PRELOAD cannot name such a path: a link in a folder of this user's stands for it."""
    for name in ("program.py", "use.sh"):
        shutil.copy(harness.SOURCE / "packaging/tests" / name, tmp_path)
    shutil.copytree(harness.SIMCUDA, tmp_path / "stack")
    done = harness.run(["bash", tmp_path / "use.sh", tmp_path, installed / "bin/gpuprof"], env=harness.environment(TMPDIR=tmp_path))
    assert done.code == 0 and done.out == "ok\n", done.out + done.err
    link = pathlib.Path(harness.run([installed / "bin/gpuprof", "lib"], env=harness.environment(TMPDIR=tmp_path)).out.rstrip("\n"))
    assert link.parent.parent.parent == tmp_path and link.resolve() == installed / "lib/gpuprof/libgpuprof.so"


def test_stress_preloads_what_is_installed_in_a_path_with_blanks(installed, tmp_path):
    (tmp_path / "here").mkdir()
    script = f"grep -c libgpuprof /proc/$$/maps >>{tmp_path}/mapped; true"
    done = harness.run([installed / "bin/gpuprof", "doctor", "--stress", "--runs", "1", "--", "sh", "-c", script], cwd=tmp_path / "here",
                       env=harness.environment(TMPDIR=tmp_path))
    assert done.code == 0, done.out + done.err
    assert [int(line) > 0 for line in (tmp_path / "mapped").read_text().split()] == [False, True, True, True, True]


def test_a_folder_that_others_made_is_not_used_for_the_link(installed, tmp_path):
    """Whoever could write there would choose what is preloaded."""
    mine = tmp_path / f"gpuprof-{os.geteuid()}"
    mine.mkdir()
    mine.chmod(0o777)
    path = harness.run([installed / "bin/gpuprof", "lib"], env=harness.environment(TMPDIR=tmp_path)).out.rstrip("\n")
    assert path and not path.startswith(str(mine)) and not list(mine.iterdir())


def test_without_the_probe_doctor_says_what_it_did_not_look_at(installed, tmp_path):
    shutil.copytree(installed, tmp_path / "copy")
    (tmp_path / "copy/lib/gpuprof/gpuprof-probe").unlink()
    done = harness.run([tmp_path / "copy/bin/gpuprof", "doctor"])
    assert "limited  driver     not looked at: gpuprof-probe is not in" in done.out, done.out + done.err


def test_a_driver_that_crashes_does_not_take_doctor_with_it(tmp_path):
    (tmp_path / "driver.c").write_text("int cuInit(unsigned flags) { return *(volatile int*)8 + (int)flags; }\n")
    subprocess.run(["cc", "-shared", "-fPIC", "-o", tmp_path / "libcuda.so.1", tmp_path / "driver.c"], check=True)
    done = harness.gpuprof("doctor", env=harness.environment(LD_LIBRARY_PATH=tmp_path))
    assert done.code in (0, 1) and "limited  driver     not looked at: gpuprof-probe" in done.out, done.out + done.err


@pytest.mark.parametrize("kind", ["bash", "zsh", "fish", "man"])
def test_every_option_is_in_the_page(kind):
    text = page(kind)
    for command in COMMANDS:
        for option in options_of(command):
            spelled = {"fish": f"-l {option[2:]}" if option.startswith("--") else f"-s {option[1:]}",
                       "man": option.replace("-", "\\-")}.get(kind, option)
            assert spelled in text, f"{command} {option}"


@pytest.mark.parametrize("kind", ["bash", "zsh", "fish"])
def test_the_shell_reads_its_completion(kind, tmp_path):
    if not shutil.which(kind):
        pytest.skip(f"no {kind} here")
    (tmp_path / "script").write_text(page(kind))
    done = harness.run([kind, "--no-execute" if kind == "fish" else "-n", tmp_path / "script"])
    assert done.code == 0 and not done.err, done.err


def completed(words, tmp_path):
    """What bash completes the last of `words` to."""
    (tmp_path / "script").write_text(page("bash"))
    array = " ".join(f"'{w}'" for w in words)
    done = harness.run(["bash", "-c", f"source '{tmp_path}/script'; COMP_WORDS=({array}); COMP_CWORD={len(words) - 1}; _gpuprof;"
                                      " printf '%s\\n' \"${COMPREPLY[@]}\""])
    assert done.code == 0, done.err
    return done.out.split()


def test_bash_completes(tmp_path):
    assert completed(["gpuprof", "conv"], tmp_path) == ["convert"]
    assert "speedscope" in completed(["gpuprof", "convert", "--to", ""], tmp_path)
    assert completed(["gpuprof", "report", "--form"], tmp_path) == ["--format"]
    assert completed(["gpuprof", "completion", "fi"], tmp_path) == ["fish"]


def typed(shell, keys, answer, tmp_path):
    """What a shell on a terminal shows after these lines, up to `answer`, which it must."""
    leader, follower = pty.openpty()
    with subprocess.Popen(shell, stdin=follower, stdout=follower, stderr=follower, start_new_session=True, cwd=tmp_path,
                          env={"PATH": os.environ["PATH"], "HOME": str(tmp_path), "TERM": "vt100", "PS1": "> "}) as child:
        os.close(follower)
        os.write(leader, keys.encode())
        shown = ""
        while answer not in shown and select.select([leader], [], [], 20)[0]:
            shown += os.read(leader, 4096).decode(errors="replace")
        child.kill()
    os.close(leader)
    assert answer in shown, shown
    return shown


@pytest.mark.parametrize("way", ["sourced", "found"])
def test_zsh_completes(way, tmp_path):
    if not shutil.which("zsh"):
        pytest.skip("no zsh here")
    (tmp_path / "_gpuprof").write_text(page("zsh"))
    known = {"sourced": f"autoload -Uz compinit; compinit -u -D; source {tmp_path}/_gpuprof",
             "found": f"fpath=({tmp_path} $fpath); autoload -Uz compinit; compinit -u -D"}[way]
    typed(["zsh", "-f", "-i"], f"{known}; gpuprof() {{ echo ran-$1; }}\ngpuprof conv\t\n", "ran-convert", tmp_path)


@pytest.mark.parametrize("command", COMMANDS)
def test_zsh_says_nothing_while_it_completes(command, tmp_path):
    if not shutil.which("zsh"):
        pytest.skip("no zsh here")
    (tmp_path / "_gpuprof").write_text(page("zsh"))
    (tmp_path / "one_file").write_text("")
    known = f"autoload -Uz compinit; compinit -u -D; source {tmp_path}/_gpuprof; gpuprof() {{ echo ran-$#; }}; PATH={tmp_path} LISTMAX=10000"
    # The first word, a second one, and an option.
    lines = "".join(f"gpuprof {command} {begun}\t\n" for begun in ("one", "one_file one", "--hel"))
    shown = typed(["zsh", "-f", "-i"], f"{known}\n{lines}echo tried-$((6 * 7))\n", "tried-42", tmp_path)
    assert "_arguments" not in shown and re.findall(r"ran-(\d)", shown) == ["2", "3", "2"], shown


def test_fish_completes(tmp_path):
    if not shutil.which("fish"):
        pytest.skip("no fish here")
    (tmp_path / "script").write_text(page("fish"))
    done = harness.run(["fish", "--no-config", "-c", f"cat {tmp_path}/script | source; complete -C 'gpuprof conv'"])
    assert done.code == 0 and done.out.startswith("convert\t"), done.out + done.err
    assert re.search(r"^gpuprof completion fish \| source$", (harness.SOURCE / "docs/INSTALL.md").read_text(), flags=re.M)


def test_the_manual_page_is_without_faults(tmp_path):
    if not shutil.which("groff"):
        pytest.skip("no groff here")
    (tmp_path / "gpuprof.1").write_text(page("man"))
    done = harness.run(["groff", "-man", "-Tutf8", "-ww", "-z", tmp_path / "gpuprof.1"])
    assert done.code == 0 and not done.err, done.err
