# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._facts.system import (
    read_archive,
    read_blocks,
    read_gpudirect,
    read_kernels,
    read_kubelet,
    read_libc,
    read_podman,
    read_secure_boot,
    read_selinux,
    read_unit_starts,
    read_unit_states,
    read_units,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._hardware.module_blocks import (
    find_blocks,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._host.command import Result
from ansible_collections.kubegpu.nodes.plugins.module_utils._host.reader import NodeReader
from ansible_collections.kubegpu.nodes.plugins.module_utils._packages.installed import Package
from tests.unit.fixtures.make_tree import write


@pytest.fixture
def reader(tmp_path: Path) -> NodeReader:
    return NodeReader(str(tmp_path))


VARIABLE = "/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        pytest.param({VARIABLE: b"\6\0\0\0\1"}, True, id="on"),
        pytest.param({VARIABLE: b"\6\0\0\0\0"}, False, id="off"),
        pytest.param({VARIABLE: b""}, None, id="not readable"),
        pytest.param({"/sys/firmware/efi/systab": b""}, None, id="EFI without the variable"),
        pytest.param({"/sys/firmware/acpi/x": b""}, False, id="no EFI"),
        pytest.param({}, None, id="hidden, as in a container"),
    ],
)
def test_secure_boot(
    tmp_path: Path, reader: NodeReader, files: dict[str, bytes], expected: bool | None
) -> None:
    for path, content in files.items():
        write(tmp_path, path, content)
    assert read_secure_boot(reader) is expected


@pytest.mark.parametrize(
    ("modprobe", "command_line", "expected"),
    [
        ("blacklist nouveau\n", "", True),
        ("  blacklist   nouveau # x\n", "", True),
        ("install nouveau /bin/false\n", "", True),
        ("alias nouveau off\n", "", True),
        ("install nouveau /usr/bin/true # no\n", "", True),
        ("install nouveau /bin/true && /sbin/modprobe -i nouveau\n", "", False),
        ("#blacklist nouveau\noptions nouveau modeset=0\n", "", False),
        ("blacklist nouveau_x\nblacklist vga16fb\n", "", False),
        ("", "quiet modprobe.blacklist=nouveau splash", True),
        ("", "rd.driver.blacklist=x,nouveau", True),
        ("", "module_blacklist=nouveaux", False),
        ("", "nouveau.modeset=0", False),
    ],
)
def test_is_blocked(modprobe: str, command_line: str, expected: bool) -> None:
    assert bool(find_blocks(["nouveau"], {"/a.conf": modprobe}, command_line)) is expected


def nouveau_of(reader: NodeReader) -> Any:
    return read_blocks(reader, [])["nouveau"]


def test_nouveau_settings_of_the_administrator_hide_the_vendors(
    tmp_path: Path, reader: NodeReader
) -> None:
    write(tmp_path, "/usr/lib/modprobe.d/nvidia.conf", "blacklist nouveau\n")
    assert nouveau_of(reader) == {"loaded": False, "blocked": True, "modules": []}
    write(tmp_path, "/etc/modprobe.d/nvidia.conf", "")
    write(tmp_path, "/sys/module/nouveau/initstate", "live\n")
    assert nouveau_of(reader) == {"loaded": True, "blocked": False, "modules": ["nouveau"]}


def test_nova_counts_as_nouveau_does(tmp_path: Path, reader: NodeReader) -> None:
    write(tmp_path, "/etc/modprobe.d/a.conf", "blacklist nouveau\nblacklist nova-core\n")
    write(tmp_path, "/sys/module/nova_core/initstate", "live\n")
    assert nouveau_of(reader) == {"loaded": True, "blocked": True, "modules": ["nova_core"]}
    write(tmp_path, "/sys/module/nova_drm/initstate", "live\n")
    modules = ["nova_drm", "nova_core"]
    assert nouveau_of(reader) == {"loaded": True, "blocked": False, "modules": modules}


