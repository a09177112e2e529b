# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""In the default tier one engine judges what all of them judge in the full tier.

A test's input meets the release that a hash of both names: so all releases are met each time, and
an input meets another one in another test.
"""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from tests.integration.engines.dealing import pick
from tests.tools import tiers

# The parameters that name the engine, by themselves or with a version of its configuration.
ENGINE = ("containerd", "release", "node", "version")


def _dealt(item: Any) -> tuple[str, str, str] | None:
    """Return what is judged, by which engine, and as which version of its configuration."""
    callspec = getattr(item, "callspec", None)
    if callspec is None:
        return None
    parameters = dict(callspec.params)
    engine, version, names = "", "", [item.nodeid.partition("[")[0]]
    if "case" in parameters:
        made, engine, number = parameters.pop("case")
        names.append(made.name)
        version = str(number)
    for name in ENGINE:
        if name in parameters:
            value = str(parameters.pop(name))
            engine, version = (value, version) if not engine else (engine, value)
    return ("-".join([*names, *map(str, parameters.values())]), engine, version) if engine else None


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: Any, items: list[Any]) -> None:
    if tiers.is_full():
        return
    groups: dict[str, list[tuple[str, str]]] = defaultdict(list)
    here = Path(__file__).parent
    found = ((id(item), _dealt(item)) for item in items if here in item.path.parents)
    dealt = {key: one for key, one in found if one}
    for what, engine, version in dealt.values():
        groups[what].append((engine, version))
    left = []
    for item in items:
        if id(item) in dealt:
            what, engine, version = dealt[id(item)]
            if pick(what, groups[what]) != (engine, version):
                left.append(item)
    if left:
        gone = set(map(id, left))
        config.hook.pytest_deselected(items=left)
        items[:] = [item for item in items if id(item) not in gone]
