# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Module and action together in a folder of its own: facts, files and record are real.

Stand-ins are the decision (what is requested is installed), the kernel, systemctl and the like, and
package_set. tests/integration has the real packages.
"""

from __future__ import annotations

import base64
import hashlib
import json
import types
from dataclasses import replace

import pytest
from ansible.errors import AnsibleError

from ansible_collections.kubegpu.nodes.plugins.action import nvidia_driver as action
from ansible_collections.kubegpu.nodes.plugins.module_utils._core.errors import KubegpuError
from ansible_collections.kubegpu.nodes.plugins.module_utils._driver.apply import diff as driver_diff
from ansible_collections.kubegpu.nodes.plugins.module_utils._driver.apply import run as phases
from ansible_collections.kubegpu.nodes.plugins.module_utils._driver.apply import (
    units,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._driver.plan.config_files import (
    NOUVEAU,
    OPTIONS,
    TOKEN,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._driver.plan.plan import (
    Plan,
    Step,
    plan_driver,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._facts.gather import gather
from ansible_collections.kubegpu.nodes.plugins.module_utils._facts.runtimes import RuntimePaths
from ansible_collections.kubegpu.nodes.plugins.module_utils._host.command import Result
from ansible_collections.kubegpu.nodes.plugins.module_utils._host.reader import NodeReader
from ansible_collections.kubegpu.nodes.plugins.modules import nvidia_driver as module
from ansible_collections.kubegpu.nodes.plugins.plugin_utils import _phases
from ansible_collections.kubegpu.nodes.plugins.plugin_utils._fetch import FetchResult
from tests.unit.fixtures.machines import MACHINES
from tests.unit.fixtures.make_tree import make_machine, write
from tests.unit.module_process import run_module

KERNEL = "6.1.0-40-amd64"
OTHER_KERNEL = "6.1.0-41-amd64"
OLD, NEW = "575.57.08", "580.95.05"
NAMES = ("libnvidia-ml1", "nvidia-kernel-dkms")
DKMS_WORDS = (
    "The package set nvidia-driver: A package's own script failed; packages are left half "
    "configured.\nSeen: Error! Bad return status for module build on kernel: 6.1.0-40-amd64\n"
    "dpkg: error processing package nvidia-kernel-dkms (--configure): subprocess returned an "
    "error code (10)"
)
MAKE_LOG = (
    f"DKMS make.log for nvidia-580.95.05 for kernel {KERNEL} (x86_64)\n"
    "nvidia/nv-mmap.c:321:9: error: implicit declaration of function 'vma_flags_set'\n"
)


def sha256(data):
    return hashlib.sha256(data).hexdigest()


class Killed(BaseException):
    """Stand-in for a run that dies."""


def standin_decision(facts, desired, _data):
    """What is requested is installed: version and source, with a file and a service."""
    driver = facts["driver"]
    if desired.branch == "999":
        return Plan(action="refuse", reasons=("Tesla V100 ends with 580.", "Ask for 580."))
    if desired.state == "absent":
        managed = bool(driver["managed"])
        return Plan(action="remove" if managed else "none", change=managed)
    version = driver["previous"]["version"] if desired.version == "previous" else desired.version
    source = "nvidia" if desired.source == "auto" else desired.source
    there = driver["installed"]
    action = "none"
    if (there, driver["source"]) != (version, source):
        action = "upgrade" if there and there < version else "downgrade" if there else "install"
    files = {NOUVEAU: "blacklist nouveau\n"}
    if desired.module_options:
        files[OPTIONS] = f"options nvidia {desired.module_options}\n"
    sums = {path: hashlib.sha256(text.encode()).hexdigest() for path, text in files.items()}
    ours = {p: s for p, s in driver["configuration"].items() if p != TOKEN}
    here = {kernel["version"]: kernel for kernel in facts["kernels"]}[KERNEL]
    away = bool(here["driver"] is None and action == "none")
    # As the real decision: what is installed already is loaded by the next boot.
    load = desired.load and not away and (action != "none" or driver["loaded"] is None)
    stale = "another kernel runs" if away else ""
    if action == "none" and driver["loaded"] not in (None, version):
        stale = f"{driver['loaded']} is loaded"
    change = action != "none" or ours != sums or load or (desired.hold and driver["held"] is False)
    change = bool(change or driver["pending"])
    runfile = None
    packages = dict.fromkeys(NAMES, f"{version}-1")
    obsolete = ()
    if source == "runfile":
        packages, obsolete = {}, tuple(driver["packages"])
        runfile = {**desired.runfile, "version": version, "arguments": ["--silent"]}
    return Plan(
        action=action,
        branch=version.split(".", maxsplit=1)[0],
        version=version,
        kernel_module="proprietary",
        source=source,
        packages=packages,
        obsolete=obsolete,
        hold=desired.hold,
        runfile=runfile,
        uninstall="runfile" if driver["source"] == "runfile" and source != "runfile" else None,
        files=files,
        services={
            "nvidia-persistenced": "enabled",
            **({"nvidia-gridd": "enabled"} if desired.licence.get("feature_type") else {}),
        },
        # As for a guest, but for a server of this name.
        licence_token={"path": desired.licence["token_path"]}
        if desired.licence.get("token_path") and desired.licence.get("server") != "no-guest"
        else None,
        initramfs=ours != sums,
        load=load,
        change=change,
        reboot={"required": bool(stale), "reason": stale},
        steps=(Step("driver", action, f"{version}", "requested"),),
        warnings=("580 ends in 2028.",) if action != "none" else (),
    )


LICENCE = """<?xml version="1.0" ?><nvidia_smi_log><gpu id="00000000:00:05.0">
<gpu_virtualization_mode><virtualization_mode>VGPU</virtualization_mode></gpu_virtualization_mode>
<vgpu_software_licensed_product><license_status>{}</license_status></vgpu_software_licensed_product>
</gpu></nvidia_smi_log>"""


class StandinNode:
    """A machine with a P4 below ``root``, and the programs that change it."""

    def __init__(self, root):
        self.root = make_machine(root, MACHINES["p4"])
        write(root, "/etc/os-release", "ID=debian\nVERSION_ID=12\nVERSION_CODENAME=bookworm\n")
        write(root, "/proc/sys/kernel/osrelease", f"{KERNEL}\n")
        write(root, "/proc/self/status", "CapEff:\t000001ffffffffff\n")
        write(root, "/usr/sbin/update-initramfs")
        for kernel in (KERNEL, OTHER_KERNEL):
            write(root, f"/lib/modules/{kernel}/modules.dep")
        self.packages = {}
        self.half = {}
        self.units = {}
        self.calls = []
        self.tried = []
        self.fail = {}
        # The status of a guest's licence.
        self.licence = ""
        # The program after whose end the run dies.
        self.die = None
        self.build_for = (KERNEL, OTHER_KERNEL)
        self.recorded = {}
        self.keep_packages()

    # -- what facts are read from
    def keep_packages(self):
        text = "".join(
            f"Package: {name}\nStatus: {'hold' if held else 'install'} ok installed\n"
            f"Maintainer: NVIDIA <x@nvidia.com>\nArchitecture: amd64\nVersion: {version}\n\n"
            for name, (version, held) in sorted(self.packages.items())
        )
        write(self.root, "/var/lib/dpkg/status", text)

    def build(self, version):
        """DKMS's tree and module for the kernels that have headers."""
        for kernel in (KERNEL, OTHER_KERNEL):
            link = self.root / f"var/lib/dkms/nvidia/kernel-{kernel}-x86_64"
            link.unlink(missing_ok=True)
            if version and kernel in self.build_for:
                place = self.root / f"var/lib/dkms/nvidia/{version}/{kernel}/x86_64"
                (place / "module").mkdir(parents=True, exist_ok=True)
                link.symlink_to(f"{version}/{kernel}/x86_64")

    def put(self, version):
        """Install the packages in a version, or remove them."""
        for name in NAMES:
            self.packages.pop(name, None)
            if version:
                self.packages[name] = (f"{version}-1", False)
                self.units["nvidia-persistenced"] = self.units.get(
                    "nvidia-persistenced", "disabled"
                )
        if not version:
            self.units.pop("nvidia-persistenced", None)
        self.build(version)
        self.keep_packages()

    @property
    def version(self):
        found = {version.partition("-")[0] for version, _held in self.packages.values()}
        return found.pop() if found else None

    @property
    def built(self):
        link = self.root / f"var/lib/dkms/nvidia/kernel-{KERNEL}-x86_64"
        return link.readlink().parts[0]

    @property
    def loaded(self):
        place = self.root / "sys/module/nvidia/version"
        return place.read_text().strip() if place.exists() else None

    def load(self, version):
        write(self.root, "/sys/module/nvidia/version", f"{version}\n")
        write(self.root, "/sys/module/nvidia/refcnt", "0\n")

    def unload(self):
        for name in ("version", "refcnt"):
            (self.root / "sys/module/nvidia" / name).unlink()
        (self.root / "sys/module/nvidia").rmdir()

    def user(self, pid, name):
        write(self.root, f"/proc/{pid}/comm", f"{name}\n")
        (self.root / f"proc/{pid}/fd").mkdir(parents=True)
        (self.root / f"proc/{pid}/fd/7").symlink_to("/dev/nvidia0")

    # -- programs
    def __call__(self, argv, timeout=60, environment=None):
        program = argv[0].rpartition("/")[2]
        if program not in ("systemctl", "dpkg-query", "dpkg", "dmesg", "nvidia-smi", "apt-cache"):
            self.calls.append(" ".join([program, *argv[1:]]))
        if self.die == program:
            method = getattr(self, program.replace("-", "_"))
            method(list(argv[1:]))
            raise Killed
        if program in self.fail:
            return Result(1, "", self.fail[program])
        method = getattr(self, program.replace("-", "_"), None)
        return method(list(argv[1:])) if method else Result(127, "", "no such program")

    def update_initramfs(self, _words):
        return Result(0, "", "")

    def systemctl(self, words):
        unit = words[-1].removesuffix(".service")
        if words[0] == "is-enabled":
            state = self.units.get(unit, "not-found")
            return Result(0 if state == "enabled" else 1, f"{state}\n", "")
        if words[0] in ("enable", "disable"):
            self.units[unit] = f"{words[0]}d"
        if words[0] == "try-restart":
            self.tried.append(" ".join(["systemctl", *words]))
        if words[0] in ("enable", "disable", "start", "stop"):
            self.calls.append(f"systemctl {words[0]} {unit}")
        return Result(0, "", "")

    def modprobe(self, words):
        nouveau = self.root / "sys/module/nouveau/refcnt"
        if words == ["-r", "nouveau"]:
            if nouveau.read_text().strip() != "0":
                return Result(1, "", "modprobe: FATAL: Module nouveau is in use.")
            nouveau.unlink()
            nouveau.parent.rmdir()
        if words[-1] == "nvidia":
            self.load(self.built)
        return Result(0, "", "")

    def rmmod(self, _words):
        self.unload()
        return Result(0, "", "")

    def dpkg(self, _words):
        return Result(0, "amd64\n", "")

    def dpkg_query(self, _words):
        lines = [
            "\t".join((name, "amd64", version, "hold" if held else "install", "installed", "ok"))
            + "\t" * 3
            for name, (version, held) in self.packages.items()
        ]
        lines += [
            "\t".join((name, "amd64", version, "install", "half-configured", "ok")) + "\t" * 3
            for name, version in self.half.items()
        ]
        return Result(0, "\n".join(lines) + "\n", "")

    def apt_cache(self, words):
        text = "".join(f" {name} | {NEW}-1 | http://m Packages\n" for name in words[1:])
        return Result(0, text, "")

    def nvidia_smi(self, words):
        if words == ["-q", "-x"] and self.licence:
            return Result(0, LICENCE.format(self.licence), "")
        return Result(0, "GPU 0: Tesla T4\n", "") if self.loaded else Result(9, "", "no driver")

    def sh(self, words):
        """Stand-in for a runfile: its text is the version."""
        version = (self.root / words[0].lstrip("/")).read_text().strip()
        write(self.root, "/usr/bin/nvidia-uninstall")
        self.build(version)
        return Result(0, "", "")

    def nvidia_uninstall(self, _words):
        (self.root / "usr/bin/nvidia-uninstall").unlink()
        self.build(None)
        return Result(0, "", "")

    def sha256sum(self, words):
        place = self.root / words[-1].lstrip("/")
        return Result(0, f"{sha256(place.read_bytes())}  {words[-1]}\n", "")

    # -- stand-in for package_set
    def package_set(self, arguments, check):
        name, before = arguments["name"], dict(self.packages)
        if "package_set" in self.fail and not check:
            words = self.fail.pop("package_set")
            if words == "half":
                self.recorded.setdefault(name, before)
                self.packages["libnvidia-ml1"] = (f"{NEW}-1", False)
                self.half["nvidia-kernel-dkms"] = f"{NEW}-1"
                self.packages.pop("nvidia-kernel-dkms", None)
                write(self.root, f"/var/lib/dkms/nvidia/{NEW}/build/make.log", MAKE_LOG)
                self.keep_packages()
                words = DKMS_WORDS
            # Either what package managers print, or a failure with its code.
            failure = words if isinstance(words, dict) else {"msg": words}
            return {"failed": True, **failure}
        if arguments.get("state") == "absent":
            wanted = self.recorded.get(name, before)
        else:
            wanted = {n: p for n, p in before.items() if n not in arguments["obsolete"]}
            for package, version in arguments["packages"].items():
                wanted[package] = (version, arguments["hold"])
        changed = wanted != before
        if not check:
            self.calls.append(f"package_set {name} {arguments.get('state', 'present')}")
            if arguments.get("state") == "absent":
                self.recorded.pop(name, None)
            else:
                self.recorded.setdefault(name, before)
            versions = {v.partition("-")[0] for v, _held in wanted.values()}
            if changed and (versions or self.version):
                self.put(versions.pop() if versions else None)
            self.half = {}
            self.packages = wanted
            self.keep_packages()
        diff = [{"before": str(sorted(before.items())), "after": str(sorted(wanted.items()))}]
        return {"changed": changed, "diff": diff if changed else []}