AMD = [{"vendor": "amd"}]


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        pytest.param({}, {}, id="nothing"),
        pytest.param(
            {"/etc/modprobe.d/blacklist-amdgpu.conf": "# by the operator\nblacklist amdgpu\n"},
            {"amdgpu": [("/etc/modprobe.d/blacklist-amdgpu.conf", "blacklist amdgpu")]},
            id="blacklist, as AMD's GPU operator writes it",
        ),
        pytest.param(
            {
                "/usr/local/lib/modprobe.d/a.conf": "install amdgpu \\\n /bin/false\n",
                "/proc/cmdline": "quiet modprobe.blacklist=x,amdgpu module_blacklist=amdgpu\n",
            },
            {
                "amdgpu": [
                    ("/usr/local/lib/modprobe.d/a.conf", "install amdgpu /bin/false"),
                    ("kernel command line", "modprobe.blacklist=x,amdgpu"),
                    ("kernel command line", "module_blacklist=amdgpu"),
                ]
            },
            id="all of several",
        ),
        pytest.param(
            {"/proc/cmdline": "nomodeset rd.driver.blacklist=amdgpu,nvidia\n"},
            {
                "amdgpu": [
                    ("kernel command line", "rd.driver.blacklist=amdgpu,nvidia"),
                    ("kernel command line", "nomodeset"),
                ]
            },
            id="in the initial RAM disk, and without modes",
        ),
        pytest.param(
            {
                "/etc/modprobe.d/a.conf": "blacklist nvidia\nblacklist amdgpu*\n",
                "/etc/modprobe.d/b.conf": "install amdgpu /sbin/modprobe -i amdgpu\n",
                "/proc/cmdline": "amdgpu.modeset=1 xmodule_blacklist=amdgpu\n",
            },
            {},
            id="others, and what blocks nothing",
        ),
        pytest.param(
            {"/etc/modprobe.d/a.conf": "", "/lib/modprobe.d/a.conf": "blacklist amdgpu\n"},
            {},
            id="a file of the same name hides it",
        ),
    ],
)
def test_blocked_modules(
    tmp_path: Path,
    reader: NodeReader,
    files: dict[str, str],
    expected: dict[str, list[tuple[str, str]]],
) -> None:
    for path, text in files.items():
        write(tmp_path, path, text)
    found = read_blocks(reader, AMD)["blocked_modules"]
    seen = {
        name: [(one["place"], one["setting"]) for one in blocks] for name, blocks in found.items()
    }
    assert seen == expected
    assert read_blocks(reader, [])["blocked_modules"] == {}, "no GPU needs a module"


def test_blocked_modules_of_nvidia_are_named_with_underscores(
    tmp_path: Path, reader: NodeReader
) -> None:
    text = "alias nvidia off\nalias nvidia-uvm off\n"
    write(tmp_path, "/lib/modprobe.d/blacklist-nvidia.conf", text)
    found = read_blocks(reader, [{"vendor": "nvidia"}])["blocked_modules"]
    assert list(found) == ["nvidia", "nvidia_uvm"]


def test_what_blocks_is_unknown_where_a_file_cannot_be_read(
    tmp_path: Path, reader: NodeReader
) -> None:
    write(tmp_path, "/etc/modprobe.d/a.conf/not-a-file", "")
    assert read_blocks(reader, AMD)["blocked_modules"] is None


def test_kernels(tmp_path: Path, reader: NodeReader) -> None:
    write(tmp_path, "/usr/src/linux-headers-6.1.0-37-amd64/Makefile")
    modules = tmp_path / "lib/modules"
    for name in ("6.1.0-37-amd64", "6.1.0-38-amd64", "extra"):
        (modules / name).mkdir(parents=True)
        (modules / name / "build").symlink_to(f"/usr/src/linux-headers-{name}")
    assert read_kernels(reader, "6.1.0-38-amd64") == [
        {"version": "6.1.0-37-amd64", "running": False, "on_disk": True, "headers": True},
        {"version": "6.1.0-38-amd64", "running": True, "on_disk": True, "headers": False},
    ]
    # In a node container the running kernel has no modules there.
    assert read_kernels(reader, "6.12.0")[-1] == {
        "version": "6.12.0",
        "running": True,
        "on_disk": False,
        "headers": False,
    }


