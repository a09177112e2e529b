# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Ansible skips a task if one of its tags is skipped, and gives each task the tags of its play."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from tests.unit.roles.test_proxies import mappings

PLAYBOOKS = Path(__file__).parents[3] / "playbooks"
FILES = sorted(
    path for folder in (".", "parts", "tasks") for path in (PLAYBOOKS / folder).glob("*.yml")
)
# What these parts have in common is of no use without both of them (docs/playbooks.md).
TOGETHER = ({"toolkit", "runtime"}, {"dra", "device_plugin"})


@pytest.mark.parametrize("path", FILES, ids=[path.stem for path in FILES])
def test_a_part_that_is_skipped_takes_no_other_along(path):
    tree = yaml.safe_load(path.read_text(encoding="utf-8"))
    tags = [set(one["tags"]) for one in mappings(tree) if isinstance(one.get("tags"), list)]
    assert [one for one in tags if len(one) > 1 and one not in TOGETHER] == []
