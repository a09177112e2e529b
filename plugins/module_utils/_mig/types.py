# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Types of MIG: profiles of a card, a GPU as it is, request and plan. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from .._core.errors import InputError
from .._core.steps import Step
from .layout import Instance, Layout

# As nvidia-smi and mig-parted write it: 3g.20gb, 1c.3g.20gb, 1g.5gb+me, 1g.24gb+me.all, 1g.24gb-me.
PROFILE = re.compile(
    r"(?:(?P<compute>\d+)c\.)?(?P<slices>\d+)g\.(?P<memory>\d+)gb(?P<attributes>[+-][\w.,]+)?\Z",
    re.ASCII,
)

# The exporters of gpu_exporter (_exporter/data.py, in a higher layer): a container that holds the
# GPUs, and a timer whose program asks nvidia-smi.
EXPORTER = "kubegpu-dcgm-exporter"
METRICS = "kubegpu-metrics"
METRICS_TIMER = f"{METRICS}.timer"
# Units that are stopped for a change if they hold a GPU, and started again after it.
SERVICES = (
    "nvidia-persistenced",
    "nvsm",
    "nvidia-dcgm",
    "nvidia-dcgm-exporter",
    "dcgm-exporter",
    EXPORTER,
)


@dataclass(frozen=True)
class Profile:
    """A profile of GPU instances on one card.

    ``starts`` are the first memory slices at which an instance can begin, ``size`` its number of
    memory slices, ``count`` the most instances of the profile at the same time.
    """

    name: str
    starts: tuple[int, ...]
    size: int
    count: int

    @property
    def slices(self) -> int:
        """The number of compute slices (the number before the ``g``)."""
        match = PROFILE.match(self.name)
        return int(match["slices"]) if match else 0

    @property
    def attributes(self) -> str:
        """``+me``, ``+me.all``, ``+gfx``, ``-me``, or nothing."""
        match = PROFILE.match(self.name)
        return (match["attributes"] or "") if match else ""


@dataclass(frozen=True)
class Gpu:
    """A GPU as it is.

    ``index`` is its number in nvidia-smi, ``board`` its subsystem: device and vendor in one number.
    ``layout`` is None where the card has no MIG, or where
    its state is unknown; ``instances_known`` is False where only root can read the instances.
    ``pending`` is the mode after a reset or reboot; ``pending_why`` is what the driver said when it
    left a mode pending, None unless it was tried. ``profiles`` is None where the card's list is
    unknown; ``from_table`` says that it is the table's, not the card's.
    """

    index: int
    address: str
    uuid: str
    name: str
    device_id: str
    board: str
    generation: str
    minor: int | None
    layout: Layout | None
    pending: bool | None
    instances_known: bool
    profiles: tuple[Profile, ...] | None
    from_table: bool
    pending_why: str | None = None

    @property
    def title(self) -> str:
        return f"GPU {self.index}"

    def describe(self) -> str:
        """Return the layout in one line, also where it is not known."""
        if self.layout is None:
            return "not known"
        if self.layout.enabled and not self.instances_known:
            return "MIG enabled, instances not known"
        return self.layout.describe()


