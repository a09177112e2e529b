# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Read and check the named configs of NVIDIA's device plugin.

A config has NVIDIA's schema (k8s-device-plugin, ``api/config/v1``); its fields are in
``settings.py``. The plugin silently ignores most unknown fields and some known ones; here they are
refused.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from .._core.errors import InputError
from .settings import (
    NEWEST,
    OLDEST,
    SHARING,
    STRINGS,
    TOP,
    Reading,
    Release,
    setting,
    settings_at,
)

GPU = "nvidia.com/gpu"
PREFIX = "nvidia.com/"
SHARED = ".shared"
DEFAULT_CONFIG = "default"
#: Maximum number of clients of an MPS server (cmd/mps-control-daemon/mps/device.go of the plugin).
MPS_CLIENTS = 48
# Valid as a ConfigMap key, a label value and a file name.
_NAME = re.compile(r"[A-Za-z0-9](?:[-_.A-Za-z0-9]{0,61}[A-Za-z0-9])?\Z")
_RESOURCE_LENGTH = 63

# The sections of ``flags``.
_PARTS = ("plugin", "gfd")


@dataclass(frozen=True)
class Shared:
    """A shared resource: its number of replicas and the name under which it is advertised."""

    name: str
    replicas: int
    advertised: str


@dataclass(frozen=True)
class Config:
    """One config, checked as far as possible without a node."""

    name: str
    mig_strategy: str
    sharing: str
    shared: tuple[Shared, ...]
    gpus: tuple[tuple[str, str], ...]
    migs: tuple[tuple[str, str], ...]
    data: Mapping[str, Any]
    #: The release of the plugin that reads it; None if unknown.
    release: Release | None = NEWEST


@dataclass(frozen=True)
class Flags:
    """Flags that apply unless a config overrides them."""

    mig_strategy: str = "none"
    fail_on_init_error: bool = True
    pass_device_specs: bool = False
    device_list_strategy: tuple[str, ...] = ("envvar",)
    device_id_strategy: str = "uuid"
    driver_root: str = "/"
    container_driver_root: str = "/driver-root"
    nvidia_ctk_path: str = "/usr/bin/nvidia-ctk"
    gds_enabled: bool = False
    mofed_enabled: bool = False


def as_file(strategies: Sequence[str]) -> str | list[str]:
    """Return device list strategies in the schema of a config."""
    return strategies[0] if len(strategies) == 1 else list(strategies)


def flags_data(flags: Flags) -> dict[str, Any]:
    """Return the flags in the schema of a config, without the paths that apply to all nodes."""
    return {
        "migStrategy": flags.mig_strategy,
        "failOnInitError": flags.fail_on_init_error,
        "gdsEnabled": flags.gds_enabled,
        "mofedEnabled": flags.mofed_enabled,
        "plugin": {
            "passDeviceSpecs": flags.pass_device_specs,
            "deviceListStrategy": as_file(flags.device_list_strategy),
            "deviceIDStrategy": flags.device_id_strategy,
        },
    }


def read_configs(
    configs: Mapping[str, Any],
    flags: Flags,
    *,
    default: str = "",
    renaming: bool = False,
    reading: Reading | None = None,
    everywhere: Mapping[str, Any] | None = None,
) -> dict[str, Config]:
    """Return the configs by name, including the default one; empty if none is requested.

    :param default: the config of nodes that select none. An empty name means ``default``, which is
        made from the flags if there is no config of this name.
    :param renaming: whether this build of the plugin supports ``resources``; NVIDIA's does not.
    :param reading: checks against the release and collects notes.
    :param everywhere: options of the role, other than flags, that apply to all nodes, by name.
    :raises InputError: a config is invalid; the message names the option.
    """
    if not configs:
        if default:
            raise _wrong("nvidia_device_plugin_default_config", no_config(default, ()))
        return {}
    requested = {str(name): data for name, data in configs.items()}
    if not default and DEFAULT_CONFIG not in requested:
        requested[DEFAULT_CONFIG] = {}
    if default and default not in requested:
        raise _wrong("nvidia_device_plugin_default_config", no_config(default, tuple(requested)))
    reader = _Reader(reading or Reading(), flags, everywhere or {}, renaming)
    return {name: reader.config(name, requested[name]) for name in sorted(requested)}


