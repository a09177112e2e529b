# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Read the health of a node's GPUs: sysfs, one call of nvidia-smi, and the kernel's log.

Reader and stream are passed in. NVML is not used in this process: a call into a driver that hangs
cannot be ended, and a child process can.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .._core.printable import printable
from .._driver.facts import loaded_version
from .._facts.hardware import read_functions
from .._facts.system import read_blocks
from .._hardware.pci import PciFunction, find_gpus
from .._hardware.vendors import container_gpus
from .._host.bounded import Ended, Hang
from .._host.command import NOT_FOUND
from .._host.hanging import hanging_smi
from .._known_faults.documents.nvidia_smi import beside_document, read_document
from .kernel_log import MOST_EVENTS, KernelLog
from .types import (
    ANSWERED,
    FAILED,
    HUNG,
    MISSING,
    NOT_ASKED,
    BootLog,
    Event,
    Narrow,
    Node,
    PciGpu,
    Request,
    Smi,
)

if TYPE_CHECKING:
    from .._host.bounded import Stream
    from .._host.reader import NodeReader

_PCI = "/sys/bus/pci/devices"
_DRIVER = "/proc/driver/nvidia/version"
_QUERY = ("nvidia-smi", "-q", "-x")
# 16 GPUs have 2 MiB (590.44.01, most of it clocks).
_MOST_SMI = 8 * 1024 * 1024
# Of one boot, the newest lines.
_MOST_LOG = 256 * 1024 * 1024
_PCI_ADDRESS = re.compile(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]\Z")
_COUNTER = re.compile(r"(?:TOTAL_\w+|(?P<name>[a-z]{2}):)\s+(?P<count>\d{1,20})")
# Lanes that a link can have; others are read from a device that does not answer.
_LANES = (1, 2, 4, 8, 12, 16, 32)
_ERASED = b"\xff\xff\xff\xff"
# Seconds that dmesg gets if the journal took all of the time.
_LEAST = 5.0


def read_node(
    reader: NodeReader,
    stream: Stream,
    request: Request,
    clock: Callable[[], float] = time.monotonic,
) -> Node:
    """Return all that the health of the GPUs is judged by."""
    functions = read_functions(reader)
    facts = find_gpus(functions)
    gpus = read_pci_gpus(reader, functions, facts)
    smi = read_smi(reader, stream, facts, request.timeout, request.hang)
    logs: tuple[BootLog, ...] = ()
    events: tuple[Event, ...] = ()
    unseen = list(_unseen_smi(smi))
    if gpus:
        events, logs, why = read_logs(reader, stream, request, clock)
        unseen += why
    boot_id = reader.read_line("/proc/sys/kernel/random/boot_id")
    blocked = read_blocks(reader, facts)["blocked_modules"] or {}
    return Node(gpus, smi, events, logs, tuple(unseen), boot_id, blocked, time.time())


def read_pci_gpus(
    reader: NodeReader, functions: list[PciFunction], facts: list[dict[str, Any]]
) -> tuple[PciGpu, ...]:
    """Return the GPUs as sysfs shows them."""
    configs = {function.address: function.config for function in functions}
    return tuple(
        PciGpu(
            gpu["address"],
            gpu["vendor"],
            gpu["product"],
            gpu["kernel_driver"],
            (configs[gpu["address"]] or b"")[:4] == _ERASED,
            _narrow_links(reader, gpu["address"]),
            {
                "link": _link(reader, gpu["address"]),
                "aer": {
                    name: _total(reader, f"{_PCI}/{gpu['address']}/aer_dev_{name}")
                    for name in ("correctable", "nonfatal", "fatal")
                },
                "ras": _ras(reader, gpu["address"]),
                "temperature": _temperature(reader, gpu["address"]),
            },
        )
        for gpu in facts
    )


def _link(reader: NodeReader, address: str) -> dict[str, Any]:
    folder = f"{_PCI}/{address}"
    return {
        "width": _lanes(reader, folder, "current"),
        "width_max": _lanes(reader, folder, "max"),
        "speed": _speed(reader, folder, "current"),
        "speed_max": _speed(reader, folder, "max"),
    }


