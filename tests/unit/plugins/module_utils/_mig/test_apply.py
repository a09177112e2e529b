# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plugins.module_utils._core.errors import KubegpuError, RolledBackError
from plugins.module_utils._exporter import data as exporter_data
from plugins.module_utils._mig import boot, boot_paths
from plugins.module_utils._mig.apply import absent, present
from plugins.module_utils._mig.facts import parse_instances, parse_profiles
from plugins.module_utils._mig.types import EXPORTER, METRICS, Pods, Request
from tests.tools.tiers import is_full
from tests.unit.fixtures.mig_node import SMI, KilledError, MigNode, card

SEVEN = [("1g.10gb", start) for start in range(7)]


def request(config="all-1g.10gb", **options):
    return Request(config, **{"at_boot": False, **options})


def mixed(counts):
    return {"mixed": [{"devices": "all", "mig-enabled": True, "mig-devices": counts}]}


@pytest.fixture
def node(tmp_path):
    return MigNode(tmp_path, card(0, "2330"), card(1, "2330"))


def devices_of(node):
    """Mode, and number of MIG devices, of each GPU."""
    return {
        one["address"]: (one["mig_mode"], len(one["mig_devices"]))
        for one in node.facts()["nvml"]["devices"]
    }


@pytest.fixture
def ampere(tmp_path):
    return MigNode(tmp_path, card(0, "20b0", needs_reset=True))


def smi_commands(node):
    return [" ".join(one[1:]) for one in node.commands if one[0] == "nvidia-smi"]


def test_partition_and_again_and_back(node):
    result = present(request(), node.dependencies(), False)
    assert result["changed"]
    assert not result["reboot_required"]
    assert node.layout(0) == node.layout(1) == SEVEN
    assert result["diff"][0] == {
        "before_header": "MIG of GPU 0 (0000:01:00.0)",
        "after_header": "MIG of GPU 0 (0000:01:00.0)",
        "before": "MIG disabled\n",
        "after": "".join(f"1g.10gb at {start}\n" for start in range(7)),
    }
    again = present(request(), node.dependencies(), False)
    assert not again["changed"]
    assert again["diff"] == []
    assert absent(request(""), node.dependencies(), False)["changed"]
    assert node.modes() == [False, False]
    assert not (node.root / "var/lib/kubegpu").exists()
    assert not absent(request(""), node.dependencies(), False)["changed"]


def test_check_mode_predicts_and_changes_nothing(node):
    predicted = present(request(), node.dependencies(), True)
    assert not node.commands
    assert predicted == present(request(), node.dependencies(), False)
    assert devices_of(node) == {
        one["address"]: (one["mig_mode"], len(one["mig_devices"]))
        for one in predicted["plan"]["devices"]
    }
    assert absent(request(""), node.dependencies(), True)["changed"]
    assert node.layout() == SEVEN


def test_check_mode_does_not_count_containers_that_leave(node):
    plugin, other = "ab" * 32, "cd" * 32
    scope = "kubepods-besteffort-pod1.slice/cri-containerd-{}.scope"
    node.open_device(800, "/dev/nvidia0", scope.format(plugin))
    leaving = node.dependencies([plugin])
    assert present(request(), leaving, True)["changed"]
    # Outside of check mode they have ended, or prevent the change.
    with pytest.raises(KubegpuError, match="in use"):
        present(request(), leaving, False)
    with pytest.raises(KubegpuError, match=f"container {plugin[:12]}"):
        present(request(), node.dependencies([other]), True)
    shutil.rmtree(node.root / "proc/800")
    present(request(), leaving, False)
    node.open_device(801, "/dev/nvidia1", scope.format(plugin))
    assert absent(request(""), leaving, True)["changed"]
    with pytest.raises(KubegpuError, match="in use"):
        absent(request(""), node.dependencies(), True)


def test_instances_that_fit_are_not_touched(node):
    present(request("mixed", configs=mixed({"1g.10gb": 2})), node.dependencies(), False)
    node.commands.clear()
    present(
        request("mixed", configs=mixed({"1g.10gb": 1, "3g.40gb": 1})), node.dependencies(), False
    )
    assert node.layout() == [("1g.10gb", 0), ("3g.40gb", 4)]
    assert smi_commands(node)[:3] == [
        "mig -i GPU-0 -gi 2 -dci",
        "mig -i GPU-0 -gi 2 -dgi",
        "mig -i GPU-0 -cgi 3g.40gb:4 -C",
    ]