class Task:
    """Runs the action plugin on the stand-in node; check mode has to say the same before."""

    def __init__(self, node, tmp_path, monkeypatch):
        self.node, self.state = node, tmp_path / "root/var/lib/kubegpu/state.json"
        self.die = None
        self.phases = []
        self.detached = []
        monkeypatch.setattr(module, "_ROOT", str(node.root))
        monkeypatch.setattr(module, "module_runner", lambda _module: node)
        monkeypatch.setattr(action, "plan_driver", standin_decision)
        monkeypatch.setattr(_phases.ProxiedAction, "run", lambda *_a, **_k: {})
        monkeypatch.setattr(action, "run_in_background", self.background)
        monkeypatch.setattr(_phases, "run_in_background", self.background)
        monkeypatch.setattr(action, "fetch", self.fetch)
        self.fetched = []
        self.reads = []
        # By phase: what happens on the node before it.
        self.before = {}
        self.variables = {}

    def background(self, plugin, name, arguments, task_vars, *, limit, what):
        self.detached.append((arguments["_internal"]["_phase"], limit))
        return plugin._execute_module(module_name=name, module_args=arguments, task_vars=task_vars)

    def fetch(self, plugin, runfile, _task_vars, execute=None):
        """Stand-in of the real one, which has tests of its own: url is the file's name."""
        if runfile.get("remote"):
            place = self.node.root / runfile["path"].lstrip("/")
            if not place.exists() or sha256(place.read_bytes()) != runfile["checksum"]:
                raise KubegpuError("not on the node")
            return FetchResult(runfile["path"], runfile["checksum"], changed=False, cached=False)
        path = f"/var/cache/kubegpu/{runfile['url'].rpartition('/')[2]}"
        version = plugin._task.args["version"]
        digest = sha256(version.encode())
        found = FetchResult(path, digest, changed=True, cached=True)
        if plugin._task.check_mode:
            return found
        self.fetched.append(runfile)
        if self.node.fail.get("fetch"):
            raise KubegpuError(self.node.fail["fetch"])
        write(self.node.root, path, version)
        return found

    def once(self, check, arguments, **task):
        plugin = action.ActionModule.__new__(action.ActionModule)
        plugin._task = types.SimpleNamespace(
            args=arguments, async_val=task.get("async_val", 0), check_mode=check, no_log=False
        )
        plugin._connection = types.SimpleNamespace(_shell=types.SimpleNamespace(tmpdir=None))
        plugin._remove_tmp_path = lambda _path: None
        plugin._loader = types.SimpleNamespace(get_real_file=lambda path: path)
        plugin._find_needle = lambda _folder, path: path

        def other(_name, given, _variables):
            if self.die == "package_set" and not check:
                raise Killed
            answer = self.node.package_set(given, check)
            if self.die == "after package_set" and not check:
                raise Killed
            return answer

        plugin.other = other

        def execute(module_name, module_args, task_vars):
            if module_name == "kubegpu.nodes.gpu_node_facts":
                self.reads.append(module_args)
                return {"ansible_facts": {"gpu_node": self.facts()}}
            phase = module_args["_internal"]["_phase"]
            self.phases.append(phase)
            if not check:
                self.before.pop(phase, lambda: None)()
            if self.die == phase and (not check or phase != "plan"):
                raise Killed
            answer = run_module(module.main, module_args, check=check)
            if self.die == f"after {phase}" and not check:
                raise Killed
            return answer

        plugin._execute_module = execute
        return plugin.run(task_vars=self.variables)

    def facts(self):
        """What gpu_node_facts returns of the node."""
        reader = NodeReader(str(self.node.root), self.node)
        found = gather(reader, RuntimePaths(), "/var/lib/kubegpu/state.json")
        return json.loads(json.dumps(found))

    def __call__(self, **options):
        arguments = {"state_path": str(self.state), **options}
        before = snapshot(self.node)
        check = self.once(True, arguments)
        assert snapshot(self.node) == before
        self.node.calls.clear()
        self.phases.clear()
        result = self.once(False, arguments)
        if not result.get("failed"):
            assert check.get("changed") == result["changed"]
            assert check.get("diff") == result["diff"]
        return result

    def record(self):
        return json.loads(self.state.read_text())["values"]["nvidia_driver"]


