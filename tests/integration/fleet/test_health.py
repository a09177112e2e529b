# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""gpu_node_health over ssh on nodes with systemd and a journal of their own.

The PCI tree and nvidia-smi are stand-ins. The log is the real one of this machine's kernel. Lines
of NVIDIA's driver come from a stand-in of journalctl in front of it: nothing is written to the log,
which each test looks at. The nodes cannot have /dev/kmsg read-only: journald opens it for both.
"""

from __future__ import annotations

import json
import re

import pytest

from tests.integration.fleet.playbooks import on_nodes, run_module
from tests.testbed.nodes import execute
from tests.unit.fixtures.health_node import smi_document, smi_gpu, xid

pytestmark = pytest.mark.full(why="another module on nodes of test_site.py")

NODE, WITHOUT = "gpu3", "cpu1"
SECRET = "hunter2"


@pytest.fixture
def node(fleet):
    (node,) = (one for one in fleet if one.name == NODE)
    before = written(node)
    saved = "cp -a /usr/bin/nvidia-smi /usr/bin/journalctl /root/"
    execute(node, "sh", "-c", saved)
    yield node
    execute(node, "sh", "-c", "mv /root/nvidia-smi /root/journalctl /usr/bin/")
    assert written(node) - before == set()


def written(node):
    """Return the lines of a driver, or of ours, that programs have put into the machine's log.

    The node has the machine's kernel. It marks what is written to /dev/kmsg as not its own.
    """
    assert execute(node, "dmesg", "--kernel"), "the log cannot be read"
    lines = execute(node, "dmesg", "--userspace").splitlines()
    return {line for line in lines if re.search(r"NVRM|\bS?Xid\b|kubegpu", line)}


def health(pattern=NODE, **options):
    # Ansible takes an empty mapping for an argument.
    return run_module(pattern, "kubegpu.nodes.gpu_node_health", options or "")


def codes(rows):
    return {(row["code"], row["severity"]) for row in rows}


def replace(node, program, script):
    """Put a script in the place of a program."""
    execute(node, "tee", f"/usr/bin/{program}", stdin=f"#!/bin/sh\n{script}")


def test_a_node_is_read_judged_and_compared(node):
    answers = health(f"{NODE}:{WITHOUT}")
    none, before = answers[WITHOUT], answers[NODE]
    assert "ok" in none and "ok" in before, answers
    assert (none["ok"], none["gpus"], none["logs"], none["unseen"]) == (True, [], [], [])
    assert before["ok"] and before["findings"] == [] and before["hangs"] == []
    (gpu,) = before["gpus"]
    assert gpu["on_bus"] and gpu["ecc"]["mode"] == "enabled" and gpu["uuid"]
    (log, *_earlier) = before["logs"]
    assert (log["boot"], log["incomplete"]) == (0, "") and log["size"] > 0
    assert before["boot_id"] == on_nodes("cat /proc/sys/kernel/random/boot_id", NODE)[NODE]

    address = gpu["address"]
    fault = smi_document(smi_gpu(address, remapped_row_failure="Yes"))
    assert SECRET in fault
    replace(node, "nvidia-smi", f"cat <<'END'\n{fault}END\n")
    line = xid(95, gpu=address, name="python")
    # The real programs do the rest: the arguments, the order of the lines, the other boots.
    ours = f'case "$*" in *"-b 0 "*) echo "$(date +%s).000000 $(hostname) kernel: {line}" ;; esac'
    replace(node, "journalctl", f'{ours}\nexec /root/journalctl "$@"\n')
    after = health(baseline=before)[NODE]
    assert not after["ok"]
    assert codes(after["new"]) == {("row_remap_failed", "error"), ("gpu_memory_error", "error")}
    assert {row["address"] for row in after["new"]} == {address}
    (event,) = (one for one in after["events"] if one["kind"] == "xid")
    assert (event["number"], event["count"], event["programs"]) == (95, 1, ["python"])
    assert event["last"] is not None and after["logs"][0]["source"] == "journalctl"
    # The command lines that nvidia-smi prints have not left the node.
    assert SECRET not in json.dumps(after)


def test_a_driver_that_hangs_is_told_in_its_time_and_leaves_no_process(node):
    replace(node, "nvidia-smi", "trap '' TERM INT HUP\nwhile :; do sleep 1; done\n")
    answer = health(timeout=5)[NODE]
    (hang,) = answer["hangs"]
    # The limit is once for nvidia-smi and once for all logs; a busy machine is slow at the rest.
    assert 5 <= hang["seconds"] < 20 and answer["seconds"] < 40 and not hang["left"]
    assert ("driver_hangs", "error") in codes(answer["findings"])
    # sysfs and the log were read all the same.
    assert answer["gpus"] and answer["logs"]
    assert on_nodes("pgrep -x nvidia-smi", NODE)[NODE] == ""
