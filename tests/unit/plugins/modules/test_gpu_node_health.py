# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""``gpu_node_health`` as Ansible starts it, with a stand-in of nvidia-smi and a tree of a node."""

from __future__ import annotations

import json
import os
import time
import tracemalloc

import pytest
import yaml

from ansible_collections.kubegpu.nodes.plugins.module_utils._health import facts, kernel_log
from ansible_collections.kubegpu.nodes.plugins.module_utils._host.reader import NodeReader
from ansible_collections.kubegpu.nodes.plugins.module_utils._known_faults.rules import nvidia_smi
from ansible_collections.kubegpu.nodes.plugins.modules import gpu_node_health
from tests.unit.fixtures.health_node import A100, journal, make_node, smi_document, smi_gpu, xid
from tests.unit.module_process import predicted, run_module

# Seconds of the processor for the largest logs: all logs together may take that long by default.
# The measurement of the memory slows it down. A busy machine takes longer: the limit is another.
LONGEST = 60
BUSY = {"timeout": 10 * LONGEST}
DOCUMENT = smi_document(smi_gpu(remapped_row_pending="Yes"))


@pytest.fixture
def node(tmp_path, monkeypatch):
    """The module reads this node, and finds its programs first."""
    root = make_node(tmp_path / "root")
    programs = tmp_path / "bin"
    programs.mkdir()
    program(programs, "nvidia-smi", f"cat <<'END'\n{DOCUMENT}END\n")
    lines = journal((5, xid(79, "GPU has fallen off the bus.")), (6, xid(31, name="python")))
    program(programs, "journalctl", f"[ $3 = 0 ] || exit 1\ncat <<'END'\n{lines}END\n")
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    monkeypatch.setattr(gpu_node_health, "NodeReader", lambda _root: NodeReader(str(root)))
    return programs


def program(folder, name, script):
    path = folder / name
    path.write_text(f"#!/bin/sh\necho $$ >>{folder}/{name}.calls\n{script}")
    path.chmod(0o755)


def calls(folder, name):
    return [int(line) for line in (folder / f"{name}.calls").read_text().split()]


def test_the_result(node):
    answer = predicted(gpu_node_health.main, {})
    assert answer["changed"] is False and answer["ok"] is False
    assert [(one["code"], one["severity"]) for one in answer["findings"]] == [
        ("gpu_lost", "error"),
        ("row_remap_pending", "warning"),
        ("xid", "info"),
    ]
    (gpu,) = answer["gpus"]
    assert gpu["address"] == A100 and gpu["remapped_rows"]["pending"] is True
    assert [(one["kind"], one["number"], one["count"]) for one in answer["events"]] == [
        ("xid", 31, 1),
        ("xid", 79, 1),
    ]
    assert answer["hangs"] == [] and answer["seconds"] < 30
    # Once in check mode, once really.
    assert len(calls(node, "nvidia-smi")) == 2


def test_no_command_line_leaves_the_node(node):
    assert "hunter2" in (node / "nvidia-smi").read_text()
    assert "hunter2" not in json.dumps(run_module(gpu_node_health.main, {}))


def test_an_earlier_result_is_the_baseline(node):
    before = run_module(gpu_node_health.main, {})
    after = run_module(gpu_node_health.main, {"baseline": before})
    assert after["new"] == [] and after["resolved"] == []


def test_a_driver_that_hangs_is_told_in_time_and_leaves_nothing(node):
    program(node, "nvidia-smi", "trap '' TERM INT HUP\nwhile :; do sleep 30; done\n")
    begin = time.monotonic()
    answer = run_module(gpu_node_health.main, {"timeout": 2})
    assert time.monotonic() - begin < 20
    (hang,) = answer["hangs"]
    assert hang["program"] == "nvidia-smi" and hang["left"] is False and hang["seconds"] >= 2
    assert calls(node, "nvidia-smi") == [hang["pid"]]
    with pytest.raises(ProcessLookupError):
        os.kill(hang["pid"], 0)
    (finding,) = (one for one in answer["findings"] if one["code"] == "driver_hangs")
    assert finding["severity"] == "error" and "Xids since boot: 31, 79" in finding["evidence"]


