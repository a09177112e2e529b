# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the fleet is made of: releases of Debian, nodes, and the PCI devices stood in for."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass

from tests.testbed import paths
from tests.tools import tiers

LABEL = "kubegpu-testbed"
# Both fleets have nodes that drivers are installed on, from repositories made here.
DRIVERS = paths.FLEET in ("drivers", "bench")
CLUSTER = paths.FLEET == "cluster"
# Several fleets can live side by side: each has its own containers, network and inventory.
NAME = paths.NAME

_COMMON = (
    "systemd",
    "systemd-sysv",
    "dbus",
    "python3",
    "python3-apt",
    "sudo",
    "openssh-server",
    "iptables",
    "ca-certificates",
    "iproute2",
    "procps",
    "kmod",
    "runc",
    "containerd",
    "docker.io",
    "busybox-static",
)


@dataclass(frozen=True)
class Release:
    """A release of Debian and the packages of its node image."""

    suite: str
    packages: tuple[str, ...]
    # From 256 on systemd wants the unified cgroup hierarchy.
    unified_cgroup: bool
    # What sets this image apart from the release's ordinary one.
    variant: str = ""
    # With Debian's updates of security: the kernel that a node has is the newest one.
    security: bool = False

    @property
    def name(self) -> str:
        return f"{self.suite}{self.variant}"

    @property
    def ready_made(self) -> str | None:
        """An ordinary image that the user wants to have instead of one made here."""
        return os.environ.get(f"KUBEGPU_NODE_IMAGE_{self.name}") or None


# A machine that drivers are built on: a kernel, its initramfs, and what makes one.
_KERNEL = ("linux-image-amd64", "initramfs-tools", "udev", "zstd")
RELEASES = {
    release.name: release
    for release in (
        Release("bookworm", (*_COMMON,), unified_cgroup=False),
        Release("trixie", (*_COMMON, "docker-cli"), unified_cgroup=True),
        Release("sid", (*_COMMON, "docker-cli"), unified_cgroup=True),
    )
}
DRIVER_RELEASES = {
    release.name: release
    for release in (
        Release("bookworm", (*_COMMON, *_KERNEL), False, "+kernel", security=True),
        Release("trixie", (*_COMMON, "docker-cli", *_KERNEL), True, "+kernel", security=True),
    )
}


@dataclass(frozen=True)
class PciDevice:
    """One function of a PCI bus as sysfs shows it; the numbers are those of real products."""

    address: str
    vendor: int
    device: int
    class_code: int
    subsystem: tuple[int, int]


def _nvidia(address: str, device: int, subsystem: int) -> PciDevice:
    return PciDevice(address, 0x10DE, device, 0x030200, (0x10DE, subsystem))


NETWORK = PciDevice("0000:00:03.0", 0x1AF4, 0x1000, 0x020000, (0x1AF4, 0x0001))
CONSOLE = PciDevice("0000:00:02.0", 0x1234, 0x1111, 0x030000, (0x1AF4, 0x1100))


@dataclass(frozen=True)
class Node:
    """A node: its name in the inventory is not the name that it calls itself."""

    name: str
    hostname: str
    suite: str
    gpus: tuple[PciDevice, ...] = ()
    gpu_names: str = "-"
    # Whether the GPUs are bound to a driver. NVIDIA's has its stand-in in files/NAME (the chip's
    # own part of it, in /proc), those of AMD and Intel in drm.py.
    driver: bool = False
    # Folders below files/ that are laid over the image, before the node's own.
    files: tuple[str, ...] = ()
    # The distribution whose archive the node uses; the ordinary fleet's nodes use none.
    archive: str = ""
    # The kernel that the node says it runs; empty: the machine's own, "newest": the image's newest.
    kernel: str = ""
    # Further kernels that are installed.
    kernels: tuple[str, ...] = ()
    # The name that its kubelet registers with; empty: it has none.
    kubernetes: str = ""
    # The driver that is stood in for with all that programs ask of it, nvidia-smi too.
    driver_version: str = ""

    @property
    def container(self) -> str:
        return f"{NAME}-{self.name}"

    @property
    def release(self) -> Release:
        return {**RELEASES, **DRIVER_RELEASES}[self.suite]

    @property
    def devices(self) -> tuple[PciDevice, ...]:
        return (CONSOLE, NETWORK, *self.gpus)


