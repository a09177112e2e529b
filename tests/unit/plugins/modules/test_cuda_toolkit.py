# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Module and action together, in a folder that looks like a node.

Link, alternatives and files are real. The package manager, NVIDIA's installer and the compilers
are stand-ins, ldconfig is not run. test_host.py has the real nvcc where there is one.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from ansible_collections.kubegpu.nodes.plugins.module_utils._cuda.types import Request
from ansible_collections.kubegpu.nodes.plugins.module_utils._host.command import Result
from ansible_collections.kubegpu.nodes.plugins.modules import cuda_toolkit as module
from tests.unit.fixtures.machines import DEBIAN_12, Machine, nvidia
from tests.unit.fixtures.make_tree import make_machine, write
from tests.unit.module_process import run_module

NVCC = """#!/bin/sh
# Stand-in for nvcc.
case "$1" in
--version) echo "Cuda compilation tools, release {minor}, V{minor}.93"; exit 0 ;;
esac
if [ -e "{root}/broken-compiler" ]; then cat "{root}/broken-compiler" >&2; exit 1; fi
while [ $# -gt 1 ]; do
    if [ "$1" = -o ]; then echo object > "$2"; exit 0; fi
    shift
done
exit 1
"""
INSTALLER = """#!/bin/sh
# Stand-in for NVIDIA's runfile of CUDA.
for argument; do
    case "$argument" in
    --silent|--toolkit|--override|--no-man-page|--tmpdir=*) ;;
    --toolkitpath=*|--installpath=*) path="${{argument#*=}}" ;;
    *) echo "unknown option $argument" >&2; exit 1 ;;
    esac
done
# It unpacks gigabytes there.
case "$TMPDIR" in "{root}/var/cache/kubegpu/unpacked/"*) ;; *) exit 1 ;; esac
echo half > "$TMPDIR/unpacked" || exit 1
if [ -e "{root}/broken-installer" ]; then
    mkdir -p "$path/bin" "{root}/var/log"
    echo half > "$path/bin/ptxas"
    cat "{root}/broken-installer" > "{root}/var/log/cuda-installer.log"
    exit 1
fi
mkdir -p "$path/bin" "$path/lib64"
cp "{root}/nvcc-12.2" "$path/bin/nvcc"
printf '%s\\n' '#!/bin/sh' '[ "$1" = --silent ] || exit 1' "rm -rf $path/bin $path/lib64" \\
    "rm -f $path/version.json" > "$path/bin/cuda-uninstaller"
chmod +x "$path/bin/cuda-uninstaller"
echo '{{"cuda": {{"name": "CUDA SDK", "version": "12.2.20230823"}}}}' > "$path/version.json"
ln -sfn /usr/local/cuda-12.2 "{root}/usr/local/cuda"
"""
RUN = "cuda_12.2.2_535.104.05_linux.run"
RUNFILES = {"12.2": {"path": RUN, "checksum": "sha256:" + "a" * 64}}


class Killed(BaseException):
    """Stand-in for a run that dies."""


