# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Where files of the controller are found, and for which hosts they are read."""

from __future__ import annotations

import pytest
from ansible.errors import AnsibleError
from ansible.parsing.dataloader import DataLoader

from ansible_collections.kubegpu.nodes.plugins.lookup.controller_file import LookupModule
from ansible_collections.kubegpu.nodes.plugins.module_utils._core.errors import InputError
from ansible_collections.kubegpu.nodes.plugins.plugin_utils._paths import find_file


@pytest.fixture
def place(tmp_path, monkeypatch):
    """Return a folder with an inventory and a folder in which the run starts."""
    for name in ("inventory", "current"):
        (tmp_path / name / "files").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "current")
    return tmp_path


class Lookup(LookupModule):
    """Has its options without Ansible's loader of plugins."""

    def set_options(self, task_keys=None, var_options=None, direct=None):
        self.given = {"option": "path", "returns": "text", **(direct or {})}

    def get_option(self, option, hostvars=None):
        return self.given[option]


def read(place, *paths, facts=None, **options):
    lookup = Lookup(loader=DataLoader())
    variables = {
        "inventory_hostname": "gpu1",
        "inventory_dir": str(place / "inventory"),
        "ansible_facts": facts or {},
    }
    return lookup.run(list(paths), variables, **options)


def test_the_folder_of_the_inventory_comes_first_and_then_the_current_one(place):
    (place / "current" / "files" / "key").write_text("current\n\n")
    assert read(place, "files/key") == ["current"]
    (place / "inventory" / "files" / "key").write_text("inventory\n")
    assert read(place, "files/key", "") == ["inventory", ""]
    assert read(place, "files/key", returns="exact") == ["inventory\n"]
    path = str(place / "inventory" / "files" / "key")
    assert read(place, "files/key", returns="path") == [path] == read(place, path, returns="path")


def test_what_is_missing_is_told_with_both_places(place):
    with pytest.raises(AnsibleError) as missing:
        read(place, "files/key", option="nvidia_driver_repository.key_file")
    for word in (
        "nvidia_driver_repository.key_file: files/key is not on the controller.",
        f"Seen: there is no {place}/inventory/files/key and no {place}/current/files/key",
        "Next step: ",
    ):
        assert word in str(missing.value)
    with pytest.raises(AnsibleError, match="is not a regular file"):
        read(place, "files")


def test_a_host_whose_facts_are_variables_reads_nothing(place):
    (place / "inventory" / "files" / "key").write_text("secret")
    for name in ("nvidia_driver_repository", "inventory_dir"):
        with pytest.raises(
            AnsibleError, match=r"gpu1 has facts with names of variables: [\s\S]*Next"
        ):
            read(place, "files/key", facts={name: "/"})
    assert read(place, "files/key", facts={"gpu_node": {}}) == ["secret"]


@pytest.mark.parametrize("folder", [None, "", 5])
def test_an_inventory_without_a_folder_is_left_out(place, folder):
    (place / "current" / "token").write_text("x")
    found = find_file("token", "token", {"inventory_dir": folder})
    assert found == str(place / "current" / "token")
    with pytest.raises(InputError) as missing:
        find_file("token", "none", {"inventory_dir": folder})
    assert missing.value.evidence == f"there is no {place}/current/none"


def test_home_and_ansibles_own_search(place, monkeypatch):
    monkeypatch.setenv("HOME", str(place / "inventory"))
    (place / "inventory" / "token").write_text("x")
    assert find_file("token", "~/token", {}) == str(place / "inventory" / "token")
    (place / "role").write_text("x")
    assert find_file("token", "in-a-role", {}, lambda _path: str(place / "role")).endswith("/role")

    def nothing(_path):
        raise AnsibleError("many folders of the collection")

    with pytest.raises(InputError) as missing:
        find_file("token", "in-a-role", {}, nothing)
    assert "many folders" not in str(missing.value)
