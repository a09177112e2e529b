# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Options of what a cluster has once, given by each of its hosts. Pure.

This file imports little, because processes that run no plan import it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .._core.errors import Refusal
from .._core.options import variable_of


def differing_options(
    hosts: Mapping[str, Mapping[str, Any]], prefix: str, what: str, exception: str
) -> list[Refusal]:
    """Refuse options that differ between hosts, because the cluster has one of what they are for.

    :param prefix: of the role's variables.
    :param what: what the options are for.
    :param exception: a sentence about the options that may differ.
    """
    known = [(name, hosts[name]["options"]) for name in sorted(hosts) if hosts[name].get("options")]
    if not known:
        return []
    first, options = known[0]
    found = []
    for option in sorted({key for _name, other in known for key in other}):
        for name, other in known[1:]:
            if other.get(option) != options.get(option):
                found.append(
                    Refusal(
                        f"{_variable(prefix, option)} differs between {first} and {name}, and "
                        f"{what} is one for the whole cluster",
                        f"Set it for all hosts of the cluster alike. {exception}",
                        f"{first}: {options.get(option)!r}; {name}: {other.get(option)!r}",
                    )
                )
                break
    return found


def _variable(prefix: str, option: str) -> str:
    """Return the name of a variable; some are not of the role."""
    shared = not prefix or option.startswith("kubegpu_")
    return option if shared else variable_of(prefix[:-1], option)