def snapshot(node):
    """Return all that a run could leave: files but for the record's lock, packages, units."""
    files = {
        str(path.relative_to(node.root)): path.read_bytes()
        for path in sorted(node.root.rglob("*"))
        if path.is_file() and not path.name.endswith((".lock", ".log"))
    }
    return json.dumps([node.packages, node.units, node.half]), files


@pytest.fixture
def node(tmp_path):
    return StandinNode(tmp_path / "root")


@pytest.fixture
def task(node, tmp_path, monkeypatch):
    return Task(node, tmp_path, monkeypatch)


def has(node, path):
    return (node.root / path.lstrip("/")).exists()


def test_install_again_absent_again(task, node, capsys):
    start = snapshot(node)
    first = task(version=NEW)
    assert first["changed"]
    assert task.phases == ["begin", "finish"]
    assert node.calls == [
        "package_set nvidia-driver present",
        "update-initramfs -u -k all",
        "systemctl enable nvidia-persistenced",
        "modprobe nvidia",
        "modprobe nvidia-uvm",
        "nvidia-modprobe -c 0 -u",
        "systemctl start nvidia-persistenced",
    ]
    assert (first["loaded"], first["reboot_required"], first["previous"]) == (NEW, False, None)
    assert first["plan"]["action"] == "install"
    # In this process a module's warnings go to the screen.
    assert "580 ends in 2028." in capsys.readouterr().err
    headers = [entry.get("before_header") for entry in first["diff"]]
    assert headers == [NOUVEAU, "NVIDIA driver", None]
    assert first["diff"][1]["after"] == (
        f"driver: {NEW} proprietary from nvidia\nloaded module: {NEW}\n"
        "service nvidia-persistenced: enabled\n"
    )
    assert task.record()["current"]["version"] == NEW
    second = task(version=NEW)
    assert not second["changed"]
    assert task.phases == ["plan"]
    assert node.calls == []
    gone = task(state="absent")
    assert gone["changed"]
    assert node.calls == [
        "package_set nvidia-driver absent",
        "package_set nvidia-driver-pinning absent",
        "systemctl stop nvidia-persistenced",
        "systemctl stop nvidia-cdi-refresh",
        "rmmod nvidia",
        "update-initramfs -u -k all",
    ]
    assert snapshot(node) == start
    assert not task.state.exists()
    assert not task(state="absent")["changed"]
    assert task.phases == ["plan"]


def test_the_packages_come_through_the_proxy_too(task, node, monkeypatch):
    """The roles give it as options, and package_set is told; it stands in no environment."""
    proxies = {"http_proxy": "http://proxy:1", "https_proxy": "http://u:p@proxy:2", "no_proxy": "x"}
    for name in proxies:
        monkeypatch.setenv(name, "")
    given = []
    whole = node.package_set

    def package_set(arguments, check):
        given.append(arguments)
        return whole(arguments, check)

    monkeypatch.setattr(node, "package_set", package_set)
    assert task(**proxies)["changed"]
    assert given and all(proxies.items() <= arguments.items() for arguments in given)


def test_absent_leaves_the_admins_own_driver(task, node):
    node.put(NEW)
    node.load(NEW)
    node.units["nvidia-persistenced"] = "enabled"
    start = snapshot(node)
    adopted = task(version=NEW)
    assert adopted["changed"]
    assert node.packages["nvidia-kernel-dkms"] == (f"{NEW}-1", True)
    task(state="absent")
    assert snapshot(node) == start
    assert not any(call.startswith(("rmmod", "systemctl")) for call in node.calls)


