# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Compare the tables of GPUs with public lists that somebody has downloaded.

``python -m tests.tools.compare_data --readme README.md --gpus 550.163.01=supported-gpus.json
--pci-ids pci.ids``; docs/data.md says where the files are. Nothing is read from the network.

For each file it prints how many device ids were compared and which are *wrong* (the tables say
otherwise than the list) or *missing* (the tables do not know them). A list names what its driver
serves, so that an id of the newest list given is also looked for in the older ones: where it came
later, the tables must not say that the older driver serves it. *Left out* are differences that are
known to be the list's, with the reason. Exit status: 0 where nothing is wrong or missing, 1 where
something is, 2 where a file or an option cannot be used.
"""

from __future__ import annotations

import argparse
import importlib
import json
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

# Makes this checkout the collection.
importlib.import_module("tests.conftest")
_UTILS = "ansible_collections.kubegpu.nodes.plugins.module_utils."
branches = importlib.import_module(f"{_UTILS}_driver.plan.gpu_support")
data = importlib.import_module(f"{_UTILS}_nvidia.driver_branches")
pci = importlib.import_module(f"{_UTILS}_hardware.pci")
pci_data = importlib.import_module(f"{_UTILS}_hardware.pci_data")

FIRST_TURING = 0x1E00
OLDEST_BRANCH, BEFORE = 367, 390
_MINING = "a mining card: open kernel modules serve it from 565 on, proprietary ones before"
# Differences that are the lists' own.
LEFT_OUT = {
    "1eb8": "T4: the lists have it from 575 on, drivers serve it since 410",
    "1e09": _MINING,
    "1f0b": _MINING,
    "2189": _MINING,
    "2901": "B200: NVIDIA's GPU operator asks for 570.133.20, the lists have it before",
    "2c3a": "RTX PRO 4500 Server: NVIDIA's documents ask for 595.58.03, 580.142 lists it",
}

_VERSION = re.compile(r"^version (\d{3}\.\d+(?:\.\d+)?)\.?$", re.MULTILINE)
_ROW = re.compile(r"^\|[^|]+\|\s*([0-9A-F]{4})(?: [0-9A-F]{4}){0,2}\s*\|$", re.MULTILINE)
_DEVICE = re.compile(r"\t([0-9a-f]{4})  (.+)")
_GIVEN = re.compile(r"(\d{3}\.\d+(?:\.\d+)?)=(.+)")
_CHIP = re.compile(r"(G[KMPVAHBR]|TU|AD)\d")
_CHIPS = {
    **{"GK": "kepler", "GM": "maxwell", "GP": "pascal", "GV": "volta", "TU": "turing"},
    **{"GA": "ampere", "AD": "ada", "GH": "hopper", "GB": "blackwell", "GR": "rubin"},
}
# Functions beside the GPU, of the same chip.
_NO_GPU = re.compile(r"audio|usb|ucsi|switch|bridge|host|root port|pci express", re.IGNORECASE)
_HINTS = {"proprietary_required", "proprietary_supported"}


class InputError(Exception):
    """A file or an option cannot be used."""


@dataclass(frozen=True)
class Chip:
    """What a list says of a device id: the last branch, and the kernel modules; None: unsaid."""

    last: int | None = None
    open: bool | None = True
    proprietary: bool | None = None


@dataclass
class Report:
    """The differences from one file, each with its id and a sentence."""

    source: str
    compared: int
    wrong: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)

    def lines(self) -> list[str]:
        """Return the report as text."""
        head = (
            f"{self.source}: {self.compared} ids compared, {len(self.wrong)} wrong, "
            f"{len(self.missing)} missing, {len(self.left_out)} left out"
        )
        kinds = {"wrong": self.wrong, "missing": self.missing, "left out": self.left_out}
        return [head, *(f"  {kind}: {text}" for kind in kinds for text in kinds[kind])]


def read_readme(text: str, name: str) -> tuple[str, dict[str, Chip]]:
    """Return version and GPUs of the README of NVIDIA's open kernel modules.

    :raises InputError: there is no version or no table of GPUs in it.
    """
    version = _VERSION.search(text)
    ids = [device.lower() for device in _ROW.findall(text)]
    if version is None or not ids:
        raise InputError(
            f"{name} is not a README of NVIDIA's open kernel modules: it has no "
            f"{'table of GPUs' if version else 'line with the version'}."
        )
    return version[1], dict.fromkeys(ids, Chip())


def read_gpus(text: str, name: str) -> dict[str, Chip]:
    """Return the GPUs of NVIDIA's supported-gpus.json.

    :raises InputError: it is not that file.
    """
    try:
        chips = [
            (chip["devid"].removeprefix("0x").lower(), chip, set(chip["features"]))
            for chip in json.loads(text)["chips"]
        ]
        # Old files do not say for which GPUs the proprietary modules are.
        hints = any(features & _HINTS for _device, _chip, features in chips)
        found: dict[str, Chip] = {}
        for device, chip, features in chips:
            if "legacybranch" in chip:
                last = int(chip["legacybranch"].partition(".")[0])
                found[device] = Chip(last, None, None)
            else:
                proprietary = bool(features & _HINTS) if hints else None
                found[device] = Chip(None, "kernelopen" in features, proprietary)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(f"{name} is not a supported-gpus.json of NVIDIA's: {error!r}.") from error
    return found


def read_pci_ids(text: str, name: str) -> dict[str, dict[str, str]]:
    """Return the devices of NVIDIA, AMD and Intel by vendor, from pci.ids.

    :raises InputError: it has none of them.
    """
    vendors: dict[str, dict[str, str]] = {vendor: {} for vendor in pci_data.VENDORS}
    current: dict[str, str] | None = None
    for line in text.splitlines():
        if re.match(r"[0-9a-f]{4}  ", line):
            current = vendors.get(line[:4])
        elif current is not None and (match := _DEVICE.match(line)):
            current[match[1]] = match[2]
    if not any(vendors.values()):
        raise InputError(f"{name} is not a pci.ids: it has no devices of {', '.join(vendors)}.")
    return vendors


def compare_list(
    source: str, version: str, chips: Mapping[str, Chip], later: Iterable[str]
) -> Report:
    """Compare what one driver serves.

    :param later: ids that the newest list has, and no list of this branch up to this version.
    """
    report = Report(source, len(chips))
    branch = version.partition(".")[0]
    for device, chip in sorted(chips.items()):
        number = int(device, 16)
        gpu = _gpu(device)
        if pci.generation("nvidia", device) == "unknown" and number >= pci_data.FIRST_MAXWELL_ID:
            report.missing.append(f"{device}: its generation is not known")
            continue
        problem = None
        if chip.last is not None:
            problem = _last(gpu, chip.last)
        else:
            problem = gpu.problem(branch, version) or _modules(gpu, branch, chip)
        if problem and device in LEFT_OUT:
            report.left_out.append(f"{device}: {LEFT_OUT[device]}")
        elif problem:
            report.wrong.append(f"{device}: {problem}")
    for device in sorted(set(later) - set(LEFT_OUT)):
        if _gpu(device).problem(branch, version) is None:
            report.wrong.append(f"{device}: this list does not have it, the tables serve it")
    return report


def _last(gpu: Any, last: int) -> str | None:
    said = None if gpu.last is None else int(gpu.last)
    # The tables do not tell the branches before it apart: 390 stands for all.
    older = last < OLDEST_BRANCH and said is not None and said <= BEFORE
    return None if said == last or older else f"last branch {said}, not {last}"


def _modules(gpu: Any, branch: str, chip: Chip) -> str | None:
    have = gpu.kernel_modules(branch, data.driver_data())
    for kind, listed in (("open", chip.open), ("proprietary", chip.proprietary)):
        if listed is not None and listed != (kind in have):
            return f"{kind} kernel modules: {'listed' if listed else 'not listed'}"
    return None


def _gpu(device: str) -> Any:
    facts = pci.find_gpus([pci.PciFunction("0000:01:00.0", "10de", device, "0302")])
    return branches.find_gpus({"gpus": facts}, data.driver_data())[0]


def compare_pci_ids(source: str, vendors: Mapping[str, Mapping[str, str]]) -> Report:
    """Compare the generations of NVIDIA's GPUs, and which ids of AMD and Intel there are."""
    report = Report(source, 0)
    for device, name in sorted(vendors["10de"].items()):
        chip = _CHIP.match(name)
        if chip is None or _NO_GPU.search(name):
            continue
        report.compared += 1
        expected, said = _CHIPS[chip[1]], pci.generation("nvidia", device)
        if said == "unknown":
            report.missing.append(f"{device}: {name}")
        elif said != expected:
            report.wrong.append(f"{device}: {said}, not {expected} ({name})")
    tables = {"1002": pci_data.AMD_PRODUCTS, "8086": pci_data.INTEL_PRODUCTS}
    for vendor, table in tables.items():
        report.compared += len(table)
        report.left_out += [
            f"{device}: {name}, not in pci.ids"
            for device, (name, _generation) in sorted(table.items())
            if device not in vendors[vendor]
        ]
    return report


