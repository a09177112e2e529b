# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Paths of the controller in variables, before any node is read."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest
import yaml
from ansible.errors import AnsibleError

from ansible_collections.kubegpu.nodes.plugins.module_utils._formats.openpgp import read_keys
from ansible_collections.kubegpu.nodes.plugins.plugin_utils import _controller_paths
from ansible_collections.kubegpu.nodes.plugins.plugin_utils._controller_paths import (
    OUTPUTS,
    HostValues,
    check_outputs,
    doubtful_inputs,
    find_outputs,
    foreign_keys,
    wrong_hooks,
    wrong_inputs,
    wrong_runfiles,
)
from tests.unit.plugins.module_utils._formats.test_openpgp import ED25519 as KEY

ROOT = Path(__file__).parents[4]


def search(path):
    raise AnsibleError(path)


def host(*later, folder=None, **values):
    """Return a host; ``later`` are variables that are set and not known yet."""
    return HostValues([*values, *later], values, folder)


def test_the_first_host_that_sets_a_path_decides(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    hosts = [host(), host(gpu_upgrade_file="a.json"), host(gpu_upgrade_file="/b.json")]
    writes = {"gpu_upgrade_file": "default.json", "gpu_report_dir": ""}
    assert find_outputs(hosts, writes) == {
        "gpu_upgrade_file": f"{tmp_path}/a.json", "gpu_report_dir": "",
    }  # fmt: skip
    assert find_outputs(hosts[:1], writes)["gpu_upgrade_file"] == f"{tmp_path}/default.json"
    assert find_outputs([], {}) == {}


def test_the_variable_of_the_playbooks_is_the_default_of_the_roles_own():
    of_all = host(kubegpu_verify_file="/all.json", kubegpu_report_dir="/all")
    assert find_outputs([of_all], {}) == {"gpu_verify_file": "/all.json", "gpu_report_dir": "/all"}
    own = [of_all, host(gpu_verify_file="/own.json")]
    assert find_outputs(own, {})["gpu_verify_file"] == "/own.json"


def test_a_path_that_is_not_known_yet_is_no_default():
    assert find_outputs([host("gpu_upgrade_file")], {"gpu_upgrade_file": "default.json"}) == {}


@pytest.mark.parametrize("name", OUTPUTS)
def test_what_may_not_be_replaced_is_refused_by_the_variables_name(tmp_path, name):
    place = tmp_path / "file"
    place.write_text("of a person")
    (text,) = check_outputs({name: str(place)}, {name: ""})
    assert text.startswith(f"{name}: {place} ") and "Next step: " in text
    assert check_outputs({name: str(tmp_path / "new")}, {name: ""}) == []
    # Another playbook does not write it.
    assert check_outputs({name: str(place)}, {}) == [] == check_outputs({name: ""}, {name: ""})


@pytest.mark.parametrize("name", ["gpu_report_dir", "gpu_verify_file"])
def test_a_path_is_refused_by_the_variable_that_is_set(tmp_path, name):
    place = tmp_path / "file"
    place.write_text("of a person")
    set_by = OUTPUTS[name][1]
    for hosts, variable in (
        ([host(**{set_by: str(place)})], set_by),
        ([host(**{set_by: "/all"}), host(**{name: str(place)})], name),
    ):
        (text,) = check_outputs(find_outputs(hosts, {name: ""}), {name: ""}, hosts)
        assert text.startswith(f"{variable}: ")


FILES = {
    "nvidia_driver_licence.token_path": {"nvidia_driver_licence": {"token_path": "files/x"}},
    **{
        f"{role}_repository.key_file": {
            f"{role}_enabled": True, f"{role}_repository": {"key_file": "files/x"},
        }
        for role in (
            "nvidia_driver", "cuda_toolkit", "nvidia_container_toolkit", "amd_driver",
            "amd_container_toolkit", "gpu_monitoring",
        )
    },
}  # fmt: skip


@pytest.mark.parametrize("option", FILES)
def test_a_file_is_found_by_the_inventory_or_its_host_is_refused(tmp_path, option, monkeypatch):
    monkeypatch.chdir(tmp_path)
    values = FILES[option]
    (wrong,) = wrong_inputs(host(folder=str(tmp_path / "inventory"), **values), search)
    assert wrong.variable == option and wrong.why == "names no file"
    assert f"{tmp_path}/inventory/files/x and no {tmp_path}/files/x" in wrong.message
    (tmp_path / "inventory" / "files").mkdir(parents=True)
    (tmp_path / "inventory" / "files" / "x").write_bytes(KEY if "key_file" in option else b"x")
    assert wrong_inputs(host(folder=str(tmp_path / "inventory"), **values), search) == []


@pytest.mark.parametrize("option", FILES)
@pytest.mark.parametrize("content", [b"", b" \n", b"not a key", b"$ANSIBLE_VAULT;1.1;AES256"])
def test_a_token_or_a_key_that_cannot_be_used_is_refused(tmp_path, option, content, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "x").write_bytes(content)
    found = wrong_inputs(host(folder=str(tmp_path), **FILES[option]), search)
    key, text = "key_file" in option, content.strip()
    if text.startswith(b"$") or (text and not key):
        assert found == []
        return
    (wrong,) = found
    what = "holds no public key" if key else "is empty."
    assert wrong.message.startswith(f"{option}: files/x {what}") and "Next step: " in wrong.message
    assert not text or text.decode() not in wrong.message


@pytest.mark.parametrize(
    "values",
    [
        {},
        {"nvidia_driver_enabled": False, **FILES["nvidia_driver_licence.token_path"]},
        {"nvidia_driver_state": "absent", **FILES["nvidia_driver_licence.token_path"]},
        {"nvidia_driver_runfile": {"path": "files/x"}},
        {"nvidia_driver_repository": {"key_file": "files/x", "manage": False}},
        {"gpu_monitoring_repository": {"key_file": "files/x"}},
        {"nvidia_driver_licence": "text", "nvidia_driver_runfile": 5, "cuda_toolkit_runfiles": []},
    ],
)
def test_a_file_that_nothing_reads_may_be_missing(values):
    assert wrong_inputs(host(**values), search) == []


WARNED = "nvidia_driver_licence.token_path"
JWT = b"eyJhbGciOiJSUzI1NiJ9.eyJqdGkiOiIxIn0.c2ln"


@pytest.mark.parametrize(
    ("content", "warns"),
    [
        (JWT, False),
        (JWT + b"\n", False),
        (b"$ANSIBLE_VAULT;1.1;AES256", False),
        (b"# Readme\n\nSome words. And more. And more.", True),
        (b'{"service_instance_ref": "1"}', True),
        (b"one.two.three", True),
        (b"MTIz.eyJqdGkiOiIxIn0.c2ln", True),
        # What is refused needs no warning.
        (b"", False),
    ],
)
def test_a_file_without_the_form_of_a_token_is_warned_of(tmp_path, content, warns):
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "x").write_bytes(content)
    hosts = [host(folder=str(tmp_path), **FILES[WARNED])] * 2
    found = doubtful_inputs(hosts, search)
    assert len(found) == warns and all("Next step: download" in one for one in found)
    assert all(one.startswith(f"{WARNED}: files/x has not the form") for one in found)
    assert not any("Some words" in one for one in found)


