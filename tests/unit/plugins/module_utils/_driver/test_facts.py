# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import hashlib
import json
import os
import struct
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._driver.facts import (
    SERVICES,
    loaded_kernel_module,
    loaded_version,
    module_file,
    module_version,
    read_checksums,
    read_dkms,
    read_driver,
    read_modules,
    read_record,
    read_state,
    read_streams,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._host.reader import NodeReader
from ansible_collections.kubegpu.nodes.plugins.module_utils._packages.installed import Package
from tests.unit.fixtures.make_tree import write

STATE = "/var/lib/kubegpu/state.json"
KERNEL = "6.1.0-37-amd64"
# From public records of the two kinds of module.
PROPRIETARY = (
    "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.129.03  Thu Oct 19 18:56:32 UTC 2023\n"
    "GCC version:  gcc version 12.2.0 (Debian 12.2.0-14)\n"
)
OPEN = (
    "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.126.09  Release Build  "
    "(dvs-builder@U22-I3-H04-01-4)  Wed Jan  7 22:59:56 UTC 2026\n"
    "GCC version:  gcc version 13.3.0 (Ubuntu 13.3.0-6ubuntu2~24.04)\n"
)


@pytest.fixture
def reader(tmp_path: Path) -> NodeReader:
    return NodeReader(str(tmp_path))


@pytest.mark.parametrize(
    ("text", "version", "kernel_module"),
    [
        (PROPRIETARY, "535.129.03", "proprietary"),
        (OPEN, "580.126.09", "open"),
        ("NVRM version: NVIDIA UNIX aarch64 Kernel Module  470.82  x", "470.82", "proprietary"),
        ("", None, None),
        (None, None, None),
    ],
)
def test_loaded(text: str | None, version: str | None, kernel_module: str | None) -> None:
    assert (loaded_version(text), loaded_kernel_module(text)) == (version, kernel_module)


def driver(reader: NodeReader, *packages: Package, **units: str) -> dict[str, Any]:
    dkms = read_dkms(reader)
    module = read_modules(reader, [KERNEL], dkms)[KERNEL]
    return read_driver(reader, packages, units, module, dkms, read_state(reader, STATE))


def test_nothing_is_there(reader: NodeReader) -> None:
    assert read_driver(reader, (), None, None, [], {}) == {
        "loaded": None,
        "installed": None,
        "userland": None,
        "kernel_module": None,
        "coherent_memory": None,
        "source": None,
        "packages": {},
        "dkms": [],
        "held": None,
        "unheld": [],
        "streams": {},
        "pending_reboot": False,
        "services": dict.fromkeys(SERVICES),
        "configuration": {},
        "managed": False,
        "pending": "",
        "previous": None,
        "recorded_files": [],
        "uninstaller": None,
        "container": None,
    }


@pytest.mark.parametrize(
    ("params", "expected"),
    [
        # Recorded in public repositories, from /proc/driver/nvidia/params of 580 and older.
        ('ResmanDebugLevel: 4294967295\nCoherentGPUMemoryMode: ""\nRegistryDwords: ""\n', ""),
        ('CoherentGPUMemoryMode: "driver"\n', "driver"),
        ('ResmanDebugLevel: 4294967295\nRegistryDwords: ""\n', None),
        (None, None),
    ],
)
def test_coherent_memory(
    tmp_path: Path, reader: NodeReader, params: str | None, expected: str | None
) -> None:
    if params is not None:
        write(tmp_path, "/proc/driver/nvidia/params", params)
    assert driver(reader)["coherent_memory"] == expected


def test_driver_of_packages(tmp_path: Path, reader: NodeReader) -> None:
    write(tmp_path, "/proc/driver/nvidia/version", OPEN)
    library = "/usr/lib/x86_64-linux-gnu/libnvidia-ml.so"
    write(tmp_path, f"{library}.580.126.09")
    (tmp_path / f"{library[1:]}.1").symlink_to("libnvidia-ml.so.580.126.09")
    found = driver(
        reader,
        Package("libnvidia-compute-580", "580.126.09-1ubuntu1", "amd64", "NVIDIA", True),
        Package("nvidia-dkms-580-open", "580.126.09-1ubuntu1", "amd64", "NVIDIA", True),
        Package("nvidia-container-toolkit", "1.20.0-1", "amd64", "NVIDIA"),
        **{"nvidia-persistenced": "active"},
    )
    assert found["loaded"] == found["installed"] == found["userland"] == "580.126.09"
    assert found["kernel_module"] == "open"
    assert found["source"] == "nvidia"
    assert set(found["packages"]) == {"libnvidia-compute-580", "nvidia-dkms-580-open"}
    assert (found["held"], found["unheld"]) == (True, [])
    assert found["pending_reboot"] is False
    assert found["services"]["nvidia-persistenced"] == "active"
    assert found["services"]["nvidia-imex"] is None


def test_pending_reboot_after_an_upgrade(tmp_path: Path, reader: NodeReader) -> None:
    write(tmp_path, "/sys/module/nvidia/version", "535.129.03\n")
    found = driver(reader, Package("libnvidia-compute-580", "580.126.09-0ubuntu1"))
    assert (found["loaded"], found["installed"]) == ("535.129.03", "580.126.09")
    assert found["pending_reboot"] is True


def make_dkms(root: Path, module: str, version: str, kernel: str, installed: bool = True) -> None:
    base = root / "var/lib/dkms" / module
    (base / version / kernel / "x86_64/module").mkdir(parents=True)
    (base / version / "source").symlink_to(f"/usr/src/{module}-{version}")
    if installed:
        (base / f"kernel-{kernel}-x86_64").symlink_to(f"{version}/{kernel}/x86_64")


def test_runfile_with_dkms(tmp_path: Path, reader: NodeReader) -> None:
    make_dkms(tmp_path, "nvidia", "535.129.03", KERNEL)
    write(tmp_path, "/usr/bin/nvidia-uninstall")
    write(tmp_path, "/usr/src/nvidia-535.129.03/dkms.conf")
    write(tmp_path, "/usr/src/nvidia-535.129.03/nvidia/nv-kernel.o_binary")
    found = driver(reader)
    assert found["installed"] == "535.129.03"
    assert (found["source"], found["uninstaller"]) == ("runfile", "/usr/bin/nvidia-uninstall")
    assert found["kernel_module"] == "proprietary"


def test_dkms_states(tmp_path: Path, reader: NodeReader) -> None:
    make_dkms(tmp_path, "nvidia-current", "535.309.01", KERNEL)
    make_dkms(tmp_path, "nvidia", "580.126.09", KERNEL, installed=False)
    base = tmp_path / "var/lib/dkms/nvidia-open"
    (base / "590.48.01/source").mkdir(parents=True)
    # Recorded: Debian 13, nvidia-open-kernel-dkms (first line of make.log).
    write(
        tmp_path,
        "/var/lib/dkms/nvidia-current-open/550.163.01/build/make.log",
        "DKMS make.log for nvidia-current-open-550.163.01 for kernel 6.12.107-amd64 (x86_64)\n",
    )
    (tmp_path / "var/lib/dkms/zfs/2.1.11/source").mkdir(parents=True)
    write(tmp_path, "/var/lib/dkms/dkms_dbversion", "2.0.0\n")
    assert sorted(read_dkms(reader), key=lambda entry: entry["version"]) == [
        {"kernel": KERNEL, "version": "535.309.01", "state": "installed"},
        {"kernel": "6.12.107-amd64", "version": "550.163.01", "state": "failed"},
        {"kernel": KERNEL, "version": "580.126.09", "state": "built"},
        {"kernel": None, "version": "590.48.01", "state": "added"},
    ]


def test_the_module_of_the_running_kernel_decides_before_packages(
    tmp_path: Path, reader: NodeReader
) -> None:
    write(tmp_path, f"/lib/modules/{KERNEL}/modules.dep", "updates/dkms/nvidia.ko: x.ko\n")
    write(tmp_path, f"/lib/modules/{KERNEL}/updates/dkms/nvidia.ko", elf(b"version=570.86.10\0"))
    found = driver(reader, Package("libnvidia-compute-580", "580.126.09-1"))
    assert found["installed"] == "570.86.10"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "kernel/x.ko:\nupdates/dkms/nvidia-current.ko.xz: y\n",
            "updates/dkms/nvidia-current.ko.xz",
        ),
        ("kernel/nvidia-580/nvidia.ko:\n", "kernel/nvidia-580/nvidia.ko"),
        ("updates/dkms/nvidia-drm.ko: updates/dkms/nvidia.ko\n", None),
        (None, None),
    ],
)
def test_module_file(text: str | None, expected: str | None) -> None:
    assert module_file(text) == expected