@pytest.mark.parametrize(
    ("device_id", "profile", "count"),
    [
        ("20b2", "1g.10gb+me", 1),
        ("2bb5", "1g.24gb-me", 4),
        ("2bb5", "1g.24gb+gfx", 4),
        ("2bb5", "2g.48gb+me.all", 1),
    ],
)
def test_a_compute_instance_without_the_attributes_of_its_instance(
    tmp_path, device_id, profile, count
):
    node = MigNode(tmp_path, card(0, device_id))
    assert present(request(f"all-{profile}"), node.dependencies(), False)["changed"]
    assert [name for name, _start in node.layout()] == [profile] * count
    listed = node.run(["nvidia-smi", "mig", "-lci"]).stdout
    assert profile not in listed and profile[:7] in listed
    assert not present(request(f"all-{profile}"), node.dependencies(), False)["changed"]
    # And it stays where another one is added.
    (first, *_others) = node.layout()
    other = "1g.24gb-me" if device_id == "2bb5" else "3g.40gb"
    counts = {profile: 1, **({} if other == profile else {other: 1})}
    node.commands.clear()
    present(request("mixed", configs=mixed(counts)), node.dependencies(), False)
    assert first in node.layout()
    assert not any("-gi 1 -dgi" in command for command in smi_commands(node))
    absent(request(""), node.dependencies(), False)
    assert node.layout() == []


def test_only_gpus_that_change_are_touched(node):
    entries = [{"devices": [1], "mig-enabled": True, "mig-devices": {"7g.80gb": 1}}]
    present(request("one", configs={"one": entries}), node.dependencies(), False)
    assert node.modes(0) == [False, False]
    assert all("GPU-1" in command for command in smi_commands(node))
    absent(request(""), node.dependencies(), False)
    assert node.modes(1) == [False, False]


def test_ampere_is_reset(ampere):
    result = present(request("all-1g.5gb"), ampere.dependencies(), False)
    assert "--gpu-reset -i GPU-0" in smi_commands(ampere)
    assert len(ampere.layout()) == 7
    assert not result["reboot_required"]


def test_without_a_reset_a_reboot_is_needed_and_then_the_rest_is_made(ampere):
    asked = request("all-1g.5gb", reset=False)
    result = present(asked, ampere.dependencies(), False)
    assert result["changed"]
    assert result["reboot_required"]
    assert result["reboot_reason"] == "MIG of GPU 0 is enabled with the next boot"
    waiting = present(asked, ampere.dependencies(), False)
    assert not waiting["changed"]
    assert waiting["reboot_required"]
    ampere.reboot()
    assert present(asked, ampere.dependencies(), False)["changed"]
    assert len(ampere.layout()) == 7


def services(node):
    return [" ".join(one[1:]) for one in node.commands if one[0] == "systemctl"]


def test_a_reset_that_fails_is_not_tried_again_before_the_reboot(ampere):
    asked = request("all-1g.5gb")
    ampere.fail(gpu_reset="Unknown Error")
    ampere.open_device(800, "/dev/nvidia0", "nvidia-dcgm.service")
    result = present(asked, ampere.dependencies(), False)
    assert result["changed"] and result["reboot_required"]
    assert result["reboot_reason"].startswith(
        "MIG of GPU 0 is enabled with the next boot (1 device is currently being used by one or "
        "more other processes (e.g., Fabric Manager"
    )
    assert services(ampere)[-2:] == ["stop nvidia-dcgm.service", "start nvidia-dcgm.service"]
    ampere.commands.clear()
    for check_mode in (True, False):
        waiting = present(asked, ampere.dependencies(), check_mode)
        assert not waiting["changed"]
        assert waiting["reboot_reason"] == result["reboot_reason"]
        assert waiting["plan"]["warnings"] == [result["reboot_reason"]]
    assert not ampere.commands
    # Another layout makes no difference, and another mode is set.
    assert not present(request("all-2g.10gb"), ampere.dependencies(), False)["changed"]
    ampere.fail()
    assert present(request("all-disabled"), ampere.dependencies(), False)["changed"]
    assert ampere.modes() == [False, False]
    # The earlier failure is forgotten: what is pending now may be reset.
    assert ampere.facts()["mig"]["waiting"] == {}
    assert not present(asked, ampere.dependencies(), False)["reboot_required"]


