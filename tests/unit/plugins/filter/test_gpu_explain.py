# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What people get for a text: the filter, and the action for a file."""

from __future__ import annotations

import os
from types import SimpleNamespace

import pytest
from ansible.errors import AnsibleActionFail, AnsibleFilterError

from ansible_collections.kubegpu.nodes.plugins.action.fleet_explain import ActionModule
from ansible_collections.kubegpu.nodes.plugins.filter.gpu_explain import gpu_explain
from tests.unit.fixtures.node_facts import node

LOST = "NVRM: Xid (PCI:0000:05:00): 79, pid=1, name=x, GPU has fallen off the bus."
KEYS = (
    *("code", "severity", "subject", "cause", "evidence", "next_step", "fix", "confidence"),
    "alternatives",
)


def test_a_finding_has_its_parts():
    text = "NVRM: Xid (PCI:0000:07:00): 48, pid=1, name=x, An uncorrectable double bit error"
    (found,) = gpu_explain(text)

    assert tuple(found) == KEYS
    assert (found["code"], found["severity"]) == ("gpu_memory_error", "error")
    assert found["subject"] == "GPU 0000:07:00"
    assert found["evidence"] == text


def test_commands_have_the_name_of_the_host_where_it_is_known():
    text = "NVRM: Xid (PCI:0002:00:00): 78, Guest driver is incompatible with host driver"

    assert "--limit HOST " in gpu_explain(text)[0]["fix"]
    assert "--limit gpu1 " in gpu_explain(text, node(), host="gpu1")[0]["fix"]


def test_unknown_texts_have_no_finding():
    assert gpu_explain("") == []
    assert gpu_explain("a text about something else") == []


