# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The default tier meets every engine with a good share of the inputs."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tests.integration.engines import (
    test_containerd_inputs,
    test_docker_daemon,
    test_docker_inputs,
)
from tests.integration.engines.containerd_inputs import catalogue
from tests.integration.engines.containerd_inputs.judge import CONTAINERDS
from tests.integration.engines.dealing import pick
from tests.integration.engines.docker_inputs.daemon import VERSIONS

HERE = Path(__file__).parent.relative_to(Path(__file__).parents[3])


def nodeid(module, name):
    return f"{HERE}/{module.__name__.rpartition('.')[2]}.py::{name}"


@pytest.mark.parametrize(
    "test",
    [
        test_containerd_inputs.test_every_input_gets_the_handler_and_nothing_else,
        test_containerd_inputs.test_every_input_comes_back_to_the_byte,
        test_containerd_inputs.test_a_foreign_edit_in_between_stays,
    ],
)
def test_containerd(test):
    variations = {}
    for made, engine, version in catalogue.cases():
        variations.setdefault(made.name, []).append((engine, str(version)))
    name = nodeid(test_containerd_inputs, test.__name__)
    picked = [pick(f"{name}-{made}", found) for made, found in variations.items()]
    engines = Counter(engine for engine, _version in picked)
    assert set(engines) == set(CONTAINERDS)
    assert min(engines.values()) >= len(picked) // 6
    assert {version for _engine, version in picked} == {"1", "2", "3"}


@pytest.mark.parametrize("module", [test_docker_inputs, test_docker_daemon])
def test_docker(module):
    tests = [name for name in vars(module) if name.startswith("test_")]
    picked = Counter(pick(nodeid(module, name), [(one, "") for one in VERSIONS]) for name in tests)
    assert len(picked) == len(VERSIONS)
    assert min(picked.values()) >= len(tests) // 6