def plain_config(flags: Flags, release: Release | None = NEWEST) -> Config:
    """Return the config made from the flags, which applies without configs."""
    return _Reader(Reading(release), flags, {}, False).config(DEFAULT_CONFIG, {})


def no_config(name: str, known: Sequence[str]) -> str:
    """Return the error of a config that nobody has defined."""
    there = ", ".join(sorted(known)) or "none"
    return f"unknown config {name!r} in nvidia_device_plugin_configs; there are: {there}"


def _wrong(where: str, what: str, next_step: str = "") -> InputError:
    return InputError(f"{where}: {what}", next_step=next_step)


def choice(where: str, value: str, known: Sequence[str]) -> str:
    """Return the value.

    :raises InputError: it is not one of ``known``.
    """
    if value not in known:
        raise _wrong(where, f"is {value!r}, and has to be one of {', '.join(known)}")
    return value


def read_strategies(where: str, value: Any, reading: Reading | None = None) -> tuple[str, ...]:
    """Return device list strategies, from a list or a comma-separated string.

    :raises InputError: one is unknown, or there is none.
    """
    values = setting("plugin.deviceListStrategy").values
    words = value.split(",") if isinstance(value, str) else list(value or ())
    found = tuple(dict.fromkeys(str(word).strip() for word in words if str(word).strip()))
    if not found:
        raise _wrong(where, "is empty", f"Give one of {', '.join(values)}.")
    for word in found:
        (reading or Reading()).choice(where, word, values)
    return found


