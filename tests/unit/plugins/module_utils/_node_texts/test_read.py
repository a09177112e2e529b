# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a support bundle gets of a node: without secrets, and not too much."""

from __future__ import annotations

import json
import os
import shutil
import time

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._core.printable import printable
from ansible_collections.kubegpu.nodes.plugins.module_utils._core.redact_lines import redact_yaml
from ansible_collections.kubegpu.nodes.plugins.module_utils._host.bounded import Ended, Hang
from ansible_collections.kubegpu.nodes.plugins.module_utils._host.reader import NodeReader
from ansible_collections.kubegpu.nodes.plugins.module_utils._node_texts.data import (
    COMMAND_LINE,
    PLUGIN_POD,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._node_texts.read import (
    _Tail,
    read_texts,
)
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

    def __init__(self, hangs=(), kubelet=KUBELET, ends=None):
        self.hangs = hangs
        self.kubelet = kubelet
        self.ends = ends or {}
        self.asked = []

    def __call__(self, argv, consume, seconds, most):
        self.asked.append(argv)
        text = KERNEL if "-k" in argv else self.kubelet if "kubelet" in argv else ""
        if any(name in argv for name in self.hangs):
            return Ended(None, hang=Hang(argv[0], 1, seconds, "D", None, True))
        # In parts that end within a line.
        for start in range(0, len(text), 7):
            consume(text[start : start + 7].encode())
        for name, ended in self.ends.items():
            if name in argv:
                return ended
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
    assert found["logs/kubelet.log"]["text"] == 'kubelet[9]: Authorization: "***"\n'
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


@pytest.mark.parametrize(
    "line",
    [
        '"Unhandled Error" err="container &Container{Name:db,Command:[run],Env:[]EnvVar{EnvVar{'
        'Name:DB_PASSWORD,Value:hunter2,ValueFrom:nil,},}}"',
        "Env:[]EnvVar{EnvVar{Name:DB_PASSWORD,Value:hunter2,},}",
        '"ExecSync from runtime service failed" err="x" cmd=["mysqladmin","-phunter2"]',
        'level=error msg="ExecSync for x with command [mysqladmin -phunter2] failed"',
        "Command:[mysqladmin -phunter2]",
        "Args:[-phunter2]",
        "audit: type=1327 audit(1.0:1): proctitle=6D7900hunter2",
        'audit: type=1309 argc=2 a0="mysqladmin" a1="-phunter2"',
    ],
)
def test_a_line_with_a_command_or_an_environment_is_left_out(node, line):
    stream = StandinStream(kubelet=f"kubelet[9]: {line}\nkubelet[9]: last\n")
    found = read_texts(node, stream, Request())
    assert texts(found)["logs/kubelet.log"]["text"] == "kubelet[9]: last\n"
    assert COMMAND_LINE.search("kubelet[9]: Starting container runtime") is None


def test_logs_of_pods_are_those_of_plugins_and_drivers_by_the_name_of_the_pod():
    for name in (
        "kubegpu_kubegpu-nvidia-device-plugin-x_uid", "kube-system_amdgpu-dp-x7_uid",
        "gpu-operator_nvidia-driver-daemonset-abc_uid", "x_nvdp-nvidia-device-plugin-4_uid",
        "x_intel-gpu-plugin-1_uid", "x_nvidia-dra-driver-gpu-kubelet-plugin-1_uid",
    ):  # fmt: skip
        assert PLUGIN_POD.match(name), name
    for name in (
        "gpu-team_spark-pi-driver_uid", "nvidia-device-plugin_train-0_uid",
        "default_gpu-driver-test_uid", "intel_my-plugin_uid",
    ):  # fmt: skip
        assert not PLUGIN_POD.match(name), name


KEY = "-----{} RSA PRIVATE KEY-----"


@pytest.mark.parametrize(
    ("lines", "shown"),
    [
        (["a", KEY.format("BEGIN"), "TUlJhunter2", KEY.format("END"), "z"], ["a", "z"]),
        (["a", KEY.format("BEGIN"), "TUlJhunter2"], ["a"]),
        (["TUlJhunter2", KEY.format("END"), "z"], ["z"]),
        (
            ["a", f"key {KEY.format('BEGIN')} hunter2 {KEY.format('END')} z", "b"],
            ["a", "key *** z", "b"],
        ),
    ],
)
def test_of_a_private_key_no_line_is_in_a_log(node, lines, shown):
    stream = StandinStream(kubelet="".join(f"{one}\n" for one in lines))
    text = texts(read_texts(node, stream, Request()))["logs/kubelet.log"]["text"]
    assert text == "".join(f"{one}\n" for one in shown)


def test_a_setting_in_a_journal_leaves_without_its_value(node):
    stream = StandinStream(kubelet="kubelet[9]: password: correct hunter2\n")
    assert SECRET not in json.dumps(read_texts(node, stream, Request()))


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/var/log/fabricmanager.log", "logs/fabricmanager.log"),
        ("/var/log/pods/kube-system_nvidia-device-plugin-x_uid/c/0.log",
         "logs/pods/kube-system_nvidia-device-plugin-x_uid/c/0.log"),
    ],
)  # fmt: skip
def test_a_log_is_read_from_its_end_by_whole_lines(node, tmp_path, path, name):
    last = "the last line\n"
    # What is read begins behind the name of the secret.
    rest = 128 * 1024 - len(SECRET) - len(last) - 1
    body = f"first\npassword={SECRET}\n" + "x" * (rest - 1) + "\n" + last
    write(tmp_path, path, body)
    one = texts(read_texts(node, StandinStream(), Request()))[name]
    assert one["text"].endswith(last) and SECRET not in one["text"] and one["cut"]
    assert "first" not in one["text"]


