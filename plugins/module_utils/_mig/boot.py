# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The layout of MIG at boot: the texts of a script, and of the unit that runs it. Pure.

Instances vanish at each reboot. Cards from Hopper on lose the mode, too, as soon as the kernel
module is unloaded. The unit makes both again before kubelet, the container runtimes and DCGM start,
and starts nothing itself: a unit that others wait for must not wait for them.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping

from .boot_paths import BOOT_PATHS, SCRIPT_PATH, UNIT_PATH
from .layout import Layout
from .types import BootFile

_BEFORE = (
    "nvidia-gpu-reset.target nvidia-dcgm.service nvidia-dcgm-exporter.service "
    "dcgm-exporter.service kubegpu-dcgm-exporter.service kubegpu-metrics.service "
    "nvidia-cdi-refresh.service containerd.service docker.service "
    "crio.service kubelet.service k3s.service k3s-agent.service rke2-server.service "
    "rke2-agent.service k0scontroller.service k0sworker.service "
    "snap.microk8s.daemon-containerd.service snap.microk8s.daemon-kubelite.service"
)
_UNIT_TEXT = f"""\
# Written by kubegpu.nodes.nvidia_mig.
[Unit]
Description=Make the MIG layout of this node
ConditionPathExists={SCRIPT_PATH}
After=systemd-modules-load.service nvidia-persistenced.service nvidia-fabricmanager.service
Before={_BEFORE}

[Service]
Type=oneshot
RemainAfterExit=yes
TimeoutStartSec=300
ExecStart=/bin/sh {SCRIPT_PATH}

[Install]
WantedBy=multi-user.target
"""
# nvidia-smi reports some failures as warnings, with the status of success: what is there decides.
_SCRIPT_HEAD = """\
# Written by kubegpu.nodes.nvidia_mig, run by kubegpu-mig.service.
# GPUs by UUID. Existing instances stay.
status=0
places() { # UUID
    nvidia-smi mig -i "$1" -lgi |
        sed -n 's/^| *[0-9]* *MIG \\([^ ]*\\) *[0-9]* *[0-9]* *\\([0-9]*\\):.*/\\1:\\2/p' | sort
}
layout() { # UUID [PROFILE:START]...
    uuid=$1
    shift
    nvidia-smi -i "$uuid" -mig 1
    there=$(places "$uuid")
    missing=
    for place in "$@"; do
        printf '%s\\n' "$there" | grep -qxF -e "$place" || missing="$missing,$place"
    done
    if [ -n "$missing" ]; then
        nvidia-smi mig -i "$uuid" -cgi "${missing#,}" -C
    fi
    if [ "$(places "$uuid")" != "$(printf '%s\\n' "$@" | sort)" ]; then
        echo "GPU $uuid has not the MIG layout of this node" >&2
        status=1
    fi
}
"""


def boot_files(layouts: Mapping[str, Layout]) -> tuple[BootFile, ...]:
    """Return the files for the layouts, by UUID of the GPU. Without any with MIG, no file.

    Layouts with divided GPU instances are left out: this collection makes none, and only restores
    those that were there.
    """
    wanted = {
        uuid: layout
        for uuid, layout in sorted(layouts.items())
        if layout.enabled and all(one.compute is None for one in layout.instances)
    }
    if not wanted:
        return tuple(BootFile(path, None) for path in BOOT_PATHS)
    return (BootFile(SCRIPT_PATH, _script(wanted)), BootFile(UNIT_PATH, _UNIT_TEXT))


def _script(layouts: Mapping[str, Layout]) -> str:
    lines = []
    for uuid, layout in layouts.items():
        # Large instances first, as they are made.
        ordered = sorted(layout.instances, key=lambda one: (-one.size, one.start))
        arguments = (uuid, *(one.place for one in ordered))
        lines.append(f"layout {shlex.join(arguments)}\n")
    return f"{_SCRIPT_HEAD}{''.join(lines)}exit $status\n"
