# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._containerd.dump import read_effective
from ansible_collections.kubegpu.nodes.plugins.module_utils._facts.runtimes import (
    CONTAINERD_CONFIG,
    RuntimePaths,
    config_version,
    read_daemon_json,
    read_docker_info,
    read_runtimes,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._host.command import Result
from ansible_collections.kubegpu.nodes.plugins.module_utils._host.reader import NodeReader
from ansible_collections.kubegpu.nodes.plugins.module_utils._packages.installed import Package
from tests.unit.fixtures.make_tree import write

DUMPS = Path(__file__).resolve().parents[3] / "fixtures/runtime_facts"
NVIDIA = "/usr/bin/nvidia-container-runtime"


class StandinReader(NodeReader):
    """Reads a tree as if it were the node: commands and the socket answer from tables."""

    def __init__(
        self,
        root: Path,
        commands: dict[str, Result] | None = None,
        http: dict[str, bytes] | None = None,
    ) -> None:
        super().__init__(str(root))
        self.commands = commands or {}
        self.http = http or {}
        self.asked: list[str] = []

    def run(self, argv: Any, timeout: int = 30) -> Result | None:
        self.asked.append(" ".join(argv))
        return self.commands.get(" ".join(argv))

    def ask_http(self, socket_path: str, resource: str, timeout: float = 5.0) -> bytes | None:
        self.asked.append(f"{socket_path} {resource}")
        return self.http.get(socket_path)


def dump(version: str) -> str:
    return (DUMPS / f"config-dump-containerd-{version}.toml").read_text()


@pytest.mark.parametrize(("version", "cdi"), [("1.6.20", None), ("1.7.24", False), ("2.1.9", True)])
def test_effective_configuration_as_recorded(version: str, cdi: bool | None) -> None:
    effective = read_effective(dump(version))
    assert effective["cdi_enabled"] is cdi
    assert effective["default_handler"] == "nvidia"
    assert effective["cri_enabled"] is True
    assert set(effective["handlers"]) == {"runc", "nvidia"}
    nvidia, runc = effective["handlers"]["nvidia"], effective["handlers"]["runc"]
    assert (nvidia["type"], nvidia["path"]) == ("io.containerd.runc.v2", NVIDIA)
    assert (runc["type"], runc["path"]) == ("io.containerd.runc.v2", None)
    assert runc["options"]["SystemdCgroup"] is True


@pytest.mark.parametrize(
    "name",
    ["cri", "io.containerd.grpc.v1.cri", "io.containerd.cri.v1.runtime"],
)
def test_disabled_cri(name: str) -> None:
    text = dump("2.1.9").replace("disabled_plugins = []", f"disabled_plugins = ['{name}']")
    assert read_effective(text)["cri_enabled"] is False


def test_option_names_are_read_without_regard_to_case_and_default_is_runc() -> None:
    text = """
    [plugins."io.containerd.grpc.v1.cri".containerd]
      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.x.options]
        binaryName = "/x"
    """
    effective = read_effective(text)
    assert effective["handlers"]["x"]["path"] == "/x"
    assert effective["handlers"]["x"]["type"] is None
    assert effective["default_handler"] == "runc"


def test_containerd_without_cri() -> None:
    assert read_effective("version = 3\n") == {
        "handlers": {},
        "default_handler": None,
        "cri_enabled": False,
        "cdi_enabled": None,
    }


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", 1),
        ('disabled_plugins = ["cri"]\n', 1),
        ("version = 2\n[plugins]\n", 2),
        ("# version = 2\nversion=3 # new\n", 3),
        ('version = 2\n{{ template "base" . }}\n', 2),
        ('{{ template "base" . }}\n', None),
        ("version = 'x'", None),
    ],
)
def test_config_version(text: str, expected: int | None) -> None:
    assert config_version(text) == expected


CONFIG = "/etc/containerd/config.toml"


def containerd_node(root: Path, config: str | None, answer: Result) -> StandinReader:
    write(root, "/usr/bin/containerd")
    if config is not None:
        write(root, CONFIG, config)
    choice = "" if config is None else f"--config {CONFIG} "
    return StandinReader(
        root,
        {
            "/usr/bin/containerd --version": Result(0, "containerd x 1.6.20~ds1 y", ""),
            f"/usr/bin/containerd {choice}config dump": answer,
        },
    )


