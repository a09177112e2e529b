# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The named configs of NVIDIA's device plugin: what they may hold.

A config has NVIDIA's own schema (k8s-device-plugin, ``api/config/v1``). The plugin itself ignores
much of what it does not know, and some of what it knows; here each such thing is refused.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ._errors import InputError

GPU = "nvidia.com/gpu"
PREFIX = "nvidia.com/"
SHARED = ".shared"
MIG_STRATEGIES = ("none", "single", "mixed")
DEVICE_LIST_STRATEGIES = ("envvar", "volume-mounts", "cdi-annotations", "cdi-cri")
DEVICE_ID_STRATEGIES = ("uuid", "index")
DEFAULT_CONFIG = "default"
#: How many clients an MPS server takes (cmd/mps-control-daemon/mps/device.go of the plugin).
MPS_CLIENTS = 48
# What is a key of a ConfigMap, a label's value and a file name at once.
_NAME = re.compile(r"[A-Za-z0-9](?:[-_.A-Za-z0-9]{0,61}[A-Za-z0-9])?\Z")
_RESOURCE_LENGTH = 63

_FLAGS: dict[str, tuple[type, ...]] = {
    "migStrategy": (str,),
    "failOnInitError": (bool,),
    "nvidiaDriverRoot": (str,),
    "gdsEnabled": (bool,),
    "mofedEnabled": (bool,),
    "plugin": (Mapping,),
    "gfd": (Mapping,),
}
_PLUGIN_FLAGS: dict[str, tuple[type, ...]] = {
    "passDeviceSpecs": (bool,),
    "deviceListStrategy": (str, list, tuple),
    "deviceIDStrategy": (str,),
    "nvidiaCTKPath": (str,),
    "containerDriverRoot": (str,),
}
_GFD_FLAGS: dict[str, tuple[type, ...]] = {
    "noTimestamp": (bool,),
    "sleepInterval": (str,),
}
_SHARING = ("timeSlicing", "mps")
_TOP = ("version", "flags", "sharing", "resources", "imex")
#: These decide about volumes and are the same on all nodes; they are options of the role.
_EVERYWHERE = {
    "nvidiaDriverRoot": "driver_root",
    "nvidiaCTKPath": "nvidia_ctk_path",
    "containerDriverRoot": "container_driver_root",
}


@dataclass(frozen=True)
class Shared:
    """One resource that is shared: how often, and under which name it is advertised."""

    name: str
    replicas: int
    advertised: str


@dataclass(frozen=True)
class Config:
    """One config, checked as far as it can be without a node."""

    name: str
    mig_strategy: str
    sharing: str
    shared: tuple[Shared, ...]
    gpus: tuple[tuple[str, str], ...]
    migs: tuple[tuple[str, str], ...]
    data: Mapping[str, Any]


@dataclass(frozen=True)
class Flags:
    """What holds where a config does not say otherwise."""

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
    """Return device list strategies as a config has them."""
    return strategies[0] if len(strategies) == 1 else list(strategies)


def flags_data(flags: Flags) -> dict[str, Any]:
    """Return the flags as a config has them, without the paths that hold everywhere."""
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
    configs: Mapping[str, Any], flags: Flags, *, default: str = "", renaming: bool = False
) -> dict[str, Config]:
    """Return the configs by name, the default one among them; empty where none is wished.

    :param default: the config of nodes that choose none; empty is ``default``, which is made from
        the flags alone where the user has none of this name.
    :param renaming: whether this build of the plugin follows ``resources``; NVIDIA's does not.
    :raises InputError: where one is not valid, with the name of the option.
    """
    if not configs:
        if default:
            raise _wrong("nvidia_device_plugin_default_config", _no_config(default, ()))
        return {}
    wished = {str(name): data for name, data in configs.items()}
    if not default and DEFAULT_CONFIG not in wished:
        wished[DEFAULT_CONFIG] = {}
    if default and default not in wished:
        raise _wrong("nvidia_device_plugin_default_config", _no_config(default, tuple(wished)))
    return {name: _read(name, wished[name], flags, renaming) for name in sorted(wished)}


