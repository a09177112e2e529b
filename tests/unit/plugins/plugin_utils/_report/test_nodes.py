# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._toolkit.plan import plan_toolkit
from ansible_collections.kubegpu.nodes.plugins.module_utils._toolkit.types import (
    Request as ToolkitRequest,
)
from ansible_collections.kubegpu.nodes.plugins.plugin_utils._report.nodes import (
    describe_gpus,
    node_plan,
    node_result,
)
from ansible_collections.kubegpu.nodes.plugins.plugin_utils._report.steps import stop_containers
from tests.unit.fixtures.kernel_gpus import amd_node
from tests.unit.fixtures.node_facts import P4, installed, node
from tests.unit.fixtures.plans import amd_container_toolkit_plan, amd_driver_plan


def plan(facts, **request):
    return plan_toolkit(facts, ToolkitRequest(**request)).to_json()


def step(name, action, detail, reason):
    return {"step": name, "action": action, "detail": detail, "reason": reason}


def driver_plan(action="none", *steps, reasons=(), warnings=(), reboot=""):
    return {
        "action": action,
        "steps": list(steps),
        "reasons": list(reasons),
        "warnings": list(warnings),
        "reboot": {"required": bool(reboot), "reason": reboot},
    }


REFUSED = driver_plan("refuse", reasons=["No driver serves both.", "Next step: part them."])


def test_nouveau_in_the_way_of_a_driver_is_not_hidden():
    problem = {"code": "nouveau_loaded", "cause": "The nouveau driver holds the GPU."}
    row = node_plan("gpu1", node(problems=[problem]), {"driver": driver_plan()})
    assert row["warnings"] == ["The nouveau driver holds the GPU."]
    loads = {**driver_plan("install"), "load": True}
    (told,) = node_plan("gpu1", node(problems=[problem]), {"driver": loads})["warnings"]
    assert "site unloads it" in told and "nvidia_driver_reboot: true" in told


def test_a_driver_of_the_kernel_that_is_blocked_is_not_offered_for_installation():
    facts = amd_node(kernel_drivers={})
    for gpu in facts["gpus"]:
        gpu["kernel_driver"] = None
    assert "amd_driver_enabled" in node_plan("gpu1", facts)["why"][0]
    facts["blocked_modules"] = {"amdgpu": [{"place": "/a.conf", "setting": "blacklist amdgpu"}]}
    assert "is blocked" in node_plan("gpu1", facts)["why"][0]


def test_gpus_are_counted_by_model():
    guest = {**P4, "vgpu": {"guest": True}}
    unknown = {**P4, "product": None, "generation": None, "device_id": "ffff"}
    assert describe_gpus([P4, P4, guest, unknown]) == [
        "2x Tesla P4 (pascal)",
        "1x Tesla P4 (pascal, vGPU guest)",
        "1x nvidia ffff (unknown)",
    ]


def test_row_says_what_is_there_and_what_would_change():
    facts = node()
    row = node_plan("web-1", facts, {"toolkit": plan(facts)})
    assert row["action"] == "change"
    assert row["present"] == ["containerd 1.6.20", "docker 20.10.24"]
    assert row["changes"][0] == "toolkit repository: add"
    assert len(row["why"]) == len(row["changes"])


def test_row_of_a_finished_node():
    facts = installed()
    row = node_plan("web-1", facts, {"toolkit": plan(facts)})
    assert (row["action"], row["changes"], row["why"]) == ("none", [], ["up to date"])


def test_row_of_a_node_without_gpu_or_of_another_vendor():
    facts = node(gpus=[])
    # Nobody asks a runtime there for its version.
    facts["runtimes"]["containerd"]["version"] = None
    row = node_plan("cpu-1", facts)
    assert "no GPU" in row["why"][0]
    assert row["present"] == ["containerd", "docker 20.10.24"]
    amd = node(gpus=[{**P4, "vendor": "amd"}])
    row = node_plan("amd-1", amd)
    assert row["action"] == "none"
    assert row["why"] == [
        "AMD: no driver serves it; amd_driver_enabled: true installs AMD's, see below"
    ]
    served = node(gpus=[{**P4, "vendor": "amd", "kernel_driver": "amdgpu"}])
    assert node_plan("amd-1", served)["why"] == [
        "AMD: the kernel's driver amdgpu serves it, nothing to do here"
    ]


def test_row_of_a_refusal():
    facts = node(os__package_manager="pacman")
    row = node_plan("el9", facts, {"toolkit": plan(facts)})
    assert row["action"] == "refuse" and "pacman" in row["why"][0]