def test_plain_containerd(tmp_path: Path) -> None:
    reader = containerd_node(tmp_path, "version = 2\n", Result(0, dump("1.6.20"), ""))
    runtimes, problems = read_runtimes(reader, {"containerd": "active"}, RuntimePaths())
    assert problems == []
    containerd = runtimes["containerd"]
    assert set(containerd.pop("handlers")) == {"runc", "nvidia"}
    assert containerd == {
        "version": "1.6.20",
        "distribution": "containerd",
        "config_path": CONFIG,
        "config_version": 2,
        "unit": "containerd",
        "active": True,
        "control_plane": False,
        "default_handler": "nvidia",
        "cri_enabled": True,
        "cdi_enabled": None,
    }
    assert (runtimes["docker"], runtimes["crio"]) == (None, None)


def test_containerd_without_a_file_has_no_config_version(tmp_path: Path) -> None:
    reader = containerd_node(tmp_path, None, Result(0, dump("2.1.9"), ""))
    runtimes, _problems = read_runtimes(reader, None, RuntimePaths())
    containerd = runtimes["containerd"]
    assert (containerd["config_version"], containerd["active"]) == (None, None)
    assert containerd["default_handler"] == "nvidia"


def test_disabled_cri_is_a_problem(tmp_path: Path) -> None:
    config = 'disabled_plugins = ["cri"]\n'
    reader = containerd_node(tmp_path, config, Result(0, config, ""))
    runtimes, problems = read_runtimes(reader, {}, RuntimePaths())
    assert runtimes["containerd"]["cri_enabled"] is False
    assert runtimes["containerd"]["config_version"] == 1
    assert [problem.code for problem in problems] == ["cri_disabled"]


@pytest.mark.parametrize(
    "answer",
    [
        Result(1, "", "containerd: failed to load TOML: line 3"),
        Result(0, "line 3 is = = no TOML", ""),
    ],
)
def test_file_that_does_not_load_is_a_problem(tmp_path: Path, answer: Result) -> None:
    reader = containerd_node(tmp_path, "version = ", answer)
    runtimes, problems = read_runtimes(reader, {}, RuntimePaths())
    assert runtimes["containerd"]["handlers"] is None
    assert [problem.code for problem in problems] == ["containerd_config_invalid"]
    assert "line" in problems[0].evidence


def test_what_only_root_may_read_is_null_and_no_problem(tmp_path: Path) -> None:
    class Closed(StandinReader):
        def absent(self, path: str) -> bool:
            return False

    write(tmp_path, "/usr/bin/containerd")
    write(tmp_path, "/usr/bin/dockerd")
    runtimes, problems = read_runtimes(Closed(tmp_path), {}, RuntimePaths())
    assert problems == []
    assert runtimes["containerd"]["handlers"] is None
    assert runtimes["containerd"]["config_version"] is None
    assert runtimes["docker"]["runtimes"] is None


def test_import_that_only_root_may_read_is_no_problem(tmp_path: Path) -> None:
    answer = Result(1, "", "containerd: open /etc/containerd/conf.d/x.toml: permission denied")
    runtimes, problems = read_runtimes(
        containerd_node(tmp_path, "version = 2\n", answer), {}, RuntimePaths()
    )
    assert (runtimes["containerd"]["handlers"], problems) == (None, [])


@pytest.mark.parametrize(
    ("marker", "distribution", "unit"),
    [
        ("/var/lib/rancher/k3s/agent/etc/containerd/x", "k3s", "k3s-agent"),
        ("/var/lib/rancher/rke2/agent/etc/containerd/x", "rke2", "rke2-server"),
        ("/etc/k0s/containerd.toml", "k0s", "k0sworker"),
        ("/var/snap/microk8s/current/args/x", "microk8s", "snap.microk8s.daemon-containerd"),
    ],
)
def test_distributions(tmp_path: Path, marker: str, distribution: str, unit: str) -> None:
    write(tmp_path, marker)
    reader = StandinReader(tmp_path)
    runtimes, _problems = read_runtimes(reader, {"k3s-agent": "active"}, RuntimePaths())
    containerd = runtimes["containerd"]
    assert (containerd["distribution"], containerd["unit"]) == (distribution, unit)


@pytest.mark.parametrize(
    ("units", "unit"),
    [
        ({"rke2-server": "inactive", "rke2-agent": "active"}, "rke2-agent"),
        ({"rke2-server": "active", "rke2-agent": "inactive"}, "rke2-server"),
        ({"rke2-server": None, "rke2-agent": "failed"}, "rke2-agent"),
        ({"rke2-server": "failed", "rke2-agent": "inactive"}, "rke2-server"),
        (None, "rke2-server"),
    ],
)
def test_the_unit_that_runs_is_meant(
    tmp_path: Path, units: dict[str, str | None] | None, unit: str
) -> None:
    """RKE2's archive brings the units of servers and of agents to every node."""
    write(tmp_path, "/var/lib/rancher/rke2/agent/etc/containerd/x")
    runtimes, _problems = read_runtimes(StandinReader(tmp_path), units, RuntimePaths())
    assert runtimes["containerd"]["unit"] == unit
    # A restart of an agent takes nothing of the control plane with it.
    assert runtimes["containerd"]["control_plane"] is (unit == "rke2-server")


