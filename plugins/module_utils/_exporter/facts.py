# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The part of the exporter in the fact ``gpu_node``."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from .._packages.installed import Package
from .data import (
    FOREIGN_UNITS,
    PACKAGE_PREFIX,
    PACKAGE_SET,
    PATHS,
    TEXTFILE_DIRECTORIES,
    TEXTFILE_UNIT,
    UNITS,
)
from .record import RECORD, Record

if TYPE_CHECKING:
    from .._host.reader import NodeReader

# For the unit of a program that runs on old Enterprise Linux, too.
_PYTHONS = ("/usr/bin/python3", "/usr/libexec/platform-python")
_WANTS = "/etc/systemd/system/{}.target.wants/{}"
_LISTENS = "0A"
_SOCKET = re.compile(
    r"^\s*\d+: [0-9A-F]+:(?P<port>[0-9A-F]{4}) [0-9A-F]+:[0-9A-F]{4} (?P<state>[0-9A-F]{2}) "
    r"(?:\S+\s+){5}(?P<inode>\d+)",
    re.M,
)
# Ports of known exporters: DCGM's, nvidia_gpu_exporter's. A listener's name is searched for these.
_EXPORTER_PORTS = (9400, 9835)


def read_exporter(
    reader: NodeReader,
    units: Mapping[str, str | None] | None,
    packages: Sequence[Package],
    record: Mapping[str, Any] | None,
) -> dict[str, Any]:
    """Return the fact ``exporter``.

    :param units: state by unit; None without systemd.
    :param record: the node's record; None if it cannot be read.
    """
    values: Mapping[str, Any] = (record or {}).get("values") or {}
    mine = Record.from_json(values.get(RECORD))
    states = units or {}
    foreign = [unit for unit in FOREIGN_UNITS if states.get(unit)]
    return {
        "systemd": units is not None,
        "method": mine.method if mine else "",
        "expected_gpus": list(mine.gpus) if mine else [],
        "output": mine.output if mine else "",
        "page": mine.page if mine else "",
        "files": _checksums(reader, PATHS),
        "units": {
            **{unit: states.get(unit) for unit in UNITS},
            **{f"{TEXTFILE_UNIT}.timer": _timer_state(reader)},
        },
        "enabled": sorted(_enabled(reader)),
        "foreign_units": {unit: states[unit] for unit in foreign},
        # Whether packages are installed by this collection: their exporter is ours, too.
        "packages_managed": f"package_set:{PACKAGE_SET}" in values,
        "packages": {
            one.name: one.version for one in packages if one.name.startswith(PACKAGE_PREFIX)
        },
        "textfile_directories": [path for path in TEXTFILE_DIRECTORIES if reader.is_dir(path)],
        "python": reader.first(_PYTHONS) or "python3",
        "listeners": {str(port): name for port, name in listeners(reader).items()},
    }


def _timer_state(reader: NodeReader) -> str | None:
    """Return the state of our timer from the file that systemd has while it runs."""
    unit = f"{TEXTFILE_UNIT}.timer"
    if not reader.exists(f"/etc/systemd/system/{unit}"):
        return None
    answer = reader.run(["systemctl", "is-active", unit])
    return None if answer is None else answer.stdout.strip() or "unknown"


def _enabled(reader: NodeReader) -> Iterable[str]:
    for unit in UNITS:
        if reader.is_link(_WANTS.format("multi-user", f"{unit}.service")):
            yield unit
    if reader.is_link(_WANTS.format("timers", f"{TEXTFILE_UNIT}.timer")):
        yield f"{TEXTFILE_UNIT}.timer"


def _checksums(reader: NodeReader, paths: Iterable[str]) -> dict[str, str]:
    found = {path: reader.read_bytes(path) for path in paths}
    return {
        path: hashlib.sha256(content).hexdigest()
        for path, content in found.items()
        if content is not None
    }


def listeners(reader: NodeReader) -> dict[int, str]:
    """Return the TCP ports that are listened on, with the program's name for those of exporters."""
    inodes: dict[int, str] = {}
    for table in ("tcp", "tcp6"):
        for match in _SOCKET.finditer(reader.read_text(f"/proc/net/{table}") or ""):
            if match["state"] == _LISTENS:
                inodes[int(match["port"], 16)] = match["inode"]
    known = {inodes[port]: port for port in _EXPORTER_PORTS if port in inodes}
    names = _owners(reader, known) if known else {}
    return {port: names.get(port, "") for port in sorted(inodes)}


def _owners(reader: NodeReader, inodes: Mapping[str, int]) -> dict[int, str]:
    """Return the program and process that has each socket, by port."""
    links = {f"socket:[{inode}]": port for inode, port in inodes.items()}
    found: dict[int, str] = {}
    for pid in reader.list_dir("/proc"):
        if not pid.isdigit():
            continue
        for number in reader.list_dir(f"/proc/{pid}/fd"):
            port = links.get(reader.link_target(f"/proc/{pid}/fd/{number}") or "")
            if port is not None:
                name = reader.read_line(f"/proc/{pid}/comm") or "a program"
                found.setdefault(port, f"{name} (pid {pid})")
        if len(found) == len(links):
            break
    return found