HEALTHY = {
    "apt": "Reading package lists... Done\n0 upgraded, 2 newly installed, 1 to remove and 0 not "
    "upgraded.\nSetting up nvidia-kernel-dkms (580.95.05) ...\nDone.",
    "amdgpu": "[ 3.2] amdgpu 0000:03:00.0: amdgpu: MEM ECC is active.\n[ 3.3] amdgpu 0000:03:00.0: "
    "amdgpu: SMU is initialized successfully!\n[ 9.9] amdgpu 0000:03:00.0: amdgpu: socket: 0, "
    "die: 0, 0 new uncorrectable hardware errors detected in gfx block",
    "i915": "[ 3.3] i915 0000:00:02.0: [drm] GT0: GuC firmware i915/adlp_guc_70.bin version 70.36",
    "nvidia": "[ 5.1] nvidia: module verification failed: signature and/or required key missing - "
    "tainting kernel\n[ 5.2] NVRM: loading NVIDIA UNIX x86_64 Kernel Module  580.95.05",
    "kubelet": 'Got registration request from device plugin with resource "nvidia.com/gpu"',
    "build": "nvidia/nv.c:10:2: note: expanded from macro\n LD [M] nvidia.ko\nDKMS: install done.",
    "trigger": "Reading package lists...\nRunning the post-installation trigger 10_revoke_keys",
    "pull": "Unable to find image 'nvidia/cuda:12' locally\n12: Pulling from nvidia/cuda\nStatus: "
    "Downloaded newer image for nvidia/cuda:12",
    "socket": "Creating a gRPC client to dial unix /run/containerd/containerd.sock",
    "timer": "systemd: Starting apt-daily.timer\nkubelet: dial tcp: connect: connection refused",
    "disk": "nvme 0000:01:00.0: AMD-Vi: Event logged [IO_PAGE_FAULT domain=0x000a]",
    "slow reset": "vfio-pci 0000:0d:00.0: not ready 1023ms after FLR; waiting",
    "user's build": "gcc: error: unrecognized command-line option '-mfoo'",
    "program": "GET /x 404 Not Found\nconnection refused, dnf and apt in words\nfailed to fetch",
    # The errors are of other programs than apt.
    "apt and others": """Reading package lists...
Setting up linux-headers-6.8.0-45-generic ...
curl: (22) The requested URL returned error: 403 Forbidden
Error response from daemon: Get https://registry.example/v2/: connect: connection refused
The file llama.bin was not found""",
    "apt tries again": """Ign:3 https://mirror.example/cuda InRelease
  404  Not Found
Ign:4 https://mirror.example/cuda Packages
  Could not connect to mirror.example:443, connection timed out
Get:4 https://mirror.example/cuda Packages [450 kB]
Reading package lists... Done""",
    "apt waits": """\
Waiting for cache lock: Could not get lock /var/lib/dpkg/lock-frontend. It is held
Setting up nvidia-container-toolkit (1.17.4-1) ...""",
    "apt simulates": """NOTE: This is only a simulation!
Reading package lists... Done
The following packages would be removed:
  nvidia-prime""",
    "initramfs": """Setting up nvidia-driver-570 (570.169) ...
W: Possible missing firmware /lib/firmware/i915/mtl_gsc_2.bin for built-in driver i915""",
    "dnf skips": """\
 Problem: package nvidia-settings-515.48 requires nvidia-driver >= 515.48, but none of the
  providers can be installed
  - conflicting requests
Running transaction
Complete!""",
    "a later start": """\
amdgpu 0000:23:00.0: Direct firmware load for amdgpu/arcturus_gpu_info.bin failed with error -2
amdgpu 0000:23:00.0: Fatal error during GPU init
amdgpu: probe of 0000:23:00.0 failed with error -2
[drm] Initialized amdgpu 3.39.0 20150101 for 0000:23:00.0 on minor 1""",
    "a suspend": """\
[drm:atom_op_jump [amdgpu]] *ERROR* atombios stuck in loop for more than 20secs aborting
[drm] Initialized amdgpu 3.54.0 20150101 for 0000:01:00.0 on minor 1""",
    "displays": """i915 0000:00:02.0: [drm] *ERROR* CPU pipe A FIFO underrun
amdgpu 0000:05:00.0: [drm] *ERROR* [CRTC:73:crtc-0] flip_done timed out
amdgpu 0000:05:00.0: [drm] *ERROR* dc_dmub_srv_log_diagnostic_data: DMCUB error""",
    "a pod that waits": """\
FailedScheduling 6m default-scheduler 0/6 nodes: 6 Insufficient nvidia.com/gpu.
Scheduled 2m default-scheduler  Successfully assigned default/train-0 to gpu-node-1""",
    "a pull": """Failed to pull image "x:1": ErrImagePull
Successfully pulled image "x:1" in 25s""",
    "containerd comes later": """\
dial unix /run/containerd/containerd.sock: connect: connection refused
containerd: level=info msg="containerd successfully booted in 0.09s" """,
    "other drivers": "snd_hda: driver not loaded\nmount error(126): Required key not available",
    "Xorg": "(EE) /dev/dri/card0: failed to set DRM interface version 1.4: Permission denied",
}


@pytest.mark.parametrize("name", HEALTHY)
def test_texts_of_what_works_have_no_finding(name):
    assert gpu_explain(HEALTHY[name]) == []


@pytest.mark.parametrize(
    ("before", "after", "code"),
    [
        ("a later start", "amdgpu 0000:23:00.0: Fatal error during GPU init", "drm_probe_failed"),
        ("dnf skips", "Error: Unable to find a match: cuda-drivers", "package_missing"),
        ("apt tries again", "E: Failed to fetch x.deb  403  Forbidden", "repository_forbidden"),
        ("a pod that waits", "default-scheduler 1 Insufficient amd.com/gpu", "insufficient_gpu"),
    ],
)
def test_what_fails_after_that_is_found(before, after, code):
    assert [one["code"] for one in gpu_explain(f"{HEALTHY[before]}\n{after}")] == [code]


def test_the_start_of_another_card_makes_up_for_nothing():
    text = HEALTHY["a later start"].replace("for 0000:23", "for 0000:43")
    assert [one["code"] for one in gpu_explain(text)] == ["drm_firmware_missing"]


def test_the_worst_comes_first():
    warning = "NVRM: Xid (PCI:0000:05:00): 63, Row Remapper: New row marked for remapping"
    found = gpu_explain(f"{warning}\n{LOST}")

    severities = [one["severity"] for one in found]
    assert severities == sorted(severities, key=["error", "warning", "info"].index)