def test_what_microk8s_fills_in(tmp_path: Path) -> None:
    write(tmp_path, "/snap/microk8s/current/bin/containerd")
    path = "/var/snap/microk8s/current/args/containerd-template.toml"
    write(tmp_path, path, "version = 2\n")
    dumped = (
        "version = 2\n"
        '[plugins."io.containerd.grpc.v1.cri".containerd]\n'
        'default_runtime_name = "${RUNTIME}"\n'
        '[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]\n'
        'runtime_type = "${RUNTIME_TYPE}"\n'
    )
    binary = "/snap/microk8s/current/bin/containerd"
    answer = Result(0, dumped, "")
    reader = StandinReader(tmp_path, {f"{binary} --config {path} config dump": answer})
    runtimes, _problems = read_runtimes(reader, {}, RuntimePaths())
    containerd = runtimes["containerd"]
    assert containerd["default_handler"] == "runc"
    assert containerd["handlers"]["runc"]["type"] == "io.containerd.runc.v2"


@pytest.mark.parametrize("enabled", [True, False])
def test_what_containerd_said_is_not_asked_again(tmp_path: Path, enabled: bool) -> None:
    write(tmp_path, "/usr/bin/containerd")
    write(tmp_path, CONTAINERD_CONFIG, "version = 2\n")
    words = {"version": "containerd x 1.7.24", "cri_enabled": enabled, "default_handler": "nvidia"}
    reader = StandinReader(tmp_path)
    asked = []

    def cached_report(*about: Any) -> Any:
        asked.append(about)
        return {**words, "handlers": {"nvidia": {}}}

    runtimes, problems = read_runtimes(reader, {}, RuntimePaths(), cached_report=cached_report)
    containerd = runtimes["containerd"]
    assert (containerd["version"], containerd["default_handler"]) == ("1.7.24", "nvidia")
    assert [one.code for one in problems] == ([] if enabled else ["cri_disabled"])
    assert asked == [("containerd", "containerd", ("/usr/bin/containerd", CONTAINERD_CONFIG))]
    assert reader.asked == []


# Shortened: recorded from dockerd 20.10.24.
INFO = {
    "ServerVersion": "20.10.24+dfsg1",
    "Runtimes": {
        "io.containerd.runc.v2": {"path": "runc"},
        "nvidia": {"path": NVIDIA, "runtimeArgs": ["--x"]},
        "runc": {"path": "runc", "status": {"x": "y"}},
    },
    "DefaultRuntime": "runc",
    "LiveRestoreEnabled": True,
    "ContainersRunning": 3,
    "HttpProxy": "http://user:secret@proxy.example.invalid",
}


def test_docker_info() -> None:
    assert read_docker_info(json.dumps(INFO).encode()) == {
        "version": "20.10.24",
        "runtimes": {
            "io.containerd.runc.v2": {"path": "runc", "args": [], "type": None},
            "nvidia": {"path": NVIDIA, "args": ["--x"], "type": None},
            "runc": {"path": "runc", "args": [], "type": None},
        },
        "default_runtime": "runc",
        "live_restore": True,
        "containers_running": 3,
    }


@pytest.mark.parametrize("body", [b"", b"[]", b"{}", b'{"Runtimes": []}', b"<html>"])
def test_no_docker_info(body: bytes) -> None:
    assert read_docker_info(body) == {}


EMPTY = {"runtimes": {}, "default_runtime": "runc", "live_restore": False}


@pytest.mark.parametrize("text", ["", " \n", "\ufeff{}", "null", '{"runtimes": null}', "{}"])
def test_daemon_json_that_says_nothing(text: str) -> None:
    assert read_daemon_json(text) == EMPTY


