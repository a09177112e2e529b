# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Each fix that is a run of site changes the plan of the machine that has the finding.

A command after which nothing is different, and which the next diagnosis names again, is a circle.
"""

from __future__ import annotations

import copy
import re

import pytest

from ansible_collections.kubegpu.nodes.plugins.filter.nvidia_driver_plan import nvidia_driver_plan
from ansible_collections.kubegpu.nodes.plugins.module_utils._diagnosis.data import CAUSES
from ansible_collections.kubegpu.nodes.plugins.module_utils._diagnosis.fixes import find_fix
from ansible_collections.kubegpu.nodes.plugins.module_utils._diagnosis.join import diagnose
from ansible_collections.kubegpu.nodes.plugins.module_utils._diagnosis.types import (
    Subject,
)
from tests.unit.fixtures.crio import configured
from tests.unit.fixtures.diagnosed_node import facts as working_facts
from tests.unit.fixtures.driver_cases import present
from tests.unit.fixtures.kernel_gpus import amd_node
from tests.unit.fixtures.node_facts import installed, node
from tests.unit.fixtures.plans import (
    amd_container_toolkit_plan,
    container_toolkit_plan,
    nvidia_mig_plan,
)
from tests.unit.fixtures.verified_node import LOADED
from tests.unit.plugins.module_utils._diagnosis.test_catalogue import NODE

RUN = re.compile(r"kubegpu\.nodes\.site(?: --limit (?P<host>\S+))? --tags (?P<tags>[\w,]+)")
BRANCH = LOADED.partition(".")[0]
#: The variables that a fix names, as options of the plans; of a finding where they differ.
DRIVER = {
    "nvidia_driver_branch": {"branch": BRANCH},
    "nvidia_driver_version": {"version": "535.261.03"},
    "nvidia_driver_kernel_module": {"kernel_module": "open"},
    "nvidia_driver_source": {"source": "nvidia"},
    "nvidia_driver_replace_source": {"replace_source": True},
}
NEWER = {"nvidia_driver_branch": {"branch": "580"}}
OF_FINDING = dict.fromkeys(
    ("gpu_unsupported", "mixed_mig_driver_bug", "unmet_requirement", "cuda_driver_insufficient",
     "ptx_toolchain", "forward_compatibility"),
    NEWER,
)  # fmt: skip
TOOLKIT = {
    "nvidia_container_toolkit_version": {"version": "1.19.0-1"},
    "nvidia_container_toolkit_runtime_cdi": {"settings": {"nvidia-container-runtime.mode": "cdi"}},
    "nvidia_container_toolkit_containerd_set_default": {"containerd_set_default": True},
}
SETTINGS = {
    "toolkit_config_invalid": {"nvidia-container-cli.no-cgroups": False},
    "hook_called_directly": {"nvidia-container-runtime.mode": "auto"},
    "nothing_injected": {"nvidia-container-runtime.mode": "auto"},
    "ldconfig_failed": {"nvidia-container-cli.ldconfig": "@/sbin/ldconfig"},
    "cgroup_rootless": {"nvidia-container-cli.no-cgroups": True},
    "container_no_cgroups": {"nvidia-container-cli.no-cgroups": False},
    "toolkit_root_elsewhere": {"nvidia-container-cli.root": "/"},
}
#: The step that the finding is about, beside those that go with it.
STEPS = {
    "driver_missing": "packages", "nouveau_loaded": "load", "driver_not_loaded": "load",
    "kernel_headers_missing": "kernel", "dkms_build_failed": "kernel", "module_missing": "kernel",
    "module_for_other_kernel": "load", "no_module_for_next_kernel": "kernel",
    "wrong_kernel_modules": "packages", "grid_driver_on_whole_gpu": "load",
    "gpu_unsupported": "packages", "mixed_mig_driver_bug": "packages",
    "gsp_firmware_failed": "packages", "other_driver": "packages",
    "unmet_requirement": "packages", "cuda_driver_insufficient": "packages",
    "fabric_manager_not_running": "packages", "fabric_manager_version": "packages",
}  # fmt: skip
#: Facts show nothing of these: the module of the runtime finds it out, so that the plan calls it.
BY_THE_MODULE = frozenset({
    "k3s_template_other_version", "runtime_lost", "wrong_program", "restart_required",
    "docker_no_gpu_driver", "handler_missing",
})  # fmt: skip
#: Fixes that begin with what a person does; the run is what follows it.
AFTER_WORK = frozenset({
    "toolkit_broken", "container_cli_missing", "hook_missing", "runtime_missing",
})  # fmt: skip
#: What of the driver such a machine lacks, beside the facts of the catalogue.
NO_MODULE = frozenset({"kernel_headers_missing", "dkms_build_failed", "module_missing"})
OBJECTS = "the plan compares the objects with those of the API server, which only a cluster has"
NO_NODE_PLAN = {
    code: OBJECTS
    for code, row in CAUSES.items()
    if re.search(r"--tags (?:labels|device_plugin)", row.fix)
} | dict.fromkeys(
    ("vgpu_driver_incompatible", "vgpu_unlicensed"),
    "a guest needs what its host's owner gives it: module_utils/_driver/plan/test_vgpu.py",
)


def equipped(facts, code):
    """Return the facts with what the catalogue's short ones leave out: packages, handlers."""
    known, full = copy.deepcopy(facts), installed()
    driver = known["driver"]
    if driver["installed"]:
        whole = node()
        flags = "nomodule" if code in NO_MODULE else ""
        present(f"nvidia {driver['installed']} proprietary dkms {flags}", whole)
        for name in ("source", "packages", "held", "unheld"):
            driver[name] = whole["driver"][name]
        if code not in NO_MODULE:
            driver["dkms"] = driver["dkms"] or whole["driver"]["dkms"]
            known["kernels"][0].update(driver=driver["installed"], headers=True)
    if code.startswith("fabric_manager"):
        # The catalogue has one GPU for all of them.
        known["nvswitches"] = 6
    known["repositories"] = full["repositories"]
    if known["container_toolkit"]["version"]:
        known["container_toolkit"]["packages"] = dict.fromkeys(
            full["container_toolkit"]["packages"], known["container_toolkit"]["version"]
        )
        known["container_toolkit"]["held"] = True
    for name, runtime in full["runtimes"].items():
        if None not in (runtime, known["runtimes"][name]) and code != "handler_missing":
            known["runtimes"][name] = runtime
    return known