def test_modules_in_check_mode_know_better_than_the_facts():
    facts = installed()
    results = {
        "docker": {
            "changed": False,
            "restart_required": True,
            "restart_reason": "--gpus needs a restart",
        },
        "containerd": {"changed": True, "reasons": ["options differ"]},
    }
    row = node_plan("web-1", facts, {"toolkit": plan(facts)}, results)
    assert row["changes"] == ["docker: wait for a restart", "containerd: change its configuration"]
    assert row["why"] == ["--gpus needs a restart", "options differ"]


@pytest.mark.parametrize(("restart", "action"), [(True, "restart"), (False, "wait for a restart")])
def test_k3s_restarts_for_a_toolkit_that_the_module_does_not_see_yet(restart, action):
    facts = node(runtimes__containerd__distribution="k3s")
    planned = plan(facts, containerd_restart=restart)
    row = node_plan("web-1", facts, {"toolkit": planned}, {"containerd": {"changed": False}})
    assert [words for words in row["changes"] if words.startswith("containerd")] == [
        f"containerd: {action} runtime nvidia"
    ]


def test_a_module_that_failed_is_shown():
    facts = installed()
    results = {"docker": {"failed": True, "msg": "bad\nmore"}}
    row = node_plan("web-1", facts, {"toolkit": plan(facts)}, results)
    assert row["why"] == ["bad"]


def test_result_names_what_is_still_to_do():
    row = node_result(
        "web-1",
        {"toolkit": plan(installed())},
        {
            "containerd": {
                "changed": True,
                "handlers": ["nvidia", "runc"],
                "default_runtime": "runc",
            },
            "docker": {
                "changed": False,
                "restart_required": True,
                "restart_reason": "hook is newer",
            },
        },
    )
    assert row["containerd"] == ["nvidia, runc (default)", "changed"]
    assert row["open"][0] == "restart docker: hook is newer"


def test_a_node_with_wrong_values_is_refused_and_its_words_stand_below():
    wrong = [
        {"variable": "nvidia_driver_source", "part": "driver", "message": "source: x"},
        {"variable": "nvidia_driver_branch", "part": "driver", "message": "branch: x"},
        {"variable": "gpu_node_labels_match", "part": "labels", "message": "match: x"},
    ]
    row = node_plan("a", node(), wrong=wrong)
    assert row["action"] == "refuse" and row["gpus"] == ["1x Tesla P4 (pascal)"]
    assert row["changes"] == ["driver: refused", "driver: refused", "labels: refused"]
    assert row["why"][0] == "nvidia_driver_source has a wrong value, see below"
    assert row["warnings"] == ["source: x", "branch: x", "match: x"]
    assert row["driver"] == {"action": "refuse", "reasons": ["source: x", "branch: x"]}
    assert "labels" not in row and "toolkit" not in row


def test_restarts_and_reloads_that_will_happen_are_named():
    facts = node()
    toolkit = plan(facts)
    results = {
        "containerd": {"changed": True, "restarted": True, "restart_required": False},
        "docker": {"changed": True, "reloaded": True, "restart_required": False},
    }
    row = node_plan("web-1", facts, {"toolkit": toolkit}, results)
    assert row["changes"][-5:] == [
        "containerd: add runtime nvidia",
        "containerd: restart",
        "docker: add runtime nvidia",
        "docker: reload",
        "docker: restart where no container would be stopped",
    ]


def test_row_shows_the_driver_before_the_toolkit_and_keeps_both_decisions():
    facts = node()
    driver = driver_plan(
        "install",
        step("driver", "install", "580 proprietary", "Pascal ends with 580"),
        step("files", "write", "nouveau", "it holds the card"),
        warnings=["580 ends in June 2028"],
    )
    row = node_plan("web-1", facts, {"driver": driver, "toolkit": plan(facts)})
    assert row["changes"][:3] == [
        "driver: install 580 proprietary",
        "driver files: write nouveau",
        "toolkit repository: add",
    ]
    assert row["why"][:2] == ["Pascal ends with 580", "it holds the card"]
    assert row["warnings"][0] == "580 ends in June 2028"
    assert row["driver"] == driver and row["toolkit"] == plan(facts)
    assert row["steps"][0]["part"] == "driver"


def test_refusal_of_one_part_does_not_hide_the_others():
    facts = node()
    row = node_plan("web-1", facts, {"driver": REFUSED, "toolkit": plan(facts)})
    assert row["action"] == "refuse"
    assert row["changes"][:2] == ["driver: refused", "toolkit repository: add"]
    assert row["why"][0] == "No driver serves both.\nNext step: part them."
    assert "site stops this node" in row["warnings"][0] and "toolkit" in row["warnings"][0]