def plain_config(flags: Flags) -> Config:
    """Return what holds where there are no configs."""
    return _read(DEFAULT_CONFIG, {}, flags, False)


def _no_config(name: str, known: Sequence[str]) -> str:
    there = ", ".join(sorted(known)) or "none"
    return f"there is no config {name!r} in nvidia_device_plugin_configs; there are: {there}"


def _wrong(where: str, what: str, next_step: str = "") -> InputError:
    return InputError(f"{where}: {what}", next_step=next_step)


def _read(name: str, data: Any, flags: Flags, renaming: bool) -> Config:
    where = f"nvidia_device_plugin_configs[{name}]"
    if not _NAME.match(name):
        raise _wrong(
            where,
            "the name becomes a node label's value and a file name, and is no valid one",
            "Use up to 63 letters, digits, '-', '_' and '.', with a letter or digit at both ends.",
        )
    if data is None:
        data = {}
    _only(where, data, _TOP)
    if data.get("version", "v1") != "v1":
        raise _wrong(where, f"version is {data['version']!r}; the plugin knows v1 only")
    merged = _flags(where, data.get("flags") or {}, flags)
    strategy = merged["migStrategy"]
    gpus, migs = _patterns(where, data.get("resources"), renaming)
    if not migs and strategy == "single":
        migs = (("*", GPU),)
    sharing, shared, shared_data = _sharing(where, data.get("sharing"), strategy)
    whole: dict[str, Any] = {"version": "v1", "flags": merged}
    if data.get("resources"):
        whole["resources"] = _plain(data["resources"])
    if shared_data:
        whole["sharing"] = shared_data
    if data.get("imex"):
        whole["imex"] = _imex(where, data["imex"])
    return Config(name, strategy, sharing, shared, gpus or (("*", GPU),), migs, whole)


def _only(where: str, data: Any, known: Sequence[str]) -> None:
    if not isinstance(data, Mapping):
        raise _wrong(where, f"is {data!r}, and has to be a mapping with {', '.join(known)}")
    unknown = sorted(str(key) for key in data if key not in known)
    if unknown:
        raise _wrong(
            where,
            f"does not know {', '.join(unknown)}; it knows {', '.join(known)}",
            "The plugin ignores what it does not know, so it would have had no effect.",
        )


def _typed(where: str, data: Mapping[str, Any], known: Mapping[str, tuple[type, ...]]) -> None:
    _only(where, data, tuple(known))
    for key, value in data.items():
        if not isinstance(value, known[key]):
            words = " or ".join(sorted({_type_name(kind) for kind in known[key]}))
            raise _wrong(f"{where}.{key}", f"is {value!r}, and has to be a {words}")


def _type_name(kind: type) -> str:
    names = {str: "string", bool: "boolean", list: "list", tuple: "list"}
    return names.get(kind, "mapping")


def choice(where: str, value: str, known: Sequence[str]) -> str:
    """Return the value.

    :raises InputError: where it is none of those known.
    """
    if value not in known:
        raise _wrong(where, f"is {value!r}, and has to be one of {', '.join(known)}")
    return value


def read_strategies(where: str, value: Any) -> tuple[str, ...]:
    """Return device list strategies, from a list or from words with commas.

    :raises InputError: where one is unknown or there is none.
    """
    words = value.split(",") if isinstance(value, str) else list(value or ())
    found = tuple(dict.fromkeys(str(word).strip() for word in words if str(word).strip()))
    if not found:
        raise _wrong(where, "is empty", f"Give one of {', '.join(DEVICE_LIST_STRATEGIES)}.")
    return tuple(choice(where, word, DEVICE_LIST_STRATEGIES) for word in found)