def test_unit_states() -> None:
    # Recorded: systemd 252.
    text = (
        "Id=containerd.service\nLoadState=loaded\nActiveState=active\n\n"
        "Id=xx.service\nLoadState=not-found\nActiveState=inactive\n\n"
        "Id=docker.service\nLoadState=masked\nActiveState=inactive\n"
    )
    assert read_unit_states(text, ("containerd", "xx", "docker", "more")) == {
        "containerd": "active",
        "xx": None,
        "docker": "masked",
        "more": None,
    }


def test_the_kubelets_folders_for_plugins(tmp_path: Path, reader: NodeReader) -> None:
    assert read_kubelet(reader) is None
    (tmp_path / "var/lib/k0s/kubelet/plugins_registry").mkdir(parents=True)
    assert read_kubelet(reader) == {
        "directory": "/var/lib/k0s/kubelet",
        "plugin_folders": ["plugins_registry"],
        "cpu_manager_policy": None,
    }
    (tmp_path / "var/lib/kubelet/plugins").mkdir(parents=True)
    assert read_kubelet(reader) == {
        "directory": "/var/lib/kubelet",
        "plugin_folders": ["plugins"],
        "cpu_manager_policy": None,
    }


@pytest.mark.parametrize(("content", "policy"), [
    # As kubelet 1.20 and 1.37 write it.
    ('{"policyName":"none","defaultCpuSet":"","checksum":1353318690}', "none"),
    ('{"policyName":"static","defaultCpuSet":"0-3","entries":{"a":{"b":"2"}},"checksum":1}',
     "static"),
    ("", None), ("[" * 100_000, None), (b"\xff\xfe" * 50_000, None),
    ('{"policyName":"' + "x" * 50_000 + '"}', None), ('{"policyName": 5}', None),
    ("x" * (1 << 20) + '"policyName":"static"', None),
])  # fmt: skip
def test_the_policy_of_the_cpu_manager(
    tmp_path: Path, reader: NodeReader, content: str | bytes, policy: str | None
) -> None:
    write(tmp_path, "/var/lib/kubelet/cpu_manager_state", content)

    kubelet = read_kubelet(reader)
    assert kubelet is not None and kubelet["cpu_manager_policy"] == policy


def test_the_state_of_a_kubelet_is_not_read_from_a_pipe_or_a_device(
    tmp_path: Path, reader: NodeReader
) -> None:
    folder = tmp_path / "var/lib/kubelet"
    folder.mkdir(parents=True)
    os.mkfifo(folder / "cpu_manager_state")
    assert (read_kubelet(reader) or {})["cpu_manager_policy"] is None
    (folder / "cpu_manager_state").unlink()
    # A loop of links, and one that leads out of the tree.
    (folder / "cpu_manager_state").symlink_to("cpu_manager_state")
    assert (read_kubelet(reader) or {})["cpu_manager_policy"] is None


ENFORCE, SETTINGS = "/sys/fs/selinux/enforce", "/etc/selinux/config"


