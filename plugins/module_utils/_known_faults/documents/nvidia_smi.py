# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Read the health of GPUs from what nvidia-smi prints, above all with ``-q -x``. Pure.

The output has the command line of each process that uses a GPU. They are cut out before anything
else is done, and no error quotes the document.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..._core.printable import printable
from ..._core.redact import redact
from ..._hardware.nvml import bus_address, parse_xml, smi_licence
from ..rules.nvidia_smi import (
    CLOCK_GROUPS,
    COUNT,
    DEGREES,
    FAULT_TEXTS,
    FIELDS,
    LICENCE,
    NO_VALUE,
    SLOWDOWNS,
    YES_NO,
    YES_OR_NO,
    Field,
)
from .nvidia_smi_text import from_text

_PROCESSES = re.compile(r"<(?P<end>/)?(?P<name>(?:accounted_)?processes)>")
_DOCUMENT = re.compile(r"<\?xml.*</nvidia_smi_log>|<\?xml.*", re.DOTALL)
_NUMBER = re.compile(r"-?\d+")
_MOST_GPUS = 64
_MOST_TEXT = 256
_MOST_BROKEN = 5
_MOST_BESIDE = 2000


@dataclass(frozen=True)
class SmiGpu:
    """A GPU as nvidia-smi shows it.

    :param values: by group and name, None for what it did not tell.
    :param broken: names of values that it could not read, by the text in their place.
    """

    index: int
    address: str | None
    uuid: str | None
    serial: str | None
    product: str | None
    values: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    broken: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def without_processes(output: str) -> str:
    """Return the output of nvidia-smi without the processes that it lists.

    A list without its end goes to the end of the output: a document that was cut off. The output is
    searched once, since names of processes may look like lists of them.
    """
    kept, begin, inside = [], 0, ""
    for tag in _PROCESSES.finditer(output):
        if inside and tag["end"] and tag["name"] == inside:
            begin, inside = tag.end(), ""
        elif not inside and not tag["end"]:
            kept.append(output[begin : tag.start()])
            inside = tag["name"]
    return "".join(kept) + ("" if inside else output[begin:])


def beside_document(output: str) -> str:
    """Return what nvidia-smi printed before and after its document: errors and warnings."""
    text = _DOCUMENT.sub("\n", without_processes(output))
    lines = (line.strip() for line in text.splitlines())
    return redact(printable("\n".join(line for line in lines if line)[:_MOST_BESIDE]))


def read_document(output: str) -> tuple[str | None, tuple[SmiGpu, ...]]:
    """Return the driver's version and the GPUs.

    :raises ValueError: the output has no such document; the text quotes nothing of it.
    """
    text = without_processes(output)
    start = text.find("<?xml")
    end = text.rfind("</nvidia_smi_log>")
    if start < 0 or end < 0:
        raise ValueError("nvidia-smi -q -x printed no complete document")
    log = parse_xml(text[start : end + len("</nvidia_smi_log>")])
    if log.tag != "nvidia_smi_log":
        raise ValueError("nvidia-smi -q -x printed another document than expected")
    gpus = log.findall("gpu")[:_MOST_GPUS]
    version = _text(log, "driver_version")
    return version, tuple(_gpu(number, gpu) for number, gpu in enumerate(gpus))


def read_any(text: str) -> tuple[SmiGpu, ...]:
    """Return the GPUs of each form of nvidia-smi's output in a text; a document is the best one."""
    if "<nvidia_smi_log" in text:
        try:
            return read_document(text)[1]
        except ValueError:
            return ()
    return tuple(_gpu(number, gpu) for number, gpu in enumerate(from_text(text)[:_MOST_GPUS]))


def _gpu(index: int, gpu: Any) -> SmiGpu:
    values: dict[str, dict[str, Any]] = {}
    for row in FIELDS:
        values.setdefault(row.group, {})[row.name] = _value(gpu, row)
    values["temperature"]["margin"] = _margin(values["temperature"])
    values["clocks"] = {"slowdowns": _slowdowns(gpu)}
    values["licence"] = smi_licence(gpu, _text) or dict.fromkeys(LICENCE)
    return SmiGpu(
        index,
        bus_address(_short(gpu.get("id") or "") or _text(gpu, "pci/pci_bus_id")),
        _text(gpu, "uuid"),
        _text(gpu, "serial"),
        _text(gpu, "product_name"),
        values,
        _broken(gpu),
    )


def _value(gpu: Any, field: Field) -> int | bool | str | None:
    texts = [_text(gpu, path) for path in field.paths]
    if field.kind in (COUNT, DEGREES):
        numbers = [number for number in map(_number, texts) if number is not None]
        return sum(numbers) if numbers else None
    text = texts[0]
    if field.kind == YES_NO:
        return YES_OR_NO.get((text or "").lower())
    return text.lower() if text is not None else None


def _margin(temperature: Mapping[str, int | None]) -> int | None:
    """Return the degrees below the temperature at which the GPU slows down."""
    distance, least = temperature["distance"], temperature["slowdown_distance"]
    if distance is not None:
        return distance - (least or 0)
    now, slowdown = temperature["gpu"], temperature["slowdown"]
    return None if now is None or slowdown is None else slowdown - now


def _slowdowns(gpu: Any) -> list[str] | None:
    """Return the active reasons for lower clocks that are faults; None if they are unknown."""
    for group in CLOCK_GROUPS:
        reasons = gpu.find(group)
        if reasons is not None and len(reasons):
            prefix = f"{group[:-1]}_"
            active = {
                reason.tag.removeprefix(prefix)
                for reason in reasons.iter()
                if (reason.text or "").strip().lower() == "active"
            }
            return [name for name in SLOWDOWNS if name in active]
    return None


def _broken(gpu: Any) -> dict[str, tuple[str, ...]]:
    """Return the names of values in whose place a text shows a fault, by this text."""
    found: dict[str, list[str]] = {}
    for element in gpu.iter():
        text = (element.text or "").strip()
        if len(text) > _MOST_TEXT:
            continue
        fault = next((one for one in FAULT_TEXTS if one in text), None)
        if fault and len(found.setdefault(fault, [])) < _MOST_BROKEN:
            found[fault].append(_short(element.tag))
    return {fault: tuple(names) for fault, names in found.items()}


def _text(node: Any, path: str) -> str | None:
    text = _short((node.findtext(path) or "").strip())
    # A text that shows a fault is no value; it is reported by itself.
    return None if text in NO_VALUE or any(fault in text for fault in FAULT_TEXTS) else text


def _short(text: str) -> str:
    return printable(text[:_MOST_TEXT])


def _number(text: str | None) -> int | None:
    match = _NUMBER.match(text or "")
    # Counters have 64 bits. Python refuses to read numbers of thousands of digits.
    return int(match.group()[:20]) if match else None