def test_another_version_and_back(task, node):
    task(version=OLD)
    up = task(version=NEW)
    assert node.calls.index("rmmod nvidia") < node.calls.index("modprobe nvidia")
    assert (up["loaded"], up["previous"]["version"]) == (NEW, OLD)
    back = task(version="previous")
    assert (back["loaded"], back["previous"]["version"]) == (OLD, OLD)
    # The same desired has nothing more to do; forth again goes by the version itself.
    assert not task(version="previous")["changed"]
    assert task(version=NEW)["previous"]["version"] == OLD


def test_a_refusal_has_all_reasons_and_writes_nothing(task, node):
    start = snapshot(node)
    answer = task(branch="999")
    assert answer["failed"]
    assert "- Tesla V100 ends with 580.\n- Ask for 580." in answer["msg"]
    assert snapshot(node) == start
    assert task.phases == ["plan"]


def test_async_is_refused(task):
    answer = task.once(False, {"version": NEW}, async_val=60)
    assert answer["failed"]
    assert "async" in answer["msg"]
    assert task.phases == []


def test_a_module_in_use_is_left_and_its_users_are_named(task, node):
    task(version=OLD)
    node.user(4711, "python3")
    answer = task(version=NEW)
    assert answer["changed"]
    assert answer["reboot_required"]
    assert "python3 (pid 4711" in answer["reboot_reason"]
    assert node.loaded == OLD
    assert not any(call.startswith(("rmmod", "modprobe")) for call in node.calls)
    # Nothing can be done until it is free: the next run changes nothing.
    again = task(version=NEW)
    assert not again["changed"]
    assert again["reboot_required"]


def test_the_drivers_own_daemon_does_not_keep_the_module(task, node):
    task(version=OLD)
    node.user(900, "nvidia-persiste")
    assert task(version=NEW)["loaded"] == NEW
    assert node.calls.index("systemctl stop nvidia-persistenced") < node.calls.index("rmmod nvidia")


def test_nouveau_is_unloaded_where_nothing_uses_it(task, node):
    write(node.root, "/sys/module/nouveau/refcnt", "0\n")
    assert task(version=NEW)["loaded"] == NEW
    assert "modprobe -r nouveau" in node.calls


def test_nouveau_in_use_needs_a_reboot(task, node):
    write(node.root, "/sys/module/nouveau/refcnt", "2\n")
    answer = task(version=NEW)
    assert answer["reboot_required"]
    assert "nouveau" in answer["reboot_reason"]
    assert answer["loaded"] is None
    assert not any(call.startswith("modprobe") for call in node.calls)


@pytest.fixture
def decided(task, node, monkeypatch):
    """Return the task with the real decision, on a node whose administrator installed a driver."""
    monkeypatch.setattr(action, "plan_driver", plan_driver)
    node.put(NEW)
    return task


def test_an_admins_driver_beside_nouveau_is_repaired(decided, node):
    write(node.root, "/sys/module/nouveau/refcnt", "0\n")
    answer = decided()
    assert answer["changed"] and answer["loaded"] == node.loaded == NEW
    assert not answer["reboot_required"]
    assert "blacklist nouveau" in (node.root / NOUVEAU.lstrip("/")).read_text()
    assert node.calls.index("update-initramfs -u -k all") < node.calls.index("modprobe -r nouveau")
    assert node.version == NEW and answer["plan"]["action"] == "none"
    assert any("nouveau is loaded" in text for text in answer["plan"]["reasons"])
    assert not decided()["changed"], "the second run has nothing to do"


def test_an_admins_driver_beside_nouveau_that_has_the_console_waits_for_a_reboot(decided, node):
    write(node.root, "/sys/module/nouveau/refcnt", "2\n")
    answer = decided()
    assert answer["reboot_required"] and "nouveau" in answer["reboot_reason"]
    assert has(node, NOUVEAU) and node.loaded is None


def test_an_admins_driver_that_is_not_loaded_is_loaded_unless_that_is_not_permitted(decided, node):
    answer = decided(load=False)
    assert answer["changed"] and node.loaded is None
    assert not any(call.startswith("modprobe") for call in node.calls)
    assert decided()["loaded"] == NEW


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("/etc/modprobe.d/local.conf", "blacklist nvidia\n"),
        ("/usr/lib/modprobe.d/local.conf", "install nvidia-uvm /bin/false\n"),
        ("/proc/cmdline", "quiet module_blacklist=nvidia\n"),
    ],
)
def test_a_driver_that_an_admin_has_blocked_is_refused_and_his_file_stays(
    decided, node, path, text
):
    write(node.root, path, text)
    before = snapshot(node)
    answer = decided()
    assert answer["failed"] and text.split()[-1].split("=")[-1] in answer["msg"]
    assert ("kernel command line" if path == "/proc/cmdline" else path) in answer["msg"]
    assert snapshot(node) == before


def test_a_module_for_another_kernel_alone_needs_a_reboot(task, node):
    node.build_for = (OTHER_KERNEL,)
    answer = task(version=NEW)
    assert answer["reboot_required"]
    assert KERNEL in answer["reboot_reason"]
    assert OTHER_KERNEL in answer["reboot_reason"]
    assert node.loaded is None


def test_where_no_module_can_be_loaded_it_is_said_and_no_fault(task, node, capsys):
    write(node.root, "/proc/self/status", "CapEff:\t0000000000000000\n")
    answer = task(version=NEW)
    assert not answer.get("failed")
    assert answer["loaded"] is None
    assert not answer["reboot_required"]
    assert "CAP_SYS_MODULE" in capsys.readouterr().err
    assert not task(version=NEW)["changed"]


def test_a_module_that_does_not_load_is_explained(task, node):
    node.fail["modprobe"] = "modprobe: ERROR: could not insert 'nvidia': Required key not available"
    answer = task(version=NEW)
    assert answer["failed"]
    assert answer["code"] == "secure_boot"
    assert "Required key not available" in answer["msg"]
    # The driver is installed; only the load is left.
    assert node.version == NEW
    assert task.record()["pending"] is None
    del node.fail["modprobe"]
    assert task(version=NEW)["loaded"] == NEW


def test_a_failed_build_is_explained_and_rolled_back(task, node):
    start = snapshot(node)
    node.fail["package_set"] = "half"
    answer = task(version=NEW)
    assert answer["failed"]
    assert answer["code"] == "dkms_build_failed"
    assert "nv-mmap.c:321:9: error: implicit declaration" in answer["msg"]
    assert answer["rolled_back"]
    assert "Rolled back: no driver" in answer["msg"]
    assert task.phases == ["begin", "explain", "rollback"]
    assert snapshot(node) == start
    assert not task.state.exists()
    # Another desired works then.
    assert task(version=OLD)["loaded"] == OLD


def test_a_failed_upgrade_goes_back_to_the_version_before(task, node):
    task(version=OLD, module_options={"a": 1})
    record, start = task.record(), snapshot(node)
    node.fail["package_set"] = "half"
    answer = task(version=NEW, module_options={"b": 2})
    assert answer["rolled_back"]
    assert f"Rolled back: {OLD} proprietary from nvidia" in answer["msg"]
    assert node.packages == dict.fromkeys(NAMES, (f"{OLD}-1", True))
    assert (node.root / OPTIONS.lstrip("/")).read_text() == "options nvidia {'a': 1}\n"
    assert task.record() == record
    assert snapshot(node)[0] == start[0]
    assert not task(version=OLD, module_options={"a": 1})["changed"]


