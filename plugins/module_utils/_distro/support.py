# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The supported package managers, and the versions of ansible-core that they need."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .._core.errors import Refusal
from .._core.versions import version_numbers
from .data import DISTRIBUTIONS, folder_of
from .upstream import package_base

MANAGERS = ("apt", "dnf", "dnf5", "zypper")

# From this release on, the dnf module runs dnf's own Python in a separate process. Earlier releases
# start the module itself with it: on RHEL 8 that is Python 3.6, which no supported ansible-core can
# use. Read in ansible-core 2.19.14 and 2.21 (modules/dnf.py, module_utils/_embed/dnf.py),
# 2026-11-21; not tested. Distributions that use the folder of RHEL 8 have a dnf as old as that (u).
_CORE_FOR_DNF_OF_EL8 = (2, 21)


def unsupported(system: Mapping[str, Any], controller: str) -> Refusal | None:
    """Return why this ansible-core cannot install packages on that node, or None.

    :param system: the fact ``os``.
    :param controller: the version of ansible-core; empty: not known.
    """
    base = package_base(system)
    # A distribution without a row is treated like its family.
    identity = base["id"] if base["id"] in DISTRIBUTIONS else base["family"]
    old = folder_of(identity or "", base["version"] or "") == "rhel8"
    numbers = version_numbers(controller)[:2]
    if system["package_manager"] != "dnf" or not old or not numbers:
        return None
    if numbers >= _CORE_FOR_DNF_OF_EL8:
        return None
    return Refusal(
        f"{system['id']} {system['version']} has dnf for an old Python alone (Python 3.6 on "
        f"RHEL 8), which ansible-core {controller} cannot use.",
        "run with ansible-core 2.21 or later, and give the node a Python 3.9 or later for "
        "everything else (dnf install python39, ansible_python_interpreter: /usr/bin/python3.9).",
    )