@dataclass(frozen=True)
class GpuPlan:
    """The change of one GPU.

    ``mode`` is the mode to set, None where it remains. ``waits``: the mode is set, and takes effect
    with a reboot, after which the rest can be made.
    """

    gpu: Gpu
    before: Layout
    after: Layout
    mode: bool | None = None
    destroy: tuple[Instance, ...] = ()
    create: tuple[Instance, ...] = ()
    keep: tuple[Instance, ...] = ()
    waits: bool = False

    @property
    def change(self) -> bool:
        return self.mode is not None or bool(self.destroy or self.create)

    @property
    def reboot_reason(self) -> str:
        """Why a GPU whose mode is pending needs a reboot."""
        verb = "enabled" if self.after.enabled else "disabled"
        why = f" ({self.gpu.pending_why})" if self.gpu.pending_why else ""
        return f"MIG of {self.gpu.title} is {verb} with the next boot{why}"

    def to_json(self) -> dict[str, Any]:
        """Return the plan of the GPU as JSON values."""
        # A mode that waits for the reboot is the one of now.
        then = self.before if self.waits else self.after
        return {
            "index": self.gpu.index,
            "address": self.gpu.address,
            "uuid": self.gpu.uuid,
            "mode": "keep" if self.mode is None else "enable" if self.mode else "disable",
            "destroy": [one.place for one in self.destroy],
            "create": [one.place for one in self.create],
            "keep": [one.place for one in self.keep],
            "before": self.before.describe(),
            "after": self.after.describe(),
            "reboot_reason": self.reboot_reason if self.waits else "",
            "mig_mode": "enabled" if then.enabled else "disabled",
            "mig_devices": list(then.devices),
        }


@dataclass(frozen=True)
class Request:
    """What is requested: the options of the module and the filter.

    :param config: a name of ``configs`` or of a built-in configuration; empty: MIG remains.
    :param driver_version: the driver that the same run installs first.
    :param reset: whether a GPU may be reset whose mode remains pending (Ampere).
    :param services: units without ``.service`` that are stopped if they hold a GPU.
    :param at_boot: whether a unit makes the layout again at each boot.
    :param beside_others: whether a node is changed on which NVIDIA's MIG manager is enabled.
    """

    config: str = ""
    configs: Mapping[str, Any] = field(default_factory=dict)
    driver_version: str = ""
    reset: bool = True
    services: tuple[str, ...] = SERVICES
    at_boot: bool = True
    beside_others: bool = False


@dataclass(frozen=True)
class Pods:
    """Pods that use GPUs of the node, which has the name ``node`` in their cluster."""

    node: str = ""
    names: tuple[str, ...] = ()


@dataclass(frozen=True)
class BootFile:
    """A file for the layout at boot. ``sha256`` is None where there should be none."""

    path: str
    text: str | None


@dataclass(frozen=True)
class Plan:
    """The plan of a node. ``action`` is none, change or refuse.

    ``stop`` are the services that hold a GPU that changes. ``notes`` are what is left out, and
    nothing that remains to be done.
    """

    action: str
    gpus: tuple[GpuPlan, ...] = ()
    files: tuple[BootFile, ...] = ()
    stop: tuple[str, ...] = ()
    steps: tuple[Step, ...] = ()
    reasons: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    refusals: tuple[Mapping[str, Any], ...] = ()

    @property
    def change(self) -> bool:
        return self.action == "change"

    @property
    def partitions(self) -> bool:
        """Whether the layout of a GPU changes."""
        return self.change and any(one.change for one in self.gpus)

    @property
    def interrupts(self) -> bool:
        """Whether programs could lose a device: a mode changes, or an instance is destroyed."""
        return self.change and any(one.mode is not None or one.destroy for one in self.gpus)

    def to_json(self) -> dict[str, Any]:
        """Return the plan as the filter returns it."""
        return {
            "action": self.action,
            "change": self.change,
            "partitions": self.partitions,
            "interrupts": self.interrupts,
            "reboot_reason": "; ".join(one.reboot_reason for one in self.gpus if one.waits),
            "devices": [one.to_json() for one in self.gpus],
            "files": [one.path for one in self.files],
            "stop": list(self.stop),
            "steps": [asdict(step) for step in self.steps],
            "reasons": list(self.reasons),
            "refusals": list(self.refusals),
            "warnings": list(self.warnings),
            "notes": list(self.notes),
        }


def parse_profile(name: str) -> re.Match[str]:
    """Return the parts of a profile's name.

    :raises InputError: it is no name of a profile.
    """
    match = PROFILE.match(name)
    if match is None:
        raise InputError(
            f"{name!r} is not a MIG profile.",
            next_step="Write it as nvidia-smi mig -lgip does, such as 1g.10gb or 1g.10gb+me.",
        )
    return match