def test_a_rollback_that_fails_is_said(task, node, monkeypatch):
    task(version=OLD)
    real = node.package_set
    calls = []

    def refusing(arguments, check):
        calls.append(arguments["name"])
        if not check:
            return {"failed": True, "msg": f"{DKMS_WORDS} ({len(calls)})"}
        return real(arguments, check)

    monkeypatch.setattr(node, "package_set", refusing)
    answer = task(version=NEW)
    assert not answer["rolled_back"]
    assert "This could not be restored: the packages" in answer["msg"]


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ("The package set nvidia-driver: Another run holds its lock.", "package_locked"),
        ("The package set nvidia-driver: The disk is full.", "package_disk_full"),
        ("No package list of this node has x. Not reached.", "repository_unreachable"),
    ],
)
def test_a_passing_failure_before_any_package_puts_the_files_back(task, node, words, code):
    start = snapshot(node)
    node.fail["package_set"] = {"msg": words, "code": code}
    answer = task(version=NEW)
    assert answer["failed"]
    assert words in answer["msg"]
    assert "Nothing was changed." in answer["msg"]
    assert "package_set nvidia-driver absent" not in node.calls
    assert snapshot(node) == start
    assert task(version=NEW)["loaded"] == NEW


def test_a_full_disk_half_way_is_kept_and_the_next_run_goes_on(task, node, monkeypatch):
    real = node.package_set

    def full(arguments, check):
        if check:
            return real(arguments, check)
        node.half = {"nvidia-kernel-dkms": f"{NEW}-1"}
        failure = {"msg": "No space left on device", "code": "package_disk_full"}
        return {"failed": True, **failure}

    monkeypatch.setattr(node, "package_set", full)
    answer = task(version=NEW)
    assert answer["failed"]
    assert "the next run continues" in answer["msg"]
    assert not answer["rolled_back"]
    assert task.record()["pending"]["before"] is None
    monkeypatch.setattr(node, "package_set", real)
    assert task(version=NEW)["loaded"] == NEW
    assert "update-initramfs -u -k all" in node.calls
    assert not task(version=NEW)["changed"]


RUNFILE = {"version": NEW, "source": "runfile", "runfile": {"url": "http://x/x.run"}}
OLD_RUNFILE = {"version": OLD, "source": "runfile", "runfile": {"url": "http://x/old.run"}}


BOUNDARIES = ["begin", "after begin", "package_set", "after package_set"]


@pytest.mark.full(
    *(f"absent-{place}" for place in BOUNDARIES if place != "after begin"),
    "present-package_set", "present-finish",
    why="the same run ended at another moment",
)  # fmt: skip
@pytest.mark.parametrize("place", [*BOUNDARIES, "finish", "after finish"])
@pytest.mark.parametrize("then", ["present", "absent"])
def test_a_run_that_dies_anywhere_leaves_what_the_next_needs(task, node, place, then):
    start = snapshot(node)
    task.die = place
    with pytest.raises(Killed):
        task(version=NEW)
    task.die = None
    if then == "present":
        assert task(version=NEW)["loaded"] == NEW
        assert task.record()["pending"] is None
        assert not task(version=NEW)["changed"]
    assert not task(state="absent").get("failed")
    assert snapshot(node) == start
    assert not task.state.exists()


def test_a_run_that_dies_before_it_loads(task, node, monkeypatch):
    """The record says that the driver is installed; that it is not loaded, the node says."""
    start = snapshot(node)

    def killed(_work):
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(phases, "_load", killed)
        with pytest.raises(Killed):
            task(version=NEW)
    assert task.record()["pending"] is None
    assert task(version=NEW)["loaded"] == NEW
    task(state="absent")
    assert snapshot(node) == start


@pytest.mark.parametrize("desired", [{"version": NEW}, {"state": "absent"}])
def test_a_run_that_another_one_has_gone_on_from_stops(task, node, monkeypatch, desired):
    """It was thought dead: it neither finishes nor puts back what is the other one's now."""
    real, others = node.package_set, []

    def package_set(given, check):
        answer = real(given, check)
        if not check and not others:
            others.append(None)
            others[0] = task.once(False, {"state_path": str(task.state), **desired})
        return answer

    monkeypatch.setattr(node, "package_set", package_set)
    first = task(version=NEW)
    assert first["failed"] and "Another run has continued" in first["msg"]
    assert not first.get("rolled_back")
    assert not others[0].get("failed")
    assert node.version == desired.get("version")
    assert not task(**desired)["changed"]


@pytest.mark.parametrize("phase", ["begin", "finish"])
def test_a_killed_run_is_finished_by_the_next(task, node, phase):
    start = snapshot(node)
    task.die = phase
    with pytest.raises(Killed):
        task(version=NEW)
    task.die = None
    answer = task(version=NEW)
    assert answer["changed"]
    assert answer["loaded"] == NEW
    assert "update-initramfs -u -k all" in node.calls
    assert task.record()["pending"] is None
    assert not task(version=NEW)["changed"]
    task(state="absent")
    assert snapshot(node) == start


def test_a_killed_upgrade_that_then_fails_goes_back_all_the_way(task, node):
    task(version=OLD)
    task.die = "finish"
    with pytest.raises(Killed):
        task(version=NEW)
    task.die = None
    node.fail["package_set"] = "half"
    assert task(version=NEW, module_options={"a": 1})["rolled_back"]
    assert node.version == OLD


def test_a_runfile_is_fetched_run_and_removed(task, node):
    start = snapshot(node)
    answer = task(version=NEW, source="runfile", runfile={"url": "http://x/x.run"})
    assert answer["loaded"] == NEW
    assert task.phases == ["plan", "begin", "runfile", "finish"]
    assert len(task.fetched) == 1
    assert not task(version=NEW, source="runfile", runfile={"url": "http://x/x.run"})["changed"]
    assert len(task.fetched) == 1
    task(state="absent")
    assert snapshot(node) == start


def test_a_runfile_with_a_wrong_checksum_changes_nothing(task, node):
    node.put(OLD)
    node.load(OLD)
    start = snapshot(node)
    node.fail["fetch"] = "the checksum differs"
    answer = task(version=NEW, source="runfile", runfile={"url": "http://x/x.run"})
    assert answer["failed"]
    assert "the checksum differs" in answer["msg"]
    assert snapshot(node) == start


def test_a_failed_installer_is_rolled_back_to_the_packages(task, node):
    task(version=OLD)
    node.fail["sh"] = "ERROR: The kernel module failed to build."
    answer = task(version=NEW, source="runfile", runfile={"url": "http://x/x.run"})
    assert answer["failed"]
    assert "installer of the driver" in answer["msg"]
    assert answer["rolled_back"]
    assert node.packages == dict.fromkeys(NAMES, (f"{OLD}-1", True))


def test_from_a_runfile_to_packages_and_back(task, node):
    runfile = {"version": OLD, "source": "runfile", "runfile": {"url": "http://x/x.run"}}
    task(**runfile)
    answer = task(version=NEW)
    assert node.calls[:2] == ["nvidia-uninstall --silent", "package_set nvidia-driver present"]
    assert answer["previous"]["source"] == "runfile"
    # Packages that fail: the file is still there, and is run again.
    task(**runfile)
    node.fail["package_set"] = "half"
    answer = task(version=NEW)
    assert answer["rolled_back"]
    assert any(call.startswith("sh ") for call in node.calls)


