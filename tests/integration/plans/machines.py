# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""An inventory of machines that are trees of files, for ``kubegpu.nodes.plan`` to look at.

``python -m tests.integration.plans.machines DIR`` writes the thirteen machines below DIR, with
``DIR/inventory.yml``. Nothing of them runs: the playbook reads them by ``kubegpu_root``.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml

from tests.testbed import elf
from tests.unit.fixtures.machines import MACHINES, Machine
from tests.unit.fixtures.make_tree import make_machine

THIRTEEN = (
    "p4",
    "v100x4",
    "t4-vgpu",
    "a10-2q",
    "a100x8",
    "h100x8",
    "h200x8",
    "gb200x4",
    "k80",
    "v100-b200-mixed",
    "mi300x8",
    "intel-max",
    "none",
)


def write(
    folder: Path,
    machines: Mapping[str, Machine],
    variables: Mapping[str, Mapping[str, Any]] | None = None,
) -> Path:
    """Write the trees and the inventory, and return the inventory.

    :param variables: more variables of a machine, by its name.
    """
    hosts = {}
    for name, machine in machines.items():
        root = folder / name
        shutil.rmtree(root, ignore_errors=True)
        make_machine(root, machine)
        hosts[name] = {"kubegpu_root": str(root.resolve()), **(variables or {}).get(name, {})}
    inventory = folder / "inventory.yml"
    data = {
        "all": {
            "hosts": hosts,
            "vars": {
                "ansible_connection": "local",
                "ansible_python_interpreter": "{{ ansible_playbook_python }}",
                # Who wrote the trees may read them.
                "kubegpu_become": False,
            },
        }
    }
    inventory.write_text("---\n" + yaml.safe_dump(data, sort_keys=False), encoding="utf-8")
    return inventory


def by_runfile(machine: Machine, version: str, kernel_module: str = "proprietary") -> Machine:
    """Return the machine with a driver that somebody installed by runfile, loaded and working."""
    kernel = machine.files["/proc/sys/kernel/osrelease"].strip()
    words = "NVIDIA UNIX x86_64 Kernel Module"
    if kernel_module == "open":
        words = "NVIDIA UNIX Open Kernel Module for x86_64"
    files: dict[str, Any] = {
        "/proc/driver/nvidia/version": f"NVRM version: {words}  {version}  Release Build\n",
        "/sys/module/nvidia/version": f"{version}\n",
        f"/lib/modules/{kernel}/modules.dep": "kernel/drivers/video/nvidia.ko:\n",
        f"/lib/modules/{kernel}/kernel/drivers/video/nvidia.ko": elf.module(
            "nvidia", version, kernel, "NVIDIA"
        ),
        f"/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.{version}": "",
        f"/usr/lib/x86_64-linux-gnu/libcuda.so.{version}": "",
        "/usr/bin/nvidia-uninstall": "",
    }
    return replace(machine, files={**machine.files, **files})


def main(arguments: Iterable[str]) -> int:
    folders = list(arguments)
    if len(folders) != 1 or folders[0].startswith("-"):
        print(__doc__, file=sys.stderr)
        return 2
    print(write(Path(folders[0]), {name: MACHINES[name] for name in THIRTEEN}))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