def test_both_refusals_are_shown():
    facts = node(os__package_manager="pacman")
    row = node_plan("el9", facts, {"driver": REFUSED, "toolkit": plan(facts)})
    assert row["changes"] == ["driver: refused", "toolkit: refused"]


def test_driver_that_takes_no_part_is_not_in_the_row():
    facts = installed()
    row = node_plan("web-1", facts, {"driver": {}, "toolkit": plan(facts)})
    assert "driver" not in row and row["action"] == "none"


@pytest.mark.parametrize(
    ("driver", "words"),
    [
        ({"loaded": None, "installed": None, "kernel_module": None}, []),
        (
            {"loaded": "580.95.05", "installed": "580.95.05", "kernel_module": "open"},
            ["driver 580.95.05 open"],
        ),
        (
            {"loaded": None, "installed": "580.95.05", "kernel_module": None},
            ["driver 580.95.05 is installed, not loaded"],
        ),
        (
            {"loaded": "570.86.10", "installed": "580.95.05", "kernel_module": "open"},
            ["driver 570.86.10 open is loaded", "driver 580.95.05 is installed"],
        ),
    ],
)
def test_loaded_and_installed_driver_are_told_apart(driver, words):
    facts = installed()
    facts["driver"].update(driver)
    row = node_plan("web-1", facts, {"toolkit": plan(facts)})
    assert [text for text in row["present"] if "driver" in text] == words


def test_cuda_toolkits_are_there_too():
    facts = installed(cuda={"toolkits": [{"version": "12.4", "path": "/x", "default": True}]})
    assert "CUDA 12.4" in node_plan("web-1", facts, {"toolkit": plan(facts)})["present"]
    result = node_result("web-1", {"toolkit": plan(facts)}, {}, facts)
    assert result["cuda"] == ["12.4 (default)"]


def test_result_names_the_reboot_and_why():
    facts = installed()
    facts["driver"].update(loaded="570.86.10", installed="580.95.05", kernel_module="open")
    waiting = driver_plan(reboot="570.86.10 is in use by pid 12 (python3)")
    row = node_result("web-1", {"driver": waiting, "toolkit": plan(facts)}, {}, facts)
    assert row["driver"] == [
        "570.86.10 open is loaded",
        "580.95.05 is installed",
        "unchanged",
    ]
    assert row["open"][0] == "reboot: 570.86.10 is in use by pid 12 (python3)"


def test_a_reboot_that_waits_is_said_in_every_plan():
    facts = installed()
    waiting = driver_plan(reboot="570.86.10 is in use by pid 12 (python3)")
    row = node_plan("web-1", facts, {"driver": waiting, "toolkit": plan(facts)})
    assert row["action"] == "none"
    assert row["warnings"][0] == "reboot: 570.86.10 is in use by pid 12 (python3)"


def test_result_of_engines_that_were_not_asked():
    facts = installed()
    told = {**plan(facts), "converged": ["containerd"]}
    result = node_result("web-1", {"toolkit": told}, {}, facts)
    assert result["containerd"] == ["nvidia, runc (default)", "unchanged"]
    assert result["docker"] == []


def test_what_the_module_saw_of_the_reboot_counts_more_than_the_plan():
    facts = installed()
    answer = {"changed": True, "reboot_required": False}
    plans = {"driver": driver_plan(reboot="pending"), "toolkit": plan(facts)}
    row = node_result("a", plans, {"driver": answer}, facts)
    assert row["driver"] == ["none", "changed"]
    assert not [text for text in row["open"] if text.startswith("reboot")]
    answer = {"changed": True, "reboot_required": True, "reboot_reason": "nouveau is in use"}
    row = node_result("a", {**plans, "driver": driver_plan()}, {"driver": answer}, facts)
    assert row["open"][0] == "reboot: nouveau is in use"


def test_the_packages_step_carries_all_reasons_of_the_decision():
    facts = node()
    driver = driver_plan(
        "install",
        step("repository", "add", "https://x", "not there"),
        step("packages", "remove", "nvidia-dkms-570", "another branch"),
        step("packages", "install", "branch 580", "570.1 is there. Branch 580 serves it."),
        step("hold", "hold", "branch 580", "an upgrade"),
        step("files", "write", "/etc/modprobe.d/a.conf, /etc/udev/b.rules", "nouveau"),
        reasons=["Branch 580 serves it.", "Source: the archive."],
    )
    row = node_plan("web-1", facts, {"driver": driver})
    assert row["changes"] == [
        "driver repository: add",
        "driver packages: remove nvidia-dkms-570",
        "driver packages: install branch 580",
        "driver: hold branch 580",
        "driver files: write a.conf, b.rules",
    ]
    assert row["why"][1:3] == [
        "another branch",
        "570.1 is there. Branch 580 serves it.\nSource: the archive.",
    ]


