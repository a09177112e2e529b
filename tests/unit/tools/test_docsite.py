# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The index of the documentation site: internal modules are listed behind the others."""

from __future__ import annotations

import re

from tests.tools.docsite import internal_last
from tests.tools.environments import REPOSITORY

LINE = "* :ansplugin:`{0} module <kubegpu.nodes.{0}#module>` -- {1}\n"


def test_internal_modules_are_last():
    index = (
        "Modules\n~~~~~~~\n\n"
        + LINE.format("fleet_table", "Show rows (internal)")
        + LINE.format("node_pause", "Pause nodes")
        + "\n.. toctree::\n    fleet_table_module\n    node_pause_module\n"
    )
    found = internal_last(index)
    assert re.findall(r"`(\w+) module", found) == ["node_pause", "fleet_table"]
    assert "\n\nInternal modules\n~~~~~~~~~~~~~~~~\n\n* :ansplugin:`fleet_table" in found
    assert found.endswith(index.partition("\n.. toctree")[2])
    assert internal_last("Roles\n~~~~~\n") == "Roles\n~~~~~\n"


def test_what_is_internal():
    named = {
        path.stem
        for path in (REPOSITORY / "plugins" / "modules").glob("*.py")
        if re.search(r"^short_description: .*\(internal\)$", path.read_text(), re.M)
    }
    assert named == {
        "fleet_bundle", "fleet_report", "fleet_table", "fleet_variables", "gpu_node_texts",
        "node_builtin", "node_reboot", "runfile_download", "runtime_configuration",
    }  # fmt: skip
