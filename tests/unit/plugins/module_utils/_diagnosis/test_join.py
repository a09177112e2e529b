# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Root causes of findings in any order, of many hosts, and with texts of hostile nodes."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.kubegpu.nodes.plugins.module_utils._diagnosis.data import (
    ANSWERS,
    CAUSES,
    FOLLOWS,
    VERIFIED,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._diagnosis.join import (
    diagnose,
    find_roots,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._diagnosis.observe import observe
from ansible_collections.kubegpu.nodes.plugins.module_utils._diagnosis.types import (
    CONFIDENCES,
    ERROR,
    GPU,
    LAYERS,
    PLUGIN,
    POD,
    SEVERITIES,
    WARNING,
    Host,
    Observed,
    Subject,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._known_faults.rules.tables import (
    FAILURES,
)
from tests.unit.fixtures.diagnosed_node import facts, health, host, smi
from tests.unit.fixtures.health_node import smi_document, smi_gpu

HOSTILE = (
    "<script>alert(1)</script> {{ 7*7 }} \x1b[2Jgone\r\x9b31m \u202etxt.exe password=hunter2 "
    "https://ops:hunter2@registry.example/x"
)


def saw(code, host_name="gpu1", gpu="", pod="", *, severity=ERROR, source=None, placed=False):
    layer = source or (CAUSES[code].layer if code in CAUSES else "gpu")
    subject = Subject(host_name, gpu, pod, placed)
    cause = f"{code} of {subject}."
    return Observed(code, cause, "seen", "do it.", {}, severity, subject, source=layer)


def roots(*observed):
    return {one.code: set(one.follows) for one in find_roots(observed)}


def test_the_table_is_whole():
    order = list(CAUSES)
    for code, row in CAUSES.items():
        assert row.layer in LAYERS and row.severity in ("", *SEVERITIES)
        assert row.confidence in CONFIDENCES
        for one in row.because:
            # A row that comes later could not explain it.
            known = one in LAYERS and LAYERS.index(one) <= LAYERS.index(row.layer)
            assert known or order.index(one) < order.index(code), (code, one)
    assert set(ANSWERS) <= {code for code, row in CAUSES.items() if row.layer == GPU}
    assert set(FOLLOWS) == set(LAYERS) and set(VERIFIED.values()) <= set(LAYERS)
    layers = [LAYERS.index(row.layer) for row in CAUSES.values()]
    assert layers == sorted(layers)


def test_over_many_steps():
    assert roots(
        saw("toolkit_missing"), saw("handler_missing"), saw("could_not_reach_nvml"),
        saw("gpu_not_offered", "", pod="default/train"),
    ) == {
        "toolkit_missing": {"handler_missing", "could_not_reach_nvml", "gpu_not_offered"}
    }  # fmt: skip


def test_two_causes_stay_two_and_share_what_follows():
    found = roots(saw("toolkit_missing"), saw("secure_boot"), saw("container_failed"))
    assert found == {"toolkit_missing": {"container_failed"}, "secure_boot": {"container_failed"}}


def test_a_warning_explains_nothing():
    found = roots(saw("nouveau_loaded", severity=WARNING), saw("gpu_not_bound"))
    assert set(found) == {"nouveau_loaded", "gpu_not_bound"}


def test_hosts_and_gpus_do_not_explain_each_other():
    assert set(roots(saw("secure_boot", "gpu1"), saw("gpu_not_bound", "gpu2"))) == {
        "secure_boot", "gpu_not_bound",
    }  # fmt: skip
    one, other = "0000:01:00.0", "0000:02:00.0"
    found = roots(saw("gpu_lost", gpu=one), saw("gpu_memory_error", gpu=other))
    assert set(found) == {"gpu_lost", "gpu_memory_error"}
    # The driver is one for all GPUs.
    found = roots(saw("gpu_lost", gpu=one), saw("driver_not_answering"))
    assert found == {"gpu_lost": {"driver_not_answering"}}


def test_the_driver_s_answer_belongs_to_the_gpus_that_it_names():
    one, other = "0000:01:00.0", "0000:02:00.0"
    lost = saw("gpu_lost", gpu=one)
    counted = replace(saw("gpu_missing_in_nvml"), details={"gpus": other})
    assert set(roots(lost, counted)) == {"gpu_lost", "gpu_missing_in_nvml"}
    for gpus in (one, f"{other} {one}"):
        named = replace(counted, details={"gpus": gpus})
        assert roots(lost, named) == {"gpu_lost": {"gpu_missing_in_nvml"}}
    # A text that looks as if it named one says nothing of it.
    told = replace(saw("gpu_missing_in_nvml"), evidence=f"missing: A10 at {other}")
    assert roots(lost, told) == {"gpu_lost": {"gpu_missing_in_nvml"}}
    # A kernel log names a GPU without its function.
    short = saw("gpu_lost", gpu="0000:01:00")
    assert roots(short, replace(counted, details={"gpus": one})) == {
        "gpu_lost": {"gpu_missing_in_nvml"}
    }
    # A GPU that has worn out answers.
    worn = saw("row_remap_failed", gpu=one)
    assert set(roots(worn, saw("nvml_failed"))) == {"row_remap_failed", "nvml_failed"}
    assert roots(saw("gsp_timeout", gpu=one), saw("nvml_failed")) == {
        "gsp_timeout": {"nvml_failed"}
    }


def test_a_log_that_names_the_cause_has_only_noticed_it():
    noticed = saw("driver_library_mismatch", source=PLUGIN)
    assert roots(noticed) == {"driver_library_mismatch": set()}
    assert roots(noticed, saw("nouveau_loaded")) == {"nouveau_loaded": {"driver_library_mismatch"}}
    failed = saw("handler_missing", pod="default/x", placed=True, source=POD)
    assert roots(failed, saw("toolkit_missing")) == {"toolkit_missing": {"handler_missing"}}
    # It is on a node that is no host of the run.
    elsewhere = replace(failed, subject=Subject("", "", "default/x", True))
    assert set(roots(elsewhere, saw("toolkit_missing"))) == {"handler_missing", "toolkit_missing"}


#: Why no command and no variable fixes it -> known errors. Any error of a lower layer of the same
#: host or pod can cause one of them.
WITHOUT_A_ROW = {
    "other rows say which of several causes it is, or a user's program has the GPU": (
        "insufficient_gpu", "gpu_busy", "no_plugin_devices", "discovery_no_nvml",
    ),
    "its text does not say whether the card was changed, MIG partitioned again, or a GPU is lost": (
        "cdi_uuid_unknown", "device_unknown",
    ),
    "who wrote, or did not write, the CDI specification has the reason in a log": (
        "cdi_dra_device", "cdi_operator_device", "cdi_vendor_device", "cdi_empty_edits",
    ),
    "a chart or a role of somebody else sets the folder": (
        "plugin_folder_missing", "dra_driver_root",
    ),
    "the container was started without its devices, by whom the text does not say": (
        "container_devices_denied", "container_without_devices",
    ),
    "the program, the firmware or the BIOS is to be changed, or the driver has dealt with it": (
        "drm_gpu_reset", "drm_ring_timeout", "drm_page_fault", "drm_gpu_hang", "drm_engine_reset",
        "drm_small_bar", "drm_vf_state_not_saved", "amd_mes_not_answering",
        "amd_smu_not_answering", "drm_guc_not_answering", "amd_vf_mailbox", "iommu_page_fault",
        "vfio_reset_failed",
    ),
    "what package managers say is a failure of a run, and no layer of a node": (
        "package_disk_full", "package_read_only", "package_not_root", "package_locked",
        "repository_not_valid", "repository_key_weak", "repository_key_rejected",
        "package_would_remove", "package_hash_mismatch", "repository_out_of_sync",
        "repository_proxy", "repository_certificate", "repository_forbidden",
        "repository_unreachable", "package_filtered", "package_missing",
        "package_version_missing", "package_conflict", "package_script_failed",
        "package_image_system", "package_pop_pin", "repository_by_distribution",
        "dkms_missing", "cuda_installer_disk_full",
    ),
    "kubelet, its policy, an operator or the pod itself is to be changed": (
        "quota_needs_limits",
        "containerd_drop_in_version", "toolkit_too_old", "topology_affinity", "smt_alignment",
        "kubelet_state_file", "inotify_limit", "pod_level_gpu", "device_class_missing",
        "gpu_operator_too_old", "amd_plugin_no_kfd", "selinux_denies_module",
        "driver_image_missing", "dra_api_version",
        "dra_driver_not_registered", "kubelet_socket_denied",
        "operator_root_elsewhere",
    ),
    "who may open a device file, or load a module, is for the administrator": (
        "nvml_permissions", "module_load_denied",
    ),
    "a program is compiled, which no layer of a node is": (
        "cuda_glibc", "cuda_gcc_too_new", "cuda_no_gcc", "cuda_architecture_unknown",
    ),
    "which of two files remains is for whoever wrote them": ("cdi_conflict",),
    "the collection sets no parameter of the module, and IMEX may not be wanted": (
        "imex_channel_missing",
    ),
    "whether a pod may use the nodes with a taint is for whoever wrote it": (
        "taint_not_tolerated",
    ),
    "another log has the reason": (
        "container_cli", "mps_daemon_missing", "plugin_server_crashes",
    ),
    "a test, or Slurm, was started by a person: what it needs is not on the node's layers": (
        "dcgm_test_unsupported", "gpu_memory_full", "shm_too_small", "rvs_gpu_unknown",
        "rvs_configuration", "slurm_registration_invalid", "slurm_gres_ignored",
        "gpu_burn_not_run", "nvbandwidth_error", "nccl_test_failed", "nccl_warned",
        "nccl_nvls_failed",
    ),
    "a daemon that no driver needs, and no layer of a node either": ("xpum_not_running",),
    "who made the MIG devices, the text does not say": ("dra_mig_left",),
    "a daemon's own configuration is to be changed": (
        "docker_cdi_off", "fabric_config_invalid",
    ),
}  # fmt: skip


def test_each_known_error_has_a_row_or_is_listed():
    listed = {code for codes in WITHOUT_A_ROW.values() for code in codes}
    assert {row.code for row in FAILURES} - set(CAUSES) == listed, (
        "Next step: a row in plugins/module_utils/_diagnosis/data.py, or one of WITHOUT_A_ROW"
    )


@pytest.mark.parametrize("code", [
    "gpu_request_differs", "gpu_limit_missing", "image_missing", "wrong_architecture",
    "ptx_toolchain", "no_kernel_image", "container_config", "out_of_memory",
    "priority_class_quota", "mps_not_reachable",
])  # fmt: skip
def test_what_is_wrong_with_a_pod_itself_follows_from_nothing(code):
    pod = saw(code, pod="default/train", placed=True, source=POD)
    others = [saw("toolkit_missing"), saw("row_remap_failed", gpu="0000:01:00.0")]
    asks = saw("asks_no_gpu", pod="default/train", placed=True)
    assert code in roots(pod, asks, *others)
    waits = replace(pod, subject=Subject("", "", "default/train"))
    assert code in roots(waits, *others)


def test_a_pod_that_asks_for_no_gpu_misses_the_driver_in_its_container():
    asks = saw("asks_no_gpu", pod="default/x", placed=True)
    for code in ("nvidia_smi_missing", "no_cuda_device"):
        seen = saw(code, pod="default/x", placed=True, source=POD)
        assert roots(seen, asks) == {"asks_no_gpu": {code}}
    down = saw("containerd_not_running", pod="default/x", placed=True, source=POD)
    assert set(roots(down, asks)) == {"asks_no_gpu", "containerd_not_running"}


def test_what_nobody_knows_stays_visible():
    assert roots(saw("never_seen_before"), saw("toolkit_missing")) == {
        "never_seen_before": set(), "toolkit_missing": set(),
    }  # fmt: skip


def test_one_finding_of_several_sources_has_the_evidence_of_all():
    rows = [replace(saw("nouveau_loaded"), evidence=text) for text in ("lsmod", "dmesg", "lsmod")]
    (one,) = find_roots(rows)
    assert one.evidence == "dmesg; lsmod"
    # What names the GPU says more than what does not.
    both = [saw("gpu_lost"), saw("gpu_lost", gpu="0000:01:00.0", severity=WARNING)]
    (one,) = find_roots(both)
    assert (one.subject.gpu, one.severity) == ("0000:01:00.0", ERROR)


def test_the_worst_comes_first():
    found = find_roots([saw("pcie_width", severity=WARNING), saw("no_plugin"), saw("secure_boot")])
    assert [one.code for one in found] == ["secure_boot", "no_plugin", "pcie_width"]


OBSERVED = st.builds(
    saw,
    st.sampled_from([*CAUSES, "never_seen_before"]),
    st.sampled_from(["gpu1", "gpu2"]),
    st.sampled_from(["", "0000:01:00.0", "0000:02:00.0"]),
    st.sampled_from(["", "default/train"]),
    severity=st.sampled_from(SEVERITIES),
    source=st.sampled_from([None, PLUGIN, POD]),
    placed=st.booleans(),
)


@given(st.lists(OBSERVED, max_size=8), st.randoms(use_true_random=False))
def test_any_order_gives_the_same_and_nothing_is_lost(observed, random):
    found = [one.to_json() for one in find_roots(observed)]
    shuffled = list(observed)
    random.shuffle(shuffled)
    assert [one.to_json() for one in find_roots(shuffled)] == found
    shown = {one["id"] for one in found} | {code for one in found for code in one["follows"]}
    assert shown == {one.code for one in observed}
    # Each of them says whether something is wrong at all.
    assert bool(found) == bool(observed)


def test_the_order_of_the_sources_does_not_matter():
    ill = host(seen=health(answer=smi(smi_gpu("0000:00:05.0", remapped_row_failure="Yes"))))
    other = replace(ill, name="gpu2", layers=list(reversed(ill.layers)))
    forward = diagnose([ill, other])["findings"]
    assert diagnose([other, ill])["findings"] == forward and len(forward) == 2


def test_hostile_texts_are_shown_as_texts_and_without_secrets():
    problem = {"code": "no_container_runtime", "cause": HOSTILE, "evidence": HOSTILE,
               "next_step": HOSTILE}  # fmt: skip
    known = facts()
    known["problems"] = [problem]
    result = diagnose([host(known)])
    text = json.dumps(result, ensure_ascii=False)
    assert "<script>alert(1)</script>" in text and "{{ 7*7 }}" in text
    assert "hunter2" not in text
    assert not {"\x1b", "\x9b", "\u202e", "\r"} & set(json.loads(text)["findings"][0]["cause"])


def test_no_command_line_of_a_process_is_in_what_is_written():
    """nvidia-smi lists each process with its whole command line."""
    ill = smi_gpu("0000:00:05.0", remapped_row_failure="Yes")
    document = smi_document(ill)
    assert "<process_name>" in document and "hunter2" in document
    result = diagnose([host(seen=health(answer=smi(ill)))])
    text = json.dumps(result)
    assert result["findings"] and "process_name" not in text and "hunter2" not in text


def test_a_command_to_copy_has_hostile_names_in_quotes():
    (one,) = find_roots([saw("toolkit_missing", "gpu1; rm -rf /")])
    assert "--limit 'gpu1; rm -rf /'" in one.fix
    pod = saw("admission_failed", "", pod="a$(id)/b;c")
    (one,) = find_roots([pod])
    assert one.fix == "kubectl --namespace 'a$(id)' delete pod 'b;c'"
    (one,) = find_roots([saw("pending_reboot")], {"gpu1": "n1; x"})
    assert one.fix == (
        "kubectl drain 'n1; x' --ignore-daemonsets && ansible gpu1 --become "
        "-m ansible.builtin.reboot && kubectl uncordon 'n1; x'"
    )


def test_a_node_is_not_rebooted_after_a_step_that_failed():
    (one,) = find_roots([saw("nouveau_loaded")], {"gpu1": "n1"})
    assert ";" not in one.fix and " && kubectl drain n1 --ignore-daemonsets && " in one.fix


def test_without_root_what_cannot_be_asked_is_unseen_and_not_a_fault():
    known = facts(driver__managed=None)
    known["gpus"][0]["vgpu"] = {"guest": None}
    known["problems"] = [
        {"code": "containerd_config_invalid", "cause": "x.", "evidence": "", "next_step": "y."}
    ]
    failed = {
        "layer": "runtime",
        "ok": False,
        "code": "cri_not_ready",
        "cause": "x.",
        "evidence": "permission denied",
        "next_step": "y.",
        "subject": "containerd",
    }
    seen = {**health(), "unseen": [{"what": "kernel log", "why": "dmesg: Operation not permitted"}]}
    whole = host(known, seen=seen, root=False)
    read = replace(whole, layers=[*whole.layers, failed])
    result = diagnose([read])
    assert (result["ok"], result["findings"]) == (True, [])
    assert [row["what"] for row in result["unseen"]] == [
        "the cluster", "kernel log", "the container runtimes", "the record of this collection",
        "whether the GPUs are virtual",
    ]  # fmt: skip
    assert {one["id"] for one in diagnose([replace(read, root=True)])["findings"]} == {
        "containerd_config_invalid"
    }


@pytest.mark.parametrize("failure", ["", "No route to host"])
def test_a_host_that_was_not_read(failure):
    result = diagnose([Host("gpu9", failure=failure)], asked=True)
    assert result["hosts"]["gpu9"]["verdict"] == "not read" and result["ok"]
    (row,) = result["unseen"]
    assert (row["host"], row["what"]) == ("gpu9", "the node")
    assert row["why"] == (failure or "its facts could not be read")


@pytest.mark.parametrize(("more", "asked", "verdict"), [
    ({}, False, "ok"), ({"node": "n1"}, True, "ok"), ({}, True, "partly read"),
    ({"failure": "Traceback"}, False, "partly read"),
])  # fmt: skip
def test_what_was_not_looked_at_is_not_ok(more, asked, verdict):
    result = diagnose([replace(host(seen=health()), **more)], asked=asked)
    assert (result["hosts"]["gpu1"]["verdict"], result["findings"]) == (verdict, [])


def test_hosts_without_gpu():
    result = diagnose([host(facts(gpus=[], nvml=None), seen=health(gpus=()))], asked=True)
    assert result["hosts"]["gpu1"]["verdict"] == "no GPU" and result["unseen"] == []


def test_many_hosts_take_time_in_proportion():
    """Each host is compared with itself only: 500 hosts with four findings each."""
    codes = ("secure_boot", "gpu_not_bound", "toolkit_missing", "container_failed")
    observed = [saw(code, f"gpu{number}") for number in range(500) for code in codes]
    found = find_roots(observed)
    assert len(found) == 1000 and observe([], []) == []