def test_a_secret_in_a_name_does_not_come_out():
    found = gpu_explain("NVRM: Xid (PCI:0000:05:00): 43, pid=1, name=--token=hunter22, Ch 1")
    assert found and "hunter22" not in str(found)


def test_secrets_and_control_codes_do_not_come_out():
    (found,) = gpu_explain(f"{LOST} \x1b[2J https://user:hunter22@mirror.example/")

    assert "hunter22" not in str(found) and "\x1b" not in str(found)


@pytest.mark.parametrize(
    ("text", "facts", "told"),
    [
        (b"bytes", None, "is a bytes, not a text"),
        (["a", "list"], None, "is a list, not a text"),
        ("a text", {"gpus": []}, "are not a fact gpu_node"),
        ("a text", "facts", "are not a fact gpu_node"),
    ],
)
def test_other_values_are_refused_with_the_next_step(text, facts, told):
    with pytest.raises(AnsibleFilterError, match=told) as error:
        gpu_explain(text, facts)
    assert "Next step: Give" in str(error.value)


def explained(**options):
    task = SimpleNamespace(args=options, async_val=0, check_mode=False, diff=False, no_log=False)
    shell = SimpleNamespace(_shell=SimpleNamespace(tmpdir=None))
    action = ActionModule(task, shell, None, None, None, None)
    return action.run(task_vars={"inventory_dir": None})


def test_a_file_is_explained_whatever_its_bytes(tmp_path):
    log = tmp_path / "log.txt"
    log.write_bytes(b"\xff\x00 odd bytes\n" + LOST.encode())
    result = explained(file=str(log))

    assert result["changed"] is False
    assert [one["code"] for one in result["findings"]] == ["gpu_lost"]
    assert result["rows"][0]["notes"][0].startswith("gpu_lost: ")


def test_a_file_that_is_not_read(tmp_path):
    with pytest.raises(AnsibleActionFail, match=r"my_variable: .* is not on the controller"):
        explained(file=str(tmp_path / "missing"), variable="my_variable")
    with pytest.raises(AnsibleActionFail, match="is not a regular file"):
        explained(file=str(tmp_path))
    large = tmp_path / "large"
    with large.open("wb") as file:
        os.truncate(file.fileno(), 65 << 20)
    with pytest.raises(AnsibleActionFail, match=r"has 65 MiB, and 64 MiB are read at most"):
        explained(file=str(large))


@pytest.mark.parametrize(
    "text",
    [
        # Modules of other devices that DKMS builds, and other devices of the bus.
        "Error! Bad return status for module build on kernel: 6.8.0-31-generic (x86_64)\n"
        "Consult /var/lib/dkms/r8168/8.055.00/build/make.log for more information.",
        "eth0: NIC has fallen off the bus",
        # Whole GPUs for virtual machines: their specification is not of nvidia-ctk.
        "CDI device injection failed: unresolvable CDI devices nvidia.com/pgpu=vfio1",
    ],
)
def test_advice_that_would_not_help_is_not_given(text):
    assert gpu_explain(text) == []


def test_dockers_own_switch_of_cdi_is_not_the_toolkit():
    (found,) = gpu_explain('could not select device driver "cdi" with capabilities: [[gpu]].')
    assert found["code"] == "docker_cdi_off" and "daemon.json" in found["next_step"]


def test_the_fix_of_an_error_that_is_not_fatal_is_no_reboot():
    (found,) = gpu_explain("NVRM: Xid (PCI:0000:c5:00): 145, RLW_RXPIPE Nonfatal XC1 i0 Link 17")
    assert (found["severity"], found["fix"]) == ("warning", "start the program again")


def test_advice_keeps_its_words():
    """What looks like an option with a secret is not covered in texts of this collection."""
    facts = {**node(secure_boot=True), "os": {**node()["os"], "id": "ubuntu"}}
    text = "modprobe: ERROR: could not insert 'nvidia': Key was rejected by service"
    (found,) = gpu_explain(text, facts)
    assert "***" not in found["next_step"]