@pytest.mark.parametrize("text", ["[]", '{"runtimes": []}', "{", "// x\n{}"])
def test_daemon_json_that_dockerd_refuses(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        read_daemon_json(text)


def docker_node(root: Path, config: str | None = None, **more: Any) -> StandinReader:
    write(root, "/usr/sbin/dockerd")
    if config is not None:
        write(root, "/etc/docker/daemon.json", config)
    version = Result(0, "Docker version 26.1.5+dfsg1, build a72d7cd", "")
    return StandinReader(root, {"/usr/sbin/dockerd --version": version}, **more)


def test_docker_that_runs(tmp_path: Path) -> None:
    reader = docker_node(tmp_path, "{}", http={"/run/docker.sock": json.dumps(INFO).encode()})
    runtimes, problems = read_runtimes(reader, {"docker": "active"}, RuntimePaths())
    docker = runtimes["docker"]
    assert problems == []
    assert (docker["version"], docker["active"], docker["containers_running"]) == (
        "20.10.24",
        True,
        3,
    )
    assert docker["runtimes"]["nvidia"]["path"] == NVIDIA
    assert "secret" not in json.dumps(runtimes)
    # The daemon told its version: no process is started for it.
    assert reader.asked == ["/run/docker.sock /info"]


def test_docker_that_does_not_run_is_not_started_by_looking(tmp_path: Path) -> None:
    config = '{"runtimes": {"nvidia": {"path": "/x"}}, "live-restore": true}'
    reader = docker_node(tmp_path, config)
    runtimes, _problems = read_runtimes(reader, {"docker": "inactive"}, RuntimePaths())
    assert runtimes["docker"] == {
        "version": "26.1.5",
        "config_path": "/etc/docker/daemon.json",
        "unit": "docker",
        "active": False,
        "runtimes": {"nvidia": {"path": "/x", "args": [], "type": None}},
        "default_runtime": "runc",
        "live_restore": True,
        "containers_running": None,
    }
    assert reader.asked == ["/usr/sbin/dockerd --version"]


@pytest.mark.parametrize(
    ("name", "version", "expected"),
    [
        ("docker.io", "20.10.24+dfsg1-1+deb12u1", "20.10.24"),
        ("docker-ce", "5:28.5.2-1~debian.13~trixie", "28.5.2"),
    ],
)
def test_docker_that_does_not_run_has_its_packages_version(
    tmp_path: Path, name: str, version: str, expected: str
) -> None:
    reader = docker_node(tmp_path)
    write(tmp_path, f"/var/lib/dpkg/info/{name}.list")
    units = {"docker": "inactive"}
    packages = (Package(name, version), Package("docker-ce-cli", "5:1.2.3-1"))
    runtimes, _problems = read_runtimes(reader, units, RuntimePaths(), packages)
    assert runtimes["docker"]["version"] == expected
    assert reader.asked == []


def test_binary_that_somebody_replaced_is_asked_itself(tmp_path: Path) -> None:
    reader = containerd_node(tmp_path, None, Result(1, "", ""))
    write(tmp_path, "/var/lib/dpkg/info/containerd.list")
    packages = (Package("containerd", "1.4.13~ds1-1"),)
    runtimes, _problems = read_runtimes(reader, {}, RuntimePaths(), packages)
    assert runtimes["containerd"]["version"] == "1.4.13"
    installed = time.time() - 3600
    os.utime(tmp_path / "var/lib/dpkg/info/containerd.list", (installed, installed))
    runtimes, _problems = read_runtimes(reader, {}, RuntimePaths(), packages)
    assert runtimes["containerd"]["version"] == "1.6.20"


def test_docker_by_hand_beside_a_package_is_asked_itself(tmp_path: Path) -> None:
    write(tmp_path, "/usr/local/bin/dockerd")
    reader = StandinReader(
        tmp_path, {"/usr/local/bin/dockerd --version": Result(0, "Docker version 26.1.5, x", "")}
    )
    runtimes, _problems = read_runtimes(
        reader, {}, RuntimePaths(), (Package("docker.io", "20.10.24-1"),)
    )
    assert runtimes["docker"]["version"] == "26.1.5"


def test_docker_file_that_does_not_load_is_a_problem(tmp_path: Path) -> None:
    runtimes, problems = read_runtimes(docker_node(tmp_path, "{"), {}, RuntimePaths())
    assert runtimes["docker"]["runtimes"] is None
    assert [problem.code for problem in problems] == ["docker_config_invalid"]


def test_crio(tmp_path: Path) -> None:
    write(tmp_path, "/usr/bin/crio")
    reader = StandinReader(
        tmp_path, {"/usr/bin/crio --version": Result(0, "crio version 1.30.4", "")}
    )
    runtimes, _problems = read_runtimes(reader, {"crio": "failed"}, RuntimePaths())
    assert runtimes["crio"] == {
        "version": "1.30.4",
        "config_path": "/etc/crio/crio.conf",
        "drop_in_path": "/etc/crio/crio.conf.d/99-nvidia.toml",
        "unit": "crio",
        "active": False,
        "runtimes": {},
        "default_runtime": None,
        "default_file": None,
        "own_runtime": None,
        "restart_required": False,
    }