def test_after_the_reboot_the_instances_are_made(ampere):
    ampere.fail(gpu_reset="Unknown Error")
    present(request("all-1g.5gb"), ampere.dependencies(), False)
    ampere.reboot()
    result = present(request("all-1g.5gb"), ampere.dependencies(), False)
    assert result["changed"] and not result["reboot_required"]
    assert ampere.modes() == [True, True] and len(ampere.layout()) == 7


def test_a_virtual_machine_needs_a_reboot(tmp_path):
    node = MigNode(tmp_path, card(0, "20b2", vm=True))
    result = present(request(), node.dependencies(), False)
    assert result["reboot_reason"] == (
        "MIG of GPU 0 is enabled with the next boot (Resetting GPU 00000000:01:00.0 is not "
        "supported.)"
    )
    assert not present(request(), node.dependencies(), False)["changed"]


@pytest.fixture
def with_drm(tmp_path):
    node = MigNode(tmp_path, card(0, "20b2", needs_reset=True, drm=True))
    node.load_drm()
    return node


def test_nvidia_drm_without_users_is_unloaded_for_the_reset(with_drm):
    result = present(request(), with_drm.dependencies(), False)
    assert not result["reboot_required"] and with_drm.layout() == SEVEN
    names = [" ".join(one) for one in with_drm.commands if "drm" in one[-1] or "reset" in one[1]]
    reset = "nvidia-smi --gpu-reset -i GPU-0"
    assert names == [reset, "modprobe -r nvidia_drm", reset, "modprobe nvidia_drm"]
    assert (with_drm.root / "sys/module/nvidia_drm").exists() and not with_drm.warnings


def test_nvidia_drm_that_is_in_use_is_named(with_drm):
    shutil.rmtree(with_drm.root / "sys")
    with_drm.load_drm(2)
    result = present(request(), with_drm.dependencies(), False)
    assert "(nvidia_drm is loaded and has 2 users, such as a display)" in result["reboot_reason"]
    assert not any(one[0] == "modprobe" for one in with_drm.commands)


def test_nvidia_drm_that_stays_or_does_not_come_back_is_told(with_drm):
    with_drm.modprobe_fails = "-r"
    result = present(request(), with_drm.dependencies(), False)
    assert "(nvidia_drm is loaded: modprobe -r nvidia_drm failed)" in result["reboot_reason"]
    present(request("all-disabled"), with_drm.dependencies(), False)
    with_drm.modprobe_fails = "nvidia_drm"
    assert not present(request(), with_drm.dependencies(), False)["reboot_required"]
    assert "Next step: modprobe nvidia_drm" in with_drm.warnings[0]


def test_without_leave_to_reset_nothing_is_unloaded(with_drm):
    result = present(request(reset=False), with_drm.dependencies(), False)
    assert result["reboot_reason"] == "MIG of GPU 0 is enabled with the next boot"
    assert not any(one[0] == "modprobe" for one in with_drm.commands)


def test_a_mode_that_stays_is_a_failure_whatever_nvidia_smi_ends_with(node):
    node.fail(mig="Not Supported")
    with pytest.raises(KubegpuError) as failure:
        present(request(), node.dependencies(), False)
    assert "GPU 0 (0000:01:00.0): MIG is not enabled." in failure.value.cause
    assert "Unable to enable MIG Mode for GPU 00000000:01:00.0: Not Supported" in (
        failure.value.evidence
    )