class Task:
    """The node, and the action on it."""

    def __init__(self, root):
        self.root = root
        self.calls = []
        self.set_options = {}
        self.die = None
        self.fail_packages = ""
        for version in ("12.2", "12.9", "13.0"):
            program = root / f"nvcc-{version}"
            program.write_text(NVCC.format(minor=version, root=root))
            program.chmod(0o755)
        (root / RUN).write_text(INSTALLER.format(root=root))
        write(root, "/var/lib/dpkg/status", "")
        write(root, "/proc/driver/nvidia/version", "NVRM version: NVIDIA UNIX  580.95.05  x\n")
        for folder in ("etc/alternatives", "var/lib/dpkg/alternatives", "var/log", "usr/local"):
            (root / folder).mkdir(parents=True, exist_ok=True)

    # -- what the module runs
    def run(self, argv, timeout=60, environment=None):
        if argv[0] == "ldconfig":
            self.calls.append("ldconfig")
            return Result(0, "", "")
        if self.die and self.die in argv[0]:
            raise Killed
        program = shutil.which(argv[0])
        if program is None:
            return Result(127, "", f"{argv[0]}: no such program")
        done = subprocess.run(
            [program, *argv[1:]],
            env={**os.environ, **(environment or {})},
            capture_output=True,
            text=True,
            check=False,
            timeout=timeout,
        )
        return Result(done.returncode, done.stdout, done.stderr)

    # -- the package manager
    def packages(self, arguments, check):
        self.set_options = arguments
        if self.fail_packages and not check:
            return {"failed": True, "msg": self.fail_packages}
        status = self.root / "var/lib/dpkg/status"
        if arguments.get("state") == "absent":
            changed = "cuda-toolkit" in status.read_text()
            if not check:
                for minor in ("12.9", "13.0"):
                    if f"cuda-toolkit-{minor.replace('.', '-')}" not in status.read_text():
                        continue
                    self.alternatives("--remove", "cuda", f"/usr/local/cuda-{minor}")
                    shutil.rmtree(self.root / f"usr/local/cuda-{minor}", ignore_errors=True)
                status.write_text("")
            return {"changed": changed, "diff": []}
        text = status.read_text()
        for name in arguments["packages"]:
            if f"Package: {name}\n" in text:
                continue
            minor = name[len("cuda-toolkit-") :].replace("-", ".")
            text += (
                f"Package: {name}\nStatus: hold ok installed\nVersion: {minor}.1-1\n"
                f"Architecture: amd64\nMaintainer: cudatools@nvidia.com\n\n"
            )
            if not check:
                self.toolkit(minor)
                priority = minor.replace(".", "")
                self.alternatives(
                    "--install", "/usr/local/cuda", "cuda", f"/usr/local/cuda-{minor}", priority
                )
        changed = text != status.read_text()
        if not check:
            status.write_text(text)
        return {"changed": changed, "diff": [{"before": "", "after": "packages\n"}]}

    def toolkit(self, minor):
        path = self.root / f"usr/local/cuda-{minor}"
        (path / "bin").mkdir(parents=True)
        shutil.copy(self.root / f"nvcc-{minor}", path / "bin/nvcc")

    def alternatives(self, *words):
        return self.run(["update-alternatives", "--root", str(self.root), "--quiet", *words])

    # -- the task
    def __call__(self, state="present", check=False, **options):
        arguments = {
            "state": state,
            "state_path": str(self.root / "var/lib/kubegpu/state.json"),
            **options,
        }
        return run_action(self, arguments, check)

    def predicted(self, state="present", **options):
        """Return the answer of a real run, having seen that check mode says the same before it."""
        start = self.tree()
        before = self(state, check=True, **options)
        assert self.tree() == start
        self.calls.clear()
        after = self(state, **options)
        assert (before.get("failed"), before.get("changed")) == (
            after.get("failed"),
            after.get("changed"),
        ), after
        assert before.get("diff") == after.get("diff")
        return after

    def tree(self):
        """Return what of the node matters: files with text and mode, links with target."""
        found = {}
        for folder in ("etc", "usr", "var/lib"):
            for path in sorted((self.root / folder).rglob("*")):
                name = str(path.relative_to(self.root))
                if path.is_symlink():
                    found[name] = os.readlink(path)
                elif path.is_file():
                    found[name] = (path.read_bytes(), path.stat().st_mode)
        return found

    def link(self):
        real = self.root / "usr/local/cuda"
        if not real.is_symlink():
            return None
        target = os.readlink(real)
        return os.readlink(self.root / target.lstrip("/")) if "alternatives" in target else target


def run_action(task, arguments, check):
    """Run the phases as the action does; without ansible-core, which a node does not have."""

    def phase(name, **internal):
        task.calls.append(name)
        return run_module(
            module.main, {**arguments, "_phase": name, **internal}, check=check, diff=True
        )

    plan = phase("plan")
    if plan.get("failed"):
        return plan
    tasks = plan.pop("_tasks")
    if not tasks["needed"]:
        return plan
    sets = [] if check else [*tasks["sets"]]
    if check:
        for given in tasks["sets"]:
            answer = task.packages(given, True)
            plan["changed"] |= answer["changed"]
            plan["diff"] += answer["diff"]
        return plan
    steps = [("uninstall" if arguments["state"] == "absent" else "begin", {})]
    steps += [
        ("runfile", {"_version": entry["version"], "_runfile": str(task.root / entry["file"])})
        for entry in tasks["runfiles"]
    ]
    for name, internal in steps:
        answer = phase(name, **internal)
        if answer.get("failed"):
            return answer
        plan["left"] += answer.get("left", [])
    for given in sets:
        answer = task.packages(given, False)
        if answer.get("failed"):
            return answer
        plan["changed"] |= answer["changed"]
        plan["diff"] += answer["diff"]
    answer = phase("finish")
    if answer.get("failed"):
        return answer
    plan.update(default=answer["default"], compilers=answer["compilers"])
    return plan


@pytest.fixture
def task(tmp_path, monkeypatch):
    if shutil.which("update-alternatives") is None:
        pytest.skip("update-alternatives is not here")
    root = tmp_path / "node"
    make_machine(root, Machine((nvidia("0000:3b:00.0", "1eb8"),), dict(DEBIAN_12)))
    task = Task(root)
    monkeypatch.setattr(module, "_ROOT", str(root))
    monkeypatch.setattr(module, "module_runner", lambda _module: task.run)
    return task


def test_nothing_is_asked_for(task):
    answer = task.predicted()
    assert not answer["changed"] and task.calls == ["plan"]


