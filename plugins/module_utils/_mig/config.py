# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""MIG configurations: the schema of NVIDIA's mig-parted, and the built-in ones. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from .._core.errors import InputError
from .types import PROFILE, Gpu, Profile, parse_profile

DISABLED, ENABLED, BALANCED, ALL = "all-disabled", "all-enabled", "all-balanced", "all-"
# The variable of the role.
_WHERE = "nvidia_mig_configs"
_KEYS = {"device-filter", "devices", "mig-enabled", "mig-devices"}
# Device and vendor in one number, from mig-parted 0.15 on with those of the subsystem behind it.
_FILTER = re.compile(
    r"0x(?P<device>[0-9a-f]{4})10de(?::0x(?P<board>[0-9a-f]{8}))?\Z", re.I | re.ASCII
)
_SCHEMA = (
    "Write a configuration as mig-parted does: a list of entries with devices, mig-enabled and "
    "mig-devices, such as [{devices: all, mig-enabled: true, mig-devices: {1g.10gb: 7}}]."
)
# mig-parted's default file, and so labels of nodes, which cannot have a +: 1g.10gb.me, 1g.24gb.gfx.
_IN_LABEL = re.compile(r"(\d+g\.\d+gb)\.(me|gfx|me\.all)\Z", re.ASCII)
# Of all-balanced: instances of 1, 2 and 3 slices on cards with 7 slices, and on those with 4.
_BALANCED = {7: {1: 2, 2: 1, 3: 1}, 4: {1: 2, 2: 1}}


@dataclass(frozen=True)
class Entry:
    """What is requested for some GPUs.

    ``devices`` are their numbers; None is each GPU with MIG. ``device_ids`` are device IDs, each
    with the ID of the board or without. ``profile`` of a built-in configuration is the one that
    fills the card, or ``all-balanced``.
    """

    enabled: bool
    counts: Mapping[str, int] = field(default_factory=dict)
    devices: tuple[int, ...] | None = None
    device_ids: tuple[tuple[str, str], ...] = ()
    profile: str = ""

    def names(self, gpu: Gpu) -> bool:
        """Return whether the entry names this GPU by its number."""
        return self.devices is not None and gpu.index in self.devices and self._filtered(gpu)

    def matches(self, gpu: Gpu) -> bool:
        """Return whether the entry is for this GPU."""
        return (self.devices is None or gpu.index in self.devices) and self._filtered(gpu)

    def _filtered(self, gpu: Gpu) -> bool:
        return not self.device_ids or any(
            device == gpu.device_id and board in ("", gpu.board)
            for device, board in self.device_ids
        )


def read_config(config: str, configs: Mapping[str, Any]) -> tuple[Entry, ...]:
    """Return the entries of a configuration, in their order; the last one for a GPU counts.

    :param config: a name in ``configs``, or of a built-in configuration.
    :param configs: configurations by name, in mig-parted's schema. A whole file of mig-parted is
        accepted as well.
    :raises InputError: the name is unknown, or the configuration is invalid.
    """
    known = _configs(configs)
    if config in known:
        return _entries(config, known[config])
    if config in (DISABLED, ENABLED):
        return (Entry(config == ENABLED),)
    if config == BALANCED:
        return (Entry(True, profile=BALANCED),)
    profile = config[len(ALL) :] if config.startswith(ALL) else ""
    profile = _IN_LABEL.sub(r"\1+\2", profile)
    if PROFILE.match(profile):
        return (Entry(True, profile=_whole("nvidia_mig_config", profile)),)
    raise InputError(
        f"nvidia_mig_config: MIG configuration {config!r} is not known.",
        next_step="Use all-disabled, all-enabled, all-balanced, all-<profile> (such as "
        "all-1g.10gb)" + (f", or one of {', '.join(sorted(known))}." if known else "."),
    )


def profile_counts(entry: Entry, profiles: Sequence[Profile]) -> Mapping[str, int]:
    """Return the requested instances by profile; for a built-in configuration, by this card."""
    if entry.profile == BALANCED:
        return _balanced(profiles)
    if entry.profile:
        count = next((one.count for one in profiles if one.name == entry.profile), 1)
        return {entry.profile: count}
    return entry.counts


def _balanced(profiles: Sequence[Profile]) -> dict[str, int]:
    plain = sorted(
        (one for one in profiles if not one.attributes), key=lambda one: (one.slices, one.size)
    )
    # Of the profiles with the same number of slices the one with the least memory.
    least: dict[int, str] = {}
    for one in plain:
        least.setdefault(one.slices, one.name)
    counts = _BALANCED.get(max(least, default=0), {})
    return {least[slices]: count for slices, count in counts.items() if slices in least}