def test_a_failure_restores_all_gpus(node):
    present(request("mixed", configs=mixed({"2g.20gb": 1})), node.dependencies(), False)
    real = node.run

    def run(argv, timeout=60, environment=None):
        if "-cgi" in argv and "GPU-1" in argv and "3g.40gb:0,3g.40gb:4" in argv:
            node.fail(cgi="Insufficient Resources")
        result = real(argv, timeout, environment)
        node.fail()
        return result

    node.run = run
    with pytest.raises(RolledBackError) as failure:
        present(request("all-3g.40gb"), node.dependencies(), False)
    assert "GPU 1 (0000:02:00.0): 2x 3g.40gb at 0 and 4 was not made." in failure.value.cause
    assert "Insufficient Resources" in failure.value.evidence
    assert failure.value.next_step == "The earlier layout is restored."
    assert node.layout(0) == node.layout(1) == [("2g.20gb", 0)]


def test_what_was_not_restored_is_told(node):
    present(request("mixed", configs=mixed({"2g.20gb": 1})), node.dependencies(), False)
    node.fail(cgi="Insufficient Resources")
    with pytest.raises(RolledBackError, match=r"Not restored: GPU 0: 2g\.20gb at 0"):
        present(request("all-3g.40gb"), node.dependencies(), False)


def test_an_instance_that_cannot_be_destroyed(node):
    present(request(), node.dependencies(), False)
    node.fail(dgi="In use by another client")
    with pytest.raises(RolledBackError, match=r"1g\.10gb at 0 is still there"):
        present(request("all-disabled"), node.dependencies(), False)


def test_a_divided_layout_is_restored(node):
    node._smi.cards()[0].set_modes(True, True)
    node.run(["nvidia-smi", "mig", "-i", "GPU-0", "-cgi", "3g.40gb:4"])
    node.run(["nvidia-smi", "mig", "-i", "GPU-0", "-gi", "1", "-cci", "1c.3g.40gb,2c.3g.40gb"])
    present(request(), node.dependencies(), False)
    assert node.layout() == SEVEN
    absent(request(""), node.dependencies(), False)
    (instance,) = node._smi.cards()[0].instances()
    assert instance["compute"] == ["1c.3g.40gb", "2c.3g.40gb"]
    assert instance["start"] == 4


def test_services_are_stopped_and_started_even_after_a_failure(node):
    node.units.add("nvidia-cdi-refresh.service")
    node.open_device(800, "/dev/nvidia0", "nvidia-dcgm.service")
    node.fail(mig="Not Supported")
    with pytest.raises(KubegpuError):
        present(request(), node.dependencies(), False)
    units = [one[1:] for one in node.commands if one[0] == "systemctl"]
    assert units[1:] == [
        ["stop", "nvidia-dcgm.service"],
        ["stop", "nvidia-cdi-refresh.service"],
        ["start", "nvidia-dcgm.service"],
        ["restart", "nvidia-cdi-refresh.service"],
    ]


def test_an_exporter_that_stops_with_dcgm_is_started_again(node):
    before = ["nvidia-dcgm.service", "nvidia-dcgm-exporter.service"]
    node.active = list(before)
    node.requires = {"nvidia-dcgm-exporter.service": "nvidia-dcgm.service"}
    node.open_device(800, "/dev/nvidia0", "nvidia-dcgm.service")
    node.kill_before = 3
    with pytest.raises(KilledError):
        present(request(), node.dependencies(), False)
    # systemd stopped both.
    assert node.active == []
    node.kill_before = None
    node.commands.clear()
    present(request(), node.dependencies(), False)
    assert node.active == before
    # Those that do not run stay so.
    assert not any("nvsm" in command for command in services(node))


def test_the_container_of_our_exporter_is_stopped_by_its_unit(node):
    node.container = "ab" * 32
    node.active = ["kubegpu-dcgm-exporter.service"]
    node.open_device(800, "/dev/nvidia0", f"docker-{node.container}.scope")
    assert present(request(), node.dependencies(), True)["plan"]["stop"] == [EXPORTER]
    assert present(request(), node.dependencies(), False)["changed"]
    stopped = services(node)
    assert stopped.index(f"stop {EXPORTER}.service") < stopped.index(f"start {EXPORTER}.service")
    # The container of somebody else.
    node.open_device(801, "/dev/nvidia0", f"docker-{'cd' * 32}.scope")
    with pytest.raises(KubegpuError, match=r"used by python \(pid 801, container cdcdcdcdcdcd\)"):
        present(request("all-disabled"), node.dependencies(), False)


