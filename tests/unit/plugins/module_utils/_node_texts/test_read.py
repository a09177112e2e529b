# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a support bundle gets of a node: without secrets, and not too much."""

from __future__ import annotations

import json

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._host.bounded import Ended, Hang
from ansible_collections.kubegpu.nodes.plugins.module_utils._host.reader import NodeReader
from ansible_collections.kubegpu.nodes.plugins.module_utils._node_texts.read import read_texts
from ansible_collections.kubegpu.nodes.plugins.module_utils._node_texts.types import Request
from tests.unit.fixtures.make_tree import write

SECRET = "hunter2"
#: A secret in each form of text, and in what must not be read at all.
FILES = {
    "/etc/containerd/config.toml": (
        'version = 2\n[plugins."io.containerd.grpc.v1.cri".registry.configs."r.example".auth]\n'
        '  password = "hunter2"\n# proxy: http://ops:hunter2@proxy.example:3128\n'
    ),
    "/etc/containerd/conf.d/99-nvidia.toml": '[runtimes.nvidia]\nname = "nvidia"\n',
    "/etc/docker/daemon.json": json.dumps(
        {"proxies": {"http-proxy": "http://ops:hunter2@proxy.example"}, "runtimes": {"nvidia": {}}}
    ),
    "/etc/rancher/k3s/config.yaml": "token: >-\n  hunter2\nnode-label: [gpu=yes]\n",
    "/var/lib/kubelet/config.yaml": "kind: KubeletConfiguration\nclusterDNS:\n- 10.96.0.10\n",
    "/etc/modprobe.d/kubegpu-nvidia.conf": "options nvidia NVreg_X=1\n",
    "/etc/modprobe.d/wifi.conf": "options wifi key=hunter2\n",
    "/etc/kubernetes/kubelet.conf": "users: [{user: {token: hunter2}}]\n",
    "/etc/kubernetes/pki/ca.key": "-----BEGIN PRIVATE KEY-----\nhunter2\n",
    "/etc/systemd/system/containerd.service.d/proxy.conf": 'Environment="TOKEN=hunter2"\n',
    "/proc/1/environ": "TOKEN=hunter2\0",
    "/proc/1/cmdline": "init\0--token=hunter2\0",
    "/var/log/pods/kubegpu_kubegpu-nvidia-device-plugin-x_uid/plugin/1.log": (
        "2026-11-24T01:00:00Z stderr F ok, --api-token hunter2 Bearer hunter2hunter2hunter2\n"
    ),
    "/var/log/pods/default_train-0_uid/train/0.log": "hunter2\n",
}
KERNEL = (
    "node kernel: Linux version 6.1.0\n"
    "node kernel: Command line: root=/dev/sda1 nvidia.token=hunter2\n"
    "node kernel: NVRM: Xid (PCI:0000:05:00): 79, pid=1, name=python, GPU has fallen off the bus.\n"
    "node kernel: eth0: link up\n"
    "node kernel: nvidia: loading \x1b[2J\n"
)
KUBELET = (
    "kubelet[9]: FLAG: --token=hunter2\n"
    "kubelet[9]: GET https://api.example/x?sig=hunter2 failed\n"
    "kubelet[9]: sudo COMMAND=/bin/mount hunter2\n"
    'kubelet[9]: env {"name":"DB_PASSWORD","password":"hunter2"}\n'
    "kubelet[9]: Authorization: Basic hunter2\n"
)


class StandinStream:
    """The journal of the kernel and of kubelet."""

    def __init__(self, hangs=()):
        self.hangs = hangs
        self.asked = []

    def __call__(self, argv, consume, seconds, most):
        self.asked.append(argv)
        text = KERNEL if "-k" in argv else KUBELET if "kubelet" in argv else ""
        if any(name in argv for name in self.hangs):
            return Ended(None, hang=Hang(argv[0], 1, seconds, "D", None, True))
        # In parts that end within a line.
        for start in range(0, len(text), 7):
            consume(text[start : start + 7].encode())
        return Ended(0, size=len(text))


@pytest.fixture
def node(tmp_path):
    for path, text in FILES.items():
        write(tmp_path, path, text)
    return NodeReader(str(tmp_path))


def texts(found):
    return {one["name"]: one for one in found["texts"]}


def test_what_is_read_and_that_no_secret_is_in_it(node):
    found = read_texts(node, StandinStream(), Request())
    assert set(texts(found)) == {
        "logs/kernel.log", "logs/kubelet.log", "config/etc/containerd/config.toml",
        "config/etc/containerd/conf.d/99-nvidia.toml", "config/etc/docker/daemon.json",
        "config/etc/rancher/k3s/config.yaml", "config/var/lib/kubelet/config.yaml",
        "config/etc/modprobe.d/kubegpu-nvidia.conf",
        "logs/pods/kubegpu_kubegpu-nvidia-device-plugin-x_uid/plugin/1.log",
    }  # fmt: skip
    assert SECRET not in json.dumps(found) and found["unseen"] == []
    shown = {name: one["text"] for name, one in texts(found).items()}
    assert "proxy.example" in shown["config/etc/docker/daemon.json"]
    assert 'password = "***"' in shown["config/etc/containerd/config.toml"]
    assert "node-label: [gpu=yes]" in shown["config/etc/rancher/k3s/config.yaml"]
    assert texts(found)["logs/kubelet.log"]["source"].startswith("journalctl -b 0 -u kubelet")


def test_of_the_kernel_only_what_concerns_gpus_without_command_lines(node):
    text = texts(read_texts(node, StandinStream(), Request()))["logs/kernel.log"]["text"]
    assert "fallen off the bus" in text and "eth0" not in text and "ommand line" not in text
    assert "\x1b" not in text and "\\x1b[2J" in text


def test_the_last_lines_are_kept(node):
    found = texts(read_texts(node, StandinStream(), Request(lines=1)))
    assert found["logs/kubelet.log"]["text"] == "kubelet[9]: Authorization: ***\n"
    assert found["logs/kubelet.log"]["cut"] and not found["config/etc/docker/daemon.json"]["cut"]


def test_more_than_the_limit_is_left_out_and_named(node):
    found = read_texts(node, StandinStream(), Request(most=400))
    assert sum(len(one["text"].encode()) for one in found["texts"]) <= 400
    assert found["unseen"] and "more than 400 bytes" in found["unseen"][0]["why"]


def test_a_large_file_is_cut(node, tmp_path):
    write(tmp_path, "/etc/docker/daemon.json", json.dumps({"a": "x" * 200_000, "token": SECRET}))
    one = texts(read_texts(node, StandinStream(), Request()))["config/etc/docker/daemon.json"]
    assert one["cut"] and len(one["text"]) < 140_000 and one["text"].endswith("left out ...]\n")


def test_what_cannot_be_read_is_named(node):
    found = read_texts(node, StandinStream(hangs=("-k", "kubelet")), Request())
    assert [row["what"] for row in found["unseen"]] == ["kernel log", "journal of kubelet"]
    assert "logs/kernel.log" not in texts(found)