FINGERPRINT = read_keys(KEY).fingerprints[0]


@pytest.mark.parametrize(
    ("repository", "refused"),
    [
        ({"key_fingerprints": ["EB693B3035CD5710E231E123A4B469963BF863CC"]}, True),
        ({"key_fingerprints": [FINGERPRINT]}, False),
        ({"key_fingerprints": ["EB693B3035CD5710E231E123A4B469963BF863CC", FINGERPRINT]}, False),
        # The distribution's own key is used; the entry is there already.
        ({"key_fingerprints": ["EB" * 20], "keyring": "/usr/share/keyrings/debian.gpg"}, False),
        (None, False),
    ],
)
def test_a_foreign_key_is_refused_with_the_plan(tmp_path, repository, refused):
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "x").write_bytes(KEY)
    one = host(folder=str(tmp_path), **FILES["nvidia_driver_repository.key_file"])
    plans = {"nvidia_driver": {"repository": repository}, "cuda_toolkit": {"repository": None}}
    found = foreign_keys(plans, one, search)
    assert list(found) == (["nvidia_driver"] if refused else [])
    for error in found.values():
        assert str(error).startswith("nvidia_driver_repository.key_file: files/x is not the key")
        assert f"the key file holds {FINGERPRINT}" in error.evidence
        assert "key_fingerprints" in error.next_step
    (tmp_path / "files" / "x").unlink()
    assert foreign_keys(plans, one, search) == {}


CHECKSUM = f"sha256:{hashlib.sha256(b'x').hexdigest()}"
PLANNED = {
    "nvidia_driver_runfile.path": {
        "nvidia_driver": {"runfile": {"path": "files/x", "checksum": CHECKSUM}},
    },
    "cuda_toolkit_runfiles['12.8'].path": {
        "cuda_toolkit": {
            "runfiles": [
                {"version": "12.8", "file": "files/x", "remote": False, "checksum": CHECKSUM},
            ],
        },
    },
}