_ORDINARY = (
    Node(
        "gpu1",
        "worker-17",
        "bookworm",
        (_nvidia("0000:00:08.0", 0x1BB3, 0x11D8),),
        "Tesla P4",
    ),
    Node(
        "gpu2",
        "dl-rack2-04",
        "trixie",
        tuple(_nvidia(f"0000:{bus:02x}:00.0", 0x1DB1, 0x1212) for bus in (0x15, 0x16, 0x3A, 0x3B)),
        "4 x Tesla V100",
        driver=True,
    ),
    Node(
        "gpu3",
        "inference-a10",
        "sid",
        (_nvidia("0000:00:07.0", 0x2236, 0x1482),),
        "A10",
        driver=True,
    ),
    Node("cpu1", "ingress-1", "bookworm"),
)
# Apart from the others, because images and packages are big and a driver's build takes minutes.
_FOR_DRIVERS = (
    Node(
        "drv-debian12",
        "drv-debian12",
        "bookworm+kernel",
        (_nvidia("0000:00:08.0", 0x2236, 0x1482),),
        "A10",
        files=("drivers", "drivers-debian"),
        archive="debian",
        kernel="newest",
    ),
    Node(
        "drv-debian13",
        "drv-debian13",
        "trixie+kernel",
        (_nvidia("0000:00:08.0", 0x27B8, 0x16CA),),
        "L4",
        files=("drivers", "drivers-debian"),
        archive="debian",
        kernel="newest",
    ),
    Node(
        "drv-ubuntu24",
        "drv-ubuntu24",
        "bookworm",
        (_nvidia("0000:00:08.0", 0x2236, 0x1482),),
        "A10",
        files=("drivers", "drivers-ubuntu24"),
        archive="ubuntu",
        kernel="6.8.0-90-generic",
    ),
    # The stand-ins for Ubuntu 24.04 lie on the release whose apt is closest to that one's. On the
    # second one a newer kernel is installed than the one that runs.
    Node(
        "drv-ubuntu24b",
        "drv-ubuntu24b",
        "bookworm",
        # One GPU of an HGX H100, and its board's NVSwitches (their id is not a documented one).
        (
            _nvidia("0000:00:08.0", 0x2330, 0x16C1),
            *(
                PciDevice(f"0000:00:{slot}.0", 0x10DE, 0x22A3, 0x068000, (0x10DE, 0x0000))
                for slot in ("09", "0a", "0b", "0c")
            ),
        ),
        "H100",
        files=("drivers", "drivers-ubuntu24"),
        archive="ubuntu",
        kernel="6.8.0-85-generic",
        kernels=("6.8.0-90-generic",),
    ),
    # For what is done to several of them, in batches.
    *(
        Node(
            name,
            name,
            "bookworm",
            (_nvidia("0000:00:08.0", 0x2236, 0x1482),),
            "A10",
            files=("drivers", "drivers-ubuntu24"),
            archive="ubuntu",
            kernel="6.8.0-90-generic",
        )
        for name in ("drv-up1", "drv-up2", "drv-up3")
    ),
    # Two of the GPUs of an MI300X board.
    Node(
        "drv-amd",
        "drv-amd",
        "bookworm",
        tuple(
            PciDevice(f"0000:{bus}:00.0", 0x1002, 0x74A1, 0x120000, (0x1002, 0x74A1))
            for bus in ("06", "26")
        ),
        "2 x MI300X",
        files=("drivers", "drivers-ubuntu24"),
        archive="ubuntu",
        kernel="6.8.0-90-generic",
    ),
)
# Nodes of a real Kubernetes, whose names there are not those of the inventory, nor their own.
_OF_CLUSTER = (
    Node(
        "kube-a10",
        "rack1-u07",
        "bookworm",
        tuple(_nvidia(f"0000:{bus}:00.0", 0x2236, 0x1482) for bus in ("17", "65")),
        "2 x A10",
        driver=True,
        files=("cluster",),
        kubernetes="a10-0.pool.testbed.example",
        driver_version="535.183.01",
    ),
    Node(
        "kube-l4",
        "rack2-u11",
        "trixie",
        tuple(_nvidia(f"0000:{bus}:00.0", 0x27B8, 0x16CA) for bus in ("31", "32", "b1", "b2")),
        "4 x L4",
        driver=True,
        files=("cluster",),
        kubernetes="l4-0.pool.testbed.example",
        driver_version="580.95.05",
    ),
    Node(
        "kube-cpu",
        "rack3-u02",
        "bookworm",
        files=("cluster",),
        kubernetes="cpu-0.pool.testbed.example",
    ),
)
# A fleet of several vendors, which one test brings up beside the others (test_five_nodes.py). The
# settings of their containerd are those of kube-cpu.
_OF_SEVERAL_VENDORS = (
    Node(
        "kube-h100",
        "rack4-u01",
        "bookworm",
        tuple(_nvidia(f"0000:{bus}:00.0", 0x2330, 0x16C1) for bus in ("0f", "2d")),
        "2 x H100",
        driver=True,
        files=("cluster", "kube-cpu"),
        kubernetes="h100-0.pool.testbed.example",
        driver_version="580.178.04",
    ),
    Node(
        "kube-t4",
        "rack4-u05",
        "bookworm",
        (_nvidia("0000:3b:00.0", 0x1EB8, 0x12A2),),
        "T4",
        driver=True,
        files=("cluster", "kube-cpu"),
        kubernetes="t4-0.pool.testbed.example",
        driver_version="580.95.05",
    ),
    Node(
        "kube-mi300x",
        "rack4-u09",
        "bookworm",
        tuple(
            PciDevice(f"0000:{bus}:00.0", 0x1002, 0x74A1, 0x120000, (0x1002, 0x74A1))
            for bus in ("05", "26")
        ),
        "2 x MI300X",
        driver=True,
        files=("cluster", "kube-cpu", "drm"),
        kubernetes="mi300x-0.pool.testbed.example",
    ),
    Node(
        "kube-flex",
        "rack4-u13",
        "bookworm",
        (PciDevice("0000:4d:00.0", 0x8086, 0x56C0, 0x038000, (0x8086, 0x4905)),),
        "Flex 170",
        driver=True,
        files=("cluster", "kube-cpu", "drm"),
        kubernetes="flex-0.pool.testbed.example",
    ),
)