def variables(fix, table):
    """Return the options for the variables that a fix names; each of them has to be known."""
    found = {}
    for name in dict.fromkeys(re.findall(r"\bnvidia_[a-z_]+", fix)):
        assert name in table, f"{name} is not a variable that this test knows"
        found.update(table[name])
    return found


def check_driver(code, fix, facts):
    options = variables(fix, {**DRIVER, **OF_FINDING.get(code, {})})
    plan = nvidia_driver_plan(facts, **options)
    if plan["action"] == "refuse":
        text = "\n".join(plan["reasons"])
        assert "Next step: " in text and "kubegpu.nodes.site" not in text
        return
    assert plan["change"] and plan["steps"], (fix, plan["reasons"])
    steps = {step["step"] for step in plan["steps"]}
    assert STEPS.get(code, "") in {"", *steps}, (steps, plan["reasons"])
    assert all(step["reason"] for step in plan["steps"])


def check_toolkit(code, fix, facts):
    table = {**TOOLKIT, "nvidia_container_toolkit_settings": {"settings": SETTINGS.get(code)}}
    names = re.sub(r"\(.*?\)", "", fix)
    plan = container_toolkit_plan(facts, **variables(names, table))
    if code in BY_THE_MODULE:
        assert plan["containerd"] or plan["docker"], (fix, plan["reasons"])
    elif code not in AFTER_WORK:
        assert plan["action"] != "refuse" and plan["steps"], (fix, plan["reasons"])


def check(code, fix, facts):
    run = RUN.search(fix)
    assert run, fix
    known = equipped(facts, code)
    if run["tags"] == "driver":
        check_driver(code, fix, known)
    elif run["tags"] == "toolkit,runtime":
        check_toolkit(code, fix, known)
    else:
        assert run["tags"] == "mig"
        plan = nvidia_mig_plan(known, config="all-1g.10gb")
        assert plan["change"] or "Next step: " in "\n".join(plan["reasons"])


def fix_in_words(code, **names):
    return str(find_fix(code, Subject("gpu1"), names))


@pytest.mark.parametrize("name", [name for name, (_made, code) in NODE.items()
                                  if code in CAUSES and RUN.search(CAUSES[code].fix)])  # fmt: skip
def test_the_fix_changes_the_plan_of_the_node_that_has_the_finding(name):
    made, code = NODE[name]
    host = made()
    (found,) = [one for one in diagnose([host])["findings"] if one["id"] == code]
    check(code, found["fix"], host.facts)


def changed(**changes):
    return working_facts(**changes)


#: Rows whose findings are no case of the catalogue of nodes, with the facts of a node that has one.
MORE = {
    "driver_not_loaded": lambda: changed(driver__loaded=None, nvml=None),
    "nvidia_smi_missing": changed,
    "plugin_without_driver": lambda: changed(driver__loaded=None, nvml=None),
    "unmet_requirement": changed,
    "cuda_driver_insufficient": changed,
    "ptx_toolchain": changed,
    "forward_compatibility": changed,
    "toolkit_config_invalid": lambda: changed(container_toolkit__config=None),
    "cdi_missing": lambda: changed(container_toolkit__cdi_spec=None),
    "toolkit_broken": changed,
    "wrong_program": changed,
    "crio_monitor_missing": lambda: changed(
        runtimes__crio=configured(
            {"lacks": ["monitor_path"], "file": "/etc/crio/crio.conf.d/99-nvidia.conf"}
        )
    ),
    "nvml_unknown_error": changed,
    "container_no_cgroups": lambda: changed(
        container_toolkit__config={"nvidia-container-cli.no-cgroups": True}
    ),
    "toolkit_root_elsewhere": lambda: changed(
        container_toolkit__config={"nvidia-container-cli.root": "/run/nvidia/driver"}
    ),
    "not_default": changed,
    "could_not_reach_nvml": changed,
    "plugin_gave_up": changed,
}


@pytest.mark.parametrize("code", MORE)
def test_the_fix_of_other_rows_changes_the_plan(code):
    check(code, fix_in_words(code), MORE[code]())


def test_the_container_toolkit_of_amd():
    facts = amd_node()
    facts["os"].update(id="ubuntu", version="24.04", codename="noble")
    assert "amd_container_toolkit_enabled: true" in CAUSES["amd_cdi_outdated"].fix
    assert amd_container_toolkit_plan(facts)["steps"]


def test_each_row_that_names_a_run_is_tried_or_has_a_reason():
    named = {code for code, row in CAUSES.items() if RUN.search(row.fix)}
    tried = {code for _made, code in NODE.values()} | {*MORE, "amd_cdi_outdated"}
    assert named - tried == set(NO_NODE_PLAN) - tried
    assert not set(MORE) - named


def test_a_toolkit_whose_program_is_gone_is_installed_again():
    fix = fix_in_words("toolkit_missing", package="1.20.0-1")
    assert fix.startswith("reinstall nvidia-container-toolkit")
    assert fix_in_words("toolkit_missing").startswith("ansible-playbook")
