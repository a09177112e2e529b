# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import tomlkit
import yaml

from ansible_collections.kubegpu.nodes.plugins.module_utils._runtime import (
    toml_parser as _containerd_parser,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._toolkit.plan import ToolkitPlan
from ansible_collections.kubegpu.nodes.plugins.modules import container_toolkit_config as module
from ansible_collections.kubegpu.nodes.plugins.plugin_utils import _tomlkit
from tests.unit.module_process import predicted, run_module

ROLE = Path(__file__).resolve().parents[4] / "roles" / "nvidia_container_toolkit"
# As nvidia-container-toolkit 1.17 writes it.
DEFAULT = """#accept-nvidia-visible-devices-as-volume-mounts = false
#accept-nvidia-visible-devices-envvar-when-unprivileged = true
disable-require = false
supported-driver-capabilities = "compat32,compute,display,graphics,ngx,utility,video"
#swarm-resource = "DOCKER_RESOURCE_GPU"

[nvidia-container-cli]
#debug = "/var/log/nvidia-container-toolkit.log"
environment = []
#ldcache = "/etc/ld.so.cache"
ldconfig = "@/sbin/ldconfig"
load-kmods = true
#no-cgroups = false
#path = "/usr/bin/nvidia-container-cli"
#root = "/run/nvidia/driver"
#user = "root:video"

[nvidia-container-runtime]
#debug = "/var/log/nvidia-container-runtime.log"
log-level = "info"
mode = "auto"
runtimes = ["runc", "crun"]

[nvidia-container-runtime.modes]

[nvidia-container-runtime.modes.cdi]
annotation-prefixes = ["cdi.k8s.io/"]
default-kind = "nvidia.com/gpu"
spec-dirs = ["/etc/cdi", "/var/run/cdi"]

[nvidia-container-runtime.modes.csv]
mount-spec-path = "/etc/nvidia-container-runtime/host-files-for-container.d"

[nvidia-container-runtime-hook]
path = "nvidia-container-runtime-hook"
skip-mode-detection = false

[nvidia-ctk]
path = "nvidia-ctk"
"""
SETTINGS = {
    "accept-nvidia-visible-devices-as-volume-mounts": True,
    "nvidia-container-cli.no-cgroups": True,
    "nvidia-container-runtime.mode": "cdi",
    "nvidia-container-runtime.modes.cdi.spec-dirs": ["/etc/cdi"],
    "features.disable-cuda-compat-lib-hook": True,
}


class Node:
    def __init__(self, root):
        self.root = root
        self.file = root / "nvidia-container-runtime" / "config.toml"
        self.file.parent.mkdir()
        self.file.write_text(DEFAULT)
        self.file.chmod(0o640)
        self.arguments = {
            "config_path": str(self.file),
            "state_path": str(root / "var" / "state.json"),
        }

    def present(self, settings=None):
        settings = SETTINGS if settings is None else settings
        return predicted(module.main, {**self.arguments, "settings": settings})

    def absent(self, **options):
        return predicted(module.main, {**self.arguments, "state": "absent", **options})

    def tree(self):
        return {
            str(path.relative_to(self.root)): (
                path.read_bytes() if path.is_file() else None,
                path.stat().st_mode,
            )
            for path in sorted(self.root.rglob("*"))
        }


@pytest.fixture
def node(tmp_path):
    return Node(tmp_path)


def value(text, key):
    data = tomlkit.parse(text).unwrap()
    for part in key.split("."):
        data = data[part]
    return data


def test_create_again_absent_absent_again(node):
    before = node.tree()
    first = node.present()
    assert first["changed"]
    after = node.file.read_text()
    assert {key: value(after, key) for key in SETTINGS} == SETTINGS
    gone = set(DEFAULT.splitlines()) - set(after.splitlines())
    assert gone == {'mode = "auto"', 'spec-dirs = ["/etc/cdi", "/var/run/cdi"]'}
    assert not node.present()["changed"]
    assert node.absent()["changed"]
    assert node.tree() == before
    assert not node.absent()["changed"]
    assert node.tree() == before


def test_edits_by_somebody_else_stay(node):
    node.present()
    text = node.file.read_text()
    edited = text.replace('log-level = "info"', 'log-level = "debug"  # mine')
    node.file.write_text(edited.replace('mode = "cdi"', 'mode = "csv"'))
    node.absent()
    assert node.file.read_text() == DEFAULT.replace(
        'log-level = "info"', 'log-level = "debug"  # mine'
    ).replace('mode = "auto"', 'mode = "csv"').replace(
        'spec-dirs = ["/etc/cdi", "/var/run/cdi"]', 'spec-dirs = ["/etc/cdi", "/var/run/cdi"]'
    )


def test_a_setting_that_is_no_longer_requested_is_reverted(node):
    node.present()
    answer = node.present({"nvidia-container-runtime.mode": "legacy"})
    assert answer["changed"]
    assert node.file.read_text() == DEFAULT.replace('mode = "auto"', 'mode = "legacy"')
    node.absent()
    assert node.file.read_text() == DEFAULT


def test_no_file(node):
    shutil.rmtree(node.file.parent)
    before = node.tree()
    node.present({"nvidia-container-cli.no-cgroups": True, "disable-require": False})
    assert value(node.file.read_text(), "nvidia-container-cli.no-cgroups") is True
    node.absent()
    assert node.tree() == before


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\ufeffdisable-require = false\n",
        "disable-require = false",
        DEFAULT.replace("\n", "\r\n"),
        "[nvidia-container-cli]\n",
        "nvidia-container-cli = { no-cgroups = false }\n",
        "nvidia-container-cli.no-cgroups = false # dotted\n",
    ],
)
def test_odd_files_come_back_to_the_byte(node, text):
    node.file.write_bytes(text.encode())
    before = node.tree()
    node.present()
    written = node.file.read_bytes().decode().lstrip("\ufeff")
    assert {key: value(written, key) for key in SETTINGS} == SETTINGS
    assert not node.present()["changed"]
    node.absent()
    assert node.tree() == before