@pytest.mark.parametrize(("files", "mode", "configured"), [
    ({ENFORCE: "1", SETTINGS: "# enforcing\nSELINUX=permissive\nSELINUXTYPE=targeted\n"},
     "enforcing", "permissive"),
    ({ENFORCE: "0\n", SETTINGS: "SELINUX = enforcing\n"}, "permissive", "enforcing"),
    # Without SELinux in the kernel, and with a file of Fedora's package.
    ({"/sys/fs/cgroup/x": "", SETTINGS: "SELINUX=disabled\n"}, "disabled", "disabled"),
    ({"/sys/fs/cgroup/x": ""}, "disabled", None),
    # A container: what is in the folder is hidden; a tree without /sys.
    ({"/sys/fs/selinux/x": "", SETTINGS: "SELINUX=Enforcing"}, None, "enforcing"),
    ({SETTINGS: "SELINUX=enforcing\n"}, None, "enforcing"),
    ({ENFORCE: "2", SETTINGS: "SELINUX=maybe\n"}, None, None),
    ({SETTINGS: b"\xff\xfeS\0E\0"}, None, None), ({SETTINGS: "#" * 100_000}, None, None),
])  # fmt: skip
def test_selinux(
    tmp_path: Path,
    reader: NodeReader,
    files: dict[str, str | bytes],
    mode: str | None,
    configured: str | None,
) -> None:
    for path, content in files.items():
        write(tmp_path, path, content)

    assert read_selinux(reader) == {"mode": mode, "configured": configured}


@pytest.mark.parametrize(("packages", "loader", "expected"), [
    (("libc6", "2.41-12+deb13u1"), False, ("glibc", "2.41")),
    (("libc6", "2.39-0ubuntu8.6"), True, ("glibc", "2.39")),
    (("glibc", "2.34-231.el9"), False, ("glibc", "2.34")),
    (("glibc", "unknown"), False, ("glibc", None)),
    (None, True, ("musl", None)), (None, False, None),
])  # fmt: skip
def test_the_c_library(
    tmp_path: Path,
    reader: NodeReader,
    packages: tuple[str, str] | None,
    loader: bool,
    expected: tuple[str, str | None] | None,
) -> None:
    if loader:
        write(tmp_path, "/lib/ld-musl-x86_64.so.1")
    found = read_libc(reader, (Package(*packages),) if packages else (), "x86_64")

    assert (found and tuple(found.values())) == expected


def test_podman() -> None:
    assert read_podman((Package("podman", "4.9.3+ds1-1ubuntu0.2"),)) == "4.9.3"
    assert read_podman((Package("podman", "4:5.2.2-1.el9"),)) == "5.2.2"
    assert read_podman((Package("podman-docker", "5.2.2"),)) is None


class Systemd(NodeReader):
    """A stand-in: answers as systemctl does, for the units that it is asked for."""

    asked: tuple[str, ...] = ()
    # Microseconds after the machine's start.
    start = 0

    def run(self, argv: Any, timeout: int = 30) -> Result | None:
        self.asked = tuple(argv[3:])
        units = {"docker.service": "loaded", "crio.service": "masked"}
        return Result(
            0,
            "\n\n".join(
                f"Id={name}\nLoadState={units.get(name, 'not-found')}\nActiveState=active\n"
                f"ExecMainStartTimestampMonotonic={self.start}"
                for name in self.asked
            ),
            "",
        )


def test_units_without_a_file_are_not_asked_for(tmp_path: Path) -> None:
    names = ("containerd", "docker", "crio")
    node = Systemd(str(tmp_path))
    assert read_units(node, names) == (None, {}) and not node.asked
    write(tmp_path, "/run/systemd/system/x")
    assert read_units(node, names) == (dict.fromkeys(names), {})
    assert node.asked == ("containerd.service",)
    # One of an init script, and one that is masked.
    write(tmp_path, "/run/systemd/generator.late/docker.service")
    (tmp_path / "etc/systemd/system").mkdir(parents=True)
    (tmp_path / "etc/systemd/system/crio.service").symlink_to("/dev/null")
    states = {"containerd": None, "docker": "active", "crio": "active"}
    assert read_units(node, names) == (states, {})
    assert node.asked == ("docker.service", "crio.service")


