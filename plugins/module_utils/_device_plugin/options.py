# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The wishes for NVIDIA's device plugin, read and checked."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

from .._core.errors import InputError
from .._core.options import truth
from .._kube.image import check_reference, is_digest, is_tag, split
from .config import (
    Config,
    Flags,
    choice,
    plain_config,
    read_configs,
    read_strategies,
)
from .settings import (
    DISCOVERY_SINCE,
    Reading,
    Release,
    at_least,
    read_environment,
    read_release,
    setting,
    words,
)

_TOLERATIONS: tuple[Mapping[str, Any], ...] = (
    {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"},
    {"key": "CriticalAddonsOnly", "operator": "Exists"},
)


@dataclass(frozen=True)
class Wish:
    """What the cluster shall have. The options' names are the role's, without its prefix."""

    namespace: str = "kubegpu"
    image: str = "nvcr.io/nvidia/k8s-device-plugin"
    version: str = "v0.20.1"
    digest: str = ""
    image_pull_policy: str = "IfNotPresent"
    pull_secret: str = ""
    #: The RuntimeClass of the pods; empty where the default runtime is nvidia on all nodes.
    runtime_class: str = ""
    priority_class: str = "system-node-critical"
    tolerations: Sequence[Mapping[str, Any]] = _TOLERATIONS
    node_selector: Mapping[str, str] = field(default_factory=dict)
    resources: Mapping[str, Any] = field(default_factory=dict)
    max_unavailable: str = "10%"
    annotations: Mapping[str, str] = field(default_factory=dict)
    kubelet_directory: str = "/var/lib/kubelet"
    mps_root: str = "/run/nvidia/mps"
    environment: Mapping[str, str] = field(default_factory=dict)
    feature_discovery: bool = False
    feature_discovery_privileged: bool = False
    feature_discovery_api: bool = False
    flags: Flags = field(default_factory=Flags)
    configs: Mapping[str, Config] = field(default_factory=dict)
    default_config: str = ""
    #: What may be wrong with it, and cannot be told: the plugin is newer than our table.
    remarks: tuple[str, ...] = ()

    @property
    def release(self) -> Release | None:
        """The plugin's release, by which its settings are judged; None for another kind of tag."""
        return read_release(self.version)

    @property
    def reference(self) -> str:
        """The image with tag or digest."""
        return f"{self.image}@{self.digest}" if self.digest else f"{self.image}:{self.version}"

    @property
    def chosen(self) -> str:
        """The config of nodes that choose none; empty where there are no configs."""
        return (self.default_config or "default") if self.configs else ""

    @property
    def by_label(self) -> bool:
        """Whether a node's label chooses, so that the pods have to read their node."""
        return len(self.configs) > 1

    @property
    def all_configs(self) -> list[Config]:
        return list(self.configs.values()) or [plain_config(self.flags, self.release)]

    def config(self, name: str) -> Config | None:
        """Return the config of a node that chose this one, or none; None where it is not there."""
        if not self.configs:
            return None if name else plain_config(self.flags, self.release)
        return self.configs.get(name or self.chosen)

    @property
    def with_mig(self) -> bool:
        return any(config.mig_strategy != "none" for config in self.all_configs)

    @property
    def strategies(self) -> set[str]:
        """The device list strategies of all configs."""
        found: set[str] = set()
        for config in self.all_configs:
            value = config.data["flags"]["plugin"]["deviceListStrategy"]
            found.update([value] if isinstance(value, str) else value)
        return found

    @property
    def with_cdi(self) -> bool:
        return any(name.startswith("cdi-") for name in self.strategies)

    @property
    def with_device_specs(self) -> bool:
        return any(config.data["flags"]["plugin"]["passDeviceSpecs"] for config in self.all_configs)

    @property
    def mps_configs(self) -> list[str]:
        return [config.name for config in self.configs.values() if config.sharing == "mps"]


_FLAG_NAMES = tuple(one.name for one in fields(Flags))
_WISH_NAMES = tuple(
    one.name for one in fields(Wish) if one.name not in ("flags", "configs", "remarks")
)
_STRINGS = frozenset(
    one.name for one in (*fields(Flags), *fields(Wish)) if isinstance(one.default, str)
)
_BOOLEANS = frozenset(
    {
        "resource_renaming",
        *(one.name for one in (*fields(Flags), *fields(Wish)) if isinstance(one.default, bool)),
    }
)
#: Every option that ``read_wish`` takes.
OPTIONS = frozenset({*_FLAG_NAMES, *_WISH_NAMES, "configs", "resource_renaming"})


def read_wish(options: Mapping[str, Any]) -> Wish:
    """Return the wish.

    :param options: by the role's names without its prefix; what is left out has its default.
    :raises InputError: where one is not valid.
    """
    unknown = sorted(set(options) - OPTIONS)
    if unknown:
        raise InputError(
            f"the device plugin has no option {', '.join(unknown)}",
            next_step=f"It has {', '.join(sorted(OPTIONS))}.",
        )
    given = {name: _value(name, value) for name, value in options.items() if name != "configs"}
    reading = Reading(read_release(str(given.get("version", Wish.version))))
    flags = _read_flags({name: given[name] for name in _FLAG_NAMES if name in given}, reading)
    wish = Wish(**{name: given[name] for name in _WISH_NAMES if name in given}, flags=flags)
    for name in ("namespace", "image", "kubelet_directory", "mps_root"):
        if not getattr(wish, name):
            raise InputError(f"nvidia_device_plugin_{name} is empty")
    _check_image(wish)
    _choice(wish, "image_pull_policy", ("IfNotPresent", "Always", "Never"))
    if not re.match(r"\d+%?\Z", str(wish.max_unavailable)) or str(wish.max_unavailable) in (
        "0",
        "0%",
    ):
        raise InputError(
            f"nvidia_device_plugin_max_unavailable is {wish.max_unavailable!r}, and has to be a "
            "number or a percentage above 0"
        )
    if wish.feature_discovery_api and not wish.feature_discovery:
        wish = replace(wish, feature_discovery_api=False)
    if wish.feature_discovery and not at_least(wish.release, DISCOVERY_SINCE):
        raise InputError(
            f"nvidia_device_plugin_feature_discovery is true, and the image of {wish.version} has "
            f"no GPU feature discovery: it came with {words(DISCOVERY_SINCE)}",
            next_step="Take a newer nvidia_device_plugin_version, or leave it out.",
        )
    variables = {key: text(value) for key, value in wish.environment.items()}
    remarks = read_environment(variables, wish.release)
    configs = read_configs(
        options.get("configs") or {},
        flags,
        default=wish.default_config,
        renaming=bool(given.get("resource_renaming", False)),
        reading=reading,
        everywhere={
            "mps_root": wish.mps_root,
            "feature_discovery_api": wish.feature_discovery_api,
        },
    )
    return replace(
        wish,
        max_unavailable=str(wish.max_unavailable),
        environment=variables,
        configs=configs,
        remarks=(*remarks, *reading.notes),
    )


def _value(name: str, value: Any) -> Any:
    """Return an option's value; ``-e`` and INI inventories give words for truth."""
    if name in _STRINGS and isinstance(value, (int, float)) and not isinstance(value, bool):
        # YAML reads the tag 0.20 as a number.
        return str(value)
    if name not in _BOOLEANS:
        return plain(value)
    found = truth(value)
    if found is None:
        raise InputError(
            f"nvidia_device_plugin_{name} is {value!r}, which is neither true nor false"
        )
    return found


def _read_flags(given: Mapping[str, Any], reading: Reading) -> Flags:
    values = dict(given)
    if "device_list_strategy" in values:
        values["device_list_strategy"] = read_strategies(
            "nvidia_device_plugin_device_list_strategy", values["device_list_strategy"], reading
        )
    flags = Flags(**values)
    prefix = "nvidia_device_plugin_"
    for name, path in (
        ("mig_strategy", "migStrategy"),
        ("device_id_strategy", "plugin.deviceIDStrategy"),
    ):
        reading.choice(f"{prefix}{name}", str(getattr(flags, name)), setting(path).values)
    for name in ("driver_root", "container_driver_root", "nvidia_ctk_path"):
        if not str(getattr(flags, name)).startswith("/"):
            raise InputError(f"{prefix}{name} is {getattr(flags, name)!r}, and has to be a path")
    return flags


def _check_image(wish: Wish) -> None:
    _name, tag, digest = split(wish.image)
    if tag or digest:
        raise InputError(
            f"nvidia_device_plugin_image is {wish.image!r}, with a version in it",
            next_step="Give that as nvidia_device_plugin_version or nvidia_device_plugin_digest.",
        )
    check_reference("nvidia_device_plugin_image", wish.image)
    if wish.digest:
        if not is_digest(wish.digest):
            raise InputError(
                f"nvidia_device_plugin_digest is {wish.digest!r}, and has to be sha256: with 64 "
                "small hex digits"
            )
        return
    if not is_tag(wish.version) or wish.version == "latest":
        raise InputError(
            f"nvidia_device_plugin_version is {wish.version!r}, which pins no version",
            next_step="Give a release's tag, such as v0.20.1, or nvidia_device_plugin_digest.",
        )


def _choice(wish: Wish, name: str, known: Sequence[str]) -> None:
    choice(f"nvidia_device_plugin_{name}", getattr(wish, name), known)


def plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): plain(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(one) for one in value]
    return str(value) if isinstance(value, str) else value


def text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
