# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The command or variables that fix a root cause, for one host and for several."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._core.finding import (
    general_step,
    pod_names,
    with_names,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._diagnosis.data import CAUSES
from ansible_collections.kubegpu.nodes.plugins.module_utils._diagnosis.fixes import (
    Fix,
    find_fix,
    fix_of_hosts,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._diagnosis.join import find_roots
from ansible_collections.kubegpu.nodes.plugins.module_utils._diagnosis.types import (
    ERROR,
    PLUGIN,
    Observed,
    Subject,
)

NODE = Subject("gpu1")
POD = Subject("", pod="default/train")
DOTS = pod_names("kubegpu", "p-1.example.com")
PLAY = "ansible-playbook kubegpu.nodes.site --tags device_plugin"
SITE = "ansible-playbook kubegpu.nodes.site --limit {limit} --tags driver"


@pytest.mark.parametrize(("code", "subject", "names", "fix"), [
    ("plugin_tolerates_not", NODE, {"vendor": "amd"},
     f"amd_device_plugin_pods.tolerations, then: {PLAY}"),
    ("plugin_tolerates_not", NODE, {}, ""),
    ("pod_security", NODE, pod_names("kubegpu", "plugin"),
     "kubectl label namespace kubegpu pod-security.kubernetes.io/enforce=privileged"),
    ("pod_security", POD, {}, ""),
    ("runtime_class_missing", NODE, {}, PLAY),
    ("runtime_class_missing", POD, {}, ""),
    ("allocation_failed", POD, {}, "kubectl --namespace default delete pod train"),
    # The pod that the finding is about, and not one that its text names.
    ("allocation_failed", POD, DOTS, "kubectl --namespace default delete pod train"),
    ("not_registered", NODE, DOTS, "kubectl --namespace kubegpu delete pod p-1.example.com"),
    ("not_registered", NODE, {}, "kubectl --namespace NAMESPACE delete pod POD"),
    ("gpu_unhealthy", NODE, pod_names("kubegpu", "p-1"),
     "after a repair: kubectl --namespace kubegpu delete pod p-1"),
    ("gpu_unhealthy", NODE, pod_names("kubegpu", "p; rm -rf /"),
     "after a repair: kubectl --namespace kubegpu delete pod 'p; rm -rf /'"),
    ("no_node_matches", POD, {"cordoned": "n2"}, "kubectl uncordon n2"),
    ("no_node_matches", POD, {}, ""),
    ("held_by_upgrade", POD, {"run": "r 1"}, "ansible-playbook kubegpu.nodes.upgrade "
     "-e gpu_upgrade_run='r 1' -e gpu_upgrade_release=true"),
    ("cgroup_rootless", NODE, {},
     "nvidia_container_toolkit_settings: {nvidia-container-cli.no-cgroups: true}, then: "
     "ansible-playbook kubegpu.nodes.site --limit gpu1 --tags toolkit,runtime"),
    ("mig_not_uniform", NODE, {}, f"nvidia_device_plugin_mig_strategy: mixed, then: {PLAY}"),
    ("drm_driver_not_loaded", NODE, {"module": "amdgpu"}, "modprobe amdgpu"),
    ("toolkit_missing", NODE, {},
     "ansible-playbook kubegpu.nodes.site --limit gpu1 --tags toolkit,runtime"),
    ("unheard_of", NODE, {}, ""),
])  # fmt: skip
def test_the_fix_names_what_the_finding_is_about(code, subject, names, fix):
    assert str(find_fix(code, subject, names)) == fix


def test_a_toolkit_whose_program_is_gone_is_installed_again():
    fix = find_fix("toolkit_missing", NODE, {"package": "nvidia-container-toolkit"})
    assert fix == find_fix("toolkit_broken", NODE, {"package": "nvidia-container-toolkit"})


@pytest.mark.parametrize("code", CAUSES)
def test_a_reworded_text_changes_no_fix(code):
    names = {**DOTS, "vendor": "amd", "module": "xe", "run": "r1", "cordoned": "n1"}
    one = Observed(code, "A cause.", "", "A step.", names, ERROR, NODE, source=PLUGIN)
    words = "the pod ml/other: modprobe i915; n9: it is cordoned; nvidia_device_plugin_config"
    other = replace(one, cause=f"Its program: {words}", evidence=words, next_step=words)
    (first,), (second,) = (find_roots([found]) for found in (one, other))
    assert first.fix == second.fix


def test_the_hosts_of_a_limit_are_joined():
    def joined(*hosts):
        return fix_of_hosts([Fix(SITE, {"limit": host, "host": host}) for host in hosts])

    assert joined("a", "b", "c") == SITE.format(limit="a,b,c")
    assert joined("a", "a", "b") == SITE.format(limit="a,b")
    assert joined("a") == SITE.format(limit="a")
    assert joined("a", "b c") == SITE.format(limit="'a,b c'")
    # Words of the command are no names.
    assert joined("site", "driver") == SITE.format(limit="site,driver")


@pytest.mark.parametrize("node", ["", "k8s-{}"])
@pytest.mark.parametrize("code", [code for code, row in CAUSES.items() if row.fix])
def test_each_fix_of_the_diagnosis_is_one_for_several_hosts(code, node):
    fixes = []
    # The second host is called like a word of the commands.
    for host in ("alpha", "driver"):
        names = {**pod_names("kube-system", f"plugin-{host}"), "vendor": "nvidia", "run": "r1",
                 "module": "amdgpu", "cordoned": host}  # fmt: skip
        fixes.append(find_fix(code, Subject(host), names, node.format(host) if node else ""))
    (general,) = {one.general for one in fixes}
    assert general and all(map(str, fixes))
    joined = fix_of_hosts(fixes)
    assert "alpha,driver" in joined or "alpha" not in joined


def test_a_reboot_is_described_once_and_not_for_all_at_once():
    fixes = [find_fix("gsp_timeout", Subject(host), {}, f"node-{host}") for host in ("a", "b")]
    assert fix_of_hosts(fixes) == (
        "for each NODE and HOST, one after the other: kubectl drain NODE --ignore-daemonsets && "
        "ansible HOST --become -m ansible.builtin.reboot && kubectl uncordon NODE"
    )
    fixes = [find_fix("nouveau_loaded", Subject(host), {}) for host in ("a", "b")]
    assert fix_of_hosts(fixes) == (
        f"for each HOST, one after the other: {SITE.format(limit='HOST')} && ansible HOST --become "
        "-m ansible.builtin.reboot"
    )


def test_pods_without_a_node_have_a_command_of_their_own():
    subjects = [Subject("", pod=f"ml/{name}") for name in ("train-1", "train-2")]
    fixes = [find_fix("allocation_failed", one, {}) for one in subjects]
    assert fix_of_hosts(fixes) == (
        "for each POD, one after the other: kubectl --namespace ml delete pod POD"
    )


@pytest.mark.parametrize(("template", "names", "step", "general"), [
    ("Check {host}, not gpu10.", {"host": "gpu1"}, "Check gpu1, not gpu10.",
     "Check HOST, not gpu10."),
    ("kubectl -n {namespace} logs {name} --previous", DOTS,
     "kubectl -n kubegpu logs p-1.example.com --previous",
     "kubectl -n kubegpu logs POD --previous"),
    ("Delete the pod {pod}.", DOTS, "Delete the pod kubegpu/p-1.example.com.",
     "Delete the pod POD."),
    # A host that is called like a word of the text.
    ("Drain {node} and reset it.", {"node": "it"}, "Drain it and reset it.",
     "Drain NODE and reset it."),
    ("Nothing of it.", {"node": "it"}, "Nothing of it.", "Nothing of it."),
])  # fmt: skip
def test_a_next_step_for_several_hosts(template, names, step, general):
    found = with_names("code", "Cause.", "", template, names)
    assert found.next_step == step
    assert general_step(found.next_step, found.template, found.details) == general


def test_a_step_of_another_release_is_as_it_is():
    for template in ("{nothing}", "{", "{node.name}", "{0}", ""):
        assert general_step("Do it on n1.", template, {"node": "n1"}) in ("Do it on n1.",)
