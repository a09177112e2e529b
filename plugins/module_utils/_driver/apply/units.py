# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The services of a driver: enabled, started and restored."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING

from ..._core.errors import KubegpuError
from ..._host.command import NOT_FOUND, Runner
from ..._known_faults.explain import explain
from ..._mig.boot_paths import SCRIPT_PATH
from ..._mig.boot_paths import UNIT as MIG_UNIT
from ..._nvidia.toolkit_paths import CDI_REFRESH_UNIT
from ..components import BRIDGE_MODULE, IMEX_UNIT, MANAGER_UNIT, changed_units, units_of
from ..plan.config_files import IMEX_NODES, MODULES

if TYPE_CHECKING:
    from .context import Context

# Seconds: the fabric manager is up once it has configured all switches.
_UNIT_TIMEOUT = 300
# The output of systemctl is-enabled for a unit that does not exist.
NO_UNIT = "not-found"


def start_services(context: Context, reboot: str) -> None:
    """Start the services that fit the loaded module; the others start with the next boot."""
    units = dict(context.plan.services)
    before = (context.pending.get("before") or {}).get("packages") or {}
    packages = context.facts["driver"]["packages"]
    if context.daemons and reboot:
        # Units that fit the loaded module may have been stopped to unload it; others cannot run.
        fit = units_of(context.facts["driver"]["loaded"], packages)
        units = {
            unit: to for unit, to in units.items() if unit not in context.daemons or unit in fit
        }
    elif BRIDGE_MODULE in context.plan.files.get(MODULES, "").split():
        complaint = load_bridges(context.run)
        if complaint:
            context.warn(complaint)
    again = set(changed_units(before, packages)) & set(units)
    if IMEX_NODES in context.pending.get("files", ()):
        again |= {IMEX_UNIT} & set(units)
    users = context.module_state().users if MANAGER_UNIT in again else ()
    if users:
        # Stopping it aborts programs that compute on the GPUs.
        again.discard(MANAGER_UNIT)
        context.warn(
            f"The package of {MANAGER_UNIT} was changed, and it is not restarted while "
            f"{', '.join(users)} use GPUs. Next step: systemctl restart {MANAGER_UNIT} when they "
            "have ended."
        )
    enable_services(context.run, units, start=True, again=again)


def restore_mig(context: Context) -> None:
    """Make the MIG layout of the node again: from Hopper on it is lost with the unloaded module.

    The toolkit's rule of udev has started the refresh of the CDI specification with the module,
    before there were instances: it is stopped, as it holds the GPUs, and runs again at the end.
    """
    if not context.reader.exists(SCRIPT_PATH):
        return
    context.run(["udevadm", "settle", "--timeout=30"], timeout=60)
    context.run(["systemctl", "stop", CDI_REFRESH_UNIT])
    answer = context.run(["systemctl", "restart", MIG_UNIT], timeout=_UNIT_TIMEOUT)
    if not answer.ok:
        context.warn(
            f"{MIG_UNIT} did not recreate the MIG layout: {answer.last_output()}. Next step: "
            f"run the role nvidia_mig, or check journalctl --unit {MIG_UNIT}"
        )
    _refresh_specification(context)


def _refresh_specification(context: Context) -> None:
    """Have the toolkit's service make the CDI specification again, where the node has it."""
    if not context.run(["systemctl", "cat", CDI_REFRESH_UNIT]).ok:
        return
    # The starts by the rule and by the unit of paths count, too: systemd allows five in 10 seconds.
    context.run(["systemctl", "reset-failed", CDI_REFRESH_UNIT])
    answer = context.run(["systemctl", "restart", CDI_REFRESH_UNIT], timeout=_UNIT_TIMEOUT)
    if not answer.ok:
        context.warn(
            f"{CDI_REFRESH_UNIT} did not make the CDI specification for the MIG instances: "
            f"{answer.last_output()}. Next step: check journalctl --unit {CDI_REFRESH_UNIT}, then "
            f"systemctl restart {CDI_REFRESH_UNIT}"
        )


def load_bridges(run: Runner) -> str:
    """Load the module that reaches NVSwitches behind bridges; return a warning if that fails."""
    answer = run(["modprobe", BRIDGE_MODULE], timeout=60)
    if answer.ok:
        return ""
    return (
        f"The kernel module {BRIDGE_MODULE}, through which this node reaches its NVSwitches, "
        f"cannot be loaded ({answer.last_output()}): the fabric manager will not find them. "
        "Next step: install what has it (linux-modules-extra-<kernel> on Ubuntu, "
        "kernel-modules-extra, or NVIDIA's DOCA-OFED), then run again."
    )


def read_services(run: Runner, units: Iterable[str]) -> dict[str, str]:
    """Return the output of ``systemctl is-enabled`` by unit; empty without systemctl."""
    found = {}
    for unit in units:
        answer = run(["systemctl", "is-enabled", f"{unit}.service"])
        if answer.rc == NOT_FOUND:
            return {}
        words = answer.stdout.split()
        found[unit] = words[0] if words else NO_UNIT
    return found


def enable_services(
    run: Runner, units: Mapping[str, str], *, start: bool, again: Collection[str] = ()
) -> list[str]:
    """Enable the units and optionally start them; return warnings.

    :param units: ``enabled`` by unit.
    :param again: units that are restarted.
    :raises KubegpuError: systemctl failed.
    """
    warnings = []
    states = read_services(run, units)
    for unit in units:
        state = states.get(unit)
        if state is None:
            continue
        if state == NO_UNIT:
            warnings.append(f"The unit {unit} is not on this node, and is not enabled.")
            continue
        if state == "masked":
            warnings.append(f"The unit {unit} is masked, and remains masked.")
            continue
        if not state.startswith(("enabled", "static", "alias", "indirect", "generated")):
            _systemctl(run, "enable", unit)
        if start:
            # systemd refuses a unit that failed too often, until its counter is reset.
            run(["systemctl", "reset-failed", f"{unit}.service"])
            _systemctl(run, "restart" if unit in again else "start", unit)
    return warnings


def restore_services(run: Runner, earlier: Mapping[str, str]) -> None:
    """Disable the units that were not enabled before the first change."""
    for unit, state in earlier.items():
        if not state.startswith("enabled") and read_services(run, [unit]).get(unit) == "enabled":
            run(["systemctl", "stop", f"{unit}.service"])
            _systemctl(run, "disable", unit)


def read_again(run: Runner, *, units: bool, rules: bool) -> None:
    """Reload systemd and udev after their files changed; errors do not matter."""
    if units:
        run(["systemctl", "daemon-reload"])
    if rules:
        run(["udevadm", "control", "--reload"])


def _systemctl(run: Runner, verb: str, unit: str) -> None:
    answer = run(["systemctl", verb, f"{unit}.service"], timeout=_UNIT_TIMEOUT)
    if not answer.ok:
        journal = run(
            ["journalctl", "--unit", unit, "--no-pager", "--output=cat", "--lines=20"], timeout=20
        ).stdout.strip()
        known = explain(journal)
        raise KubegpuError(
            f"systemctl {verb} {unit} failed." + (f" {known[0].cause}" if known else ""),
            evidence=(known[0].evidence if known else "") or answer.last_output(),
            next_step=known[0].next_step if known else f"Check: journalctl --unit {unit}",
        )