def _configs(configs: Any) -> Mapping[str, Any]:
    if not isinstance(configs, Mapping):
        raise InputError(f"{_WHERE} is {configs!r}, which is not a mapping.", next_step=_SCHEMA)
    if "mig-configs" in configs:
        version = configs.get("version")
        if version != "v1":
            raise InputError(
                f"{_WHERE} has the version {version!r}.", next_step="mig-parted's is v1."
            )
        _unknown(_WHERE, configs, {"version", "mig-configs"})
        return _configs(configs["mig-configs"])
    for name in configs:
        if not isinstance(name, str):
            raise InputError(f"{_WHERE}: put the name {name!r} in quotes.")
    return configs


def _entries(name: str, data: Any) -> tuple[Entry, ...]:
    if not data or not isinstance(data, Sequence) or isinstance(data, str):
        raise InputError(f"{_WHERE}[{name}] is not a list with entries.", next_step=_SCHEMA)
    return tuple(_entry(f"{_WHERE}[{name}][{number}]", one) for number, one in enumerate(data))


def _entry(where: str, data: Any) -> Entry:
    if not isinstance(data, Mapping):
        raise InputError(f"{where} is {data!r}, which is not a mapping.", next_step=_SCHEMA)
    _unknown(where, data, _KEYS)
    enabled = data.get("mig-enabled")
    if not isinstance(enabled, bool):
        raise InputError(f"{where}.mig-enabled is {enabled!r}.", next_step="Write true or false.")
    migs = data.get("mig-devices")
    if not enabled and migs:
        raise InputError(
            f"{where} has mig-devices, and mig-enabled is false.",
            next_step="Set mig-enabled: true, or leave mig-devices out.",
        )
    if enabled and migs is None:
        raise InputError(
            f"{where} has no mig-devices.", next_step="Write {} for MIG without instances."
        )
    return Entry(
        enabled,
        _counts(f"{where}.mig-devices", migs or {}),
        _devices(f"{where}.devices", data.get("devices")),
        _filters(f"{where}.device-filter", data.get("device-filter")),
    )


def _unknown(where: str, data: Mapping[str, Any], known: set[str]) -> None:
    unknown = sorted(str(key) for key in data if key not in known)
    if unknown:
        raise InputError(
            f"{where}: {', '.join(unknown)} is not known.",
            next_step=f"Its keys are {', '.join(sorted(known))}.",
        )


def _devices(where: str, value: Any) -> tuple[int, ...] | None:
    if value == "all":
        return None
    numbers = value if isinstance(value, Sequence) and not isinstance(value, str) else ()
    if not numbers or not all(_is_count(one) for one in numbers):
        raise InputError(
            f"{where} is {value!r}.",
            next_step="Write all, or a list of the numbers that nvidia-smi shows, such as [0, 1].",
        )
    return tuple(numbers)


def _filters(where: str, value: Any) -> tuple[tuple[str, str], ...]:
    if not value:
        return ()
    texts = [value] if isinstance(value, str) else value
    found = []
    for text in texts if isinstance(texts, Sequence) else [texts]:
        match = _FILTER.match(text) if isinstance(text, str) else None
        if match is None:
            raise InputError(
                f"{where} has {text!r}.",
                next_step="Write PCI device and vendor as text in quotes, such as '0x233010DE'.",
            )
        found.append((match["device"].lower(), (match["board"] or "").lower()))
    return tuple(found)


def _counts(where: str, data: Any) -> dict[str, int]:
    if not isinstance(data, Mapping):
        raise InputError(f"{where} is {data!r}, which is not a mapping.", next_step=_SCHEMA)
    found: dict[str, int] = {}
    for name, count in data.items():
        if not isinstance(name, str):
            raise InputError(f"{where} has the profile {name!r}.", next_step="Put it in quotes.")
        whole = _whole(where, name)
        if not _is_count(count):
            raise InputError(
                f"{where}: the number of {name} is {count!r}.", next_step="Write a whole number."
            )
        if count:
            found[whole] = found.get(whole, 0) + count
    return found


def _is_count(value: Any) -> bool:
    # Ansible's own integers are of a subclass.
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _whole(where: str, name: str) -> str:
    """Return the name of a profile, without compute instances of the same size (1c.1g.5gb).

    :raises InputError: it is no profile, or a part of a GPU instance.
    """
    match = parse_profile(name)
    if not match["compute"]:
        return name
    whole = name.partition(".")[2]
    if match["compute"] != match["slices"]:
        raise InputError(
            f"{where}: {name} is a part of a GPU instance, which this collection does not make.",
            next_step=f"Ask for whole GPU instances, such as {whole}, or for smaller ones.",
        )
    return whole
