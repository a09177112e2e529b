# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""CRI-O in the playbooks, beside the node's other runtimes.

Debian has no CRI-O, so the daemon is a stand-in: a script that starts, as CRI-O does, only if each
handler's program is there. Its configuration is the file of CRI-O's own packages; the program that
this file names is the node's real runc.
"""

from __future__ import annotations

import pytest

from tests.integration.fleet.playbooks import ETC, on_nodes, play, run_module
from tests.testbed.nodes import execute
from tests.unit.fixtures.crio import PACKAGED

pytestmark = pytest.mark.full(why="another runtime in the story of test_site.py")
PACKAGED_FILE = "/etc/crio/crio.conf.d/10-crio.conf"
OURS = "/etc/crio/crio.conf.d/99-nvidia.toml"
TASK = "Configure CRI-O"
# The facts, and a call for each of the three runtimes; CRI-O is asked each time.
ALL_CALLS, CONVERGED_CALLS = 4, 2
STANDIN = r"""#!/bin/sh
# A stand-in of the test bed for CRI-O.
if [ "$1" = --version ]; then echo "crio version 1.30.4 (stand-in of the test bed)"; exit; fi
for program in $(sed -n 's/^ *runtime_path *= *"\(.*\)"/\1/p' /etc/crio/crio.conf.d/*); do
    [ -x "$program" ] || { echo "stand-in: invalid runtime_path: $program" >&2; exit 1; }
done
systemd-notify --ready
exec sleep infinity
"""
UNIT = """\
[Service]
Type=notify
NotifyAccess=all
ExecStart=/usr/bin/crio
"""
PUT = f"""set -e
mkdir -p /etc/crio/crio.conf.d /usr/libexec/crio
cat > /usr/bin/crio <<'END'
{STANDIN}END
chmod 755 /usr/bin/crio
cat > /etc/systemd/system/crio.service <<'END'
{UNIT}END
cat > {PACKAGED_FILE} <<'END'
{PACKAGED}END
for program in crun runc; do ln -s /usr/sbin/runc /usr/libexec/crio/$program; done
systemctl daemon-reload
systemctl start crio"""
TAKE = """systemctl stop crio
rm -rf /etc/crio /usr/libexec/crio /usr/bin/crio /etc/systemd/system/crio.service
systemctl daemon-reload"""
PROCESS = "systemctl show crio --property=MainPID --value"


@pytest.fixture
def node(fleet):
    (one, *_others) = (node for node in fleet if node.gpus)
    execute(one, "sh", "-c", PUT)
    yield one
    execute(one, "ln", "-sf", "/usr/sbin/runc", "/usr/libexec/crio/runc")
    play("teardown", "--limit", one.name)
    execute(one, "sh", "-c", TAKE)


def changed(run):
    return [task.rpartition(" : ")[2] for task, _host in run.changed()]


def test_crio_from_the_plan_to_the_teardown(node, count_calls):
    limit = ("--limit", node.name)
    before = on_nodes(ETC, node.name)
    check = play("site", "--check", "--diff", *limit)
    assert check.status == 0, check.output
    assert on_nodes(ETC, node.name) == before
    run = play("site", "--diff", *limit)
    assert run.status == 0, run.output
    assert check.changed() == run.changed()
    assert TASK in changed(run)
    text = execute(node, "cat", OURS)
    assert 'runtime_path = "/usr/bin/nvidia-container-runtime"' in text
    assert 'monitor_path = "/usr/libexec/crio/conmonrs"' in text
    # NVIDIA's runtime is told of a program that is not in PATH.
    assert "/usr/libexec/crio/crun" in execute(
        node, "cat", "/etc/nvidia-container-runtime/config.toml"
    )
    assert execute(node, "cat", PACKAGED_FILE) == PACKAGED

    process = execute(node, "sh", "-c", PROCESS)
    # What containerd and docker found out is kept, and they are not asked a second time.
    for budget in (ALL_CALLS, CONVERGED_CALLS):
        with count_calls() as calls:
            again = play("site", *limit)
        assert again.stats[node.name]["changed"] == 0, again.changed()
        assert execute(node, "sh", "-c", PROCESS) == process
        assert calls[node.name] <= budget, calls

    found = run_module(
        node.name,
        "kubegpu.nodes.gpu_node_verify",
        {"layers": ["runtime"], "engines": ["crio"]},
    )[node.name]
    (layer,) = (one for one in found["layers"] if one["subject"] == "crio")
    assert layer["ok"], layer

    back = play("teardown", *limit)
    assert back.status == 0, back.messages()
    assert on_nodes(ETC, node.name) == before
    assert execute(node, "sh", "-c", PROCESS) != process


def test_crio_is_followed_restarted_and_put_back(node):
    limit = ("--limit", node.name, "--tags", "toolkit,runtime")
    assert play("site", *limit).status == 0
    # A new release of its packages has another monitor.
    execute(node, "sed", "-i", "s/conmonrs/conmon/", PACKAGED_FILE)
    check = play("site", "--check", "--diff", *limit)
    run = play("site", "--diff", *limit)
    assert run.status == 0, run.output
    assert check.changed() == run.changed()
    assert changed(run) == [TASK]
    assert 'monitor_path = "/usr/libexec/crio/conmon"' in execute(node, "cat", OURS)
    # A run that died between writing and restarting.
    process = execute(node, "sh", "-c", PROCESS)
    execute(node, "sh", "-c", f"sleep 2; touch {OURS}")
    run = play("site", *limit)
    assert changed(run) == [TASK]
    assert execute(node, "sh", "-c", PROCESS) != process
    # A default that is asked for, and then no longer.
    request = {"nvidia_container_toolkit_crio_set_default": True}
    assert changed(play("site", *limit, variables=request)) == [TASK]
    # Where CRI-O does not start the old bytes come back, and the failure quotes its journal.
    text = execute(node, "cat", OURS)
    assert 'default_runtime = "nvidia"' in text
    execute(node, "rm", "/usr/libexec/crio/runc")
    run = play("site", *limit)
    assert run.status != 0
    assert "stand-in: invalid runtime_path" in run.messages()
    assert execute(node, "cat", OURS) == text
