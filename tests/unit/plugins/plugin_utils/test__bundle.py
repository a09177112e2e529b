# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A support bundle: what is in it, that it is the same, and what a hostile node returns."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
import time

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._diagnosis.join import diagnose
from ansible_collections.kubegpu.nodes.plugins.plugin_utils import _bundle
from ansible_collections.kubegpu.nodes.plugins.plugin_utils._bundle import (
    archive,
    bundle_files,
    by_host,
    manifest,
)
from tests.unit.fixtures.diagnosed_node import facts, health, host, smi
from tests.unit.fixtures.health_node import smi_document, smi_gpu

ILL = smi_gpu("0000:00:05.0", remapped_row_failure="Yes")
TEXTS = [
    {"name": "logs/kernel.log", "source": "journalctl -k", "text": "NVRM: Xid\n", "cut": True},
    {"name": "config/etc/x.yaml", "source": "/etc/x.yaml", "text": "token: ***\n"},
]


def variables(texts=None, **more):
    return {
        "ansible_facts": {"gpu_node": facts()},
        "gpu_diagnose_plan": {
            "health": health(answer=smi(ILL)),
            "texts": {
                "texts": TEXTS if texts is None else texts,
                "unseen": [{"what": "kernel log", "why": "not root"}],
            },
        },
        "environment": [{"TOKEN": "hunter2"}],
        "kubegpu_kube": {"token": "hunter2"},
        **more,
    }


def made(hosts=("gpu1",), texts=None, cluster=None):
    result = diagnose([host()])
    rows = [{"node": "gpu1", "layers": host().layers}]
    return bundle_files(hosts, dict.fromkeys(hosts, variables(texts)), result, rows, cluster)


def unpacked(content):
    with tarfile.open(fileobj=io.BytesIO(content)) as tar:
        members = tar.getmembers()
        return members, {one.name: tar.extractfile(one).read() for one in members}


def test_the_list_is_inside_and_names_each_file():
    files = made(cluster={"layers": [], "plugin_pods": [{"log": "Bearer " + "hunter2" * 5}]})
    members, content = unpacked(archive(files))
    top = "kubegpu-diagnosis/"
    listed = json.loads(content.pop(f"{top}MANIFEST.json"))["files"]
    assert listed == manifest(files)
    assert {top + one["name"] for one in listed} == set(content)
    for one in listed:
        data = content[top + one["name"]]
        assert one["size"] == len(data)
        assert one["sha256"] == hashlib.sha256(data).hexdigest()
    names = [one["name"] for one in listed]
    assert names == sorted(names) == [
        "cluster.json", "diagnosis.json", "hosts/gpu1/config/etc/x.yaml", "hosts/gpu1/facts.json",
        "hosts/gpu1/health.json", "hosts/gpu1/layers.json", "hosts/gpu1/logs/kernel.log",
        "hosts/gpu1/unseen.json", "hosts/gpu1/versions.json",
    ]  # fmt: skip
    assert {(one.mtime, one.uid, one.uname, one.mode) for one in members} == {(0, 0, "", 0o600)}
    sources = {one["name"]: one["source"] for one in listed}
    assert sources["hosts/gpu1/logs/kernel.log"] == "journalctl -k, a part of it"


def test_the_same_input_gives_the_same_bytes():
    hosts = ("gpu2", "gpu1")
    assert archive(made(hosts)) == archive(made(tuple(reversed(hosts))))


def test_neither_secrets_nor_command_lines():
    assert "<process_name>" in smi_document(ILL)
    _members, content = unpacked(archive(made()))
    whole = b"\n".join(content.values())
    assert b"hunter2" not in whole and b"process_name" not in whole
    assert b"row_remap" in whole or b"remapped_rows" in whole