def _flags(where: str, data: Any, flags: Flags) -> dict[str, Any]:
    where = f"{where}.flags"
    _typed(where, data, _FLAGS)
    plugin, gfd = data.get("plugin") or {}, data.get("gfd") or {}
    _typed(f"{where}.plugin", plugin, _PLUGIN_FLAGS)
    _typed(f"{where}.gfd", gfd, _GFD_FLAGS)
    for key, value in (*data.items(), *plugin.items()):
        if key in _EVERYWHERE and value != getattr(flags, _EVERYWHERE[key]):
            raise _wrong(
                f"{where}.{key}",
                f"is {value!r}, and is the same on all nodes, as the pod's volumes follow it",
                f"Set nvidia_device_plugin_{_EVERYWHERE[key]} instead.",
            )
    merged = flags_data(flags)
    for key in ("migStrategy", "failOnInitError", "gdsEnabled", "mofedEnabled"):
        merged[key] = data.get(key, merged[key])
    for key in ("passDeviceSpecs", "deviceIDStrategy"):
        merged["plugin"][key] = plugin.get(key, merged["plugin"][key])
    if "deviceListStrategy" in plugin:
        merged["plugin"]["deviceListStrategy"] = as_file(
            read_strategies(f"{where}.plugin.deviceListStrategy", plugin["deviceListStrategy"])
        )
    choice(f"{where}.migStrategy", merged["migStrategy"], MIG_STRATEGIES)
    choice(
        f"{where}.plugin.deviceIDStrategy",
        merged["plugin"]["deviceIDStrategy"],
        DEVICE_ID_STRATEGIES,
    )
    if gfd:
        merged["gfd"] = dict(gfd)
    return merged


def _patterns(
    where: str, data: Any, renaming: bool
) -> tuple[tuple[tuple[str, str], ...], tuple[tuple[str, str], ...]]:
    """Return which names GPUs and MIG devices get by pattern."""
    if not data:
        return (), ()
    where = f"{where}.resources"
    if not renaming:
        raise _wrong(
            where,
            "NVIDIA's plugin reads this and ignores it (its log: Customizing the 'resources' field "
            "is not yet supported in the config. Ignoring...)",
            "Rename with sharing.<method>.renameByDefault, which gives nvidia.com/gpu.shared; or, "
            "with a build of the plugin that follows it, set "
            "nvidia_device_plugin_resource_renaming: true.",
        )
    _only(where, data, ("gpus", "mig"))
    return (_named(f"{where}.gpus", data.get("gpus")), _named(f"{where}.mig", data.get("mig")))


def _named(where: str, rows: Any) -> tuple[tuple[str, str], ...]:
    if not isinstance(rows or [], (list, tuple)):
        raise _wrong(where, f"is {rows!r}, and has to be a list of pattern and name")
    found = []
    for row in rows or ():
        _only(where, row, ("pattern", "name"))
        if not row.get("pattern") or not row.get("name"):
            raise _wrong(where, "each row needs a pattern and a name")
        found.append((str(row["pattern"]), _resource_name(where, row["name"])))
    return tuple(found)


def _resource_name(where: str, value: Any) -> str:
    name = str(value or "")
    name = name if name.startswith(PREFIX) else f"{PREFIX}{name}"
    if len(name) > _RESOURCE_LENGTH or not re.match(
        r"[a-z0-9](?:[-.a-z0-9]*[a-z0-9])?\Z", name[len(PREFIX) :]
    ):
        raise _wrong(
            where,
            f"{name!r} is no name of a resource",
            f"Up to {_RESOURCE_LENGTH} characters with {PREFIX}, small letters, digits, '-', '.'.",
        )
    return name


