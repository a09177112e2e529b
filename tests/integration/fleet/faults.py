# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Make many faults on one node at once, each seen by one host of the inventory alone.

A playbook's run for each fault takes ten seconds and more. Here each fault has a host of its own
in the inventory. All of them are the same node, and each has an interpreter that makes its fault
first: in a mount namespace, on layers over the node's folders. With the module that was started
the namespace ends, and the fault is gone: nothing has to be undone, and no fault meets another one.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

TOP = "/opt/faults"
PCI = "/sys/bus/pci/devices"
# The order is that in which they are mounted: /run/cdi, since /run has the daemons' sockets.
FOLDERS = ("/etc", "/usr", "/var/lib/dkms", "/var/log", "/run/cdi", "/proc/driver", PCI)

ENTER = f"""#!/bin/sh
# Makes a fault in a mount namespace of its own, then is the node's Python. Its process remains the
# same, and the module on its standard input is Python's.
set -eu
fault=$1
shift
exec 3<&0 </dev/null
layers={TOP}/layers
mount -t tmpfs tmpfs "$layers"
for folder in {" ".join(FOLDERS)}; do
    place=$layers$folder
    mkdir -p "$place/upper" "$place/work"
    mount -t overlay overlay \\
        -o "lowerdir=$folder,upperdir=$place/upper,workdir=$place/work" "$folder"
done
export PATH="{TOP}/$fault/bin:$PATH"
# The root of the first process is that of another namespace, which systemctl takes for a chroot.
export SYSTEMD_IGNORE_CHROOT=1
. "{TOP}/$fault/fault"
exec 0<&3 3<&-
exec /usr/local/bin/python3-counted "$@"
"""
# The real program answers what is not asked of the kernel's log.
JOURNAL = f"""#!/bin/sh
case "$*" in
"-k -b 0 "*) cat {TOP}/@NAME@/now ;;
"-k -b -"*) cat "{TOP}/@NAME@/past$3" 2>/dev/null || exit 1 ;;
*) exec /usr/bin/journalctl "$@" ;;
esac
"""
DMESG = f"""#!/bin/sh
cat {TOP}/@NAME@/dmesg
"""


@dataclass(frozen=True)
class Fault:
    """What is made, and the row of the catalogue that has to be the only root.

    :param subject: the GPU or NVSwitch that the finding is about; empty: the host.
    :param script: lines of a shell.
    :param kernel: what the kernel says, in its order; ``past`` is what it said in the boot before.
    :param smi: what ``nvidia-smi -q -x`` prints; None is what the node's own prints.
    :param status: how it ends. With ``all_fail`` so does each other call of nvidia-smi.
    :param programs: further programs that are found before those of the node.
    :param variables: those of the host, beside the node's own.
    """

    row: str
    subject: str = ""
    script: str = ""
    kernel: tuple[str, ...] = ()
    past: tuple[str, ...] = ()
    smi: str | None = None
    status: int = 0
    all_fail: bool = False
    programs: Mapping[str, str] | None = None
    variables: Mapping[str, Any] | None = None


def files(faults: Mapping[str, Fault]) -> dict[str, tuple[bytes, int]]:
    """Return path -> content and mode of what the node needs, as for ``payload.tar``."""
    top = TOP.lstrip("/")
    found = {f"{top}/enter": (ENTER.encode(), 0o755), f"{top}/layers/.keep": (b"", 0o644)}
    for name, fault in faults.items():
        place = f"{top}/{name}"
        found[f"{place}/python"] = (_python(name).encode(), 0o755)
        found[f"{place}/fault"] = (f"{fault.script.strip()}\n".encode(), 0o644)
        for program, text in _programs(name, fault).items():
            found[f"{place}/bin/{program}"] = (text.encode(), 0o755)
        for file, text in _logs(fault).items():
            found[f"{place}/{file}"] = (text.encode(), 0o644)
        if fault.smi is not None:
            found[f"{place}/smi"] = (fault.smi.encode(), 0o644)
    return found


def inventory(faults: Mapping[str, Fault], variables: Mapping[str, Any]) -> dict[str, Any]:
    """Return an inventory in which each fault is a host.

    :param variables: those of the node.
    """
    hosts = {
        name: {
            **variables,
            **(fault.variables or {}),
            "ansible_python_interpreter": f"{TOP}/{name}/python",
        }
        for name, fault in faults.items()
    }
    return {"all": {"hosts": hosts}}


def _python(name: str) -> str:
    call = f"unshare --mount --propagation private {TOP}/enter {name}"
    return f'#!/bin/sh\nexec {call} "$@"\n'


def _programs(name: str, fault: Fault) -> dict[str, str]:
    found = {program: f"#!/bin/sh\n{text}\n" for program, text in (fault.programs or {}).items()}
    found["journalctl"] = found.get("journalctl", JOURNAL.replace("@NAME@", name))
    found["dmesg"] = DMESG.replace("@NAME@", name)
    if fault.smi is not None:
        own = "*) ;;" if fault.all_fail else '"-q -x") ;;\n*) exec /usr/bin/nvidia-smi "$@" ;;'
        found["nvidia-smi"] = (
            f'#!/bin/sh\ncase "$*" in\n{own}\nesac\ncat {TOP}/{name}/smi\nexit {fault.status}\n'
        )
    return found


def _logs(fault: Fault) -> dict[str, str]:
    """Return the kernel's log as journalctl prints it, the newest line first, and as dmesg does."""
    # A log without a line is one that could not be read.
    lines = ("Linux version 6.12.0 (stand-in)", *fault.kernel)
    begin = time.time() - 60 - len(lines)
    stamped = [f"{begin + number:.6f} node kernel: {line}" for number, line in enumerate(lines)]
    found = {
        "now": "\n".join(reversed(stamped)) + "\n",
        "dmesg": "".join(f"[{100 + number:12.6f}] {line}\n" for number, line in enumerate(lines)),
    }
    if fault.past:
        day = begin - 86400
        said = [f"{day + number:.6f} node kernel: {line}" for number, line in enumerate(fault.past)]
        found["past-1"] = "\n".join(reversed(said)) + "\n"
    return found
