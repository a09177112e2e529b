# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which package managers this release uses, and with which ansible-core; without their code."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from .data import DISTRIBUTIONS, folder_of

MANAGERS = ("apt", "dnf", "dnf5", "zypper")

# The release whose dnf module speaks to dnf's own Python in a process of its own. Before, the
# module itself is started there: on RHEL 8 it is Python 3.6, which no supported ansible-core knows.
# Read in ansible-core 2.19.14 and 2.21 (modules/dnf.py, module_utils/_embed/dnf.py), 2026-11-21;
# not tried. What takes the folder of RHEL 8 has a dnf as old as that (u).
_CORE_FOR_DNF_OF_EL8 = (2, 21)


def unsupported(system: Mapping[str, Any], controller: str) -> str:
    """Return why this ansible-core cannot install packages on that node, or an empty string.

    :param system: the fact ``os``.
    :param controller: the version of ansible-core; empty: not known.
    """
    # One that no row is for is taken for its family.
    identity = system["id"] if system["id"] in DISTRIBUTIONS else system["family"]
    old = folder_of(identity or "", system["version"] or "") == "rhel8"
    numbers = tuple(int(number) for number in re.findall(r"\d+", controller)[:2])
    if system["package_manager"] != "dnf" or not old or not numbers:
        return ""
    if numbers >= _CORE_FOR_DNF_OF_EL8:
        return ""
    return (
        f"{system['id']} {system['version']} has dnf for an old Python alone (Python 3.6 on "
        f"RHEL 8), which ansible-core {controller} cannot use. Next step: run with ansible-core "
        "2.21 or later, and give the node a Python 3.9 or later for everything else (dnf install "
        "python39, ansible_python_interpreter: /usr/bin/python3.9)."
    )