def test_what_the_packages_made_goes_with_them(node):
    """nvidia-container-toolkit-base makes the file in its postinst and leaves it (v1.14.0 on)."""
    folder = node.file.parent
    shutil.rmtree(folder)
    bare = node.tree()
    arguments = {"settings": {}, "existed": False}
    assert not run_module(module.main, {**node.arguments, **arguments}, check=True)["changed"]
    assert node.tree() == bare
    folder.mkdir()
    node.file.write_text(DEFAULT)
    assert not run_module(module.main, {**node.arguments, **arguments})["changed"]
    assert node.file.read_text() == DEFAULT
    # Later runs set something, and the packages of another release write the values anew.
    node.present({"nvidia-container-cli.no-cgroups": True})
    plain = [line for line in node.file.read_text().splitlines() if not line.startswith("#")]
    node.file.write_text("\n".join(plain))
    assert node.absent()["changed"]
    assert node.tree() == bare
    assert not node.absent()["changed"]


def test_what_the_packages_made_and_somebody_edited_stays(node):
    arguments = {"settings": {"nvidia-container-cli.no-cgroups": True}, "existed": False}
    assert run_module(module.main, {**node.arguments, **arguments})["changed"]
    edited = node.file.read_text().replace('log-level = "info"', 'log-level = "debug"')
    node.file.write_text(edited)
    node.absent()
    assert value(node.file.read_text(), "nvidia-container-runtime.log-level") == "debug"
    assert "\nno-cgroups" not in node.file.read_text()


def test_an_edit_between_two_of_our_writes_stays_too(node):
    arguments = {"settings": {"nvidia-container-cli.no-cgroups": True}, "existed": False}
    assert run_module(module.main, {**node.arguments, **arguments})["changed"]
    edited = node.file.read_text().replace("disable-require = false", "disable-require = true")
    edited = edited.replace('#swarm-resource = "DOCKER_RESOURCE_GPU"', 'swarm-resource = "ADMIN"')
    node.file.write_text(edited)
    assert node.present({"nvidia-container-cli.no-cgroups": False})["changed"]
    # Nor does a later write take them for its own.
    assert node.present({"nvidia-container-cli.no-cgroups": True})["changed"]
    assert node.absent()["changed"]
    text = node.file.read_text()
    assert value(text, "disable-require") is True
    assert value(text, "swarm-resource") == "ADMIN"
    assert "\nno-cgroups" not in text


def test_what_the_packages_wrote_again_between_two_of_our_writes_goes(node):
    arguments = {"settings": {"nvidia-container-cli.no-cgroups": True}, "existed": False}
    assert run_module(module.main, {**node.arguments, **arguments})["changed"]
    plain = [line for line in node.file.read_text().splitlines() if not line.startswith("#")]
    node.file.write_text("\n".join(plain))
    assert node.present({"nvidia-container-cli.no-cgroups": False})["changed"]
    assert node.absent()["changed"]
    assert not node.file.parent.exists()


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"nvidia-container-cli.no-cgroups": "true"}, "settings: nvidia-container-cli.no-cgroups"),
        ({"nvidia-container-cli.ldconfig": "/sbin/ldconfig"}, "has to begin with @"),
        ({"nvidia-container-runtime.mode": "cdii"}, "has to be one of auto"),
    ],
)
def test_settings_that_the_toolkit_stops_at_are_refused(node, settings, words):
    before = node.tree()
    answer = run_module(module.main, {**node.arguments, "settings": settings})
    assert answer["failed"] and words in answer["msg"]
    assert node.tree() == before


def test_container_path_of_ldconfig_where_the_file_allows_it(node):
    node.file.write_text("[features]\nallow-ldconfig-from-container = true\n")
    assert node.present({"nvidia-container-cli.ldconfig": "/sbin/ldconfig"})["changed"]