@dataclass(frozen=True)
class _Reader:
    """Reads configs for one release of the plugin."""

    reading: Reading
    flags: Flags
    everywhere: Mapping[str, Any]
    renaming: bool

    def config(self, name: str, data: Any) -> Config:
        where = f"nvidia_device_plugin_configs[{name}]"
        if not _NAME.match(name):
            raise _wrong(
                where,
                "the name becomes a node label's value and a file name, and is not a valid one",
                "Use up to 63 letters, digits, '-', '_' and '.', with a letter or digit at both "
                "ends.",
            )
        if data is None:
            data = {}
        whole: dict[str, Any] = {"version": "v1", **self.extra(where, data, TOP)}
        if data.get("version", "v1") != "v1":
            raise _wrong(where, f"version is {data['version']!r}; the plugin knows v1 only")
        whole["flags"] = self.merged_flags(f"{where}.flags", data.get("flags") or {})
        strategy = whole["flags"]["migStrategy"]
        gpus, migs = self.patterns(f"{where}.resources", data.get("resources"))
        if not migs and strategy == "single":
            migs = (("*", GPU),)
        sharing, shared, shared_data = self.sharing(
            f"{where}.sharing", data.get("sharing"), strategy
        )
        if data.get("resources"):
            whole["resources"] = plain(data["resources"])
        if shared_data:
            whole["sharing"] = shared_data
        if data.get("imex"):
            whole["imex"] = self.imex(f"{where}.imex", data["imex"])
        return Config(
            name,
            strategy,
            sharing,
            shared,
            gpus or (("*", GPU),),
            migs,
            whole,
            self.reading.release,
        )

    def extra(self, where: str, data: Any, known: Mapping[str, Release]) -> dict[str, Any]:
        """Return the fields that only a newer release may have, unchanged.

        :raises InputError: a field is unknown, or ``data`` is not a mapping.
        """
        if not isinstance(data, Mapping):
            raise _wrong(where, f"is {data!r}, and has to be a mapping with {', '.join(known)}")
        return {name: plain(data[name]) for name in self.reading.unknown(where, data, known)}

    def merged_flags(self, where: str, data: Any) -> dict[str, Any]:
        """Return the flags of a config, completed from the role's flags."""
        merged = flags_data(self.flags)
        parts: Mapping[str, Release] = dict.fromkeys(_PARTS, OLDEST)
        merged.update(self.part(where, "", data, parts))
        for name in _PARTS:
            given = data.get(name) or {}
            found = {**merged.get(name, {}), **self.part(f"{where}.{name}", name, given, {})}
            if found:
                merged[name] = found
        return merged

    def part(
        self, where: str, prefix: str, data: Any, parts: Mapping[str, Release]
    ) -> dict[str, Any]:
        rows = settings_at(prefix)
        known = {**{name: row.since for name, row in rows.items()}, **parts}
        found = self.extra(where, data, known)
        for name, given in data.items():
            row = rows.get(str(name))
            if row is None:
                continue
            place, value = f"{where}.{name}", plain(given)
            self.reading.value(place, row, value)
            if row.everywhere:
                self.same_everywhere(place, value, row.option)
            elif row.kind == STRINGS:
                found[str(name)] = as_file(read_strategies(place, value, self.reading))
            else:
                found[str(name)] = value
        return found

    def same_everywhere(self, where: str, value: Any, option: str) -> None:
        """Check that a config does not differ from the role's option, on which pods depend."""
        held = {**{one.name: getattr(self.flags, one.name) for one in fields(self.flags)},
                **self.everywhere}  # fmt: skip
        if value != held.get(option, value):
            raise _wrong(
                where,
                f"is {value!r}, and is the same on all nodes, as the pod's volumes and rights "
                "follow it",
                f"Set nvidia_device_plugin_{option} instead.",
            )

    def patterns(
        self, where: str, data: Any
    ) -> tuple[tuple[tuple[str, str], ...], tuple[tuple[str, str], ...]]:
        """Return the names of GPUs and of MIG devices, as pairs of pattern and resource name."""
        if not data:
            return (), ()
        if not self.renaming:
            raise _wrong(
                where,
                "NVIDIA's plugin reads this and ignores it (its log: Customizing the 'resources' "
                "field is not yet supported in the config. Ignoring...)",
                "Rename with sharing.<method>.renameByDefault, which gives nvidia.com/gpu.shared; "
                "or, with a build of the plugin that follows it, set "
                "nvidia_device_plugin_resource_renaming: true.",
            )
        self.extra(where, data, {"gpus": OLDEST, "mig": OLDEST})
        return (
            self.named(f"{where}.gpus", data.get("gpus")),
            self.named(f"{where}.mig", data.get("mig")),
        )

    def named(self, where: str, rows: Any) -> tuple[tuple[str, str], ...]:
        if not isinstance(rows or [], (list, tuple)):
            raise _wrong(where, f"is {rows!r}, and has to be a list of pattern and name")
        found = []
        for row in rows or ():
            self.extra(where, row, {"pattern": OLDEST, "name": OLDEST})
            if not row.get("pattern") or not row.get("name"):
                raise _wrong(where, "each row needs a pattern and a name")
            found.append((str(row["pattern"]), _resource_name(where, row["name"])))
        return tuple(found)

    def sharing(
        self, where: str, data: Any, mig_strategy: str
    ) -> tuple[str, tuple[Shared, ...], dict[str, Any]]:
        """Return the sharing method, the shared resources, and the section for the config file."""
        if not data:
            return "none", (), {}
        extra = self.extra(where, data, SHARING)
        methods = [method for method in SHARING if data.get(method)]
        if len(methods) > 1:
            raise _wrong(
                where,
                "a node shares its GPUs by time-slicing or by MPS, not by both",
                "Make two configs and choose one for each host with nvidia_device_plugin_config.",
            )
        if not methods:
            return "none", (), extra
        method = methods[0]
        if method == "mps" and mig_strategy != "none":
            raise _wrong(
                f"{where}.mps",
                f"MPS is not possible with MIG, and migStrategy is {mig_strategy}",
                "Use timeSlicing for MIG devices, or set migStrategy: none in this config.",
            )
        shared, whole = self.method(f"{where}.{method}", method, data[method], mig_strategy)
        return ("mps" if method == "mps" else "time-slicing"), shared, {**extra, method: whole}

    def method(
        self, where: str, method: str, data: Any, mig_strategy: str
    ) -> tuple[tuple[Shared, ...], dict[str, Any]]:
        names = ("renameByDefault", "failRequestsGreaterThanOne", "resources")
        extra = self.extra(where, data, dict.fromkeys(names, OLDEST))
        for key in ("renameByDefault", "failRequestsGreaterThanOne"):
            if not isinstance(data.get(key, False), bool):
                raise _wrong(f"{where}.{key}", f"is {data[key]!r}, and has to be a boolean")
        rows = data.get("resources")
        if not rows or not isinstance(rows, (list, tuple)):
            raise _wrong(
                f"{where}.resources",
                "is empty: nothing would be shared",
                f"Give a list, such as [{{name: {GPU}, replicas: 4}}].",
            )
        rename = bool(data.get("renameByDefault", False))
        found = [self.row(f"{where}.resources", row, rename) for row in rows]
        shared = tuple(one for one, _more in found)
        _check_shared(f"{where}.resources", method, shared, mig_strategy)
        whole: dict[str, Any] = {
            **extra,
            "renameByDefault": rename,
            "resources": [
                {**more, "name": one.name, "replicas": one.replicas} for one, more in found
            ],
        }
        if "failRequestsGreaterThanOne" in data:
            whole["failRequestsGreaterThanOne"] = data["failRequestsGreaterThanOne"]
        return shared, whole

    def row(self, where: str, row: Any, rename: bool) -> tuple[Shared, dict[str, Any]]:
        if isinstance(row, Mapping) and row.get("devices", "all") != "all":
            raise _wrong(
                where,
                f"devices is {row['devices']!r}, and sharing cannot differ between the GPUs of a "
                "node: the plugin ignores it and shares all of them",
                "Sharing can differ between nodes: make a config for each kind of node, and choose "
                "one with nvidia_device_plugin_config for each host or group.",
            )
        if isinstance(row, Mapping) and "rename" in row:
            raise _wrong(
                where,
                "the plugin ignores rename",
                "renameByDefault: true together with resources gives a name ending in .shared.",
            )
        more = self.extra(where, row, dict.fromkeys(("name", "replicas", "devices"), OLDEST))
        name, replicas = _resource_name(where, row.get("name")), row.get("replicas")
        if isinstance(replicas, bool) or not isinstance(replicas, int) or replicas < 2:
            raise _wrong(
                where,
                f"replicas of {name} is {replicas!r}: sharing begins with 2",
                "Leave the resource out where each GPU is for one container.",
            )
        return Shared(name, replicas, f"{name}{SHARED}" if rename else name), more

    def imex(self, where: str, data: Any) -> dict[str, Any]:
        extra = self.extra(where, data, dict.fromkeys(("channelIDs", "required"), OLDEST))
        channels = plain(data.get("channelIDs") or [])
        if channels not in ([], [0]):
            raise _wrong(
                f"{where}.channelIDs", f"is {channels!r}; the plugin takes [] and [0] only"
            )
        required = data.get("required", False)
        if not isinstance(required, bool):
            raise _wrong(f"{where}.required", f"is {required!r}, and has to be a boolean")
        return {**extra, "channelIDs": channels, "required": required}


