# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""``docker_runtime`` against running dockerds with real containers under a real systemd, over ssh.

The runtime's binary is the node's own runc and the hook a stand-in that does nothing: what a GPU
container sees is not looked at here.
"""

from __future__ import annotations

import pytest

from tests.integration.fleet.playbooks import on_nodes, run_module

pytestmark = pytest.mark.full(
    why="faults and the life of docker_runtime's own states, on the nodes of test_site.py"
)
NODES = "gpu1:gpu2"
NAME = "live-test"
CONFIG = "/etc/docker/daemon.json"
STATE = (
    "find /etc/docker -printf '%M %u:%g %p\\n' 2>/dev/null | sort; "
    "find /etc/docker -type f -exec sha256sum {} + 2>/dev/null | sort; "
    "ls -A /var/lib/kubegpu 2>/dev/null"
)
PID = "systemctl show docker --property=MainPID"
IMAGE = "localhost/testbed/busybox:1"
HOOK = "/usr/local/bin/nvidia-container-runtime-hook"
INSTALL_HOOK = f"printf '#!/bin/sh\\nexit 0\\n' > {HOOK} && chmod 755 {HOOK}"
UNIT = "/etc/systemd/system/docker.service.d"
# A dockerd that does not start with our runtime, for a reason that only its journal knows.
BREAK = (
    f"mkdir -p {UNIT} && printf '[Service]\\nExecStartPre=/bin/sh -c \"! grep -q {NAME} {CONFIG} "
    "|| { echo the runtime is not welcome here; exit 3; }\"\\n' "
    f"> {UNIT}/broken.conf && systemctl daemon-reload"
)
FIX = f"rm -f {UNIT}/broken.conf; rmdir {UNIT} 2>/dev/null; systemctl daemon-reload"
START = f"docker run --detach --name {NAME} {IMAGE} /bin/sleep 600 >/dev/null"
LOOK = f"docker inspect {NAME} | grep -e '\"Pid\"' -e '\"Running\"'"
STOP = f"docker rm --force {NAME} >/dev/null 2>&1; true"


def tried(*options):
    return f"docker run --rm {' '.join(options)} {IMAGE} /bin/echo it ran 2>&1; true"


def module(*, check=False, **options):
    """Run the module on the nodes and return each one's answer."""
    arguments = {"name": NAME, "runtime_path": "/usr/sbin/runc", **options}
    flags = ["--diff", *(["--check"] if check else [])]
    return run_module(NODES, "kubegpu.nodes.docker_runtime", arguments, *flags)


def good(**options):
    """Run it, having seen that check mode says the same before."""
    predicted = module(check=True, **options)
    answers = module(**options)
    assert not [one for one in answers.values() if one.get("failed")], answers
    for key in ("changed", "diff", "restarted", "reloaded", "restart_required"):
        assert values(predicted, key) == values(answers, key)
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
    on_nodes(f"{FIX}; {STOP}; rm -f {HOOK}", NODES)
    answers = module(state="absent", reload=True)
    assert not [one for one in answers.values() if one.get("failed")], answers
    assert on_nodes(STATE, NODES) == seen


def test_reload_keeps_dockerd_and_a_running_container(before):
    on_nodes(START, NODES)
    pids, containers = on_nodes(PID, NODES), on_nodes(LOOK, NODES)
    assert all("true" in text for text in containers.values()), containers
    answers = good(reload=True)
    assert values(answers, "reloaded") == each(answers, True)
    assert values(answers, "restarted") == each(answers, False)
    assert on_nodes(tried(f"--runtime={NAME}"), NODES) == each(answers, "it ran")
    again = good(reload=True)
    assert values(again, "changed") == each(again, False)
    gone = good(state="absent", reload=True)
    assert values(gone, "reloaded") == each(gone, True)
    assert on_nodes(STATE, NODES) == before
    for words in on_nodes(tried(f"--runtime={NAME}"), NODES).values():
        assert "unknown or invalid runtime name" in words or "nknown runtime" in words
    assert on_nodes(PID, NODES) == pids
    assert on_nodes(LOOK, NODES) == containers


def test_default_comes_and_goes_by_reload(before):
    pids = on_nodes(PID, NODES)
    default = "docker info 2>/dev/null | grep 'Default Runtime'"
    answers = good(set_default=True, reload=True)
    assert on_nodes(default, NODES) == each(answers, f" Default Runtime: {NAME}")
    assert on_nodes(tried(), NODES) == each(answers, "it ran")
    good(state="absent", reload=True)
    assert on_nodes(default, NODES) == each(answers, " Default Runtime: runc")
    assert on_nodes(tried(), NODES) == each(answers, "it ran")
    assert on_nodes(PID, NODES) == pids


def test_scenario_6_gpus_works_after_the_restart_that_was_asked_for_and_allowed(before):
    # A dockerd that saw the hook in an earlier test keeps it.
    on_nodes("systemctl restart docker", NODES)
    on_nodes(f"{START}; {INSTALL_HOOK}", NODES)
    pids = on_nodes(PID, NODES)
    for _run in range(2):
        answers = good(reload=True)
        assert values(answers, "restart_required") == each(answers, True)
        assert all("--gpus" in one["restart_reason"] for one in answers.values())
    for words in on_nodes(tried("--gpus=all"), NODES).values():
        assert "could not select device driver" in words
    # A container runs: if_idle leaves it alone.
    answers = good(reload=True, restart="if_idle")
    assert values(answers, "restarted") == each(answers, False)
    assert values(answers, "restart_required") == each(answers, True)
    assert all("true" in text for text in on_nodes(LOOK, NODES).values())
    assert on_nodes(PID, NODES) == pids
    # None does.
    on_nodes(STOP, NODES)
    answers = good(reload=True, restart="if_idle")
    assert values(answers, "restarted") == each(answers, True)
    assert values(answers, "restart_required") == each(answers, False)
    assert on_nodes(tried("--gpus=all"), NODES) == each(answers, "it ran")
    later = on_nodes(PID, NODES)
    assert all(later[host] != pids[host] for host in pids)
    # An upgrade of the hook is no reason for another one.
    on_nodes(INSTALL_HOOK, NODES)
    answers = good(reload=True, restart="always")
    assert values(answers, "changed") == each(answers, False)
    assert on_nodes(PID, NODES) == later


def test_dockerd_that_does_not_come_back_gets_its_old_file_and_says_why(before):
    on_nodes(f"{INSTALL_HOOK}; {BREAK}", NODES)
    answers = module(reload=True, restart="always")
    for answer in answers.values():
        assert answer["failed"]
        assert "was restored; dockerd runs again with it" in answer["msg"]
        assert "the runtime is not welcome here" in answer["evidence"]
    assert on_nodes(STATE, NODES) == before
    assert on_nodes("systemctl is-active docker", NODES) == each(answers, "active")


def test_run_that_died_between_write_and_reload_is_repaired_by_the_next(before):
    answers = good()
    assert values(answers, "reload_required") == each(answers, True)
    answers = good(reload=True)
    assert values(answers, "changed") == each(answers, True)
    assert values(answers, "diff") == each(answers, [])
    assert on_nodes(tried(f"--runtime={NAME}"), NODES) == each(answers, "it ran")
