# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""One command for several hosts, of those that name one each."""

from __future__ import annotations

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._diagnosis.data import CAUSES
from ansible_collections.kubegpu.nodes.plugins.module_utils._diagnosis.fixes import (
    fix_of,
    general_fix,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._diagnosis.types import (
    ERROR,
    Observed,
    Subject,
)
from ansible_collections.kubegpu.nodes.plugins.plugin_utils._fleet_report.commands import (
    fix_of_hosts,
    general_step,
)

SITE = "ansible-playbook kubegpu.nodes.site --limit {} --tags driver"
DRAINED = (
    "kubectl drain {1} --ignore-daemonsets && ansible {0} --become -m ansible.builtin.reboot && "
    "kubectl uncordon {1}"
)


@pytest.mark.parametrize(
    ("hosts", "joined"),
    [
        (["a", "b", "c"], SITE.format("a,b,c")),
        (["a", "a", "b"], SITE.format("a,b")),
        (["a"], SITE.format("a")),
        (["a", "'b c'"], SITE.format("'a,b c'")),
    ],
)
def test_the_hosts_of_a_limit_are_joined(hosts, joined):
    fixes = [(host.strip("'"), SITE.format(host)) for host in hosts]
    assert fix_of_hosts(fixes, SITE.format("HOST")) == joined


def test_a_reboot_is_described_once_and_not_for_all_at_once():
    fixes = [(host, DRAINED.format(host, f"node-{host}")) for host in ("a", "b")]
    general = DRAINED.format("HOST", "NODE")
    assert fix_of_hosts(fixes, general) == f"for each NODE and HOST, one after the other: {general}"
    fixes = [(host, f"{SITE.format(host)} && ansible {host} -m reboot") for host in ("a", "b")]
    general = f"{SITE.format('HOST')} && ansible HOST -m reboot"
    assert fix_of_hosts(fixes, general) == f"for each HOST, one after the other: {general}"


def test_pods_without_a_node_have_a_command_of_their_own():
    fixes = [("", f"kubectl --namespace ml delete pod {name}") for name in ("train-1", "train-2")]
    general = "kubectl --namespace ml delete pod POD"
    assert fix_of_hosts(fixes, general) == f"for each POD, one after the other: {general}"


@pytest.mark.parametrize("node", ["", "k8s-{}"])
@pytest.mark.parametrize("code", [code for code, row in CAUSES.items() if row.fix])
def test_each_fix_of_the_diagnosis_is_one_for_several_hosts(code, node):
    said = {
        "evidence": "{0}: it is cordoned; cordoned by the run r1 of this collection",
        "next_step": "nvidia_device_plugin_config; modprobe amdgpu; the pod kube-system/plugin-{0}",
    }
    fixes, generals = [], set()
    # The second host is called like a word of the commands.
    for host in ("alpha", "driver"):
        texts = {key: text.format(host) for key, text in said.items()}
        observed = Observed(code, Subject(host), ERROR, "gpu", "", **texts)
        fixes.append((host, fix_of(observed, {host: node.format(host)} if node else {})))
        generals.add(general_fix(observed, bool(node)))
    (general,) = generals
    assert general and all(fix for _host, fix in fixes)
    joined = fix_of_hosts(fixes, general)
    assert "alpha,driver" in joined or "alpha" not in joined


@pytest.mark.parametrize(
    ("step", "cause", "names", "general"),
    [
        ("Check gpu1, not at gpu10.", "", {"gpu1": "HOST"}, "Check HOST, not at gpu10."),
        ("nvidia-smi -i 0000:05:00.0", "", {"0000:05:00.0": "GPU"}, "nvidia-smi -i GPU"),
        ("kubectl -n ml logs plugin-x --previous", "The device plugin's pod ml/plugin-x ended.",
         {}, "kubectl -n ml logs POD --previous"),
        ("Delete the pod ml/plugin-x.", "", {"n1": "NODE"}, "Delete the pod POD."),
        ("Nothing of it.", "", {"": "HOST", "gpu1": "HOST"}, "Nothing of it."),
        # Hosts that are called like words of the text, and a short name that is none.
        ("Reset the gpu of the node.", "", {"gpu": "HOST", "node": "NODE"},
         "Reset the gpu of the node."),
        ("Drain n1 and reset it.", "", {"it": "HOST", "n1": "NODE"}, "Drain NODE and reset it."),
    ],
)  # fmt: skip
def test_a_next_step_without_names(step, cause, names, general):
    assert general_step(step, cause, names) == general