def _lanes(reader: NodeReader, folder: str, which: str) -> int | None:
    text = reader.read_line(f"{folder}/{which}_link_width") or ""
    return int(text) if text.isdecimal() and len(text) < 4 and int(text) in _LANES else None


def _speed(reader: NodeReader, folder: str, which: str) -> str | None:
    text = reader.read_line(f"{folder}/{which}_link_speed")
    return text if text and re.fullmatch(r"\d{1,3}(?:\.\d)? GT/s PCIe", text) else None


def _narrow_links(reader: NodeReader, address: str) -> tuple[Narrow, ...]:
    """Return the links from the GPU up to the processor with fewer lanes than both ends have.

    A link whose upper end is unknown, as in many virtual machines, is not judged: a slot with fewer
    lanes than the card is no fault.
    """
    way = [
        part
        for part in (reader.real_path(f"{_PCI}/{address}") or "").split("/")
        if _PCI_ADDRESS.match(part)
    ]
    found = []
    for above, below in zip(way, way[1:]):
        ends = [_lanes(reader, f"{_PCI}/{one}", "max") for one in (above, below)]
        width = _lanes(reader, f"{_PCI}/{below}", "current")
        known = [end for end in ends if end is not None]
        if width is not None and len(known) == 2 and width < min(known):
            found.append(Narrow(below, width, min(known)))
    return tuple(found)


def _total(reader: NodeReader, path: str) -> int | None:
    """Return the sum of a device's errors on PCI Express (AER) since boot."""
    counts = [match["count"] for match in _COUNTER.finditer(reader.read_text(path) or "")]
    return int(counts[-1]) if counts else None


def _ras(reader: NodeReader, address: str) -> dict[str, int | None]:
    """Return the memory errors that amdgpu has counted since it was loaded."""
    folder = f"{_PCI}/{address}/ras"
    found: dict[str, int | None] = {"corrected": None, "uncorrected": None}
    names = {"ce": "corrected", "ue": "uncorrected"}
    for file in reader.list_dir(folder):
        if file.endswith("_err_count"):
            for match in _COUNTER.finditer(reader.read_text(f"{folder}/{file}") or ""):
                name = names.get(match["name"] or "")
                if name:
                    found[name] = (found[name] or 0) + int(match["count"])
    return found


def _temperature(reader: NodeReader, address: str) -> dict[str, int | None]:
    """Return the temperature of the first sensor, as the drivers of AMD and Intel give it."""
    folder = f"{_PCI}/{address}/hwmon"
    for name in reader.list_dir(folder):
        now, limit = (
            _thousandths(reader.read_line(f"{folder}/{name}/temp1_{which}"))
            for which in ("input", "crit")
        )
        if now is not None:
            margin = None if limit is None else limit - now
            return {"gpu": now, "slowdown": limit, "margin": margin}
    return {"gpu": None, "slowdown": None, "margin": None}


def _thousandths(text: str | None) -> int | None:
    return int(text) // 1000 if text and re.fullmatch(r"-?\d{1,7}", text) else None


def read_smi(
    reader: NodeReader,
    stream: Stream,
    facts: list[dict[str, Any]],
    seconds: float,
    known: Hang | None = None,
) -> Smi:
    """Return the answer of nvidia-smi, which is called once at most.

    It is not called without a GPU for it, without the driver (it would load it), or while another
    one hangs.

    :param known: how the driver hung when another module asked it.
    """
    text = reader.read_text(_DRIVER)
    driver = None if text is None else loaded_version(text) or "of an unknown version"
    if not container_gpus({"gpus": facts}) or driver is None:
        return Smi(NOT_ASKED, driver=driver)
    hanging = known or hanging_smi(reader)
    if hanging is not None:
        return Smi(HUNG, driver=driver, hang=hanging)
    parts: list[bytes] = []
    ended = stream(_QUERY, parts.append, seconds, _MOST_SMI)
    return _answer(ended, b"".join(parts).decode("utf-8", "replace"), driver)