def test_nothing_is_started_when_the_time_is_over(node):
    stream, now = StandinStream(), [0.0]

    def clock():
        now[0] += 20
        return now[0]

    found = read_texts(node, stream, Request(timeout=60), clock)
    assert len(stream.asked) == 2
    last = found["unseen"][-1]
    assert "journals of k3s, " in last["what"] and "kubegpu-metrics" in last["what"]
    assert last["why"] == "the time for all logs (60 seconds) is over"


@pytest.mark.parametrize(
    ("ended", "why"),
    [
        (
            Ended(None, size=9, hang=Hang("journalctl", 1, 60.0, "S", None, False)),
            "journalctl took too long: its newest lines are missing",
        ),
        (
            Ended(None, size=9, too_long=True),
            "journalctl printed more than 64 MiB: its newest lines are missing",
        ),
    ],
)
def test_a_log_of_the_kernel_that_was_cut_off_says_so(node, ended, why):
    found = read_texts(node, StandinStream(ends={"-k": ended}), Request())
    assert found["unseen"] == [{"what": "kernel log", "why": why}]
    assert texts(found)["logs/kernel.log"]["cut"]


def test_journals_that_cannot_be_read_are_named(node):
    missing = StandinStream(ends={"journalctl": Ended(127, "no such program")})
    found = read_texts(node, missing, Request())
    assert {"what": "journals of units", "why": "journalctl is not on this node"} in found["unseen"]
    denied = Ended(1, "No journal files were opened due to insufficient permissions.")
    found = read_texts(node, StandinStream(ends={"crio": denied}), Request())
    assert [one["what"] for one in found["unseen"]] == ["journal of crio"]
    assert "insufficient permissions" in found["unseen"][0]["why"]
    found = read_texts(node, StandinStream(kubelet=""), Request())
    assert [one["what"] for one in found["unseen"]] == ["journals of units"]


class StandinDenied(NodeReader):
    """A user may not list the logs of pods."""

    def hidden(self, folder):
        return folder == "/var/log/pods"

    def list_dir(self, path):
        return [] if path == "/var/log/pods" else super().list_dir(path)


