# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""``containerd_runtime`` against running containerd daemons under a real systemd, over ssh.

The handler's binary is the node's own runc: what runs in a container is not looked at here.
"""

from __future__ import annotations

import pytest

from tests.integration.fleet.playbooks import on_nodes, run_module

pytestmark = pytest.mark.full(
    why="faults and the life of containerd_runtime's own states, on the nodes of test_site.py"
)
NODES = "gpu1:gpu2:gpu3"
NAME = "live-test"
CONFIG = "/etc/containerd/config.toml"
STATE = (
    "find /etc/containerd -printf '%M %u:%g %p\\n' 2>/dev/null | sort; "
    "find /etc/containerd -type f -exec sha256sum {} + 2>/dev/null | sort; "
    "ls -A /var/lib/kubegpu 2>/dev/null"
)
PID = "systemctl show containerd --property=MainPID"
UNIT = "/etc/systemd/system/containerd.service.d"
# A containerd that does not start with our handler, for a reason that only its journal knows.
BREAK = (
    f"mkdir -p {UNIT} && printf '[Service]\\nExecStartPre=/bin/sh -c \"! grep -q {NAME} {CONFIG} "
    "|| { echo the handler is not welcome here; exit 3; }\"\\n' "
    f"> {UNIT}/broken.conf && systemctl daemon-reload"
)
FIX = f"rm -f {UNIT}/broken.conf; rmdir {UNIT} 2>/dev/null; systemctl daemon-reload"

# Nothing may be executed from the nodes' /tmp, so an image of theirs is used. The nodes share one
# tree of control groups, so that each needs a container name of its own.
CTR = "ctr --namespace k8s.io"
LOOK = f"{CTR} tasks ls | awk '$1 ~ /^live-/ {{print $2, $3}}'"
RUN = (
    f"{CTR} run --detach localhost/testbed/busybox:1 live-$(hostname) /bin/sleep 600 2>&1; "
    f"sleep 1; {LOOK}"
)
STOP = (
    f"{CTR} tasks kill --signal SIGKILL live-$(hostname); sleep 1; "
    f"{CTR} tasks rm live-$(hostname); {CTR} containers rm live-$(hostname); true"
)


def module(*, check=False, **options):
    """Run the module on the nodes and return each one's answer."""
    arguments = {"name": NAME, "runtime_path": "/usr/sbin/runc", **options}
    flags = ["--diff", *(["--check"] if check else [])]
    return run_module(NODES, "kubegpu.nodes.containerd_runtime", arguments, *flags)


def good(**options):
    answers = module(**options)
    assert not [one for one in answers.values() if one.get("failed")], answers
    return answers


def values(answers, key):
    return {host: answer[key] for host, answer in answers.items()}


def each(answers, value):
    return dict.fromkeys(answers, value)


@pytest.fixture
def before(fleet):
    """The nodes' configuration; whatever the test does, it is that again afterwards."""
    seen = on_nodes(STATE, NODES)
    yield seen
    on_nodes(FIX, NODES)
    good(state="absent", restart=True)
    assert on_nodes(STATE, NODES) == seen


def test_restart_with_a_good_configuration(before):
    """It happens once, and the shims of running containers live on."""
    pids = on_nodes(PID, NODES)
    predicted = module(check=True, restart=True)
    assert on_nodes(STATE, NODES) == before
    running = on_nodes(RUN, NODES)
    try:
        assert all(line.endswith("RUNNING") for line in running.values()), running
        answers = good(restart=True)
        assert on_nodes(LOOK, NODES) == running
    finally:
        on_nodes(STOP, NODES)
    for key in ("changed", "diff", "restarted", "restart_required", "handlers"):
        assert values(predicted, key) == values(answers, key)
    assert values(answers, "restarted") == each(answers, True)
    later = on_nodes(PID, NODES)
    assert all(later[host] != pids[host] for host in pids)
    again = good(restart=True)
    assert values(again, "changed") == each(again, False)
    assert on_nodes(PID, NODES) == later
    gone = good(state="absent", restart=True)
    assert values(gone, "changed") == each(gone, True)
    assert on_nodes(STATE, NODES) == before


def test_run_that_ends_before_the_restart_is_finished_by_the_next(before):
    answers = good()
    assert values(answers, "restart_required") == each(answers, True)
    again = good()
    assert values(again, "changed") == each(again, False)
    assert values(again, "restart_required") == each(again, True)
    finished = good(restart=True)
    assert values(finished, "restarted") == each(finished, True)
    # A restart by somebody else settles it too.
    on_nodes(f"touch {CONFIG}; systemctl restart containerd", NODES)
    assert values(good(), "restart_required") == each(finished, False)


def test_containerd_that_does_not_come_back_gets_its_old_file_back(before):
    on_nodes(BREAK, NODES)
    answers = module(restart=True)
    for host, answer in answers.items():
        assert answer["failed"], host
        assert "old configuration was restored" in answer["cause"]
        assert "runs again" in answer["cause"]
        assert "the handler is not welcome here" in answer["evidence"]
    assert on_nodes(STATE, NODES) == before
    active = on_nodes("systemctl is-active containerd; ctr version > /dev/null && echo yes", NODES)
    assert active == each(active, "active\nyes")
