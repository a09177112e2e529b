# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A node of the RPM families with a GPU and a distribution's archive, and NVIDIA's repository.

The package managers, the repositories and their signatures are real. The packages, the archive, the
GPU, the kernel and dracut are stand-ins.
"""

from __future__ import annotations

import contextlib
import http.server
import os
import shutil
import signal
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.integration.packages import standin_repository, standin_rpm_drivers
from tests.integration.packages.rpm_node import DNF, DNF5, ZYPPER, Manager, RpmNode, node_tree
from tests.testbed.rpm_standins import KERNELS

MODULE = "/etc/dnf/modules.d/nvidia-driver.module"
# Where a kernel's headers are, by its name.
_BUILD = {
    "rhel": "/usr/src/kernels/{}",
    "suse": "/usr/src/linux-{}-obj/x86_64/default",
}
# A Tesla T4: every branch and both types of kernel modules are for it.
_GPU = {"vendor": "0x10de", "device": "0x1eb8", "class": "0x030200"}
_DRACUT = (
    '#!/bin/sh\n# STAND-IN for dracut: it writes down how it was called.\necho "$@" >>/run/dracut\n'
)


@dataclass(frozen=True)
class Distribution:
    """What a node says that it is, and which of NVIDIA's folders is for it."""

    name: str
    manager: Manager
    release: str
    folder: str

    @property
    def family(self) -> str:
        return standin_rpm_drivers.FOLDERS[self.folder][0]

    @property
    def streams(self) -> bool:
        return standin_rpm_drivers.FOLDERS[self.folder][1]


def _release(identity: str, version: str, like: str = "", platform: str = "") -> str:
    fields = {"ID": identity, "VERSION_ID": version, "ID_LIKE": like, "PLATFORM_ID": platform}
    return "".join(f'{name}="{value}"\n' for name, value in fields.items() if value)


_EL = "rhel centos fedora"
DISTRIBUTIONS = {
    one.name: one
    for one in (
        Distribution("rocky9", DNF, _release("rocky", "9.4", _EL, "platform:el9"), "rhel9"),
        Distribution("alma10", DNF, _release("almalinux", "10.0", _EL, "platform:el10"), "rhel10"),
        Distribution("fedora44", DNF5, _release("fedora", "44"), "fedora44"),
        Distribution(
            "leap15", ZYPPER, _release("opensuse-leap", "15.6", "suse opensuse"), "opensuse15"
        ),
        Distribution("sles15", ZYPPER, _release("sles", "15.6", "suse"), "sles15"),
        Distribution("rhel8", DNF, _release("rhel", "8.10", "fedora", "platform:el8"), "rhel8"),
        Distribution("ol8", DNF, _release("ol", "8.10", "fedora", "platform:el8"), "rhel8"),
        Distribution("ol9", DNF, _release("ol", "9.4", "fedora", "platform:el9"), "rhel9"),
        Distribution("amzn2023", DNF, _release("amzn", "2023", "fedora"), "amzn2023"),
        Distribution("openeuler24", DNF, _release("openEuler", "24.03"), "rhel9"),
    )
}


class Web:
    """The repositories on loopback; files whose names end with one of ``broken`` are not sent.

    ``told`` is called first for a file that is not sent.
    """

    def __init__(self, folder: Path):
        self.broken: tuple[str, ...] = ()
        self.told: Callable[[], None] = lambda: None
        self.folder = folder
        web = self

        class Handler(http.server.SimpleHTTPRequestHandler):
            def __init__(self, *args, **kwargs):
                super().__init__(*args, directory=str(folder), **kwargs)

            def do_GET(self):
                if web.broken and self.path.endswith(web.broken):
                    web.told()
                    self.send_error(503)
                else:
                    super().do_GET()

            def log_message(self, format, *args):
                """Say nothing."""

        self._server = standin_repository.serve(folder)
        self._server.RequestHandlerClass = Handler
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self.key = (folder / "key").read_text()
        self.fingerprint = (folder / "fingerprint").read_text()

    @contextlib.contextmanager
    def without(self, *names, told: Callable[[], None] = lambda: None):
        """Do not send these files for a while."""
        self.broken, self.told = names, told
        try:
            yield
        finally:
            self.broken, self.told = (), lambda: None

    def close(self):
        self._server.shutdown()