def elf(modinfo: bytes, order: str = "<") -> bytes:
    """Return the smallest ELF file with a section .modinfo: header, data, names, table."""
    names = b"\0.modinfo\0.shstrtab\0"
    start = 64
    table = start + len(modinfo) + len(names)
    header = b"\x7fELF\x02" + (b"\1" if order == "<" else b"\2") + b"\1".ljust(10, b"\0")
    header += struct.pack(f"{order}HHIQQQIHHHHHH", 1, 62, 1, 0, 0, table, 0, 64, 0, 0, 64, 3, 2)

    def section(name: int, offset: int, size: int) -> bytes:
        return struct.pack(f"{order}IIQQQQIIQQ", name, 1, 0, 0, offset, size, 0, 0, 1, 0)

    sections = (
        section(0, 0, 0)
        + section(1, start, len(modinfo))
        + section(10, start + len(modinfo), len(names))
    )
    return header + modinfo + names + sections


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        pytest.param(elf(b"version=580.95.05\0license=x\0"), "580.95.05", id="first"),
        pytest.param(elf(b"license=x\0version=580.95.05\0"), "580.95.05", id="later"),
        pytest.param(elf(b"srcversion=1\0version=2.0\0", ">"), "2.0", id="big-endian"),
        pytest.param(elf(b"srcversion=1\0"), None, id="no version"),
        pytest.param(elf(b"version=1\0")[:80], None, id="cut off"),
        pytest.param(b"\xfd7zXZ", None, id="no ELF file"),
    ],
)
def test_module_version(
    tmp_path: Path, reader: NodeReader, content: bytes, expected: str | None
) -> None:
    write(tmp_path, "/nvidia.ko", content)
    assert module_version(reader, "/nvidia.ko") == expected