def test_the_timer_of_the_metrics_is_stopped_while_no_program_may_use_a_gpu(node):
    node.active = ["kubegpu-metrics.timer"]
    # The program runs at this moment, by chance.
    node.open_device(800, "/dev/nvidia0", "kubegpu-metrics.service")
    present(request("mixed", configs=mixed({"3g.40gb": 1})), node.dependencies(), False)
    changes = [" ".join(one) for one in node.commands]
    at = [changes.index(f"systemctl {one}") for one in (
        "stop kubegpu-metrics.timer", "stop kubegpu-metrics.service", "start kubegpu-metrics.timer",
    )]  # fmt: skip
    (modes, *_more) = [at for at, one in enumerate(changes) if "-mig" in one]
    assert at[0] < at[1] < modes < at[2]
    # What is only added disturbs nothing, and a timer that does not run is not started.
    node.commands.clear()
    present(request("mixed", configs=mixed({"3g.40gb": 2})), node.dependencies(), False)
    assert not any("kubegpu-metrics" in command for command in services(node))
    node.active = []
    present(request("all-disabled"), node.dependencies(), False)
    assert not any("kubegpu-metrics" in command for command in services(node))


def test_the_units_of_the_exporters_have_their_names():
    assert EXPORTER == exporter_data.CONTAINER_UNIT and METRICS == exporter_data.TEXTFILE_UNIT


def test_without_an_answer_of_the_driver_nothing_is_changed(node):
    dependencies = node.dependencies()
    object.__setattr__(dependencies, "facts", lambda: {**node.facts(), "nvml": None})
    with pytest.raises(KubegpuError, match="the driver does not answer"):
        present(request(), dependencies, False)
    assert present(request(), dependencies, True)["changed"]


CONFIGS = (
    "all-1g.10gb",
    "all-3g.40gb",
    "all-7g.80gb",
    "all-balanced",
    "all-disabled",
    "all-2g.20gb",
)


def use_boot_paths(monkeypatch, root):
    """Have the files for the boot below a folder; return their paths."""
    script, unit = f"{root}/boot/mig-layout", f"{root}/boot/kubegpu-mig.service"
    for module in (boot, boot_paths):
        monkeypatch.setattr(module, "SCRIPT_PATH", script)
        monkeypatch.setattr(module, "UNIT_PATH", unit)
        monkeypatch.setattr(module, "BOOT_PATHS", (script, unit))
    return script, unit


def two_cards(root, device_id):
    node = MigNode(root, *(card(one, device_id, needs_reset=True) for one in (0, 1)))
    node.units.add("nvidia-cdi-refresh.service")
    return node


@given(
    st.sampled_from(("2330", "20b2")),
    st.sampled_from(CONFIGS),
    st.sampled_from(CONFIGS),
    st.integers(0, 40),
)
@settings(max_examples=40 if is_full() else 3, deadline=None)
def test_killed_before_any_command_the_next_run_converges(
    tmp_path_factory, device_id, first, then, before
):
    with pytest.MonkeyPatch.context() as monkeypatch:
        node = two_cards(tmp_path_factory.mktemp("node"), device_id)
        paths = use_boot_paths(monkeypatch, node.root)
        asked = request(then, at_boot=True)
        present(request(first, at_boot=True), node.dependencies(), False)
        node.commands.clear()
        node.kill_before = before
        with contextlib.suppress(KilledError):
            present(asked, node.dependencies(), False)
        node.kill_before = None
        present(asked, node.dependencies(), False)
        assert not present(asked, node.dependencies(), False)["changed"]
        assert node.facts()["mig"]["unfinished"] == []
        wanted = two_cards(tmp_path_factory.mktemp("other"), device_id)
        present(request(then), wanted.dependencies(), False)
        for number in (0, 1):
            assert [name for name, _start in node.layout(number)] == [
                name for name, _start in wanted.layout(number)
            ]
            assert node.modes(number) == wanted.modes(number)
        # And so does a teardown that is killed.
        node.commands.clear()
        node.kill_before = before
        with contextlib.suppress(KilledError):
            absent(request(""), node.dependencies(), False)
        node.kill_before = None
        absent(request(""), node.dependencies(), False)
        assert node.modes(0) == node.modes(1) == [False, False]
        assert not (node.root / "var/lib/kubegpu").exists()
        assert not any(os.path.exists(path) for path in paths)
        assert not node.facts()["mig"]["enabled"]