def test_an_admins_runfile_is_never_uninstalled_by_absent(task, node):
    write(node.root, "/usr/bin/nvidia-uninstall")
    node.build(NEW)
    task(version=NEW, source="runfile", runfile={"url": "http://x/x.run"})
    assert task.fetched == []
    task(state="absent")
    assert "nvidia-uninstall --silent" not in node.calls
    assert node.built == NEW


def test_a_file_that_is_not_wished_any_more_goes_and_an_edited_one_stays(task, node):
    task(version=NEW, module_options={"a": 1})
    assert has(node, OPTIONS)
    task(version=NEW)
    assert not has(node, OPTIONS)
    place = node.root / NOUVEAU.lstrip("/")
    place.write_text("blacklist nouveau\noptions mine x=1\n")
    task(state="absent")
    assert place.read_text() == "options mine x=1\n"


def test_a_token_is_written_and_never_shown(task, node, tmp_path):
    secret = tmp_path / "client.tok"
    secret.write_text("very secret")
    answer = task(version=NEW, licence={"token_path": str(secret)})
    assert (node.root / TOKEN.lstrip("/")).read_text() == "very secret"
    text = json.dumps(answer)
    assert "very secret" not in text
    assert base64.b64encode(b"very secret").decode() not in text
    assert "sha256" in text
    (warning,) = (one for one in answer["warnings"] if "token" in one)
    assert f"{secret} has not the form of a client configuration token" in warning
    assert not task(version=NEW, licence={"token_path": str(secret)})["changed"]
    secret.write_text("renewed")
    assert task(version=NEW, licence={"token_path": str(secret)})["changed"]
    task(state="absent")
    assert not has(node, TOKEN)


def test_the_initramfs_that_fails_is_finished_by_the_next_run(task, node):
    node.fail["update-initramfs"] = "No space left on device: /boot"
    answer = task(version=NEW)
    assert answer["failed"]
    assert "initial RAM disk" in answer["msg"]
    del node.fail["update-initramfs"]
    assert task(version=NEW)["loaded"] == NEW
    assert "update-initramfs -u -k all" in node.calls


def test_without_a_tool_for_initramfs_there_is_a_warning(task, node, capsys):
    (node.root / "usr/sbin/update-initramfs").unlink()
    task(version=NEW)
    assert "initial RAM disk was not rebuilt" in capsys.readouterr().err
    assert "update-initramfs" not in " ".join(node.calls)


@pytest.mark.full(
    "absent-begin", "absent-finish", "absent-sh", "absent-update-initramfs",
    "present-finish", "present-runfile", "present-update-initramfs", "present-modprobe",
    why="the same run ended at another moment",
)  # fmt: skip
@pytest.mark.parametrize(
    "place", ["begin", "runfile", "finish", "sh", "update-initramfs", "modprobe"]
)
@pytest.mark.parametrize("then", ["present", "absent"])
def test_a_killed_run_with_a_runfile_is_finished_or_undone(task, node, place, then):
    """At the beginning of a phase, and right after a program within one."""
    start = snapshot(node)
    task.die = node.die = place
    with pytest.raises(Killed):
        task(**RUNFILE)
    task.die = node.die = None
    if then == "present":
        assert task(**RUNFILE)["loaded"] == NEW
        assert task.record()["pending"] is None
        assert not task(**RUNFILE)["changed"]
    task(state="absent")
    if place == "begin" and then == "absent":
        # Nothing was recorded yet; what was fetched stays for the next time.
        (node.root / "var/cache/kubegpu/x.run").unlink()
    assert snapshot(node) == start
    assert not task(state="absent")["changed"]


@pytest.mark.full(
    "desired0-begin", "desired3-rmmod", "desired4-begin", "desired6-rmmod",
    "desired7-update-initramfs",
    why="the same run ended at another moment",
)  # fmt: skip
@pytest.mark.parametrize(
    ("desired", "place"),
    [
        *((RUNFILE, p) for p in ("begin", "nvidia-uninstall", "finish", "rmmod")),
        *(({"version": NEW}, p) for p in ("begin", "finish", "rmmod", "update-initramfs")),
    ],
)
def test_a_killed_absent_is_finished_by_the_next(task, node, place, desired):
    start = snapshot(node)
    task(**desired)
    task.die = node.die = place
    with pytest.raises(Killed):
        task(state="absent")
    task.die = node.die = None
    assert task(state="absent")["changed"]
    assert snapshot(node) == start
    assert not task(state="absent")["changed"]


def test_a_failed_absent_is_finished_by_the_next(task, node):
    start = snapshot(node)
    task(version=NEW)
    node.fail["package_set"] = "dpkg was interrupted"
    answer = task(state="absent")
    assert answer["failed"]
    assert "dpkg was interrupted" in answer["msg"]
    assert task(state="absent")["changed"]
    assert snapshot(node) == start


def test_another_runfile_after_a_killed_one(task, node):
    start = snapshot(node)
    node.die = "sh"
    with pytest.raises(Killed):
        task(**OLD_RUNFILE)
    node.die = None
    assert task(**RUNFILE)["loaded"] == NEW
    assert not has(node, "/var/cache/kubegpu/old.run")
    task(state="absent")
    assert snapshot(node) == start


def test_a_runfile_that_was_removed_by_hand_does_not_stop_absent(task, node):
    start = snapshot(node)
    task(**RUNFILE)
    node.nvidia_uninstall([])
    task(state="absent")
    assert snapshot(node) == start


def test_what_fails_before_the_record_touches_no_package(task, node, monkeypatch):
    task(version=OLD)
    start = snapshot(node)

    def failing(*_arguments):
        raise KubegpuError("systemd does not answer")

    monkeypatch.setattr(units, "read_services", failing)
    monkeypatch.setattr(driver_diff, "driver_states", lambda *_a: ("", "x"))
    answer = task.once(False, {"state_path": str(task.state), "version": NEW})
    assert answer["failed"]
    assert "Nothing was changed" in answer["msg"]
    assert snapshot(node) == start


def test_runfiles_of_no_more_use_go(task, node):
    cache = node.root / "var/cache/kubegpu"
    task(**OLD_RUNFILE)
    task(**RUNFILE)
    # The one before can be asked for, or gone back to.
    assert sorted(path.name for path in cache.iterdir()) == ["old.run", "x.run"]
    third = {**RUNFILE, "version": "580.178.04", "runfile": {"url": "http://x/third.run"}}
    node.fail["sh"] = "ERROR: no"
    assert task(**third)["rolled_back"]
    assert sorted(path.name for path in cache.iterdir()) == ["old.run", "x.run"]
    del node.fail["sh"]
    task(**third)
    assert sorted(path.name for path in cache.iterdir()) == ["third.run", "x.run"]
    task(state="absent")
    assert not cache.exists()


def test_a_runfile_that_is_not_the_verified_one_any_more_is_not_run(task, node):
    task(**OLD_RUNFILE)
    task(version=NEW)
    task(**OLD_RUNFILE)
    (node.root / "var/cache/kubegpu/old.run").write_text("malicious")
    node.fail["package_set"] = "half"
    answer = task(version=NEW)
    assert not answer["rolled_back"]
    assert not any(call.startswith("sh ") for call in node.calls)


