# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How the outputs in the guides of machines are made."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from tests.integration.plans import guide_texts as texts
from tests.integration.plans.guides import Output, Plan, having
from tests.integration.plans.machines import by_runfile
from tests.unit.fixtures.driver_cases import UBUNTU_SIGNED
from tests.unit.fixtures.machines import (
    DEBIAN_12,
    MACHINES,
    ROCKY_9,
    SECURE,
    UBUNTU_2404,
    Machine,
    nvidia,
)

DOCKER = {"/usr/bin/dockerd": ""}
CONTAINERD = {"/usr/bin/containerd": "", "/etc/containerd/config.toml": "version = 2\n"}
NOUVEAU = {"/sys/module/nouveau/refcnt": "1\n"}
GRID = "files/NVIDIA-Linux-x86_64-535.129.03-grid.run"
TOKEN = "files/client_configuration_token.tok"
OTHER_GRID = "files/NVIDIA-Linux-x86_64-550.90.07-grid.run"
KEYS = (
    "files/cuda.asc", "files/cuda-deb.asc", "files/cuda-rpm.asc", "files/libnvidia-container.asc",
)  # fmt: skip
TOOLKIT = (
    "nvidia-container-toolkit", "nvidia-container-toolkit-base", "libnvidia-container-tools",
    "libnvidia-container1",
)  # fmt: skip
RECORD = "/var/lib/kubegpu/state.json"


def with_packages(machine: Machine, packages: Mapping[str, str]) -> Machine:
    """Return the machine with packages of apt, which are held."""
    status = machine.files.get("/var/lib/dpkg/status", "") + "".join(
        f"Package: {name}\nStatus: hold ok installed\nArchitecture: amd64\nVersion: {version}\n\n"
        for name, version in packages.items()
    )
    return having(machine, {"/var/lib/dpkg/status": status})


def with_toolkit(machine: Machine, driver: str) -> Machine:
    """Return the machine as a run has left it with the toolkit, for Docker."""
    key = "C95B321B61E88C1809C4F759DDCAE044F796ECB0"
    entry = "Types: deb\nURIs: https://nvidia.github.io/libnvidia-container/stable/deb/amd64\n"
    daemon = {"runtimes": {"nvidia": {"args": [], "path": "/usr/bin/nvidia-container-runtime"}}}
    more = {
        "/usr/bin/nvidia-container-runtime": "",
        "/etc/nvidia-container-runtime/config.toml": "",
        "/etc/apt/sources.list.d/kubegpu-nvidia-container-toolkit.sources": entry
        + f"Suites: /\nSigned-By: {key}\n",
        "/var/run/cdi/nvidia.yaml": f"kind: nvidia.com/gpu\n# libcuda.so.{driver}\n",
        "/etc/docker/daemon.json": json.dumps(daemon),
    }
    return with_packages(having(machine, {**DOCKER, **more}), dict.fromkeys(TOOLKIT, "1.20.1-1"))


def changed(machine: Machine, now: str, previous: Mapping[str, Any]) -> Machine:
    """Return the machine with Ubuntu's driver, after a change that the record has."""
    names = {name.format(b="580", o="-open"): f"{now}-0ubuntu1" for name in UBUNTU_SIGNED}
    before = {"branch": "580", "kernel_module": "open", "packages": {}, "held": True, **previous}
    value = {"managed": True, "previous": before, "services": {}}
    record = {"format": 1, "files": {}, "values": {"nvidia_driver": value}}
    files = dict(by_runfile(machine, now, "open").files)
    del files["/usr/bin/nvidia-uninstall"]
    return with_packages(having(replace(machine, files=files), {RECORD: json.dumps(record)}), names)


# Ubuntu without the kernel that does not run yet.
UBUNTU = {path: text for path, text in UBUNTU_2404.items() if "6.8.0-87" not in path}
A10 = Machine((nvidia("0000:3b:00.0", "2236", "1482"),), UBUNTU)
WORKSTATION = replace(MACHINES["rtx4090-workstation"], files={**UBUNTU, **DOCKER, **NOUVEAU})
GUEST = with_toolkit(MACHINES["a10-2q"], "535.129.03")
IMAGE = by_runfile(having(A10, CONTAINERD), "580.95.05", "open")
SET_UP = with_toolkit(A10, "580.126.09")
BACK = changed(SET_UP, "580.126.09", {"version": "580.95.05", "source": "distro"})
OTHER_SOURCE = changed(SET_UP, "580.126.09", {"version": "580.95.05", "source": "runfile"})
DEBIAN = Machine((nvidia("0000:3b:00.0", "1bb3", "11d8"),), {**DEBIAN_12, **SECURE, **CONTAINERD})
H100 = replace(MACHINES["h100x8"], files={**ROCKY_9})
MI300 = replace(MACHINES["mi300x8"], functions=MACHINES["mi300x8"].functions[:6])
BARE_AMD = replace(
    MI300,
    functions=tuple(
        replace(one, driver=None) if one.vendor == "1002" else one for one in MI300.functions
    ),
)
PREVIOUS = {"nvidia_driver_version": "previous"}
NO_FILE = {"nvidia_driver_licence": {"feature_type": 1, "token_path": "files/token.tok"}}
NO_KEY = {"nvidia_driver_repository": {"key_file": "files/cuda.gpg"}}
MISFIT = {"nvidia_driver_runfile": {"path": OTHER_GRID, "checksum": f"sha256:{64 * '0'}"}}
# The guides' own keys are stand-ins, whose fingerprint is expected where none is given.
FOREIGN_KEY = {
    "nvidia_driver_repository": {
        "url": "https://mirror.example/cuda/repos/{distribution}/{architecture}",
        "key_file": "files/cuda-rpm.asc",
        "key_fingerprints": ["610C7B14E068A878070DA4E99CD0A493D42D0685"],
    }
}