def test_a_driver_that_stays_says_why():
    facts = node()
    driver = driver_plan(reasons=["Driver 580.95.05 serves Tesla P4: kept."])
    row = node_plan("web-1", facts, {"driver": driver, "toolkit": plan(facts)})
    assert row["why"][-1] == "Driver 580.95.05 serves Tesla P4: kept."
    assert len(row["why"]) == len(row["changes"]) + 1


def test_problems_are_not_said_twice():
    facts = node(runtimes__containerd=None, runtimes__docker=None)
    cause = "No container runtime is on this node."
    facts["problems"] = [
        {"code": "no_container_runtime", "cause": cause},
        {"code": "legacy_gpu", "cause": "old card"},
        {"code": "pending_reboot", "cause": "not loaded"},
    ]
    row = node_plan("web-1", facts, {"driver": REFUSED, "toolkit": plan(facts)})
    assert sum(cause in text for text in row["warnings"]) == 1
    assert "old card" not in row["warnings"] and "not loaded" in row["warnings"]


def test_result_in_check_mode_is_that_of_the_plans():
    facts = installed()
    driver = {**driver_plan("install"), "version": None, "branch": "580", "kernel_module": "open"}
    cuda = {"change": True, "versions": [{"version": "12.9"}], "default": "12.9", "warnings": []}
    plans = {"driver": driver, "cuda": cuda, "toolkit": plan(facts)}
    row = node_result("a", plans, {"driver": {"changed": True}}, facts, predicted=True)
    assert row["driver"] == ["branch 580 open", "changed"] and row["cuda"] == ["12.9 (default)"]


def test_result_without_the_toolkit_part_tells_the_toolkit_that_is_there():
    facts = node()
    plans = {"toolkit": plan(facts)}
    assert node_result("a", plans, {}, facts)["toolkit"] == ["1.20.1-1", "unchanged"]
    assert node_result("a", plans, {}, facts, toolkit_done=False)["toolkit"] == []


def test_a_removal_says_each_reason_once_and_that_nothing_is_left():
    facts = installed()
    step = {"step": "packages", "action": "remove", "detail": "driver 535", "reason": "it is ours"}
    files = {"step": "files", "action": "remove", "detail": "/etc/a", "reason": "they are ours"}
    driver = driver_plan(
        "remove", step, files, reasons=["packages: it is ours.", "files: they are ours."]
    )
    row = node_plan("a", facts, {"driver": driver})
    assert row["why"] == ["it is ours", "they are ours"]
    answer = {"driver": {"changed": True}}
    for predicted in (True, False):
        row = node_result(
            "a", {"driver": driver, "toolkit": plan(facts)}, answer, facts, predicted=predicted
        )
        assert row["driver"] == ["none", "changed"]


def test_what_the_tags_leave_out_is_named_and_not_shown():
    driver = driver_plan("install", step("packages", "install", "580", "no driver is there"))
    cuda = driver_plan("refuse", reasons=["CUDA 13 has no Volta."])
    toolkit = driver_plan(
        "install",
        step("packages", "install", "toolkit 1.20.1-1", "not there"),
        step("containerd", "add", "runtime nvidia", "the runtime is not configured"),
    )
    plans = {"driver": driver, "cuda": cuda, "toolkit": toolkit}

    def row(*run_tags, skip_tags=()):
        return node_plan("gpu1", node(gpus=[P4]), plans, {}, run_tags, skip_tags)

    only = row("driver")
    assert [one["part"] for one in only["steps"]] == ["driver"]
    assert (only["action"], only["why"]) == ("change", ["no driver is there"])
    assert "left out by the tags of this run: cuda, toolkit, runtime" in only["warnings"]
    assert only["cuda"] == cuda
    assert row("all")["action"] == "refuse"
    assert not any("left out" in text for text in row("all")["warnings"])
    runtimes = row("runtime", "labels")
    assert runtimes["changes"] == ["containerd: add runtime nvidia"]
    assert row("all", skip_tags=["cuda"])["action"] == "change"
    nothing = row("labels")
    assert (nothing["action"], nothing["changes"]) == ("none", [])
    assert nothing["why"] == ["nothing that this run does"]