@pytest.mark.parametrize("option", PLANNED)
def test_a_runfile_that_a_plan_runs_is_found_or_the_part_is_refused(tmp_path, option, monkeypatch):
    monkeypatch.chdir(tmp_path)
    of = host(folder=str(tmp_path / "inventory"))
    ((part, missing),) = wrong_runfiles(PLANNED[option], of, search, {}).items()
    assert part in PLANNED[option] and str(missing).startswith(f"{option}: files/x is not on")
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "x").write_text("x")
    assert wrong_runfiles(PLANNED[option], of, search, {}) == {}


def runs(checksum):
    return {"nvidia_driver": {"runfile": {"path": "files/x", "checksum": checksum}}}


@pytest.fixture
def runfile(tmp_path):
    """The host whose folder has the runfile, files with its checksum, and files with another."""
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "x").write_text("x")
    digest, other = CHECKSUM[7:], "0" * 64
    for name, value in (("right", digest), ("wrong", other)):
        (tmp_path / f"{name}.sha256sum").write_text(f"{value}  x\n")
        entry = {"linux-x86_64": {"relative_path": "a/x", "sha256": value}}
        (tmp_path / f"{name}.json").write_text(json.dumps({"cuda": entry}))
    return host(folder=str(tmp_path))


@pytest.mark.parametrize("form", ["sha256:{}", "{folder}/{word}.sha256sum", "{folder}/{word}.json"])
def test_a_runfile_with_another_checksum_is_refused_with_both(runfile, form):
    folder = runfile.inventory_dir
    right = form.format(CHECKSUM[7:], folder=folder, word="right")
    assert wrong_runfiles(runs(right), runfile, search, {}) == {}
    wrong = form.format("0" * 64, folder=folder, word="wrong")
    error = wrong_runfiles(runs(wrong), runfile, search, {})["nvidia_driver"]
    assert error.cause == f"nvidia_driver_runfile.checksum: {folder}/files/x has another SHA-256."
    assert error.evidence == f"the file has {CHECKSUM[7:]}, the checksum is {'0' * 64}"
    assert "publisher" in error.next_step


def test_a_checksum_that_only_the_node_reads_is_compared_there(runfile):
    assert wrong_runfiles(runs("https://example.invalid/x.sha256sum"), runfile, search, {}) == {}


@pytest.mark.parametrize("text", [None, "nothing\n", "directory"])
def test_a_file_without_the_checksum_is_refused(runfile, tmp_path, text):
    place = tmp_path / "sum"
    if text == "directory":
        place.mkdir()
    elif text:
        place.write_text(text)
    error = wrong_runfiles(runs(str(place)), runfile, search, {})["nvidia_driver"]
    assert str(place) in str(error) and error.next_step


def test_a_runfile_is_read_once_for_all_hosts(runfile, tmp_path, monkeypatch):
    digests = {}
    assert wrong_runfiles(runs(CHECKSUM), runfile, search, digests) == {}
    monkeypatch.setattr(_controller_paths, "file_digest", None)
    assert wrong_runfiles(runs(CHECKSUM), runfile, search, digests) == {}
    assert digests == {f"{tmp_path}/files/x": CHECKSUM[7:]}


def test_a_runfile_that_no_plan_runs_may_be_missing():
    url = {"version": "12.8", "file": None, "remote": False}
    for plans in (
        {"nvidia_driver": {"runfile": None}, "cuda_toolkit": {"runfiles": []}},
        {"nvidia_driver": {}},
        {"nvidia_driver": {"runfile": {"path": "/on/the/node.run", "remote": True}}},
        {"cuda_toolkit": {"runfiles": [url]}},
    ):
        assert wrong_runfiles(plans, host(), search, {}) == {}


def test_missing_hooks_are_told_once():
    hooks = {"before_drain": "/nowhere.yml", "before_gate": ""}
    hosts = [host(gpu_upgrade_hooks=hooks), host(gpu_upgrade_hooks=hooks)]
    (text,) = wrong_hooks(hosts, search)
    assert text.startswith("gpu_upgrade_hooks.before_drain: /nowhere.yml is not on the controller.")
    assert wrong_hooks([host(gpu_upgrade_hooks=hooks, gpu_upgrade_release=True)], search) == []


def test_playbooks_know_the_defaults_of_the_roles():
    """fleet_variables sees no defaults of roles."""
    for name in ("plan", "site", "verify", "upgrade", "accept", "diagnose", "report"):
        plays = yaml.safe_load((ROOT / "playbooks" / f"{name}.yml").read_text())
        first = next(play for play in plays if "__kubegpu_writes" in play.get("vars", {}))
        for variable, default in first["vars"]["__kubegpu_writes"].items():
            role = variable.rpartition("_bundle")[0] or variable.rpartition("_")[0]
            path = ROOT / "roles" / role / "defaults" / "main.yml"
            if not path.exists():
                assert variable == "kubegpu_plan_file"
                continue
            given = yaml.safe_load(path.read_text())[variable]
            assert default == given or f"default('{default}')" in given or default == ""