def test_two_versions_by_package_and_back(task):
    start = task.tree()
    answer = task.predicted(versions=["12.9", "13.0"], default="12.9")
    assert answer["changed"]
    assert answer["compilers"] == {"13.0": "13.0.93", "12.9": "12.9.93"}
    assert answer["default"] == task.link() == "/usr/local/cuda-12.9"
    assert task.set_options["packages"] == {"cuda-toolkit-12-9": None, "cuda-toolkit-13-0": None}
    assert task.set_options["hold"] is True and task.set_options["background"] is True
    loader = (task.root / "etc/ld.so.conf.d/kubegpu-cuda.conf").read_text()
    assert "/usr/local/cuda-13.0/lib64" in loader
    assert task.calls == ["plan", "begin", "finish", "ldconfig"]
    titles = [entry.get("after_header") for entry in answer["diff"]]
    assert titles[:3] == [
        "/usr/local/cuda",
        "/etc/ld.so.conf.d/kubegpu-cuda.conf",
        "/etc/profile.d/kubegpu-cuda.sh",
    ]
    # As requested: one call, nothing is changed.
    again = task.predicted(versions=["12.9", "13.0"], default="12.9")
    assert not again["changed"] and task.calls == ["plan"]
    gone = task.predicted("absent")
    assert gone["changed"]
    assert task.tree() == start
    assert not task.predicted("absent")["changed"]


def test_the_default_is_changed_in_the_alternatives(task):
    task(versions=["12.9", "13.0"])
    assert task.link() == "/usr/local/cuda-13.0"
    answer = task.predicted(versions=["12.9", "13.0"], default="12.9")
    assert answer["changed"] and task.link() == "/usr/local/cuda-12.9"
    query = task.alternatives("--query", "cuda").stdout
    assert "Status: manual" in query


def test_a_runfile_and_back(task):
    start = task.tree()
    answer = task.predicted(versions=["12.2"], runfiles=RUNFILES)
    assert answer["changed"] and task.link() == "/usr/local/cuda-12.2"
    assert answer["compilers"] == {"12.2": "12.2.93"}
    assert "runfile" in task.calls
    assert answer["diff"][0]["after"] == "/usr/local/cuda-12.2\n"
    assert not task.predicted(versions=["12.2"], runfiles=RUNFILES)["changed"]
    answer = task.predicted("absent")
    assert answer["changed"] and answer["left"] == []
    assert task.tree() == start


def test_a_runfile_beside_packages_is_added_to_the_alternatives(task):
    start = task.tree()
    options = {"versions": ["12.2", "12.9"], "runfiles": RUNFILES, "default": "12.2"}
    task.predicted(**options)
    # What makes the link a plain one is NVIDIA's own installer; the packages come after it.
    assert task.link() == "/usr/local/cuda-12.2"
    assert not task.predicted(**options)["changed"]
    task.predicted("absent")
    assert task.tree() == start


def test_a_link_of_the_admin_comes_back(task):
    task.toolkit("13.0")
    (task.root / "usr/local/cuda").symlink_to("cuda-13.0")
    start = task.tree()
    answer = task.predicted(versions=["12.2"], runfiles=RUNFILES)
    assert answer["diff"][1]["before"] == "cuda-13.0\n"
    assert task.link() == "/usr/local/cuda-12.2"
    task.predicted("absent")
    assert task.tree() == start


def test_the_admins_alternatives_come_back(task):
    for minor, priority in (("12.9", "129"), ("13.0", "130")):
        task.toolkit(minor)
        task.alternatives(
            "--install", "/usr/local/cuda", "cuda", f"/usr/local/cuda-{minor}", priority
        )
    task.alternatives("--set", "cuda", "/usr/local/cuda-12.9")
    start = task.tree()
    task.predicted(versions=["12.2"], runfiles=RUNFILES)
    assert task.link() == "/usr/local/cuda-12.2"
    task.packages = lambda arguments, check: {"changed": False, "diff": []}
    task.predicted("absent")
    assert task.tree() == start


def test_a_link_that_somebody_set_since_stays(task):
    task(versions=["12.2"], runfiles=RUNFILES)
    link = task.root / "usr/local/cuda"
    link.unlink()
    link.symlink_to("/opt/cuda")
    answer = task.predicted("absent")
    assert answer["changed"] and task.link() == "/opt/cuda"


def test_a_file_that_somebody_edited_keeps_the_edit(task):
    task(versions=["12.9"])
    loader = task.root / "etc/ld.so.conf.d/kubegpu-cuda.conf"
    loader.write_text(loader.read_text() + "/opt/lib\n")
    task.predicted("absent")
    assert loader.read_text() == "/opt/lib\n"