def test_compressed_module_is_not_read(tmp_path: Path, reader: NodeReader) -> None:
    write(tmp_path, "/nvidia.ko.xz", elf(b"version=580.95.05\0"))
    assert module_version(reader, "/nvidia.ko.xz") is None


def test_a_module_for_each_kernel(tmp_path: Path, reader: NodeReader) -> None:
    make_dkms(tmp_path, "nvidia-current", "535.309.01", KERNEL)
    for kernel, name in (("6.8.0-45-generic", "nvidia.ko"), ("6.12.0-1", "nvidia.ko.xz")):
        write(tmp_path, f"/lib/modules/{kernel}/modules.dep", f"updates/{name}:\n")
        write(tmp_path, f"/lib/modules/{kernel}/updates/{name}", elf(b"version=580.95.05\0"))
    kernels = (KERNEL, "6.8.0-45-generic", "6.12.0-1", "5.10.0-1")
    assert read_modules(reader, kernels, read_dkms(reader)) == {
        KERNEL: "535.309.01",
        "6.8.0-45-generic": "580.95.05",
        "6.12.0-1": "unknown",
        "5.10.0-1": None,
    }


def test_a_module_that_cannot_be_read_leaves_the_packages_to_tell(
    tmp_path: Path, reader: NodeReader
) -> None:
    write(tmp_path, f"/lib/modules/{KERNEL}/modules.dep", "updates/dkms/nvidia.ko.zst:\n")
    found = driver(reader, Package("libnvidia-compute-580", "580.126.09-1"))
    assert found["installed"] == "580.126.09"


