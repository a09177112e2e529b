# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Context of one call of the module nvidia_driver, which its phases share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..._core.finding import Finding
from ..._host.command import Runner
from ..._known_faults.evidence import collect
from ..._known_faults.on_node import diagnose
from ..components import UNITS
from ..plan.config_files import RECORD
from ..record import Record
from ..sent_plan import SentPlan
from ..types import Plan, Request
from .kernel_module import read_module_state
from .loading import Loading, ModuleState, decide_loading

if TYPE_CHECKING:
    from ..._host.reader import NodeReader
    from ..._record.store import StateStore


@dataclass(frozen=True)
class Context:
    """The node's current state, the request and the plan that was sent.

    ``params``: the module's options. ``diff``: whether diff mode is on. ``warn``: adds a warning to
    the result. ``refresh``: returns a context with fresh facts. ``root``: the root directory, which
    is another one in tests.
    """

    params: Mapping[str, Any]
    diff: bool
    warn: Callable[[str], None]
    refresh: Callable[[], Context]
    root: str
    run: Runner
    reader: NodeReader
    store: StateStore
    request: Request
    facts: Mapping[str, Any]
    sent: SentPlan
    record: Record

    @property
    def plan(self) -> Plan:
        return self.sent.plan

    @property
    def present(self) -> bool:
        return self.request.state == "present"

    @property
    def pending(self) -> Mapping[str, Any]:
        return self.record.pending or {}

    @property
    def daemons(self) -> tuple[str, ...]:
        """Return the managed units of the driver that are stopped for a change."""
        units = self.plan.services if self.present else self.record.services
        return tuple(unit for unit in UNITS if unit in units)

    def module_state(self) -> ModuleState:
        return read_module_state(self.reader, self.daemons)

    def loading(self, module_state: ModuleState) -> Loading:
        """Return whether the kernel module is to be loaded (for ``absent``: unloaded) now."""
        if self.present:
            # Once the driver is installed, facts alone demand a reboot if another one is loaded.
            # A pending change that includes loading tries it nevertheless.
            begun = bool(self.pending.get("load"))
            other = module_state.loaded is None or bool(self.plan.reboot["required"])
            wanted = self.plan.load or (begun and other)
            return decide_loading(wanted, module_state, self.plan.reboot)
        wanted = bool(module_state.loaded) and self.record.installed
        return decide_loading(wanted, module_state, {"required": False, "reason": ""})

    def absolute(self, path: str) -> str:
        """Return the path below the root directory."""
        return self.root.rstrip("/") + path

    def save_record(self, record: Record) -> None:
        self.store.put(RECORD, record.to_json())


def diagnose_node(
    context: Context, modprobe: str = "", words: str = "", since: float | None = None
) -> Finding:
    """Return why the driver cannot be installed or loaded, from evidence on the node."""
    return diagnose(
        collect(
            context.reader,
            context.facts,
            wanted=context.plan.version,
            kernel_module=context.plan.kernel_module,
            modprobe=modprobe,
            output=words,
            since=since,
        ),
        context.facts,
    )
