# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The command or variables that fix a root cause."""

from __future__ import annotations

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._diagnosis.fixes import fix_of
from ansible_collections.kubegpu.nodes.plugins.module_utils._diagnosis.types import (
    ERROR,
    PLUGIN,
    Observed,
    Subject,
)

NODE = Subject("gpu1")
POD = Subject("", pod="default/train")
PLAY = "ansible-playbook kubegpu.nodes.site --tags device_plugin"


@pytest.mark.parametrize(("code", "subject", "texts", "fix"), [
    ("plugin_tolerates_not", NODE, ("x.", "", "Add it to amd_device_plugin_tolerations, or."),
     f"amd_device_plugin_tolerations, then: {PLAY}"),
    ("plugin_tolerates_not", NODE, ("x.", "", "Add a toleration to the DaemonSet, or."), ""),
    ("pod_security", NODE, ("The device plugin kubegpu/plugin has no pod on n1: x.", "", "y."),
     "kubectl label namespace kubegpu pod-security.kubernetes.io/enforce=privileged"),
    ("pod_security", POD, ("x.", "", "y."), ""),
    ("runtime_class_missing", NODE, ("x.", "", "y."), PLAY),
    ("runtime_class_missing", POD, ("x.", "", "y."), ""),
    ("allocation_failed", POD, ("x.", "", "y."), "kubectl --namespace default delete pod train"),
    ("not_registered", NODE, ("The device plugin's pod kubegpu/p-1 is Running, but.", "", "y."),
     "kubectl --namespace kubegpu delete pod p-1"),
    ("gpu_unhealthy", NODE, ("1 of 2 nvidia.com/gpu on n1 are unhealthy.", "",
                             "nvidia-smi; after a repair, delete the pod kubegpu/p-1."),
     "after a repair: kubectl --namespace kubegpu delete pod p-1"),
    ("no_node_matches", POD, ("x.", "n1: it lacks the label a=b; n2: it is cordoned; 0/2", "y."),
     "kubectl uncordon n2"),
    ("no_node_matches", POD, ("x.", "n1: it lacks the label a=b; 0/2 nodes", "y."), ""),
    ("cgroup_rootless", NODE, ("x.", "", "y."),
     "nvidia_container_toolkit_settings: {nvidia-container-cli.no-cgroups: true}, then: "
     "ansible-playbook kubegpu.nodes.site --limit gpu1 --tags toolkit,runtime"),
    ("mig_not_uniform", NODE, ("x.", "", "y."),
     f"nvidia_device_plugin_mig_strategy: mixed, then: {PLAY}"),
    ("drm_driver_not_loaded", NODE, ("x.", "", "Load it: modprobe amdgpu."), "modprobe amdgpu"),
])  # fmt: skip
def test_the_fix_names_what_the_finding_is_about(code, subject, texts, fix):
    assert fix_of(Observed(code, subject, ERROR, PLUGIN, *texts), {}) == fix
