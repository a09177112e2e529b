# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Ansible sends each file that a module imports to the node, also one inside of a function."""

from __future__ import annotations

import pytest

from tests.testbed.paths import REPOSITORY
from tests.tools.changed import imports_of

_FOLDER = "plugins/module_utils"


@pytest.fixture(scope="module")
def sent():
    return imports_of("plugins/modules/gpu_node_facts.py")


@pytest.mark.parametrize(
    "name",
    [
        # Tables of messages.
        "_known_faults/explain",
        "_known_faults/rules/containers",
        # What only plans and changes need.
        "_containerd/template_block",
        "_core/options",
        "_core/redact_lines",
        "_known_faults/drm_devices",
        "_distro/kernel_packages",
        "_driver/plan/config_texts",
        "_formats/toml_scan",
        "_mig/boot",
        "_mig/types",
        "_packages/failures",
        "_packages/streams",
        "_packages/types",
        "_toolkit/amd_cdi_checks",
    ],
)
def test_the_file_is_not_sent_with_the_facts(sent, name):
    path = f"{_FOLDER}/{name}.py"
    assert (REPOSITORY / path).is_file()
    assert path not in sent


def test_what_the_facts_import_is_found(sent):
    assert f"{_FOLDER}/_known_faults/matching.py" in sent


def test_what_decides_a_driver_is_not_sent_with_its_phases():
    """The action plans; ``config_files.py`` has paths only."""
    sent = imports_of("plugins/modules/nvidia_driver.py")
    folder = f"{_FOLDER}/_driver/plan/"
    planning = {path for path in sent if path.startswith(folder)}
    assert planning == {f"{folder}config_files.py"}
    assert f"{_FOLDER}/_driver/options.py" not in sent
    assert not {path for path in sent if path.startswith(f"{_FOLDER}/_plan/")}
