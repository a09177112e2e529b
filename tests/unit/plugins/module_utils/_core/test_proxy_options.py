# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Modules that take a proxy as an option use it, and nothing of it comes back.

How it gets to the node: tests/integration/controller/test_proxies.py.
"""

from __future__ import annotations

import json
import os
from dataclasses import replace

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._core.proxy_options import (
    PROXIES,
    PROXY_ARGUMENTS,
    proxies_of,
    use_proxies,
)
from ansible_collections.kubegpu.nodes.plugins.modules import (
    cuda_toolkit,
    nvidia_driver,
    package_set,
)
from tests.unit.module_process import run_module

PROXY = "http://svc:Pr0xyPW@proxy.example.com:3128"


def test_what_is_given_is_set_and_nothing_else():
    environment = {"https_proxy": "http://own:1", "PATH": "/bin"}
    use_proxies({"http_proxy": PROXY, "https_proxy": None, "no_proxy": ""}, environment)
    assert environment == {"https_proxy": "http://own:1", "PATH": "/bin", "http_proxy": PROXY}
    assert proxies_of({"https_proxy": PROXY, "name": "x"}) == {"https_proxy": PROXY}
    assert {name for name, spec in PROXY_ARGUMENTS.items() if spec["no_log"]} == {
        "http_proxy",
        "https_proxy",
        "proxies",
    }


@pytest.mark.parametrize("module", [cuda_toolkit, nvidia_driver, package_set])
def test_a_module_sets_them_for_the_commands_that_it_starts(module, monkeypatch, tmp_path):
    for name in PROXIES:
        # Restored after the test.
        monkeypatch.setenv(name, "")
    seen = []

    class Stop(Exception):
        pass

    def stop(_path):
        seen.append({name: os.environ[name] for name in PROXIES})
        raise Stop

    monkeypatch.setattr(module, "StateStore", stop)
    options = {"http_proxy": PROXY, "https_proxy": PROXY, "no_proxy": "localhost"}
    more = {"name": "x", "packages": {}} if module is package_set else {}
    with pytest.raises(Stop):
        run_module(module.main, {**options, **more})
    assert seen == [options]


def test_the_password_is_in_nothing_that_comes_back(monkeypatch, tmp_path):
    for name in PROXIES:
        monkeypatch.setenv(name, "")
    # As where -vvv shows the invocation, and something of it in a message.
    prepare = package_set.prepare

    def telling(*given):
        result = prepare(*given)
        return replace(result, values={**result.values, "said": f"by {PROXY}"})

    monkeypatch.setattr(package_set, "prepare", telling)
    options = {"name": "x", "state": "absent", "state_path": str(tmp_path / "state.json")}
    proxies = {"http_proxy": PROXY, "https_proxy": PROXY, "_ansible_inject_invocation": True}
    answer = run_module(package_set.main, {**options, **proxies})
    assert not answer.get("failed") and answer["said"] and answer["invocation"]
    assert "Pr0xyPW" not in json.dumps(answer)