def _check_shared(where: str, method: str, shared: Sequence[Shared], mig_strategy: str) -> None:
    """Check that this method can share the resources, each listed once.

    :raises InputError: it cannot.
    """
    names = [one.name for one in shared]
    for one in shared:
        if names.count(one.name) > 1:
            raise _wrong(where, f"{one.name} occurs twice")
        mig = one.name.startswith(f"{PREFIX}mig-")
        if mig and method == "mps":
            raise _wrong(
                where,
                f"{one.name} is a MIG device, and MPS is not possible with MIG",
                "Use timeSlicing for MIG devices.",
            )
        if mig and mig_strategy != "mixed":
            raise _wrong(
                where,
                f"{one.name} exists with migStrategy mixed only, and it is {mig_strategy}",
                f"Set migStrategy: mixed in this config, or share {GPU}.",
            )
        if method == "mps" and one.replicas > MPS_CLIENTS:
            raise _wrong(
                where,
                f"{one.replicas} replicas, and an MPS server takes {MPS_CLIENTS} clients at most",
            )


def _resource_name(where: str, value: Any) -> str:
    name = str(value or "")
    name = name if name.startswith(PREFIX) else f"{PREFIX}{name}"
    if len(name) > _RESOURCE_LENGTH or not re.match(
        r"[a-z0-9](?:[-.a-z0-9]*[a-z0-9])?\Z", name[len(PREFIX) :]
    ):
        raise _wrong(
            where,
            f"{name!r} is not a name of a resource",
            f"Up to {_RESOURCE_LENGTH} characters with {PREFIX}, small letters, digits, '-', '.'.",
        )
    return name


def plain(value: Any) -> Any:
    """Return the value in plain containers, because JSON rejects Ansible's own types."""
    if isinstance(value, Mapping):
        return {str(key): plain(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(one) for one in value]
    return str(value) if isinstance(value, str) else value