OUTPUTS: Mapping[str, Output] = {
    "docker-plan": Plan({"gpu1.example.com": WORKSTATION}),
    "docker-verified": texts.docker_verified,
    "docker-none": Plan({"gpu1.example.com": replace(WORKSTATION, files=UBUNTU)}, only="warnings"),
    "docker-not-restarted": texts.docker_not_restarted,
    "docker-image-newer": texts.docker_image_newer,
    "toolkit-plan": Plan({"gpu1": IMAGE}),
    "toolkit-no-driver": Plan({"gpu1": having(A10, CONTAINERD)}, only="warnings"),
    "toolkit-cdi": Plan({"gpu1": by_runfile(with_toolkit(A10, "580.95.05"), "580.126.09", "open")}),
    "toolkit-mismatch": texts.mismatch,
    "back-plan": Plan({"gpu1": BACK}, PREVIOUS),
    "back-verified": texts.verified_again,
    "back-none": Plan({"gpu1": with_toolkit(A10, "580.95.05")}, PREVIOUS, only="driver.reasons"),
    "back-source": Plan({"gpu1": OTHER_SOURCE}, PREVIOUS, only="driver.reasons"),
    "back-mismatch": texts.not_reloaded,
    "secure-plan": Plan(
        {"ubuntu1": having(A10, {**SECURE, **CONTAINERD}), "debian1": DEBIAN},
        {"nvidia_driver_dkms": "auto"},
        only="driver.reasons",
    ),
    "secure-dkms": Plan({"debian1": DEBIAN}, {"nvidia_driver_dkms": True}, only="warnings"),
    "secure-key": texts.secure_boot,
    "secure-branch": Plan(
        {"ubuntu1": having(A10, SECURE)}, {"nvidia_driver_branch": "590"}, only="driver.reasons"
    ),
    "vgpu-refused": Plan(
        {"vm1": GUEST},
        {
            "nvidia_driver_source": "auto",
            "nvidia_driver_runfile": {},
            "nvidia_driver_licence": {},
        },
        only="driver.reasons",
    ),
    "vgpu-misfit": Plan({"vm1": GUEST}, MISFIT, files=(OTHER_GRID, TOKEN), only="driver.reasons"),
    "vgpu-plan": Plan({"vm1": GUEST}, files=(GRID, TOKEN)),
    "vgpu-proof": texts.licence_proof,
    "vgpu-unlicensed": texts.unlicensed,
    "vgpu-no-token": Plan({"vm1": GUEST}, NO_FILE, files=(GRID,), only="warnings"),
    "vgpu-wrong-driver": texts.wrong_driver,
    "vgpu-expired": texts.expired,
    "closed-plan": Plan({"rocky1": having(H100, DOCKER)}, files=KEYS),
    "closed-addresses": Plan(
        {"debian1": MACHINES["p4"], "rocky1": H100},
        files=KEYS,
        only="driver.repository.url, toolkit.repository.url",
    ),
    "closed-no-key": Plan({"debian1": MACHINES["p4"]}, NO_KEY, files=KEYS, only="warnings"),
    "closed-key": Plan({"rocky1": H100}, FOREIGN_KEY, files=KEYS, only="driver.reasons"),
    "closed-dkms": texts.no_dkms,
    "amd-plan": Plan(
        {
            "mi300-1": MI300,
            "mi300-2": having(BARE_AMD, DOCKER),
            "flex-1": MACHINES["intel-flex"],
            "web1": MACHINES["none"],
        }
    ),
    "amd-verified": texts.amd_verified,
    "amd-no-driver": Plan({"mi300-1": having(BARE_AMD, DOCKER)}, only="warnings"),
    "amd-blocked": texts.amd_blocked,
    "amd-refused": Plan({"mi300-1": BARE_AMD}, {"amd_container_toolkit_enabled": True}, only="why"),
    "out-waiting": texts.pods_waiting,
    "out-unmanaged": texts.unmanaged,
    "out-data": texts.local_data,
    "out-mig": texts.mig_hidden,
    "out-held": texts.held,
    "monitoring-hosts-plan": texts.exporters,
    "monitoring-hosts-port": texts.exporter_port,
    "monitoring-hosts-no-folder": texts.exporter_folder,
    "monitoring-hosts-lost": texts.exporter_lost,
    "slurm-plan": Plan({"node1": H100}, files=KEYS),
    "slurm-packages": Plan({"node1": H100}, files=KEYS, only="driver.packages"),
    "slurm-waiting": texts.jobs_waiting,
    "slurm-proof": texts.fabric_proof,
    "slurm-left": texts.jobs_left,
    "slurm-invalid": texts.invalid_registration,
    "slurm-fabric": texts.fabric_not_ready,
    "slurm-versions": texts.fabric_versions,
    "collection-plan": Plan({"gpu1": by_runfile(SET_UP, "580.126.09", "open")}),
    "collection-variable": texts.unknown_variable,
    "collection-record": texts.newer_record,
    "collection-damaged": texts.damaged_record,
}
