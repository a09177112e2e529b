# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The documentation site has no internal modules."""

from __future__ import annotations

import re

from tests.tools.docsite import guide_of_site, without_links, without_modules
from tests.tools.environments import REPOSITORY

LINE = "* :ansplugin:`{0} module <kubegpu.nodes.{0}#module>` -- {1}\n"


def test_internal_modules_are_left_out():
    index = (
        "Modules\n~~~~~~~\n\n"
        + LINE.format("fleet_bundle", "Write a bundle (internal)")
        + LINE.format("node_pause", "Pause nodes")
        + "\n.. toctree::\n    fleet_bundle_module\n    node_pause_module\n"
    )
    found = without_modules(index, ["fleet_bundle"])
    assert re.findall(r"`(\w+) module", found) == ["node_pause"]
    assert "fleet_bundle" not in found and found.endswith("toctree::\n    node_pause_module\n")


def test_a_link_to_one_is_its_name():
    target = "ansible_collections.kubegpu.nodes.{0}_module"
    text = (
        f":ref:`kubegpu.nodes.fleet\\_bundle <{target.format('fleet_bundle')}>`, "
        ":ansplugin:`kubegpu.nodes.fleet_bundle#module`, "
        f":ref:`kubegpu.nodes.node\\_pause <{target.format('node_pause')}>`"
    )
    assert without_links(text, ["fleet_bundle"]) == (
        "``kubegpu.nodes.fleet_bundle``, ``kubegpu.nodes.fleet_bundle``, "
        f":ref:`kubegpu.nodes.node\\_pause <{target.format('node_pause')}>`"
    )


def test_what_is_internal():
    named = {
        path.stem
        for path in (REPOSITORY / "plugins" / "modules").glob("*.py")
        if re.search(r"^short_description: .*\(internal\)$", path.read_text(), re.M)
    }
    assert named == {
        "cluster_objects",
        "fleet_bundle", "fleet_explain", "fleet_fail", "fleet_plan", "fleet_report",
        "fleet_variables", "gpu_node_texts",
        "node_builtin", "node_reboot", "runfile_download", "runtime_configuration",
    }  # fmt: skip


def test_a_link_on_two_lines_of_a_list_stays_one_item():
    text = "- Or you have mirrors (`closed networks\n  <guide_closed_network.rst>`__).\n"
    page = "/collection/docsite/guide_closed_network"
    assert guide_of_site(text) == f"- Or you have mirrors (:doc:`closed networks<{page}>`).\n"