def test_a_runfile_is_looked_at_again_after_a_killed_run(task, node):
    node.die = "sh"
    with pytest.raises(Killed):
        task(**RUNFILE)
    node.die = None
    (node.root / "var/cache/kubegpu/x.run").write_text("malicious")
    task(**RUNFILE)
    assert (node.root / "var/cache/kubegpu/x.run").read_text() == NEW
    assert len(task.fetched) == 2


def test_a_module_that_was_unloaded_for_an_installer_that_fails_is_loaded_again(task, node):
    task(version=OLD)
    node.fail["sh"] = "ERROR: The kernel module failed to build."
    assert task(**RUNFILE)["rolled_back"]
    assert node.loaded == OLD


def test_without_load_an_installer_takes_no_module_away(task, node):
    task(version=OLD)
    task(**RUNFILE, load=False)
    assert node.loaded == OLD
    assert not any(call.startswith("rmmod") for call in node.calls)


def test_nouveau_goes_before_an_installer(task, node):
    write(node.root, "/sys/module/nouveau/refcnt", "0\n")
    assert task(**RUNFILE)["loaded"] == NEW
    runs = [call for call in node.calls if call.startswith("sh ")]
    folder = f"{node.root}/var/cache/kubegpu/unpacked/driver"
    assert runs == [f"sh /var/cache/kubegpu/x.run --silent --tmpdir={folder}"]
    assert node.calls.index("modprobe -r nouveau") < node.calls.index(runs[0])


def test_an_installer_beside_nouveau_that_is_in_use(task, node):
    write(node.root, "/sys/module/nouveau/refcnt", "2\n")
    answer = task(**RUNFILE)
    command = "sh /var/cache/kubegpu/x.run --silent --no-nouveau-check --tmpdir="
    assert any(call.startswith(command) for call in node.calls)
    assert answer["reboot_required"]
    assert "nouveau" in answer["reboot_reason"]


def test_an_old_installer_waits_for_a_boot_without_nouveau(task, node):
    write(node.root, "/sys/module/nouveau/refcnt", "2\n")
    desired = {**RUNFILE, "version": "535.288.01"}
    answer = task(**desired)
    assert answer["code"] == "nouveau_loaded"
    assert "Reboot" in answer["msg"]
    assert not answer["rolled_back"]
    assert has(node, NOUVEAU)
    assert "update-initramfs -u -k all" in node.calls
    assert not any(call.startswith("sh ") for call in node.calls)
    # After the boot.
    (node.root / "sys/module/nouveau/refcnt").unlink()
    (node.root / "sys/module/nouveau").rmdir()
    assert task(**desired)["loaded"] == "535.288.01"
    assert not task(**desired)["changed"]


def test_an_installer_that_takes_too_long_is_said(task, node, monkeypatch):
    monkeypatch.setattr(node, "sh", lambda _words: Result(124, "", ""))
    answer = task(**RUNFILE, build_timeout=7)
    assert "was not ready after 7 seconds (build_timeout)" in answer["msg"]
    assert answer["rolled_back"]


@pytest.mark.parametrize("value", ["soon", 0, -5, True, [1]])
def test_a_time_limit_that_is_none(task, value):
    answer = task(version=NEW, build_timeout=value)
    assert answer["failed"]
    assert "build_timeout" in answer["msg"]
    assert task.phases == []


def test_a_signed_link_is_not_shown(task):
    link = "https://me:secret@x/x.run?signature=secret"
    answer = task(**{**RUNFILE, "runfile": {"url": link}})
    assert answer["changed"]
    assert "secret" not in json.dumps(answer)
    assert answer["plan"]["runfile"]["url"] == "https://***@x/x.run?***"


def test_a_licence_is_waited_for_after_a_change_and_only_then(task, node, monkeypatch):
    waited = []

    def sleep(seconds):
        waited.append(seconds)
        node.licence = "Licensed" if len(waited) > 1 else node.licence

    clock = types.SimpleNamespace(sleep=sleep, monotonic=lambda: 3 * len(waited))
    monkeypatch.setattr(phases, "time", clock)
    node.licence = "Unlicensed (Unrestricted)"
    desired = {"version": NEW, "licence": {"feature_type": 1, "timeout": 60}}
    # Also: not once in check mode, in which it runs before.
    assert task(**desired)["changed"] and waited == [3, 3]
    assert not task(**desired)["changed"]
    assert (task.phases, waited) == (["plan"], [3, 3])


def test_a_guest_without_a_licence_in_time_fails_and_keeps_its_files(task, node, monkeypatch):
    ticks = iter(range(0, 1000, 5))
    clock = types.SimpleNamespace(sleep=lambda _seconds: None, monotonic=lambda: next(ticks))
    monkeypatch.setattr(phases, "time", clock)
    node.licence = "Unlicensed"
    desired = {"version": NEW, "licence": {"feature_type": 1, "timeout": 30}}
    answer = task(**desired)
    assert answer["failed"] and answer["code"] == "vgpu_unlicensed"
    for word in ("has no licence", "License Status: Unlicensed", "journalctl --unit nvidia-gridd"):
        assert word in answer["msg"]
    assert node.version == NEW and node.loaded == NEW and has(node, NOUVEAU)
    # The driver is complete: the next run has nothing to do, and the verification says the rest.
    assert not task(**desired)["changed"]


def test_the_licence_daemon_reads_a_new_token(task, node, tmp_path):
    secret = tmp_path / "client.tok"
    secret.write_text("very secret")
    desired = {"version": NEW, "licence": {"token_path": str(secret)}}
    task(**desired)
    assert "systemctl try-restart nvidia-gridd.service" in node.tried
    assert (node.root / TOKEN.lstrip("/")).stat().st_mode & 0o777 == 0o744
    node.tried.clear()
    task(**desired, module_options={"a": 1})
    assert node.tried == []


def test_an_empty_token_is_refused(task, tmp_path):
    secret = tmp_path / "client.tok"
    secret.write_text("\n")
    with pytest.raises(AnsibleError, match="is empty"):
        task(version=NEW, licence={"token_path": str(secret)})


def test_packages_that_fail_before_an_installer_are_told_as_they_are(task, node):
    """A program that uses the old driver has nothing to do with it."""
    task(version=OLD)
    node.user(4711, "python3")
    node.fail["package_set"] = "No package list of this node has gcc."
    answer = task(**RUNFILE)
    assert answer["msg"].startswith("No package list of this node has gcc.")
    assert "code" not in answer
    assert not any(call.startswith("sh ") for call in node.calls)


def test_an_installers_words_are_told_beside_a_cause_that_it_does_not_name(task, node):
    task(version=OLD)
    node.user(4711, "python3")
    node.fail["sh"] = "ERROR: Something else."
    answer = task(**RUNFILE)
    assert answer["code"] == "driver_in_use"
    assert "ERROR: Something else." in answer["msg"]


@pytest.mark.parametrize(("system", "word"), [("rocky", "EPEL"), ("amzn", "own archive")])
def test_a_node_without_dkms_is_told_where_it_is(task, node, system, word):
    write(node.root, "/etc/os-release", f"ID={system}\nVERSION_ID=9\n")
    node.fail["package_set"] = "No package list of this node has dkms."
    answer = task(version=NEW)
    assert word in answer["msg"] and "Next step: enable" in answer["msg"]