def test_folders_that_cannot_be_read_and_more_files_than_are_read_are_named(node, tmp_path):
    for number in range(22):
        write(tmp_path, f"/etc/crio/crio.conf.d/{number:02}.conf", "[crio]\n")
    found = read_texts(StandinDenied(node.root), StandinStream(), Request())
    assert found["unseen"] == [
        {"what": "20.conf, 21.conf", "why": "there are more than 20 in /etc/crio/crio.conf.d"},
        {"what": "/var/log/pods", "why": "the folder cannot be read"},
    ]


POD = "/var/log/pods/kube-system_nvidia-device-plugin-x_uid"
DOCKER = "/var/lib/docker/containers/" + "0a" * 32


def link(root, path, target):
    place = root / path.lstrip("/")
    place.parent.mkdir(parents=True, exist_ok=True)
    place.symlink_to(target)


@pytest.mark.parametrize(
    "target",
    [
        "/etc/shadow",
        "../../../../../etc/shadow",
        "/var/lib/docker/containers/" + "0a" * 32 + "/config.v2.json",
        "/var/log/pods/tenant_db_uid/db/0.log",
        "/var/log/secret.log",
    ],
)
@pytest.mark.parametrize(
    "path", [f"{POD}/c/0.log", "/var/log/fabricmanager.log"], ids=["pod", "fabricmanager"]
)
def test_a_link_in_a_folder_of_logs_brings_no_other_file_into_the_bundle(
    node, tmp_path, path, target
):
    """Who can write to /var/log, such as a collector of logs, chooses what is there."""
    for one in ("/etc/shadow", f"{DOCKER}/config.v2.json", "/var/log/pods/tenant_db_uid/db/0.log",
                "/var/log/secret.log"):  # fmt: skip
        write(tmp_path, one, "root:$6$of-root\n")
    link(tmp_path, path, target)
    found = read_texts(node, StandinStream(), Request())
    assert "of-root" not in json.dumps(found)
    assert path in [one["what"] for one in found["unseen"]]


@pytest.mark.parametrize("part", [POD, f"{POD}/c"])
def test_a_folder_of_logs_that_is_a_link_brings_none(node, tmp_path, part):
    write(tmp_path, f"/root/there{f'{POD}/c/0.log'[len(part) :]}", "of-root\n")
    link(tmp_path, part, "/root/there")
    assert "of-root" not in json.dumps(read_texts(node, StandinStream(), Request()))


def test_another_name_of_a_file_and_a_pipe_bring_none(node, tmp_path):
    write(tmp_path, "/etc/shadow", "of-root\n")
    folder = tmp_path / POD.lstrip("/") / "c"
    folder.mkdir(parents=True)
    os.link(tmp_path / "etc/shadow", folder / "0.log")
    os.mkfifo(tmp_path / "var/log/fabricmanager.log")
    found = read_texts(node, StandinStream(), Request())
    assert "of-root" not in json.dumps(found)
    assert {one["what"] for one in found["unseen"]} == {
        f"{POD}/c/0.log",
        "/var/log/fabricmanager.log",
    }


def test_the_log_that_docker_keeps_is_read_by_kubelets_link(node, tmp_path):
    write(tmp_path, f"{DOCKER}/{'0a' * 32}-json.log", '{"log":"ready"}\n')
    link(tmp_path, f"{POD}/c/0.log", f"{DOCKER}/{'0a' * 32}-json.log")
    found = read_texts(node, StandinStream(), Request())
    assert "ready" in texts(found)[f"logs{POD[8:]}/c/0.log"]["text"] and found["unseen"] == []


def test_logs_in_a_folder_that_an_administrator_moved_are_read(node, tmp_path):
    write(tmp_path, "/data/pods" + f"{POD}/c/0.log"[len("/var/log/pods") :], "ready\n")
    shutil.rmtree(tmp_path / "var/log/pods")
    link(tmp_path, "/var/log/pods", "/data/pods")
    assert f"logs{POD[8:]}/c/0.log" in texts(read_texts(node, StandinStream(), Request()))