def test_a_directory_in_the_links_place(task):
    (task.root / "usr/local/cuda/bin").mkdir(parents=True)
    answer = task.predicted(versions=["12.2"], runfiles=RUNFILES)
    assert answer["failed"] and "is not a link; nothing was changed" in answer["msg"]
    assert task.predicted(versions=["12.2"], runfiles=RUNFILES, default="none")["changed"]


def test_a_refusal_changes_nothing(task):
    write(task.root, "/proc/driver/nvidia/version", "NVRM version: NVIDIA UNIX  470.57.02  x\n")
    start = task.tree()
    answer = task.predicted(versions=["12.9"])
    assert answer["failed"] and "Driver 470.57.02 cannot run CUDA 12.9" in answer["msg"]
    assert task.tree() == start


def test_a_proof_that_fails_is_made_again_until_it_is_good(task):
    words = Path(__file__).parents[2] / "fixtures/cuda/compile-11.8.89-gcc-12.txt"
    broken = task.root / "broken-compiler"
    broken.write_text(words.read_text())
    for _attempt in range(2):
        answer = task(versions=["12.9"])
        assert answer["failed"] and "is too new for this CUDA" in answer["msg"]
        assert "host_compiler: /usr/bin/g++-11" in answer["msg"]
    broken.unlink()
    assert task(versions=["12.9"])["compilers"] == {"12.9": "12.9.93"}
    assert not task(versions=["12.9"])["changed"]


def test_packages_that_cannot_be_installed(task):
    task.fail_packages = "Unable to locate package cuda-toolkit-12-9"
    answer = task(versions=["12.9"])
    assert answer["failed"] and "Unable to locate" in answer["msg"]
    task.fail_packages = ""
    assert task(versions=["12.9"])["changed"]
    start = task.tree()
    assert not task(versions=["12.9"])["changed"]
    assert task.tree() == start


def test_an_installer_that_fails_leaves_nothing(task):
    start = task.tree()
    (task.root / "broken-installer").write_text("[ERROR]: No space left on device\n")
    answer = task(versions=["12.2"], runfiles=RUNFILES)
    assert answer["failed"] and "too little disk space" in answer["msg"]
    assert "No space left on device" in answer["msg"]
    assert not (task.root / "usr/local/cuda-12.2").exists()
    task("absent")
    assert task.tree() == start
    (task.root / "broken-installer").unlink()
    assert task(versions=["12.2"], runfiles=RUNFILES)["changed"]


def test_an_installer_that_was_killed_is_run_again(task):
    task.die = "sh"
    with pytest.raises(Killed):
        task(versions=["12.2"], runfiles=RUNFILES)
    task.die = None
    # What it left looks like a toolkit.
    task.toolkit("12.2")
    answer = task.predicted(versions=["12.2"], runfiles=RUNFILES)
    assert answer["changed"] and "runfile" in task.calls
    assert (task.root / "usr/local/cuda-12.2/bin/cuda-uninstaller").exists()
    assert not task.predicted(versions=["12.2"], runfiles=RUNFILES)["changed"]


def test_a_run_that_died_before_the_proof_is_finished(task):
    task.die = "nvcc"
    with pytest.raises(Killed):
        task(versions=["12.9"])
    task.die = None
    answer = task.predicted(versions=["12.9"])
    assert answer["changed"] and answer["compilers"]
    assert not task.predicted(versions=["12.9"])["changed"]


def test_a_runfile_without_a_host_compiler_is_not_run(task):
    answer = task.predicted(
        versions=["12.2"], runfiles=RUNFILES, host_compiler="/nonexistent/g++-11"
    )
    assert answer["failed"] and "nothing was changed" in answer["msg"]
    answer = task.predicted(
        versions=["12.2"], runfiles=RUNFILES, host_compiler="/nonexistent/g++-11", verify=False
    )
    assert answer["changed"] and answer["compilers"] == {}


def test_what_an_uninstaller_leaves_is_named(task):
    task(versions=["12.2"], runfiles=RUNFILES)
    write(task.root, "/usr/local/cuda-12.2/mine.txt", "mine")
    answer = task("absent")
    assert answer["left"] == ["/usr/local/cuda-12.2"]
    assert (task.root / "usr/local/cuda-12.2/mine.txt").exists()


def test_toolkits_of_the_admin_stay(task):
    task.toolkit("13.0")
    start = task.tree()
    task.predicted(versions=["13.0"], verify=False)
    assert task.set_options == {}
    task.packages = lambda arguments, check: {"changed": False, "diff": []}
    task.predicted("absent")
    assert task.tree() == start


def test_options_of_the_module_are_the_plans():
    options = set(yaml.safe_load(module.DOCUMENTATION)["options"])
    own = {"state", "data", "install_timeout"}
    # What Ansible tells every module is no option.
    assert options == {*Request.__dataclass_fields__, *own} - {"controller"}