def test_what_a_hostile_node_returns_stays_in_its_folder_and_within_bounds():
    texts = [
        {"name": "logs/../../../etc/passwd", "source": "x\x1b[2J", "text": "a\x1b[2Jb"},
        {"name": "/config/shadow", "source": "y", "text": "password=of-the-node"},
        {"name": "logs/same", "source": "z", "text": "1"},
        {"name": "logs/same", "source": "second", "text": "2"},
        {"name": "", "source": "empty", "text": "3"},
        {"name": "logs/large", "source": "w", "text": "x" * (17 << 20)},
        {"name": "facts.json", "source": "of a module", "text": "{}"},
        {"name": "logs", "source": "a folder", "text": "x"},
        {"name": "logs/" + "l" * 200, "source": "long", "text": "x"},
    ]
    files = made(("../evil", "gpu/1", ".."), texts)
    names = [one.name for one in files]
    assert len(set(names)) == len(names)
    assert all(".." not in name.split("/") and not name.startswith("/") for name in names)
    folders = {name.split("/")[1] for name in names if name.startswith("hosts/")}
    assert len(folders) == 3
    by_name = {one.name.split("/", 2)[-1]: one.content for one in files}
    assert by_name["logs/_/_/_/etc/passwd"] == b"a\\x1b[2Jb" and by_name["logs/same"] == b"1"
    # Its own secrets are its own to give; gpu_node_texts has redacted what a sound node returns.
    assert by_name["config/shadow"] == b"password=of-the-node" and "logs/large" not in by_name
    assert by_name["facts.json"] != b"{}"
    assert {row["what"] for row in json.loads(by_name["unseen.json"])} == {
        "kernel log", "second", "empty", "w", "of a module", "a folder", "long",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("returned", "what"),
    [
        ({"texts": [1, *TEXTS], "unseen": []}, {"1 texts"}),
        ({"texts": [{"source": "a", "text": "b"}, *TEXTS]}, {"a"}),
        ({"texts": [{"name": "logs/a", "source": "a", "text": [1]}, *TEXTS]}, {"a"}),
        ({"texts": {"name": "logs/a"}, "unseen": [1]}, {"texts"}),
        ([1], {"texts"}),
        ({"msg": "no interpreter", "changed": False}, {"configurations and logs"}),
    ],
)
def test_texts_of_another_form_are_not_read_and_the_bundle_is_made(returned, what):
    hostvars = {"gpu1": variables()}
    hostvars["gpu1"]["gpu_diagnose_plan"]["texts"] = returned
    files = {one.name: one for one in bundle_files(["gpu1"], hostvars, diagnose([host()]))}
    unseen = json.loads(files["hosts/gpu1/unseen.json"].content)
    assert {one["what"] for one in unseen} == what
    assert "hosts/gpu1/facts.json" in files
    kept = isinstance(returned, dict) and isinstance(returned.get("texts"), list)
    assert ("hosts/gpu1/logs/kernel.log" in files) == kept


def test_the_texts_of_a_fleet_have_a_limit_and_each_host_a_row(monkeypatch):
    monkeypatch.setattr(_bundle, "_MOST_FLEET", 100)
    big = [{"name": "logs/kernel.log", "source": "journalctl", "text": "x" * 90}]
    hostvars = {name: {"gpu_diagnose_plan": {"texts": {"texts": big}}} for name in ("a", "b")}
    files = bundle_files(["b", "a"], hostvars, diagnose([]))
    names = [one.name for one in files]
    assert names == ["diagnosis.json", "hosts/a/logs/kernel.log", "hosts/b/unseen.json"]
    (unseen,) = json.loads(files[-1].content)
    assert unseen["why"] == "left out: the bundle may have 256 MiB of texts"
    first, second = by_host(files, ["b", "a"])
    assert first == {"host": "a", "files": 1, "size": 90, "unseen": 0}
    assert (second["host"], second["files"], second["unseen"]) == ("b", 1, 1)


def test_settings_in_the_logs_of_the_cluster_are_without_secrets():
    cluster = {"plugin_pods": [{"log": "start\npassword: correct hunter2\nend\n"}]}
    content = {one.name: one.content for one in made(cluster=cluster)}["cluster.json"]
    assert b"hunter2" not in content and b"start" in content and b"end" in content


def test_a_host_that_was_not_read_has_no_files():
    files = bundle_files(["gpu9"], {"gpu9": {}}, diagnose([]))
    assert [one.name for one in files] == ["diagnosis.json"]


def test_each_host_is_told_and_a_large_text_costs_little():
    """One line of 16 MB of a hostile node kept the controller busy for hours."""
    told = []
    texts = [{"name": "logs/a", "source": "x", "text": 'token="' * (2 << 20)}]
    begin = time.process_time()
    hostvars = {"a": variables(texts), "b": {}}
    bundle_files(["b", "a"], hostvars, diagnose([host()]), progress=told.append)
    assert time.process_time() - begin < 10
    assert told == [
        "the support bundle has 1 of 2 hosts",
        "the support bundle has 2 of 2 hosts",
    ]