@pytest.fixture
def files_at_boot(tmp_path, monkeypatch):
    return use_boot_paths(monkeypatch, tmp_path)


def test_the_layout_is_made_again_at_boot(files_at_boot, tmp_path):
    script, unit = files_at_boot
    node = MigNode(tmp_path, card(0, "2330"))
    result = present(request(at_boot=True), node.dependencies(), False)
    assert not present(request(at_boot=True), node.dependencies(), False)["changed"]
    assert ["systemctl", "enable", "kubegpu-mig.service"] in node.commands
    assert "Before=" in Path(unit).read_text()
    assert result["diff"][1]["before"] == ""
    assert "layout GPU-0 1g.10gb:0 1g.10gb:1 " in result["diff"][1]["after"]
    node.reboot()
    assert node.modes() == [False, False]
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/nvidia-smi").symlink_to(SMI)
    environment = {"PATH": f"{tmp_path}/bin:{os.environ['PATH']}", "STANDIN_ROOT": str(tmp_path)}
    for _again in range(2):
        subprocess.run(["sh", script], env=environment, check=True, capture_output=True)
        assert node.layout() == SEVEN
    # Some of them are gone, as where an earlier start of the unit was ended in the middle.
    gpu = node._smi.cards()[0]
    gpu.set_instances(gpu.instances()[2:5])
    subprocess.run(["sh", script], env=environment, check=True, capture_output=True)
    assert node.layout() == SEVEN
    # As many, and other ones: what somebody made stays, and the unit fails.
    gpu.set_instances([{**one, "profile": "1g.10gb+me"} for one in gpu.instances()])
    other = subprocess.run(["sh", script], env=environment, check=False, capture_output=True)
    assert other.returncode == 1
    node.fail(cgi="Insufficient Resources")
    node.reboot()
    failed = subprocess.run(
        ["sh", script], env=environment, check=False, capture_output=True, text=True
    )
    assert failed.returncode == 1
    assert "GPU GPU-0 has not the MIG layout of this node" in failed.stderr


def test_the_files_for_the_boot_go_with_teardown(node, files_at_boot):
    present(request(at_boot=True), node.dependencies(), False)
    absent(request("", at_boot=True), node.dependencies(), False)
    assert ["systemctl", "disable", "--now", "kubegpu-mig.service"] in node.commands
    assert not any(os.path.exists(path) for path in files_at_boot)
    assert not (node.root / "var/lib/kubegpu").exists()


def seeing(node, change, **more):
    """Access to the node with facts that are changed."""
    return replace(node.dependencies(), facts=lambda: change(node.facts()), **more)


def without_driver(facts):
    return {**facts, "nvml": None}


def to_vfio(facts):
    """The second GPU is given to a virtual machine."""
    facts["gpus"][1]["kernel_driver"] = "vfio-pci"
    del facts["nvml"]["devices"][1]
    return facts


def taken_out(facts):
    """The second GPU is not in the machine any more."""
    del facts["gpus"][1], facts["nvml"]["devices"][1]
    return facts


def replaced(facts):
    """Another card is in the place of the second GPU."""
    facts["nvml"]["devices"][1]["uuid"] = "GPU-9"
    return facts


def without_modes(facts):
    facts["nvml"]["devices"][1].update(mig_mode=None, gpu_instances=None)
    return facts


def without_instances(facts):
    facts["nvml"]["devices"][1]["gpu_instances"] = None
    return facts


def forget_addresses(node):
    """The record is one of a release that wrote no addresses."""
    store = node.dependencies().store
    record = store.get("nvidia_mig")
    del record["addresses"]
    with store.transaction():
        store.put("nvidia_mig", record)


