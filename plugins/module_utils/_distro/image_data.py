# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Systems whose software is an image, and what works instead of packages. Data, not code.

Each row names its source. Read 2026-11-28; none of these systems was tried.
"""

from __future__ import annotations

from dataclasses import dataclass

READ = "2026-11-28"


@dataclass(frozen=True)
class ImageSystem:
    """A system that packages do not change while it runs.

    :param key: its name in the fact ``os.image_system``.
    :param name: for messages; empty where the name of the distribution says it.
    :param systems: ``ID`` of os-release, or ``ID/VARIANT_ID``.
    :param names: ``NAME`` of os-release, where a release has no ``ID``.
    :param by_packages: whether the same os-release is in a root file system that can be written,
        such as a build of the image, where packages are installed as usual.
    :param driver: how the driver comes to such a node.
    :param toolkit: how the container toolkit does; empty: as other software.
    :param software: how other software does.
    :param keeps_etc: whether files that are written below /etc and /usr/local survive a
        boot.
    :param keeps_settings: whether those below /etc do, if those below /usr/local do not.
    """

    key: str
    name: str
    driver: str
    software: str
    source: str
    toolkit: str = ""
    systems: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    by_packages: bool = False
    keeps_etc: bool = False
    keeps_settings: bool = False
    date: str = READ


_REBOOT = "and reboot"
IMAGE_SYSTEMS = (
    ImageSystem(
        "flatcar",
        "Flatcar Container Linux",
        "name Flatcar's prebuilt driver in /etc/flatcar/enabled-sysext.conf (a line such as "
        f"nvidia-drivers-570-open; each release has its own branches) {_REBOOT}; without it "
        "Flatcar's nvidia.service builds a driver at boot",
        "software comes as system extensions (systemd-sysext)",
        "flatcar.org/docs/latest/setup/customization/using-nvidia",
        toolkit="add the system extension nvidia-runtime of Flatcar's sysext-bakery to "
        "/etc/extensions; with NVIDIA's GPU operator set driver.enabled=false and "
        "toolkit.enabled=false",
        systems=("flatcar",),
    ),
    ImageSystem(
        "cos",
        "Container-Optimized OS",
        "run sudo cos-extensions install gpu at each boot; on GKE let the node pool or Google's "
        "driver installer DaemonSet do it",
        "it has no package manager, and software runs in containers",
        "docs.cloud.google.com/container-optimized-os/docs/how-to/run-gpus and "
        "concepts/disks-and-filesystem (/etc is stateless); "
        "github.com/NVIDIA/gpu-operator/issues/1679",
        systems=("cos",),
    ),
    ImageSystem(
        "bottlerocket",
        "Bottlerocket",
        "start the node from an image of an nvidia variant (such as aws-k8s-1.34-nvidia), which "
        "has the driver",
        "software is a part of the variant, and settings are those of its API (apiclient)",
        "github.com/bottlerocket-os/bottlerocket (README, pull request 2078); "
        "docs.aws.amazon.com/eks/latest/userguide/bottlerocket-custom-variant.html",
        toolkit="take an image of an nvidia variant, which has the container runtime for GPUs and "
        "the device plugin; MIG and the plugin are set by settings.kubelet-device-plugins.nvidia",
        systems=("bottlerocket",),
    ),
    ImageSystem(
        "talos",
        "Talos",
        "boot an image with the system extensions nvidia-open-gpu-kernel-modules (or "
        "nonfree-kmod-nvidia) and nvidia-container-toolkit of one driver version, and load nvidia, "
        "nvidia_uvm, nvidia_drm and nvidia_modeset by machine.kernel.modules",
        "software comes as system extensions, and nothing is written on the node",
        "docs.siderolabs.com/talos/v1.15 (NVIDIA GPU)",
        toolkit="boot an image with the system extension nvidia-container-toolkit; from the "
        "documentation of Talos 1.15 on, it has the driver's libraries only, and NVIDIA's GPU "
        "operator brings the toolkit (driver.enabled=false)",
        systems=("talos",),
        names=("Talos",),
    ),
    ImageSystem(
        "rhcos",
        "RHEL CoreOS",
        "on OpenShift NVIDIA's GPU operator brings the driver as a container",
        "OpenShift's machine configuration manages the system",
        "github.com/NVIDIA/gpu-operator/issues/199",
        toolkit="NVIDIA's GPU operator brings it",
        systems=("rhcos", "rhel/coreos"),
        keeps_etc=True,
    ),
    ImageSystem(
        "scos",
        "CentOS Stream CoreOS",
        "build NVIDIA's driver container for it (github.com/NVIDIA/gpu-driver-container), as none "
        "is published",
        "OKD's machine configuration manages the system",
        "github.com/NVIDIA/gpu-driver-container/issues/301",
        systems=("scos", "centos/coreos"),
        keeps_etc=True,
    ),
    ImageSystem(
        "ublue",
        "an image of Universal Blue",
        "switch to the image of the same name that has the driver (-nvidia), by rpm-ostree rebase "
        f"or bootc switch, {_REBOOT}",
        f"layer packages (rpm-ostree install) {_REBOOT}, or build an image with them",
        "github.com/ublue-os",
        systems=("bazzite", "bluefin", "aurora", "fedora/ucore"),
        by_packages=True,
        keeps_etc=True,
    ),
    ImageSystem(
        "transactional-update",
        "changed by transactional-update only",
        "install SUSE's signed modules into a new snapshot (transactional-update pkg install "
        f"nvidia-open-driver-G06-signed-kmp nvidia-compute-utils-G06) {_REBOOT}; NVIDIA's "
        "repository is added before in transactional-update shell",
        f"transactional-update pkg install NAMES, {_REBOOT}",
        "documentation.suse.com/sle-micro/6.1 (transactional updates); "
        "github.com/suse-edge/suse-edge.github.io (NVIDIA GPUs on SLE Micro)",
        toolkit="transactional-update pkg install nvidia-container-toolkit with NVIDIA's "
        f"repository of it, {_REBOOT}",
        systems=("opensuse-microos", "opensuse-leap-micro", "sle-micro", "sl-micro"),
        by_packages=True,
        keeps_etc=True,
    ),
    ImageSystem(
        "bootc",
        "a bootc image",
        "install the driver in the Containerfile of its image, build that, then bootc upgrade (or "
        f"bootc switch) {_REBOOT}",
        "install packages in the Containerfile of its image, build that, then bootc upgrade "
        f"{_REBOOT}",
        "github.com/bootc-dev/bootc (docs/src/package-managers.md); "
        "docs.fedoraproject.org/en-US/bootc/filesystem (/etc)",
        by_packages=True,
        keeps_settings=True,
    ),
    ImageSystem(
        "rpm-ostree",
        "an ostree image",
        "layer a driver without DKMS, such as RPM Fusion's (rpm-ostree install "
        f"akmod-nvidia xorg-x11-drv-nvidia-cuda) {_REBOOT}, or boot an image that has it",
        f"layer packages (rpm-ostree install NAMES) {_REBOOT}, or build an image with them",
        "github.com/coreos/rpm-ostree/issues/1091 and 3706",
        systems=(
            *("fedora/coreos", "fedora/iot", "fedora/silverblue", "fedora/kinoite"),
            *("fedora/sway-atomic", "fedora/budgie-atomic", "fedora/cosmic-atomic"),
        ),
        by_packages=True,
        keeps_etc=True,
    ),
    ImageSystem(
        "ubuntu-core",
        "Ubuntu Core",
        "install the components of the kernel snap that have the driver (snap install "
        "pc-kernel+nvidia-BRANCH-ko pc-kernel+nvidia-BRANCH-user, where the kernel snap has them)",
        "software comes as snaps",
        "lists.ubuntu.com/archives/kernel-team (2024-11, add nvidia-550 driver components)",
        systems=("ubuntu-core",),
    ),
    ImageSystem(
        "nixos",
        "NixOS",
        "set the options hardware.nvidia in the configuration of the system, then nixos-rebuild "
        "switch",
        "software is named in the configuration of the system",
        "github.com/NixOS/nixpkgs (hardware.nvidia, hardware.nvidia-container-toolkit)",
        toolkit="set hardware.nvidia-container-toolkit.enable = true in the configuration of the "
        "system, then nixos-rebuild switch",
        systems=("nixos",),
    ),
    ImageSystem(
        "read-only",
        "",
        "bring the driver the way that the documentation of the system names, or by a driver "
        "container, if NVIDIA's GPU operator has one for it",
        "add software the way that the documentation of the system names",
        "github.com/bootc-dev/bootc (docs/src/package-managers.md: a read-only /usr)",
    ),
)
BY_KEY = {row.key: row for row in IMAGE_SYSTEMS}