class DriverNode(RpmNode):
    """The node; one tree for all distributions of a package manager, one after another."""

    def __init__(self, root: Path, work: Path, manager: Manager, web: Web):
        super().__init__(root, work, manager, "", web.key, web.fingerprint)
        self.web = web
        self.distribution: Distribution | None = None
        self.kernels: tuple[str, ...] = ()

    def become(self, distribution: Distribution) -> None:
        if self.distribution == distribution:
            return
        self.distribution = distribution
        self.url = f"{self.web.url}/cuda/{distribution.folder}"
        self.kernels = KERNELS[distribution.family]
        for path, text in self._files().items():
            place = self.root / path
            place.parent.mkdir(parents=True, exist_ok=True)
            place.unlink(missing_ok=True)
            place.write_text(text)
            place.chmod(0o755 if text.startswith("#!") else 0o644)
        for kernel in self.kernels:
            build = self.root / "lib" / "modules" / kernel / "build"
            build.parent.mkdir(parents=True, exist_ok=True)
            build.unlink(missing_ok=True)
            build.symlink_to(_BUILD[distribution.family].format(kernel.removesuffix("-default")))

    def _files(self):
        archive = f"{self.web.url}/archive/{self.distribution.family}/x86_64"
        return {
            "etc/os-release": self.distribution.release,
            f"{self.manager.folder.lstrip('/')}/archive.repo": (
                f"[archive]\nname=stand-in archive\nbaseurl={archive}\nenabled=1\ngpgcheck=0\n"
            ),
            **{f"sys/bus/pci/devices/0000:17:00.0/{name}": f"{v}\n" for name, v in _GPU.items()},
            "sys/firmware/memmap": "",
            "proc/sys/kernel/osrelease": f"{self.kernels[0]}\n",
            "proc/sys/kernel/arch": "x86_64\n",
            "proc/sys/kernel/hostname": "standin\n",
            "usr/sbin/dracut": _DRACUT,
        }

    def stream(self):
        fields = dict(
            line.split("=", 1) for line in self.shell(f"cat {MODULE}").splitlines() if "=" in line
        )
        return fields.get("stream") or None

    def driver(self):
        """The installed driver's packages: version by name."""
        lines = self.shell("rpm -qa --queryformat '%{NAME} %{VERSION}\\n'").splitlines()
        found = dict(line.split() for line in lines)
        words = ("nvidia", "cuda-drivers", "nvlsm")
        return {name: version for name, version in found.items() if any(w in name for w in words)}

    def dracut(self):
        """How dracut was called since this was asked last."""
        place = self.root / "run" / "dracut"
        text = place.read_text() if place.exists() else ""
        place.unlink(missing_ok=True)
        return text.splitlines()

    def kill(self):
        """Kill this node's run of Ansible and all that works in its tree."""
        play = str(self.work / "play.json").encode()
        for place in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                mine = play in (place / "cmdline").read_bytes()
                if mine or (place / "root").readlink() == self.root:
                    os.kill(int(place.name), signal.SIGKILL)

    def remove_tree(self):
        shutil.rmtree(self.root)


def make(manager: Manager, work: Path, web: Web) -> DriverNode:
    root = node_tree(manager, f"driver-{manager.name}")
    node = DriverNode(root, work, manager, web)
    base = web.folder / "archive" / "rhel" / "x86_64" / "standin-base-1-1.noarch.rpm"
    shutil.copy(base, root / "tmp" / "x.rpm")
    node.shell("rpm --install --nosignature --nodigest /tmp/x.rpm")
    (root / "tmp" / "x.rpm").unlink()
    return node
