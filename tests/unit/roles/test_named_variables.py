# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A variable that a next step names exists."""

from __future__ import annotations

import re

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._diagnosis.data import CAUSES
from tests.tools.environments import REPOSITORY
from tests.tools.reference import findings_page

ROLES = sorted(path.name for path in (REPOSITORY / "roles").iterdir())
_NAME = re.compile(rf"(?<![\w/.])(?:{'|'.join(ROLES)}|kubegpu)_\w+\b(?![/.]\w)")
_VARIABLE = re.compile(r"^\| `(\w+)`", re.MULTILINE)
_SECTION = re.compile(r"^### `(\w+)`\n(.*?)(?=^##|\Z)", re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def known():
    variables = (REPOSITORY / "docs" / "variables.md").read_text(encoding="utf-8")
    facts = {f"{role}_{fact}" for role in ROLES for fact in ("plan", "result")}
    modules = {path.stem for path in (REPOSITORY / "plugins" / "modules").glob("*.py")}
    return {*_VARIABLE.findall(variables), *facts, *modules}


def sections(page):
    """Return the text of each finding by its code."""
    return dict(_SECTION.findall(page))


def unknown(texts, known):
    return {(code, name) for code, text in texts.items() for name in _NAME.findall(text)} - {
        (code, name) for code in texts for name in known
    }


def test_a_finding_names_variables_that_exist(known):
    texts = sections(findings_page())
    assert len(texts) > 300
    assert sum(bool(_NAME.search(text)) for text in texts.values()) > 10
    assert unknown(texts, known) == set()


def test_a_root_cause_names_variables_that_exist(known):
    assert unknown({code: cause.fix for code, cause in CAUSES.items()}, known) == set()


def test_a_name_that_is_no_variable_is_found(known):
    text = "nvidia_driver_runfile_url, nvidia_driver_source, gpu_node_facts, kubegpu_kube"
    assert unknown({"one": text}, known) == {("one", "nvidia_driver_runfile_url")}