def print_log(folder, parts):
    """Let journalctl print a log of the present boot; return its size."""
    path = folder / "log"
    with path.open("wb") as log:
        for part in parts:
            log.write(part)
    program(folder, "journalctl", f"[ $3 = 0 ] || exit 1\nexec cat {path}\n")
    return path.stat().st_size


def measured():
    """Run the module; return its answer, the most memory in bytes that Python had, and seconds."""
    tracemalloc.start()
    begin = time.process_time()
    try:
        answer = run_module(gpu_node_health.main, BUSY)
        return answer, tracemalloc.get_traced_memory()[1], time.process_time() - begin
    finally:
        tracemalloc.stop()


@pytest.mark.full(why="100,000 lines; _health/test_kernel_log.py has fewer")
def test_a_boot_with_many_xids_is_cut_in_bounded_memory_and_the_result_says_so(node):
    def flood():
        for number in range(100_000):
            # Each is of another kind: no log has that many.
            gpu = f"{number % 7919:04x}:{number % 251:02x}:00.0"
            yield journal((5, xid(number % 997, "y" * 200, gpu=gpu))).encode()

    size = print_log(node, flood())
    answer, peak, seconds = measured()
    assert len(answer["events"]) == kernel_log.MOST_EVENTS
    (log,) = answer["logs"]
    assert log["size"] == size and f"only {kernel_log.MOST_EVENTS} kinds" in log["incomplete"]
    assert {"what": "kernel log of boot 0", "why": log["incomplete"]} in answer["unseen"]
    # The events and their findings as values, as texts and as JSON: it does not grow with the log.
    assert peak < 100 << 20
    assert seconds < LONGEST
    assert len(calls(node, "journalctl")) == 2 and len(calls(node, "nvidia-smi")) == 1


@pytest.mark.full(why="50 MB")
@pytest.mark.parametrize("most", [None, 1 << 20], ids=["all", "cut"])
def test_a_log_of_50_megabytes_is_not_kept_in_memory(node, most, monkeypatch):
    if most:
        monkeypatch.setattr(facts, "_MOST_LOG", most)
    part = journal((1, "usb 1-1: new high-speed device number 5 using xhci_hcd")).encode() * 1000
    newest = journal((9, xid(79, "GPU has fallen off the bus."))).encode()
    size = print_log(node, (newest, *(part for _number in range(50_000_000 // len(part)))))
    assert size > 49_000_000
    answer, peak, seconds = measured()
    assert [(one["number"], one["count"]) for one in answer["events"]] == [(79, 1)]
    log = answer["logs"][0]
    assert log["size"] == (most or size)
    assert log["incomplete"] == (f"only {most} bytes of it were read" if most else "")
    assert [one["why"] for one in answer["unseen"] if one["what"] == "kernel log of boot 0"] == (
        [log["incomplete"]] if most else []
    )
    # Less than the log. NodeReader has a buffer of 32 MiB for a file.
    assert peak < 40 << 20
    assert seconds < LONGEST


def test_a_wrong_option_is_refused_before_anything_is_asked(node):
    answer = run_module(gpu_node_health.main, {"baseline": {"ok": True}})
    assert answer["failed"] and "baseline has no list findings" in answer["msg"]
    assert not (node / "nvidia-smi.calls").exists()


def test_the_documentation_has_each_threshold_and_its_number():
    documented = yaml.safe_load(gpu_node_health.DOCUMENTATION)["options"]["thresholds"]
    text = " ".join(" ".join(documented["description"]).split())
    for row in nvidia_smi.THRESHOLDS:
        limit = "V(null)" if row.limit is None else row.limit
        assert f"C({row.name}) ({limit}" in text


def test_each_returned_value_is_documented(node):
    answer = run_module(gpu_node_health.main, {})
    documented = set(yaml.safe_load(gpu_node_health.RETURN))
    failure = {"cause", "evidence", "next_step"}
    assert {
        name for name in answer if name not in ("changed", "invocation")
    } == documented - failure
