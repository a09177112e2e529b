# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a config of the device plugin means on one node: refusals and resources. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

from .._core.errors import Refusal
from .._core.versions import version_numbers
from .._hardware.vendors import container_gpus
from .config import GPU, PREFIX, Config
from .settings import WHOLE_NAMES, at_least

#: Maximum number of clients of an MPS server on a GPU of these generations.
MPS_CLIENTS_OLD = 16
_OLD_FOR_MPS = frozenset({"kepler", "maxwell", "pascal", "volta"})
# Attributes are added ("+me") or removed ("-me") (go-nvlib, pkg/nvlib/device/mig_profile.go; the
# profiles of RTX PRO 6000 in NVIDIA's MIG user guide).
_MIG_PROFILE = re.compile(r"MIG (?:\d+c\.)?\d+g\.\d+gb(?:[+-][\w.]+)?\Z", re.ASCII)
_BASE = re.compile(r"\d+g\.\d+gb")
# enable_cdi exists from 1.7, where it is off by default, and is on from 2.0.
_CDI_IN_CONTAINERD = (1, 7)


def check_sharing(node: Mapping[str, Any], config: Config) -> list[Refusal]:
    """Return why this config does not work on this node. Unknown facts are not refused."""
    devices = _devices(node) or ()
    with_mig = [device for device in devices if device.get("mig_mode") == "enabled"]
    found = []
    if config.sharing == "mps":
        found += _check_mps(node, config, devices, with_mig)
    if config.mig_strategy == "single":
        found += _check_single(devices, with_mig)
    if config.mig_strategy == "mixed" and at_least(config.release, WHOLE_NAMES):
        found += _check_mixed(config, with_mig)
    return found


def _check_mps(
    node: Mapping[str, Any],
    config: Config,
    devices: Sequence[Mapping[str, Any]],
    with_mig: Sequence[Mapping[str, Any]],
) -> list[Refusal]:
    found = []
    if with_mig:
        found.append(
            Refusal(
                f"MPS is not possible with MIG: {config.name} shares by MPS, and MIG is "
                "enabled on this node",
                "Choose another config for this host (nvidia_device_plugin_config), such as "
                "one with timeSlicing, or disable MIG on its GPUs.",
                _mig_modes(devices),
            )
        )
    old = sorted({str(gpu.get("generation")) for gpu in container_gpus(node)} & _OLD_FOR_MPS)
    for one in config.shared:
        if old and one.replicas > MPS_CLIENTS_OLD:
            found.append(
                Refusal(
                    f"{config.name} wants {one.replicas} replicas by MPS, and a GPU of the "
                    f"generation {', '.join(old)} takes {MPS_CLIENTS_OLD} clients at most",
                    f"Use at most {MPS_CLIENTS_OLD} replicas in the config of this host.",
                    ", ".join(str(gpu.get("product")) for gpu in container_gpus(node)),
                )
            )
    return found


def _check_single(
    devices: Sequence[Mapping[str, Any]], with_mig: Sequence[Mapping[str, Any]]
) -> list[Refusal]:
    found = []
    modes = _mig_modes(devices)
    if 0 < len(with_mig) < len(devices):
        found.append(
            Refusal(
                "MIG strategy single needs MIG on all GPUs of a node or on none: the plugin "
                "stops (all devices on the node must be configured with the same migEnabled "
                "value)",
                "Use a config with migStrategy: mixed for this host, or enable MIG on all of "
                "its GPUs.",
                modes,
            )
        )
    profiles = sorted({profile or "?" for profile in _profiles(with_mig)})
    if len(profiles) > 1:
        found.append(
            Refusal(
                "MIG strategy single needs MIG devices of one kind: the plugin stops (more "
                "than one MIG device type present on node)",
                "Use a config with migStrategy: mixed for this host, or divide its GPUs alike.",
                ", ".join(profiles),
            )
        )
    # With strategy mixed the plugin warns and offers the other devices
    # (assertAllMigDevicesAreValid in internal/rm/device_map.go, v0.17 to v0.20).
    empty = [device for device in with_mig if not device.get("mig_devices")]
    if empty:
        found.append(
            Refusal(
                "MIG is enabled on a GPU that is not divided: with strategy single the plugin "
                "stops (at least one device with migEnabled=true was not configured correctly)",
                "Make MIG devices on it, disable MIG there, or use a config with migStrategy: "
                "mixed for this host.",
                modes,
            )
        )
    return found


def _check_mixed(config: Config, with_mig: Sequence[Mapping[str, Any]]) -> list[Refusal]:
    # NVIDIA's plugin has no pattern for them (internal/rm/rm.go: info.C != info.G), and from
    # v0.20 on other patterns match whole names only.
    parts = sorted({one for one in _profiles(with_mig) if one and "c." in one})
    lost = [one for one in parts if _by_pattern(one, config.migs, config) is None]
    if lost:
        return [
            Refusal(
                "a compute instance that is a part of its GPU instance has no resource with "
                "MIG strategy mixed: the plugin stops (does not match any resource patterns)",
                "Make one compute instance that fills its GPU instance (nvidia-smi mig -cgi "
                "<profile> -C), or use a config with migStrategy: single for this host.",
                ", ".join(lost),
            )
        ]
    return []