PREVIOUS = {"version": "535.1", "branch": "535", "source": "distro", "kernel_module": "open"}


@pytest.mark.parametrize(
    ("text", "managed", "previous"),
    [
        pytest.param(None, False, None, id="no record"),
        pytest.param('{"values": {}}', False, None, id="nothing of a driver"),
        pytest.param('{"values": {"nvidia_driver": {"managed": true}}}', True, None, id="first"),
        pytest.param(
            json.dumps(
                {
                    "values": {
                        "nvidia_driver": {
                            "managed": True,
                            "current": {},
                            "previous": {**PREVIOUS, "packages": {"x": "1"}},
                        }
                    }
                }
            ),
            True,
            PREVIOUS,
            id="second",
        ),
        pytest.param("{", None, None, id="cut off"),
        pytest.param("[]", None, None, id="something else"),
    ],
)
def test_record(
    tmp_path: Path,
    reader: NodeReader,
    text: str | None,
    managed: bool | None,
    previous: dict[str, str] | None,
) -> None:
    if text is not None:
        write(tmp_path, STATE, text)
    assert read_record(read_state(reader, STATE)) == {
        "managed": managed,
        "pending": None if managed is None else "",
        "previous": previous,
        "recorded_files": None if managed is None else [],
    }


@pytest.mark.parametrize(
    "action, pending", [("install", "install"), ("none", "configure"), ("remove", "remove")]
)
def test_a_change_that_was_begun(
    tmp_path: Path, reader: NodeReader, action: str, pending: str
) -> None:
    record = {
        "files": {"nvidia_driver::/etc/nvidia/gridd.conf": {}, "docker:/etc/x": {}},
        "values": {"nvidia_driver": {"managed": True, "pending": {"action": action}}},
    }
    write(tmp_path, STATE, json.dumps(record))
    assert read_record(read_state(reader, STATE)) == {
        "managed": True,
        "pending": pending,
        "previous": None,
        "recorded_files": ["/etc/nvidia/gridd.conf"],
    }


def test_checksums(tmp_path: Path, reader: NodeReader) -> None:
    write(tmp_path, "/etc/a", "x\n")
    # A folder stands for what is there and cannot be read, which root can always do.
    os.makedirs(tmp_path / "etc/b")
    assert read_checksums(reader, ("/etc/a", "/etc/b", "/etc/c")) == {
        "/etc/a": hashlib.sha256(b"x\n").hexdigest(),
        "/etc/b": None,
    }


def test_streams_that_dnf_has_enabled(tmp_path, reader):
    assert read_driver(reader, (), None, None, [], {}, "dnf")["streams"] == {}
    folder = "/etc/dnf/modules.d"
    states = {"nvidia-driver": "enabled", "perl": "disabled", "php": ""}
    for module, state in states.items():
        text = f"[{module}]\nname={module}\nstream=580-open\nprofiles=\nstate={state}\n"
        write(tmp_path, f"{folder}/{module}.module", text)
    write(tmp_path, f"{folder}/nginx.module.rpmsave", "[nginx]\nstream=1\nstate=enabled\n")
    assert read_driver(reader, (), None, None, [], {}, "dnf")["streams"] == {
        "nvidia-driver": "580-open"
    }
    # dnf 5 has none, whatever an older dnf has left.
    assert read_driver(reader, (), None, None, [], {}, "dnf5")["streams"] == {}
    (tmp_path / f"{folder[1:]}/ruby.module").symlink_to("nowhere")
    assert read_streams(reader) is None