@pytest.mark.parametrize("old", [False, True])
@pytest.mark.parametrize(
    ("change", "named", "seen"),
    [
        (without_driver, "GPU-0 (0000:01:00.0), GPU-1 (0000:02:00.0)", "driver does not answer"),
        (to_vfio, "GPU-1 (0000:02:00.0)", "Seen: 0000:02:00.0: kernel driver vfio-pci"),
        (without_modes, "GPU 1 (0000:02:00.0)", "the driver reports no MIG mode of it"),
        (without_instances, "GPU 1", "The GPU instances of GPU 1 cannot be read"),
    ],
)
def test_a_gpu_that_cannot_be_restored_keeps_the_record_for_a_later_run(
    node, files_at_boot, change, named, seen, old
):
    present(request(at_boot=True), node.dependencies(), False)
    if old:
        forget_addresses(node)
        named = named.replace(" (0000:01:00.0)", "").replace("GPU-1 (0000:02:00.0)", "GPU-1")
    node.commands.clear()
    said = []
    for check_mode in (True, False):
        with pytest.raises(KubegpuError) as failure:
            absent(request("", at_boot=True), seeing(node, change), check_mode)
        said.append(str(failure.value))
    assert said[0] == said[1] and named in said[0] and seen in said[0]
    assert "Next step: " in said[0]
    # Nothing is changed, on the other GPU and for the boot neither.
    assert not node.commands and not node.warnings
    assert node.layout(0) == node.layout(1) == SEVEN
    assert all(os.path.exists(path) for path in files_at_boot)
    # The later run finds it all.
    assert absent(request("", at_boot=True), node.dependencies(), False)["changed"]
    assert node.modes(0) == node.modes(1) == [False, False]
    assert not any(os.path.exists(path) for path in files_at_boot)
    assert not (node.root / "var/lib/kubegpu").exists()


@pytest.mark.parametrize("old", [False, True])
@pytest.mark.parametrize("change", [taken_out, replaced])
def test_a_gpu_that_is_not_in_the_machine_any_more_does_not_hold_up_a_teardown(node, change, old):
    present(request(), node.dependencies(), False)
    if old:
        forget_addresses(node)
    name = "GPU-1" if old else "GPU-1 (0000:02:00.0)"
    predicted = absent(request(""), seeing(node, change), True)
    assert (node.root / "var/lib/kubegpu").exists()
    result = absent(request(""), seeing(node, change), False)
    assert predicted == result and result["changed"] and len(result["diff"]) == 1
    assert result["plan"]["notes"] == node.warnings[:1] and node.warnings[0] == node.warnings[1]
    assert node.warnings[0].startswith(f"{name} is not in this machine any more")
    assert node.modes(0) == [False, False]
    assert not (node.root / "var/lib/kubegpu").exists()


def test_a_gpu_that_is_gone_is_told_from_another_one_that_the_driver_does_not_show(node):
    present(request(), node.dependencies(), False)

    def both(facts):
        """The second GPU is replaced, and a third one is of a virtual machine."""
        third = {**facts["gpus"][1], "address": "0000:03:00.0", "kernel_driver": "vfio-pci"}
        facts["gpus"].append(third)
        return replaced(facts)

    assert absent(request(""), seeing(node, both), True)["changed"]
    # Without its address it could be the third one.
    forget_addresses(node)
    with pytest.raises(KubegpuError, match=r"Seen: 0000:03:00\.0: kernel driver vfio-pci"):
        absent(request(""), seeing(node, both), True)


def test_a_gpu_that_is_busy_or_failed_keeps_the_record(node):
    present(request(), node.dependencies(), False)
    before = node.dependencies().store.get("nvidia_mig")
    node.open_device(800, "/dev/nvidia1")
    for check_mode in (True, False):
        with pytest.raises(KubegpuError, match=r"GPU 1 \(0000:02:00\.0\) is in use") as failure:
            absent(request(""), node.dependencies(), check_mode)
    assert "Next step: End these programs" in str(failure.value)
    shutil.rmtree(node.root / "proc/800")
    node.fail(mig="Not Supported")
    with pytest.raises(RolledBackError, match="MIG is not disabled"):
        absent(request(""), node.dependencies(), False)
    assert node.dependencies().store.get("nvidia_mig") == before
    node.fail()
    assert absent(request(""), node.dependencies(), False)["changed"]
    assert node.modes(0) == node.modes(1) == [False, False]


