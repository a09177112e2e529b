# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the action of package_repository takes from the settings of a role."""

from __future__ import annotations

import types

import pytest
from ansible.errors import AnsibleActionFail
from ansible.parsing.dataloader import DataLoader

from ansible_collections.kubegpu.nodes.plugins.action import package_repository
from ansible_collections.kubegpu.nodes.plugins.action.package_repository import ActionModule

PLANNED = {"name": "x", "url": "https://***@mirror.example/x", "key_fingerprints": ["A"]}
URL = "https://me:s3cret@mirror.example/x"


@pytest.fixture
def run(monkeypatch, tmp_path):
    """Return a function that runs the action, and returns the options of its module."""
    monkeypatch.setattr(
        package_repository.ModuleAction,
        "run",
        lambda plugin, _tmp, _variables: {"options": plugin._task.args},
    )

    def made(settings, facts=None, **more):
        plugin = object.__new__(ActionModule)
        role = types.SimpleNamespace(get_name=lambda **_options: "nvidia_driver")
        plugin._task = types.SimpleNamespace(
            args={**PLANNED, "settings": settings, **more},
            _role=role,
            get_search_path=lambda: [str(tmp_path)],
        )
        plugin._loader = DataLoader()
        variables = {
            "inventory_hostname": "gpu1", "inventory_dir": str(tmp_path),
            "ansible_facts": facts or {},
        }  # fmt: skip
        return plugin.run(None, variables)["options"]

    return made


def test_the_key_is_read_from_the_controller(run, tmp_path):
    (tmp_path / "key.asc").write_text("KEY\n")
    found = run({"url": URL, "key_file": "key.asc"}, key_url="https://keys.example/k")
    assert found == {**PLANNED, "url": URL, "key": "KEY"}


def test_a_key_that_is_not_there_is_named_by_its_variable(run):
    with pytest.raises(AnsibleActionFail, match=r"nvidia_driver_repository\.key_file: key\.asc"):
        run({"key_file": "key.asc"})


def test_a_key_of_the_distribution_needs_no_file(run):
    found = run({"key_file": "key.asc"}, keyring="/usr/share/keyrings/x.gpg")
    assert found["keyring"] == "/usr/share/keyrings/x.gpg" and "key" not in found


def test_without_settings_the_options_are_those_of_the_task(run):
    options = {**PLANNED, "key_url": "https://keys.example/k", "state": "present"}
    assert run(None, **options) == options


def test_a_node_does_not_choose_the_file(run):
    with pytest.raises(AnsibleActionFail, match="nvidia_driver_repository"):
        run({"key_file": "key.asc"}, facts={"nvidia_driver_repository": {"key_file": "/etc/x"}})
