# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The services that work for a driver, after a change of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..plan.config_files import IMEX_NODES, MODULES
from ..plan.fabric import BRIDGE_MODULE, IMEX_UNIT, MANAGER_UNIT, changed_units, units_of
from .host import enable_services, load_bridges

if TYPE_CHECKING:
    from .run import Work


def start_services(work: Work, reboot: str) -> None:
    """Start the services; what belongs to another version than the loaded one comes by a boot."""
    units = dict(work.plan.services)
    before = (work.pending.get("before") or {}).get("packages") or {}
    packages = work.facts["driver"]["packages"]
    if work.daemons and reboot:
        # What fits the loaded module can have been stopped to unload it; the rest cannot run.
        fit = units_of(work.facts["driver"]["loaded"], packages)
        units = {unit: to for unit, to in units.items() if unit not in work.daemons or unit in fit}
    elif BRIDGE_MODULE in work.plan.files.get(MODULES, "").split():
        complaint = load_bridges(work.run)
        if complaint:
            work.warn(complaint)
    again = set(changed_units(before, packages)) & set(units)
    if IMEX_NODES in work.pending.get("files", ()):
        again |= {IMEX_UNIT} & set(units)
    users = work.look().users if MANAGER_UNIT in again else ()
    if users:
        # Its end aborts what computes on the GPUs.
        again.discard(MANAGER_UNIT)
        work.warn(
            f"The package of {MANAGER_UNIT} was changed, and it is not restarted while "
            f"{', '.join(users)} use GPUs. Next step: systemctl restart {MANAGER_UNIT} when they "
            "have ended."
        )
    enable_services(work.run, units, start=True, again=again)
