# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import hashlib

import pytest

from plugins.module_utils._exporter.data import PATHS, TIMER_PATH
from plugins.module_utils._exporter.facts import listeners, read_exporter
from plugins.module_utils._host.command import Result
from plugins.module_utils._host.reader import NodeReader
from plugins.module_utils._packages.installed import Package

TCP = """\
  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 00000000:0016 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 100 1 0
   1: 0100007F:24B8 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 200 1 0
   2: 0100007F:24B9 0100007F:24B8 01 00000000:00000000 00:00000000 00000000     0        0 300 1 0
"""
TCP6 = """\
  sl  local_address                         remote_address                        st tx_queue
   0: 00000000000000000000000000000000:238C 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 400 1 0
"""  # noqa: E501 - the columns of /proc/net/tcp


@pytest.fixture
def tree(tmp_path):
    (tmp_path / "proc/net").mkdir(parents=True)
    return tmp_path


def test_ports_and_the_program_of_an_exporters_port(tree):
    (tree / "proc/net/tcp").write_text(TCP)
    (tree / "proc/net/tcp6").write_text(TCP6)
    for pid, name, inode in (("7", "sshd", 100), ("41", "dcgm-exp", 200)):
        (tree / f"proc/{pid}/fd").mkdir(parents=True)
        (tree / f"proc/{pid}/comm").write_text(f"{name}\n")
        (tree / f"proc/{pid}/fd/3").symlink_to(f"socket:[{inode}]")
    assert listeners(NodeReader(str(tree))) == {22: "", 9100: "", 9400: "dcgm-exp (pid 41)"}


def test_tree_without_anything(tree):
    found = read_exporter(NodeReader(str(tree)), None, (), {})
    assert (found["systemd"], found["method"], found["files"]) == (False, "", {})
    assert found["textfile_directories"] == []
    assert found["listeners"] == {}


def test_what_this_collection_and_others_have_set_up(tree):
    timer = tree / TIMER_PATH[1:]
    timer.parent.mkdir(parents=True)
    timer.write_text("[Timer]\n")
    wants = tree / "etc/systemd/system/timers.target.wants"
    wants.mkdir()
    (wants / timer.name).symlink_to(TIMER_PATH)
    (tree / "var/lib/prometheus/node-exporter").mkdir(parents=True)
    reader = NodeReader(str(tree))
    reader._run = lambda argv, timeout: Result(0, "active\n", "")
    value = {
        "method": "textfile",
        "gpus": ["0000:15:00.0"],
        "units": [],
        "output": "/x/kubegpu.prom",
    }
    record = {"values": {"gpu_exporter": value, "package_set:gpu-monitoring": {}}}
    packages = (Package("datacenter-gpu-manager-4-core", "1:4.6.1-1"), Package("nvidia-smi", "1"))
    units = {"dcgm-exporter": "active", "nvidia-dcgm": "inactive"}
    found = read_exporter(reader, units, packages, record)
    assert found["method"] == "textfile"
    assert found["expected_gpus"] == ["0000:15:00.0"]
    assert found["packages"] == {"datacenter-gpu-manager-4-core": "1:4.6.1-1"}
    assert found["packages_managed"]
    assert found["files"] == {TIMER_PATH: hashlib.sha256(b"[Timer]\n").hexdigest()}
    assert set(found["files"]) <= set(PATHS)
    assert found["units"]["kubegpu-metrics.timer"] == "active"
    assert found["units"]["nvidia-dcgm"] == "inactive"
    assert found["enabled"] == ["kubegpu-metrics.timer"]
    assert found["foreign_units"] == {"dcgm-exporter": "active"}
    assert found["textfile_directories"] == ["/var/lib/prometheus/node-exporter"]


@pytest.mark.parametrize("value", [None, [], "text", {}])
def test_record_that_is_broken_is_none(tree, value):
    record = {"values": {"gpu_exporter": value}}
    assert read_exporter(NodeReader(str(tree)), {}, (), record)["method"] == ""
