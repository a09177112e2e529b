# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The request for NVIDIA's device plugin."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from .config import (
    Config,
    Flags,
    plain_config,
)
from .objects import PluginRequest, default_tolerations
from .settings import (
    Release,
    read_release,
)


@dataclass(frozen=True)
class Request(PluginRequest):
    """The desired device plugin. Fields are named as the role's options, without its prefix."""

    image: str = "nvcr.io/nvidia/k8s-device-plugin"
    version: str = "v0.20.1"
    tolerations: Sequence[Mapping[str, Any]] = default_tolerations("nvidia.com/gpu")
    #: The RuntimeClass of the pods; empty where the default runtime is nvidia on all nodes.
    runtime_class: str = ""
    mps_root: str = "/run/nvidia/mps"
    environment: Mapping[str, str] = field(default_factory=dict)
    feature_discovery: bool = False
    feature_discovery_privileged: bool = False
    feature_discovery_api: bool = False
    flags: Flags = field(default_factory=Flags)
    configs: Mapping[str, Config] = field(default_factory=dict)
    default_config: str = ""
    #: Possible mistakes that cannot be verified, because the plugin is newer than the tables.
    remarks: tuple[str, ...] = ()

    @property
    def release(self) -> Release | None:
        """The plugin's release, which decides its valid settings; None for other kinds of tags."""
        return read_release(self.version)

    @property
    def chosen(self) -> str:
        """The config of nodes that select none; empty without configs."""
        return (self.default_config or "default") if self.configs else ""

    @property
    def by_label(self) -> bool:
        """Whether a node label selects the config, so that the pods read their Node object."""
        return len(self.configs) > 1

    @property
    def all_configs(self) -> list[Config]:
        return list(self.configs.values()) or [plain_config(self.flags, self.release)]

    def config(self, name: str) -> Config | None:
        """Return the config of this name, or the default one for an empty name; None if unknown."""
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