def test_when_units_were_started() -> None:
    # Recorded: systemd 252, of a node container.
    text = (
        "Id=containerd.service\nLoadState=loaded\nActiveState=active\n"
        "ExecMainStartTimestampMonotonic=27605000001\n\n"
        "Id=xx.service\nLoadState=not-found\nActiveState=inactive\n"
        "ExecMainStartTimestampMonotonic=0\n\n"
        "Id=docker.service\nLoadState=loaded\nActiveState=failed\n"
        "ExecMainStartTimestampMonotonic=27605000000\n"
    )
    assert read_unit_starts(text, ("containerd", "xx", "docker"), 1795233600) == {
        "containerd": "2026-11-21T11:40:06Z"
    }


def test_a_start_is_never_told_as_earlier_than_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a file that was written just before a restart looks as if it were not in force."""
    monkeypatch.setattr(time, "time", lambda: 1000.7)
    # The machine was started at 500.7; btime is 500. The unit was started at 511.3.
    write(tmp_path, "/proc/uptime", "500.00 900.00\n")
    write(tmp_path, "/proc/stat", "cpu 1\nbtime 500\n")
    write(tmp_path, "/run/systemd/generator.late/docker.service")
    write(tmp_path, "/run/systemd/system/x")
    node = Systemd(str(tmp_path))
    node.start = 10_600_000
    assert read_units(node, ("docker",))[1] == {"docker": "1970-01-01T00:08:32Z"}


DEBIAN_SOURCES = """Types: deb
URIs: http://mirror.example/debian
Suites: bookworm bookworm-updates
Components: main
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg

Types: deb
URIs: http://mirror.example/debian-security
Suites: bookworm-security
Components: main
"""


def test_archive_of_debian_beside_other_peoples(tmp_path: Path, reader: NodeReader) -> None:
    folder = "/etc/apt/sources.list.d"
    write(tmp_path, "/etc/apt/sources.list", "# moved to debian.sources\n")
    write(tmp_path, f"{folder}/a.list", "deb https://apt.releases.example.com bookworm main\n")
    write(tmp_path, f"{folder}/b.list", "deb https://download.example.com/debian bookworm stable\n")
    write(tmp_path, f"{folder}/debian.sources", DEBIAN_SOURCES)
    ours = DEBIAN_SOURCES.replace("main", "non-free")
    write(tmp_path, f"{folder}/kubegpu-nvidia-driver.sources", ours)
    assert read_archive(reader, "bookworm") == {
        "file": f"{folder}/debian.sources",
        "uri": "http://mirror.example/debian",
        "suites": ["bookworm", "bookworm-updates"],
        "components": ["main"],
        "signed_by": "/usr/share/keyrings/debian-archive-keyring.gpg",
    }


def test_archive_in_one_line_entries_and_without_one(tmp_path: Path, reader: NodeReader) -> None:
    write(
        tmp_path,
        "/etc/apt/sources.list",
        "# deb http://old.example.com/ubuntu jammy main\n"
        "deb-src http://mirror.example.com/ubuntu jammy main\n"
        "deb http://me:word@mirror.example.com/ubuntu jammy main restricted\n"
        "deb http://me:word@mirror.example.com/ubuntu jammy-updates main restricted multiverse\n"
        "deb http://me:word@mirror.example.com/ubuntu jammy universe\n",
    )
    assert read_archive(reader, "jammy") == {
        "file": "/etc/apt/sources.list",
        "uri": "http://***@mirror.example.com/ubuntu",
        "suites": ["jammy", "jammy-updates"],
        "components": ["main", "restricted", "universe"],
        "signed_by": None,
    }
    assert read_archive(reader, "noble") is read_archive(reader, None) is None


def test_loaded_modules_of_gpudirect(tmp_path: Path, reader: NodeReader) -> None:
    assert read_gpudirect(reader) == []
    for name in ("gdrdrv", "nvidia_fs", "nvidia"):
        write(tmp_path, f"/sys/module/{name}/refcnt", "0\n")
    assert read_gpudirect(reader) == ["nvidia_fs", "gdrdrv"]