@pytest.mark.parametrize(
    ("version", "settings", "taken"),
    [
        ("1.16.2-1", {"nvidia-container-cli.ldconfig": "/sbin/ldconfig"}, True),
        ("1.20.0-1", {"nvidia-container-cli.ldconfig": "/sbin/ldconfig"}, False),
        ("1.21.0-1", {"nvidia-container-runtime.mode": "new"}, True),
        ("1.17.8-1", {"nvidia-container-runtime.mode": "jit-cdi"}, False),
        ("1.18.0-1", {"nvidia-container-runtime.mode": "jit-cdi"}, True),
    ],
)
def test_values_are_held_against_the_release_that_is_named(node, version, settings, taken):
    before = node.tree()
    arguments = {**node.arguments, "settings": settings, "toolkit_version": version}
    answer = predicted(module.main, arguments)
    assert bool(answer.get("failed")) is not taken
    assert (node.tree() != before) is taken


def test_a_name_that_the_release_does_not_know_is_told(node, monkeypatch):
    said = []
    monkeypatch.setattr(module.InternalOptionsModule, "warn", lambda _self, text: said.append(text))
    settings = {"features.allow-unknown-oci-spec-fields": True}
    node.present(settings)
    assert said == []
    arguments = {**node.arguments, "settings": settings, "toolkit_version": "1.17.8-1"}
    run_module(module.main, arguments)
    assert "a setting of the toolkit from 1.19 on; toolkit 1.17.8 ignores it" in said[0]


def test_the_role_names_the_release_of_its_plan():
    tasks = yaml.safe_load((ROLE / "tasks" / "install.yml").read_text())
    given = [task[name] for task in tasks for name in task if name.endswith("toolkit_config")]
    assert [one["toolkit_version"] for one in given] == [
        "{{ __nvidia_container_toolkit_plan.version }}"
    ]
    assert "version" in ToolkitPlan("none").to_json()


def test_names_that_the_toolkit_does_not_know_are_written_with_a_warning(node, monkeypatch):
    said = []
    monkeypatch.setattr(module.InternalOptionsModule, "warn", lambda _self, text: said.append(text))
    assert node.present({"nvidia-container-cli.no-cgroup": True})["changed"]
    # Check mode says it too.
    assert len(said) == 2 and len(set(said)) == 1
    assert "settings: nvidia-container-cli.no-cgroup is not a setting" in said[0]
    assert "nvidia-container-cli.no-cgroups" in said[0]


def test_true_and_one_are_told_apart(node):
    node.file.write_text("disable-require = 1\n")
    assert node.present({"disable-require": True})["changed"]
    assert node.file.read_text() == "disable-require = true\n"


def test_without_a_record_what_equals_ours_goes(node):
    node.present()
    shutil.rmtree(node.root / "var")
    assert not node.absent()["changed"]
    node.absent(settings={"nvidia-container-cli.no-cgroups": True, "nvidia-ctk.path": "other"})
    text = node.file.read_text()
    assert "\nno-cgroups" not in text
    assert value(text, "nvidia-ctk.path") == "nvidia-ctk"


def test_a_link_is_followed(node):
    real = node.root / "real.toml"
    node.file.rename(real)
    node.file.symlink_to(real)
    assert node.present()["path"] == str(real)
    assert node.file.is_symlink()
    node.absent()
    assert real.read_text() == DEFAULT


@pytest.mark.parametrize(
    ("content", "settings", "cause"),
    [
        (b"not [ toml", SETTINGS, "not valid TOML"),
        (b"\xff\xfe", SETTINGS, "not UTF-8"),
        (b"", {"a..b": 1}, "not the key"),
        (b"", {"a": {"b": 1}}, "neither text"),
        (b"", {"a": [1]}, "neither text"),
        (b"", {"a": None}, "neither text"),
        (b"a = 1\n", {"a.b": 1}, "a"),
        (b"[a]\n", {"a": 1}, "section"),
    ],
)
def test_what_cannot_be_is_refused_and_nothing_written(node, content, settings, cause):
    node.file.write_bytes(content)
    before = node.tree()
    answer = run_module(module.main, {**node.arguments, "settings": settings})
    assert answer["failed"]
    assert cause in answer["msg"]
    assert node.tree() == before


def test_a_node_without_parser_uses_the_one_that_was_sent(node, monkeypatch):
    def missing():
        raise ImportError("stand-in for Python 3.9")

    monkeypatch.setattr(_containerd_parser, "_builtin", missing)
    arguments = _tomlkit.with_parser({**node.arguments, "settings": SETTINGS}, {})
    assert arguments["_internal"]["_tomlkit"]
    assert run_module(module.main, arguments)["changed"]
    assert {key: value(node.file.read_text(), key) for key in SETTINGS} == SETTINGS


@pytest.mark.parametrize(
    ("python", "sent"),
    [
        (None, True),
        ({"version": "3.9.2", "tomlkit": None}, True),
        ({"version": "3.9.2", "tomlkit": "0.11"}, False),
        ({"version": "3.11.2", "tomlkit": None}, False),
        ({"version": None, "tomlkit": None}, True),
    ],
)
def test_the_parser_is_sent_only_where_it_is_needed(python, sent):
    facts = {"ansible_facts": {"gpu_node": {"python": python}}} if python else {}
    assert ("_tomlkit" in _tomlkit.with_parser({"a": 1}, facts)["_internal"]) is sent