def test_pods_of_tenants_do_not_push_the_logs_of_plugins_out(node, tmp_path):
    for number in range(40):
        write(tmp_path, f"/var/log/pods/a-team_nvidia-device-plugin-{number}_uid/c/0.log", "x\n")
    found = read_texts(node, StandinStream(), Request())
    assert [name for name in texts(found) if name.startswith("logs/pods")] == [
        "logs/pods/kubegpu_kubegpu-nvidia-device-plugin-x_uid/plugin/1.log"
    ]
    assert [one["why"] for one in found["unseen"]] == [
        "a pod with the name of a plugin is in another namespace than those of plugins; if it is "
        "one, add its namespace to namespaces"
    ]
    asked = texts(read_texts(node, StandinStream(), Request(namespaces=("a-team",))))
    assert "logs/pods/a-team_nvidia-device-plugin-1_uid/c/0.log" in asked


@pytest.mark.parametrize(
    "line",
    [
        # Half an address has no @, and other forms end with a quote or a bracket.
        "GET https://ops:{}@mirror.example/x failed",
        "proxy=ops:{}@proxy.example:3128",
        "curl -u ops:{} https://mirror.example",
        'run "--token", "long {}" x',
        "password: '{}'",
        '{{"name": "DB_PASSWORD", "value": "{}"}}',
        "{{Name:DB_PASSWORD Value:{} ValueFrom:nil}}",
    ],
)
@pytest.mark.parametrize("whole", [16 * 1024, 600])
def test_a_line_is_redacted_before_it_is_cut(node, line, whole):
    """The begin of the line shrinks by redaction, so that its end is shown."""
    begin, _rest, _end = line.partition("{}")
    long = "password=" + "p" * (whole - len(begin) - 30) + " "
    for more in range(12, 36, 4):
        text = long + "x" * (more - 12) + " " + line.format(SECRET * 4)
        stream = StandinStream(kubelet=f"{text}\nlast\n")
        shown = texts(read_texts(node, stream, Request()))["logs/kubelet.log"]["text"]
        assert SECRET[:4] not in shown and shown.endswith("last\n"), more


def test_a_line_without_blanks_that_is_too_long_is_left_out(node):
    stream = StandinStream(kubelet="https://ops:" + SECRET * 5000 + "@x\nlast\n")
    shown = texts(read_texts(node, stream, Request()))["logs/kubelet.log"]["text"]
    assert shown == (
        "[... a line of more than 16384 bytes without a blank is left out ...]\nlast\n"
    )


def test_a_file_that_is_cut_ends_with_a_whole_line(node, tmp_path):
    address = f"mirror: https://ops:{SECRET * 4}@mirror.example\n"
    size = 128 * 1024
    for more in (14, 20, 30, 40):
        text = f"a: {'b' * 96}\n" * (size // 100 + 1)
        write(tmp_path, "/var/lib/kubelet/config.yaml", text[: size - more] + "\n" + address * 3)
        one = texts(read_texts(node, StandinStream(), Request()))
        shown = one["config/var/lib/kubelet/config.yaml"]["text"]
        assert SECRET[:4] not in shown and "left out" in shown


def test_what_the_node_has_redacted_stays_as_it_is(node):
    """The controller does not redact it again."""
    found = texts(read_texts(node, StandinStream(), Request()))
    assert len(found) == 9
    for one in found.values():
        assert printable(redact_yaml(one["text"])) == one["text"], one["name"]


def test_more_long_lines_than_are_kept_cost_little(node):
    """16 MiB in lines of 20 kB; only those that are kept are redacted."""
    tail = _Tail(5)
    line = b'token="' * 3000 + b"\n"
    begin = time.process_time()
    for _number in range(800):
        tail.feed(line)
    tail.text()
    assert time.process_time() - begin < 5