TRAIN = Pods("gpu1", ("default/train",))


def test_pods_that_a_teardown_would_interrupt_are_named_and_nothing_is_changed(node):
    present(request(), node.dependencies(), False)
    node.commands.clear()
    held = replace(node.dependencies(), pods=TRAIN)
    # A pod that has a GPU need not have its device open. If it has, both are told.
    for devices in ((), ("/dev/nvidia1",)):
        for device in devices:
            node.open_device(800, device)
        for check_mode in (True, False):
            with pytest.raises(KubegpuError) as failure:
                absent(request(""), held, check_mode)
            text = str(failure.value)
            assert text.startswith("Pods use GPUs of the node gpu1, whose layout would change.")
            assert "Seen: pods: default/train" in text
            assert "kubectl drain gpu1 --ignore-daemonsets" in text
            assert ("used by python" in text) is bool(devices)
    assert not node.commands and node.layout(0) == node.layout(1) == SEVEN
    shutil.rmtree(node.root / "proc/800")
    assert absent(request(""), node.dependencies(), False)["changed"]
    # Without a record there is nothing to interrupt.
    assert not absent(request(""), held, False)["changed"]


def test_pods_do_not_prevent_what_interrupts_none_of_them(node):
    some = request("mixed", configs=mixed({"3g.40gb": 1}))
    more = request("mixed", configs=mixed({"3g.40gb": 2}))
    held = replace(node.dependencies(), pods=TRAIN)
    for check_mode in (True, False):
        with pytest.raises(KubegpuError, match="pods: default/train"):
            present(some, held, check_mode)
    present(some, node.dependencies(), False)
    assert present(more, held, False)["changed"]
    # What was found is there again, by another hand: nothing would be taken away.
    present(request("all-disabled"), node.dependencies(), False)
    assert not absent(request(""), held, False)["changed"]
    assert not (node.root / "var/lib/kubegpu").exists()


REAL_LGIP = """\
+-----------------------------------------------------------------------------+
| GPU instance profiles:                                                      |
| GPU   Name             ID    Instances   Memory     P2P    SM    DEC   ENC  |
|                              Free/Total   GiB              CE    JPEG  OFA  |
|=============================================================================|
|   0  MIG 1g.5gb        19     7/7        4.75       No     14     0     0   |
|                                                             1     0     0   |
+-----------------------------------------------------------------------------+
|   0  MIG 1g.5gb+me     20     1/1        4.75       No     14     1     0   |
|                                                             1     1     1   |
+-----------------------------------------------------------------------------+
|   1  MIG 1g.24gb-me      67     4/4        23.62      No     46     0     0   |
"""
REAL_LGIPP = """\
GPU  0 Profile ID 19 Placements: {0,1,2,3,4,5,6}:1
GPU  0 Profile ID 20 Placements: {0,1,2,3,4,5,6}:1
GPU  0 Profile ID  0 Placement : {0}:8
GPU  1 Profile ID 67 Placements: {0,3,6,9}:3
"""


def test_profiles_of_the_guide_are_read():
    profiles = parse_profiles(REAL_LGIP, REAL_LGIPP)
    assert profiles[0][1] == {
        "name": "1g.5gb+me",
        "id": 20,
        "count": 1,
        "starts": [0, 1, 2, 3, 4, 5, 6],
        "size": 1,
    }
    (board,) = profiles[1]
    assert (board["name"], board["starts"], board["size"]) == ("1g.24gb-me", [0, 3, 6, 9], 3)
    assert parse_profiles("No MIG-supported devices found.\n", "") == {}


def test_instances_of_the_guide_are_read():
    listed = "|   0  MIG 3g.20gb       9        1          4:4     |\n"
    compute = "|   0      1       MIG 1c.3g.20gb       0         0          0:1     |\n"
    assert parse_instances(listed, compute) == {
        0: [
            {
                "id": 1,
                "profile": "3g.20gb",
                "start": 4,
                "size": 4,
                "compute_instances": [{"id": 0, "profile": "1c.3g.20gb"}],
            }
        ]
    }
    assert parse_instances("No GPU instances found: Not Found\n", None) == {}
    assert parse_instances("Insufficient Permissions\n", None) is None
