# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""One run of the module nvidia_driver: what its phases know of the node and of the wish."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..._core.errors import KubegpuError
from ..._core.finding import Finding
from ..._diagnosis.driver import diagnose
from ..._diagnosis.evidence import collect
from ..._host.command import Runner
from .. import record as flow
from ..plan.config_files import RECORD
from ..plan.fabric import UNITS
from ..types import DriverPlan, DriverWish
from .host import look_around

if TYPE_CHECKING:
    from ..._host.reader import NodeReader
    from ..._record.store import StateStore


class Diagnosed(KubegpuError):
    """A failure whose cause has a name."""

    def __init__(self, finding: Finding) -> None:
        super().__init__(finding.cause, evidence=finding.evidence, next_step=finding.next_step)
        self.code = finding.code


@dataclass(frozen=True)
class Work:
    """The node as it stands, what is wished, and what follows from both.

    ``params``: the module's options. ``diff``: whether one is asked for. ``warn``: tells the user
    something. ``again``: looks at the node once more. ``root``: below this everything is.
    """

    params: Mapping[str, Any]
    diff: bool
    warn: Callable[[str], None]
    again: Callable[[], Work]
    root: str
    run: Runner
    reader: NodeReader
    store: StateStore
    wish: DriverWish
    facts: Mapping[str, Any]
    plan: DriverPlan
    memory: flow.Memory

    @property
    def present(self) -> bool:
        return self.wish.state == "present"

    @property
    def pending(self) -> Mapping[str, Any]:
        return self.memory.pending or {}

    @property
    def daemons(self) -> tuple[str, ...]:
        """Return the units that work for the driver, are ours, and are stopped for a change."""
        units = self.plan.services if self.present else self.memory.services
        return tuple(unit for unit in UNITS if unit in units)

    def look(self) -> flow.Look:
        return look_around(self.reader, self.daemons)

    def loading(self, look: flow.Look) -> flow.Loading:
        """Return whether the module is to be loaded (or, for absent, unloaded) now."""
        if self.present:
            # Once the driver has come, another one that is loaded is a reason to reboot by facts
            # alone; what this change began by loading is tried all the same.
            begun = bool(self.pending.get("load"))
            other = look.loaded is None or bool(self.plan.reboot["required"])
            wanted = self.plan.load or (begun and other)
            return flow.decide_loading(wanted, look, self.plan.reboot)
        wanted = bool(look.loaded) and self.memory.installed
        return flow.decide_loading(wanted, look, {"required": False, "reason": ""})

    def place(self, path: str) -> str:
        """Return where a path of the node is."""
        return self.root.rstrip("/") + path

    def keep(self, memory: flow.Memory) -> None:
        self.store.put(RECORD, memory.to_json())


def diagnosis(
    work: Work, modprobe: str = "", words: str = "", since: float | None = None
) -> Finding:
    """Return why the driver does not come or does not load, by looking at the node."""
    return diagnose(
        collect(
            work.reader,
            work.facts,
            wanted=work.plan.version,
            kernel_module=work.plan.kernel_module,
            modprobe=modprobe,
            output=words,
            since=since,
        )
    )
