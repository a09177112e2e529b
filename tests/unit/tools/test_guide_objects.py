# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The objects in guides are valid, and kubespray's variable is that of the example."""

from __future__ import annotations

import re
import textwrap

import kubernetes_validate
import pytest
import yaml

from tests.tools.environments import REPOSITORY

GUIDES = sorted((REPOSITORY / "docs" / "docsite" / "rst").glob("*.rst"))
_YAML = re.compile(r"(?m)^\.\. code-block:: yaml\n\n((?:   .*\n|\n)+)")
#: The oldest and the newest release whose schema an object is compared with, by its API version.
RELEASES = {"v1": ("1.28", "1.37"), "resource.k8s.io/v1": ("1.34", "1.37")}


def objects():
    for path in GUIDES:
        for block in _YAML.findall(path.read_text(encoding="utf-8")):
            if "apiVersion:" in block:
                for one in yaml.safe_load_all(textwrap.dedent(block)):
                    yield pytest.param(one, id=f"{path.stem}-{one['kind']}")


@pytest.mark.parametrize("one", [*objects()])
def test_an_object_in_a_guide_is_valid(one):
    # A pod with a claim is of the releases of the claim.
    version = "resource.k8s.io/v1" if "resourceClaims" in one["spec"] else one["apiVersion"]
    for release in RELEASES[version]:
        kubernetes_validate.validate(one, release, strict=True)


def test_the_guide_of_kubespray_has_the_variable_of_the_example():
    text = (REPOSITORY / "docs/docsite/rst/guide_kubespray.rst").read_text(encoding="utf-8")
    shown = [yaml.safe_load(textwrap.dedent(block)) for block in _YAML.findall(text)]
    variables = REPOSITORY / "playbooks/examples/inventories/kubespray/group_vars"
    assert yaml.safe_load((variables / "all/containerd.yml").read_text()) in shown
    cluster = yaml.safe_load((variables / "k8s_cluster/gpu.yml").read_text())
    assert any(one.items() <= cluster.items() for one in shown)


def test_guides_have_objects():
    assert len(list(objects())) >= 4