def _sharing(
    where: str, data: Any, mig_strategy: str
) -> tuple[str, tuple[Shared, ...], dict[str, Any]]:
    """Return how GPUs are shared, what is shared how often, and the same for the file."""
    where = f"{where}.sharing"
    if not data:
        return "none", (), {}
    _only(where, data, _SHARING)
    methods = [method for method in _SHARING if data.get(method)]
    if len(methods) > 1:
        raise _wrong(
            where,
            "a node shares its GPUs by time-slicing or by MPS, not by both",
            "Make two configs and choose one for each host with nvidia_device_plugin_config.",
        )
    if not methods:
        return "none", (), {}
    method = methods[0]
    if method == "mps" and mig_strategy != "none":
        raise _wrong(
            f"{where}.mps",
            f"MPS is not possible with MIG, and migStrategy is {mig_strategy}",
            "Use timeSlicing for MIG devices, or set migStrategy: none in this config.",
        )
    return _method(f"{where}.{method}", method, data[method], mig_strategy)


def _method(
    where: str, method: str, data: Any, mig_strategy: str
) -> tuple[str, tuple[Shared, ...], dict[str, Any]]:
    _only(where, data, ("renameByDefault", "failRequestsGreaterThanOne", "resources"))
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
    shared = tuple(_shared(f"{where}.resources", row, rename) for row in rows)
    names = [one.name for one in shared]
    for one in shared:
        if names.count(one.name) > 1:
            raise _wrong(f"{where}.resources", f"{one.name} is there twice")
        mig = one.name.startswith(f"{PREFIX}mig-")
        if mig and method == "mps":
            raise _wrong(
                f"{where}.resources",
                f"{one.name} is a MIG device, and MPS is not possible with MIG",
                "Use timeSlicing for MIG devices.",
            )
        if mig and mig_strategy != "mixed":
            raise _wrong(
                f"{where}.resources",
                f"{one.name} exists with migStrategy mixed only, and it is {mig_strategy}",
                f"Set migStrategy: mixed in this config, or share {GPU}.",
            )
        if method == "mps" and one.replicas > MPS_CLIENTS:
            raise _wrong(
                f"{where}.resources",
                f"{one.replicas} replicas, and an MPS server takes {MPS_CLIENTS} clients at most",
            )
    whole: dict[str, Any] = {
        "renameByDefault": rename,
        "resources": [{"name": one.name, "replicas": one.replicas} for one in shared],
    }
    if "failRequestsGreaterThanOne" in data:
        whole["failRequestsGreaterThanOne"] = data["failRequestsGreaterThanOne"]
    return ("mps" if method == "mps" else "time-slicing"), shared, {method: whole}


def _shared(where: str, row: Any, rename: bool) -> Shared:
    if isinstance(row, Mapping) and row.get("devices", "all") != "all":
        raise _wrong(
            where,
            f"devices is {row['devices']!r}, and sharing cannot differ between the GPUs of a node: "
            "the plugin ignores it and shares all of them",
            "Sharing can differ between nodes: make a config for each kind of node, and choose one "
            "with nvidia_device_plugin_config for each host or group.",
        )
    if isinstance(row, Mapping) and "rename" in row:
        raise _wrong(
            where,
            "the plugin ignores rename",
            "renameByDefault: true beside resources gives the name with .shared at its end.",
        )
    _only(where, row, ("name", "replicas", "devices"))
    name, replicas = _resource_name(where, row.get("name")), row.get("replicas")
    if isinstance(replicas, bool) or not isinstance(replicas, int) or replicas < 2:
        raise _wrong(
            where,
            f"replicas of {name} is {replicas!r}: sharing begins with 2",
            "Leave the resource out where each GPU is for one container.",
        )
    return Shared(name, replicas, f"{name}{SHARED}" if rename else name)


def _imex(where: str, data: Any) -> dict[str, Any]:
    _only(f"{where}.imex", data, ("channelIDs", "required"))
    channels = list(data.get("channelIDs") or ())
    if channels not in ([], [0]):
        raise _wrong(f"{where}.imex.channelIDs", f"is {channels}; the plugin takes [] and [0] only")
    return {"channelIDs": channels, "required": bool(data.get("required", False))}


def _plain(value: Any) -> Any:
    """Return the value in plain containers, as Ansible's own types do not go into JSON."""
    if isinstance(value, Mapping):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(one) for one in value]
    return str(value) if isinstance(value, str) else value