def _answer(ended: Ended, output: str, driver: str | None) -> Smi:
    if ended.rc == NOT_FOUND:
        return Smi(MISSING, driver=driver)
    # Some errors are written to the standard output.
    text = "\n".join(filter(None, (beside_document(output), beside_document(ended.stderr))))
    if ended.hang is not None:
        return Smi(HUNG, None, driver, (), text, "", ended.hang, ended.seconds)
    if ended.too_long:
        error = f"nvidia-smi -q -x printed more than {_MOST_SMI} bytes"
        return Smi(FAILED, None, driver, (), text, error, None, ended.seconds)
    try:
        version, gpus = read_document(output)
    except ValueError as error:
        return Smi(FAILED, ended.rc, driver, (), text, str(error), None, ended.seconds)
    return Smi(ANSWERED, ended.rc, version or driver, gpus, text, "", None, ended.seconds)


def _unseen_smi(smi: Smi) -> list[tuple[str, str]]:
    if smi.status == MISSING:
        return [("nvidia-smi", "the program is not on this node")]
    if smi.status == FAILED and smi.error:
        return [("nvidia-smi", smi.error)]
    return []


def read_logs(
    reader: NodeReader, stream: Stream, request: Request, clock: Callable[[], float]
) -> tuple[tuple[Event, ...], tuple[BootLog, ...], list[tuple[str, str]]]:
    """Return the events of the last boots, how much was read, and what could not be read."""
    deadline = clock() + request.timeout
    events: list[Event] = []
    logs: list[BootLog] = []
    unseen: list[tuple[str, str]] = []
    booted = _booted(reader)
    for back in range(request.boots):
        log, why = _read_boot(stream, -back, booted, lambda: deadline - clock())
        if log is None:
            if back == 0:
                unseen.append(("kernel log", why))
            break
        found, read = log
        events += found
        logs.append(read)
        if read.incomplete:
            unseen.append((f"kernel log of boot {-back}", read.incomplete))
        if read.source != "journalctl" or clock() >= deadline:
            break
    if logs and len(logs) < request.boots:
        unseen.append(
            (
                "kernel logs of earlier boots",
                f"{len(logs)} of {request.boots} boots were read: the node keeps no more (a "
                "persistent journal does), or the time limit was reached",
            )
        )
    return tuple(events), tuple(logs), unseen


def _commands(boot: int) -> tuple[tuple[str, ...], ...]:
    """Return the commands that print the log, the newest line first where that can be."""
    journal = ("journalctl", "-k", "-b", str(boot), "-r", "-q", "--no-pager", "-o", "short-unix")
    return (journal,) if boot else (journal, ("dmesg", "--color=never"), ("dmesg",))


def _read_boot(
    stream: Stream, boot: int, booted: float | None, left: Callable[[], float]
) -> tuple[tuple[tuple[Event, ...], BootLog] | None, str]:
    reasons = []
    for argv in _commands(boot):
        log = KernelLog(boot, booted)
        ended = stream(argv, log.feed, max(left(), _LEAST), _MOST_LOG)
        log.close()
        if ended.size:
            incomplete = _incomplete(ended, log)
            read = BootLog(boot, argv[0], ended.size, ended.seconds, incomplete)
            return (log.events(), read), ""
        said = ended.stderr.strip().splitlines()
        ran_out = f"no answer in {ended.seconds} s" if ended.hang else "it printed nothing"
        reasons.append(f"{argv[0]}: {_last_line(said) if said else ran_out}")
    return None, "; ".join(dict.fromkeys(reasons))


def _last_line(lines: list[str]) -> str:
    return printable(lines[-1][:200])


def _incomplete(ended: Ended, log: KernelLog) -> str:
    reasons = []
    if ended.hang is not None:
        reasons.append(f"only {ended.size} bytes were read in {ended.seconds} s")
    if ended.too_long:
        reasons.append(f"only {ended.size} bytes of it were read")
    if ended.rc:
        said = ended.stderr.strip().splitlines()
        how = f"status {ended.rc}" if ended.rc > 0 else f"signal {-ended.rc}"
        reasons.append(f"it ended with {how}" + (f": {_last_line(said)}" if said else ""))
    if log.overflowed:
        reasons.append(f"only {MOST_EVENTS} kinds of events were kept")
    return ", ".join(reasons)


def _booted(reader: NodeReader) -> float | None:
    """Return the Unix time of the boot."""
    match = re.search(r"^btime (\d{1,12})$", reader.read_text("/proc/stat") or "", re.M)
    return float(match[1]) if match else None