def later_ids(lists: Sequence[tuple[str, Mapping[str, Chip]]], number: int) -> set[str]:
    """Return the ids, Turing or newer, that came after a list: see :func:`compare_list`."""
    keys = [_key(version) for version, _chips in lists]
    newest = lists[keys.index(max(keys))][1]
    had = {
        device
        for (_version, chips), key in zip(lists, keys)
        if key[0] == keys[number][0] and key <= keys[number]
        for device in chips
    }
    return {device for device in newest if int(device, 16) >= FIRST_TURING} - had


def _key(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


def _text(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}.") from error


def reports(options: argparse.Namespace) -> list[Report]:
    """Return the reports of all files.

    :raises InputError: a file or an option cannot be used.
    """
    lists: list[tuple[str, Mapping[str, Chip]]] = []
    names: list[str] = []
    for path in options.readme:
        version, chips = read_readme(_text(path), path)
        lists.append((version, chips))
        names.append(f"README {version}")
    for given in options.gpus:
        match = _GIVEN.fullmatch(given)
        if match is None:
            raise InputError(
                f"--gpus {given}: write the driver's version before it, 580.126.20=FILE."
            )
        lists.append((match[1], read_gpus(_text(match[2]), match[2])))
        names.append(f"supported-gpus.json {match[1]}")
    found = [
        compare_list(names[number], version, chips, later_ids(lists, number))
        for number, (version, chips) in enumerate(lists)
    ]
    if options.pci_ids:
        found.append(
            compare_pci_ids("pci.ids", read_pci_ids(_text(options.pci_ids), options.pci_ids))
        )
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the reports; return the exit status."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument(
        "--readme",
        nargs="+",
        default=[],
        metavar="FILE",
        help="README.md of NVIDIA's open kernel modules",
    )
    parser.add_argument(
        "--gpus",
        nargs="+",
        default=[],
        metavar="VERSION=FILE",
        help="supported-gpus.json, after its driver's version",
    )
    parser.add_argument("--pci-ids", metavar="FILE", help="pci.ids")  # fmt: skip
    options = parser.parse_args(arguments)
    if not (options.readme or options.gpus or options.pci_ids):
        parser.error("name a file: --readme, --gpus or --pci-ids")
    try:
        found = reports(options)
    except InputError as error:
        print(error, file=sys.stderr)
        return 2
    for report in found:
        print("\n".join(report.lines()))
    return int(any(report.wrong or report.missing for report in found))


if __name__ == "__main__":
    sys.exit(main())