def test_packages_that_take_too_long_name_the_option(task, node):
    node.fail["package_set"] = {
        "msg": "packages: not finished after 9 seconds, and stopped.",
        "code": "job_stopped",
    }
    answer = task(version=NEW, build_timeout=9)
    assert "raise build_timeout, which is 9 seconds" in answer["msg"]


def test_the_licence_has_an_alias(task, node, tmp_path):
    secret = tmp_path / "client.tok"
    secret.write_text("very secret")
    assert task(version=NEW, license={"token_path": str(secret)})["changed"]
    assert has(node, "/etc/nvidia/ClientConfigToken/kubegpu.tok")
    wrong = task(version=NEW, license={"token": "x"})
    assert wrong["failed"] and "token" in wrong["msg"] and "token_path" in wrong["msg"]


def test_a_node_that_is_no_guest_is_given_no_token(task, node, tmp_path):
    secret = tmp_path / "client.tok"
    secret.write_text("very secret")
    answer = task(version=NEW, licence={"token_path": str(secret), "server": "no-guest"})
    assert answer["changed"]
    assert not has(node, TOKEN)


def test_what_takes_long_is_detached_from_the_connection(task, node):
    task(**OLD_RUNFILE, build_timeout=1000)
    # The module stops the installer itself, before the job is stopped.
    assert task.detached == [("runfile", 1120), ("finish", 3720)]
    task.detached.clear()
    node.fail["sh"] = "ERROR: no"
    task(**RUNFILE)
    assert [phase for phase, _limit in task.detached] == ["runfile", "explain", "rollback"]
    task.detached.clear()
    task(version=NEW)
    assert [phase for phase, _limit in task.detached] == ["begin", "finish"]


def known(task):
    """The facts that a play has read before."""
    task.variables = {"ansible_facts": {"gpu_node": task.facts()}}
    task.reads.clear()


def test_facts_that_still_hold_are_not_read_again(task):
    task(version=NEW)
    known(task)
    assert not task(version=NEW)["changed"]
    assert (task.reads, task.phases) == ([], ["plan"])
    # After the packages the node is another one.
    assert task(version=OLD)["loaded"] == OLD
    assert len(task.reads) == 1


@pytest.mark.parametrize("form", ["older", "of another form"])
def test_facts_that_do_not_hold_any_more_are_read_again(task, node, form):
    known(task)
    if form == "older":
        node.put(OLD)
        node.load(OLD)
    else:
        del task.variables["ansible_facts"]["gpu_node"]["driver"]
    answer = task(version=NEW)
    assert answer["changed"] and answer["loaded"] == NEW
    # Check mode, before the plan, before what is left to do.
    assert len(task.reads) == 3
    assert not task(version=NEW)["changed"]


def test_facts_from_before_the_repository_are_read_again(task, node, monkeypatch):
    repository = {"name": "kubegpu-nvidia-driver", "url": "https://x"}

    def decision(facts, desired, data):
        plan = standin_decision(facts, desired, data)
        return replace(plan, repository=None if facts["repositories"] else repository)

    monkeypatch.setattr(action, "plan_driver", decision)
    known(task)
    arguments = {"state_path": str(task.state), "version": NEW}
    given = []
    whole = node.package_set
    monkeypatch.setattr(
        node, "package_set", lambda one, check: given.append((one, check)) or whole(one, check)
    )
    # In check mode nobody has added it.
    assert task.once(True, arguments)["changed"] and task.reads == []
    assert given[0][0]["repository_expected"]
    task.once(False, arguments)
    assert len(task.reads) == 2


def boots(node):
    write(node.root, "/proc/sys/kernel/random/boot_id", "another\n")


@pytest.mark.parametrize("desired", [{"version": NEW}, {"state": "absent"}])
@pytest.mark.parametrize(
    ("happens", "said"),
    [(boots, "boot id: none then, another now"), (lambda node: node.put(None), "installed driver")],
)
def test_a_node_that_changes_before_the_first_write_is_refused(task, node, desired, happens, said):
    task(version=OLD)
    state = task.state.read_bytes()
    task.before["begin"] = lambda: happens(node)
    answer = task(**desired)
    assert answer["failed"] and answer["code"] == "node_changed"
    assert "nothing was changed" in answer["cause"] and said in answer["evidence"]
    assert answer["next_step"] and "rolled_back" not in answer
    assert task.phases[-1] == "begin" and task.state.read_bytes() == state
    # The next run plans for the node as it is.
    assert task(**desired)["changed"]
    assert not task(**desired)["changed"]


def test_a_node_that_boots_between_the_phases_is_finished(task, node):
    task.before["finish"] = lambda: boots(node)
    assert task(version=NEW)["loaded"] == NEW
    assert not task(version=NEW)["changed"]


def test_headers_that_come_with_the_packages_are_built_for(task, node):
    """By DKMS, before the rest is planned."""
    node.build_for = ()
    built = []

    def dkms(words):
        built.append(words)
        node.build_for = (KERNEL, OTHER_KERNEL)
        node.build(NEW)
        return Result(0, "", "")

    node.dkms = dkms

    def headers(arguments, check):
        answer = StandinNode.package_set(node, arguments, check)
        if not check:
            place = node.root / f"var/lib/dkms/nvidia/{NEW}"
            (place / "source").mkdir(parents=True)
            for kernel in (KERNEL, OTHER_KERNEL):
                write(node.root, f"/lib/modules/{kernel}/build/Makefile")
        return answer

    node.package_set = headers
    assert task(version=NEW)["loaded"] == NEW
    assert task.phases == ["begin", "build", "finish"]
    assert built == [["autoinstall", "-k", kernel] for kernel in (KERNEL, OTHER_KERNEL)]
    assert len(task.reads) == 4


@pytest.mark.parametrize(
    ("facts", "said"),
    [
        (None, "ansible_facts.gpu_node is null"),
        ({"os": {}}, "ansible_facts.gpu_node.os has no family"),
    ],
)
def test_facts_of_another_form_end_the_task(task, monkeypatch, facts, said):
    monkeypatch.setattr(task, "facts", lambda: facts)
    answer = task.once(False, {"state_path": str(task.state), "version": NEW})
    assert answer["failed"] and answer["code"] == "other_form" and said in answer["evidence"]
    assert task.phases == []


def test_a_node_answers_no_package_and_no_plan(task, node, monkeypatch):
    """What is installed is planned here: a node that says otherwise is not heard."""
    answers = []
    whole = action.run_with_progress

    def hostile(plugin, name, arguments, task_vars, text):
        answer = whole(plugin, name, arguments, task_vars, text)
        if "_tasks" in answer:
            answer["_tasks"]["sets"] = [{"name": "nvidia-driver", "packages": {"evil": "1"}}]
            answer["plan"] = {"action": "none"}
            answers.append(answer)
        return answer

    monkeypatch.setattr(action, "run_with_progress", hostile)
    answer = task(version=NEW)
    assert answers and answer["plan"]["action"] == "install"
    assert set(node.packages) == set(NAMES)


@pytest.mark.parametrize(
    ("option", "said"),
    [
        ({"drivers": 5}, "drivers"),
        ({"lock_timeout": "soon"}, "lock_timeout"),
        ({"load": 5}, "load"),
    ],
)
def test_a_wrong_option_is_refused_before_the_node_is_asked(task, option, said):
    answer = task(version=NEW, **option)
    assert answer["failed"] and said in answer["msg"]
    assert (task.phases, task.reads) == ([], [])