def _for_bench(side: str) -> Iterator[Node]:
    """Two nodes with a GPU and one without; each side that is measured has its own."""
    for number, bus in enumerate(("17", "65"), 1):
        yield Node(
            f"{side}-gpu{number}",
            f"{side}-gpu{number}",
            "bookworm",
            (_nvidia(f"0000:{bus}:00.0", 0x2236, 0x1482),),
            "A10",
            files=("drivers", "drivers-ubuntu24"),
            archive="ubuntu",
            kernel="6.8.0-90-generic",
        )
    yield Node(f"{side}-cpu1", f"{side}-cpu1", "bookworm")


_FLEETS = {
    "drivers": _FOR_DRIVERS,
    "cluster": _OF_CLUSTER,
    # What is measured, and what it is measured against.
    "bench": (*_for_bench("ours"), *_for_bench("plain")),
}
FLEET = _FLEETS.get(paths.FLEET, _ORDINARY)
# Nodes that no run has unless a test brings them up, and removes them.
APART = _OF_SEVERAL_VENDORS if CLUSTER else ()


# What a run of the default tier needs of a fleet, where that is not all of it.
_DEFAULT_TIER = {"cluster": ["kube-a10"]}


def chosen() -> tuple[Node, ...]:
    """The nodes of this run: those named in KUBEGPU_NODES (separated by commas), or the tier's."""
    wished = os.environ.get("KUBEGPU_NODES", "").replace(",", " ").split()
    if not wished and paths.RUN_NAME and not tiers.is_full():
        wished = _DEFAULT_TIER.get(paths.FLEET, [])
    return tuple(node for node in FLEET if not wished or node.name in wished)