def check_cdi(node: Mapping[str, Any], config: Config, asked_for: bool = False) -> list[Refusal]:
    """Return why a container would not get devices that are named by CDI only.

    If all strategies use CDI, the plugin sets no variable for the nvidia runtime
    (internal/plugin/server.go, AllCDIEnabled), and a containerd with CDI disabled ignores the
    annotations: the pod runs without a GPU. In CRI-O, CDI is always enabled.

    :param asked_for: whether the role nvidia_container_toolkit enables CDI there.
    """
    given = config.data["flags"]["plugin"]["deviceListStrategy"]
    strategies = [given] if isinstance(given, str) else list(given)
    containerd = (node.get("runtimes") or {}).get("containerd") or {}
    if not containerd.get("cri_enabled") or not all(one.startswith("cdi-") for one in strategies):
        return []
    version = version_numbers(containerd.get("version"))[:2]
    if not version or containerd.get("cdi_enabled"):
        return []
    old = version < _CDI_IN_CONTAINERD
    if not old and (asked_for or containerd.get("cdi_enabled") is None):
        return []
    what = "has no CDI" if old else "has its CDI switched off"
    step = (
        "upgrade containerd (1.7 is the first with CDI)"
        if old
        else "set nvidia_container_toolkit_runtime_cdi: true, which switches it on"
    )
    return [
        Refusal(
            f"a container would get no GPU: {config.name} names devices by CDI alone, and this "
            f"node's containerd {what}",
            f"Add envvar to the config's deviceListStrategy "
            f"(nvidia_device_plugin_device_list_strategy), or {step}.",
            f"containerd {containerd['version']}; deviceListStrategy: {', '.join(strategies)}",
        )
    ]


def undivided(node: Mapping[str, Any], config: Config) -> list[str]:
    """Return the GPUs that the plugin skips with a warning: MIG is enabled without MIG devices."""
    if config.mig_strategy != "mixed":
        return []
    return [
        str(one.get("address") or one.get("name"))
        for one in _devices(node) or ()
        if one.get("mig_mode") == "enabled" and not one.get("mig_devices")
    ]


def expected(node: Mapping[str, Any], config: Config) -> dict[str, int] | None:
    """Return the resources expected as allocatable; None where the facts do not determine them.

    MIG devices are counted from NVML. Otherwise the GPUs on the PCI bus are counted, so that a GPU
    that the plugin does not see is a failure.
    """
    counts: dict[str, int] = {}
    devices = _devices(node)
    if config.mig_strategy == "none":
        whole: list[Mapping[str, Any]] = container_gpus(node)
    elif devices is None:
        return None
    else:
        whole = [device for device in devices if device.get("mig_mode") != "enabled"]
        for resource in _mig_resources(devices, config):
            if resource is None:
                return None
            _add(counts, resource)
    for gpu in whole:
        product = str(gpu.get("name") or gpu.get("product") or "")
        _add(counts, _by_pattern(product, config.gpus, config) or GPU)
    shared = {one.name: one for one in config.shared}
    shown: dict[str, int] = {}
    for name, count in counts.items():
        one = shared.get(name)
        _add(shown, one.advertised if one else name, count * (one.replicas if one else 1))
    return dict(sorted(shown.items()))


def _add(counts: dict[str, int], name: str, count: int = 1) -> None:
    counts[name] = counts.get(name, 0) + count


def _devices(node: Mapping[str, Any]) -> list[Mapping[str, Any]] | None:
    nvml = node.get("nvml")
    return None if not nvml or nvml.get("devices") is None else list(nvml["devices"])


def _mig_modes(devices: Sequence[Mapping[str, Any]]) -> str:
    return ", ".join(
        f"{one.get('name') or one.get('address')}: MIG {one.get('mig_mode') or 'not there'}"
        for one in devices
    )


def _profiles(devices: Sequence[Mapping[str, Any]]) -> Iterator[str | None]:
    """Return the profile of each MIG device, ``1g.5gb`` of ``NVIDIA A100 MIG 1g.5gb``."""
    for device in devices:
        for mig in device.get("mig_devices") or ():
            name = str(mig.get("name") or mig.get("profile") or "")
            _text, found, rest = name.rpartition("MIG ")
            match = _MIG_PROFILE.match(f"{found}{rest}" if found else f"MIG {name}")
            yield match.group(0)[len("MIG ") :] if match else None


def _mig_resources(devices: Sequence[Mapping[str, Any]], config: Config) -> Iterator[str | None]:
    for profile in _profiles([one for one in devices if one.get("mig_mode") == "enabled"]):
        if config.mig_strategy == "single":
            yield _by_pattern(profile or "", config.migs, config) or GPU
        elif profile is None:
            yield None
        else:
            yield _by_pattern(profile, config.migs, config) or _mixed(profile, config)


def _mixed(profile: str, config: Config) -> str:
    """Return a profile's resource: ``mig-1g.24gb-me``, ``mig-1g.5gb.me``.

    Before v0.20 the profile without attributes matches first, as a part of the name
    (k8s-device-plugin #1462). Profiles without a resource are refused by :func:`check_sharing`.
    """
    base = _BASE.search(profile)
    if base and ("c." in profile or not at_least(config.release, WHOLE_NAMES)):
        profile = base[0]
    # Only the plus sign is replaced in the resource's name (internal/rm/rm.go of the plugin).
    return f"{PREFIX}mig-{profile.replace('+', '.')}"


def _by_pattern(text: str, patterns: Sequence[tuple[str, str]], config: Config) -> str | None:
    # The plugin's patterns support '*' only; before v0.20 they match anywhere in the name.
    anywhere = "" if at_least(config.release, WHOLE_NAMES) else "*"
    for pattern, name in patterns:
        literal = pattern.replace("[", "[[]").replace("?", "[?]")
        if fnmatchcase(text, f"{anywhere}{literal}{anywhere}"):
            return name
    return None