def test_amds_toolkit_is_a_part_of_its_own():
    facts = amd_node()
    facts["os"].update(id="ubuntu", version="24.04")
    plans = {"AMD toolkit": amd_container_toolkit_plan(facts)}
    row = node_plan("mi300-1", facts, plans)
    assert row["changes"] == [
        "AMD toolkit repository: add",
        "AMD toolkit packages: install toolkit 1.3.0",
        "cdi: refresh amd.com/gpu",
        "docker: add runtime amd",
    ]
    assert len(row["why"]) == 4 and row["AMD toolkit"]["action"] == "install"
    # The tags of the playbook are those of NVIDIA's.
    assert node_plan("a", facts, plans, run_tags=("runtime",))["changes"] == row["changes"][3:]
    assert node_plan("a", facts, plans, run_tags=("toolkit",))["changes"] == row["changes"][:3]
    docker = {"docker": {"changed": True, "runtimes": {"amd": {}}, "restart_required": True}}
    result = node_result("mi300-1", plans, docker, facts)
    assert result["toolkit"] == ["AMD 1.3.0", "unchanged"]
    assert result["docker"] == ["amd", "changed"]
    assert result["open"][0].startswith("restart docker")
    facts["os"]["version"] = "20.04"
    refused = node_plan("mi300-1", facts, {"AMD toolkit": amd_container_toolkit_plan(facts)})
    assert (refused["action"], refused["changes"]) == ("refuse", ["AMD toolkit: refused"])


def test_amds_driver_is_a_part_before_its_toolkit():
    facts = amd_node(kernel_drivers={})
    facts["os"].update(id="ubuntu", version="24.04", kernel="6.8.0-85-generic")
    plans = {
        "AMD driver": amd_driver_plan(facts),
        "AMD toolkit": amd_container_toolkit_plan(facts, earlier={"amd_driver": {"load": True}}),
    }
    row = node_plan("mi300-1", facts, plans)
    assert row["changes"][:3] == [
        "AMD driver repository: add",
        "AMD driver packages: install amdgpu 30.30",
        "AMD driver module: load amdgpu",
    ]
    assert node_plan("a", facts, plans, run_tags=("driver",))["changes"] == row["changes"][:3]
    changed = {"AMD driver": {"changed": True}}
    predicted = node_result("mi300-1", plans, changed, facts, predicted=True)
    assert predicted["driver"] == ["amdgpu-dkms 30.30", "changed"]
    facts["kernel_drivers"] = {"amdgpu": {"version": "6.16.13"}}
    waits = {"changed": True, "reboot_required": True, "reboot_reason": "another is loaded"}
    result = node_result("mi300-1", plans, {"AMD driver": waits}, facts)
    assert result["driver"] == ["amdgpu 6.16.13", "changed"]
    assert result["open"][0] == "reboot: another is loaded"
    refused = {**plans, "AMD driver": amd_driver_plan(facts, release="x")}
    row = node_plan("mi300-1", facts, refused)
    assert row["action"] == "refuse"
    assert "site stops this node at AMD driver" in row["warnings"][0]


@pytest.mark.parametrize(
    ("result", "changes", "why"),
    [
        # The file was written by an earlier run.
        (
            {"changed": True, "file_changed": False, "restarted": True, "restart_reason": "hook"},
            ["docker: restart"],
            ["hook"],
        ),
        (
            {"changed": True, "file_changed": False, "reloaded": True, "reload_reason": "other"},
            ["docker: reload"],
            ["other"],
        ),
        (
            {"changed": True, "file_changed": True, "reloaded": True, "reload_reason": "other",
             "reasons": ["runtimes.nvidia is set"]},
            ["docker: change its configuration", "docker: reload"],
            ["runtimes.nvidia is set", "the running daemon does not know the new configuration"],
        ),
        (
            {"changed": False, "file_changed": False, "restart_required": True,
             "restart_reason": "hook", "waiting_containers": 2},
            ["docker: wait for a restart"],
            [f"hook. {stop_containers(2)}"],
        ),
    ],
)  # fmt: skip
def test_the_reason_of_a_restart_is_that_of_the_module(result, changes, why):
    """A restart alone was shown as a change of the configuration that the daemon has loaded."""
    facts = installed()
    row = node_plan("web-1", facts, {"toolkit": plan(facts)}, {"docker": result})
    assert (row["changes"], row["why"]) == (changes, why)
