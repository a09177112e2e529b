# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The life of a driver on stand-ins of Ubuntu 24.04, from both sources of packages.

The archive's driver comes with signed modules, NVIDIA's is built by (a stand-in of) DKMS; from 590
on NVIDIA's packages have other names and are pinned. The steps run in this order on one node. The
node of NVIDIA's packages has NVSwitches: the fabric manager is of the set, and goes with it.
"""

from __future__ import annotations

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._mig.boot import boot_files
from ansible_collections.kubegpu.nodes.plugins.module_utils._mig.boot_paths import SCRIPT_PATH, UNIT
from ansible_collections.kubegpu.nodes.plugins.module_utils._mig.layout import Layout
from tests.integration.drivers import steps
from tests.integration.drivers.steps import (
    answer,
    assert_converged,
    converge,
    dpkg_is_consistent,
    etc,
    facts,
    held,
    installed,
    reached,
    shell,
    words,
)
from tests.integration.fleet.playbooks import run_module
from tests.testbed.nodes import execute
from tests.testbed.packages import TREES

OLD, NEW = "580.95.05", "580.178.04"
NEXT_OLD, NEXT = "595.58.03", "595.91.07"
TASK = "Install, configure and load the driver"


NODES = {"distro": "drv-ubuntu24", "nvidia": "drv-ubuntu24b"}
pytestmark = pytest.mark.full(
    why="a driver's way from version to version, from two sources; "
    "test_faults.test_module_that_does_not_build installs one"
)


@pytest.fixture(
    scope="module",
    params=[pytest.param(name, marks=pytest.mark.xdist_group(NODES[name])) for name in NODES],
)
def source(request):
    return request.param


@pytest.fixture(scope="module")
def node(fleet, source):
    return fleet[NODES[source]]


@pytest.fixture(scope="module")
def rests(node, source):
    """What an earlier driver, removed by hand, has left in dpkg's database."""
    name = "nvidia-kernel-common-580-server"
    if source == "distro":
        shell(node, f"apt-get update -q; apt-get install -q -y {name}; apt-get remove -q -y {name}")
    found = configuration(node)
    assert (name in found) == (source == "distro")
    return found


@pytest.fixture(scope="module")
def before(node, rests):
    """/etc of the bare node."""
    return etc(node)


# The files of the toolkit's package 1.20.1 that a load of the module sets in motion.
TOOLKIT = TREES / "refresh-1.20.1"
REFRESH = ("usr/lib/systemd/system/nvidia-cdi-refresh.service",
           "usr/lib/udev/rules.d/99-nvidia-cdi-refresh.rules")  # fmt: skip
SPECIFICATION = "/var/run/cdi/nvidia.yaml"
# systemd asks the machine's own kernel, whose modules the node does not have.
CONDITION = "/run/systemd/system/nvidia-cdi-refresh.service.d/kernel.conf"
# A stand-in of nvidia-ctk: an instance is gone with the module for which it was made.
CTK = """\
#!/bin/sh
set -eu
loaded=$(cat /sys/module/nvidia/version)
case "$1 $2" in
"cdi generate")
    mkdir -p /var/run/cdi
    {
        echo "# driver $loaded"
        echo '- name: "0"'
        [ "$(tail -n 1 /run/standin-mig-boot)" != "$loaded" ] || echo '- name: "0:0"'
    } >"$NVIDIA_CTK_CDI_OUTPUT_FILE_PATH"
    ;;
esac
"""


@pytest.fixture
def mig_unit(node):
    """The unit of the role nvidia_mig, with a script that writes which module is loaded.

    From Hopper on, MIG is gone with the module that is unloaded. Returns what the script wrote.
    The node has the rule and the service of the container toolkit, too.
    """
    unit = boot_files({"GPU-0": Layout(True)})[1]
    script = "cat /sys/module/nvidia/version >> /run/standin-mig-boot\n"
    shell(node, f"mkdir -p /etc/kubegpu $(dirname {CONDITION})")
    toolkit = [(f"/{path}", (TOOLKIT / path).read_text(encoding="utf-8")) for path in REFRESH]
    toolkit += [("/usr/bin/nvidia-ctk", CTK), (CONDITION, "[Service]\nExecCondition=\n")]
    for path, text in ((SCRIPT_PATH, script), (unit.path, unit.text), *toolkit):
        execute(node, "tee", path, stdin=text)
    shell(node, "chmod 755 /usr/bin/nvidia-ctk; : > /run/standin-mig-boot; "
          "systemctl daemon-reload")  # fmt: skip
    yield lambda: shell(node, "cat /run/standin-mig-boot").split()
    paths = " ".join(path for path, _text in toolkit)
    shell(node, f"systemctl stop {UNIT} nvidia-cdi-refresh; rm -rf /etc/kubegpu {unit.path} "
          f"/run/standin-mig-boot /var/run/cdi {paths}; systemctl daemon-reload")  # fmt: skip


def specification(node):
    """The driver and the devices of the CDI specification."""
    return shell(node, f"cat {SPECIFICATION}").replace("- name: ", "").split()[2:]


def reload_alone(node):
    """Reload the module without this collection, and have the layout made again after it."""
    shell(
        node,
        "set -e; systemctl stop nvidia-persistenced nvidia-fabricmanager 2>/dev/null || :; "
        "for name in nvidia_drm nvidia_modeset nvidia_uvm nvidia; do "
        "[ ! -d /sys/module/$name ] || rmmod $name; done; modprobe nvidia; "
        # It waits for the start by the rule.
        f"systemctl start nvidia-cdi-refresh; systemctl restart {UNIT}",
    )


def configuration(node):
    """The packages of which only configuration is left."""
    lines = shell(node, "dpkg-query -W -f '${db:Status-Abbrev} ${Package}\\n'").splitlines()
    return sorted(line.split()[1] for line in lines if line.startswith("rc"))


def there(node, version, branch):
    """Loaded, installed, held: one version of everything; return the facts of the driver."""
    driver = facts(node)["driver"]
    assert driver["loaded"] == driver["installed"] == driver["userland"] == version
    assert driver["held"] and driver["managed"] and not driver["pending_reboot"]
    found = installed(node)
    assert set(found) <= held(node) | {"nvidia-modprobe"}
    # Signed modules have the kernel's version; firmware of an earlier version is another package,
    # which stays until somebody runs autoremove.
    apart = ("linux-modules-", "nvidia-firmware-")
    of_driver = [name for name in found if not name.startswith(apart)]
    assert of_driver
    assert {found[name].split("-")[0] for name in of_driver} == {version}, found
    assert shell(node, "nvidia-smi -q -x | grep driver_version").strip().startswith("<driver_v")
    assert branch in version
    if switches(node):
        assert {"nvidia-fabricmanager", "libnvidia-nscq"} <= set(found)
        assert driver["services"]["nvidia-fabricmanager"] == "active"
        assert shell(node, "systemctl is-enabled nvidia-fabricmanager").strip() == "enabled"
        assert shell(node, "cat /run/standin-fabric").strip() == version
        verdict = verified(node)
        assert verdict["ok"] is True and "fabric completed" in verdict["proof"], verdict
    return driver


def switches(node):
    return any(device.class_code == 0x068000 for device in node.gpus)


def verified(node):
    """What the verification says of the driver, the fabric included."""
    arguments = {"layers": ["nvml"], "fabric_timeout": 2}
    answer = run_module(node.name, "kubegpu.nodes.gpu_node_verify", arguments)[node.name]
    return answer["layers"][0]


def test_install_of_an_exact_version(node, source, before):
    converge(node, source=source, version=OLD)
    assert there(node, OLD, "580")["kernel_module"] == "open"
    if source == "nvidia":
        state = shell(node, "dkms status")
        # For the kernel that runs and for the newer one that the next boot takes.
        assert "6.8.0-85-generic" in state and "6.8.0-90-generic" in state
    initramfs = shell(node, "cat /boot/initrd.img-$(uname -r)")
    assert "blacklist nouveau" in initramfs


def test_upgrade(node, source, before):
    run, _seconds = converge(node, source=source, version=NEW)
    assert there(node, NEW, "580")["previous"]["version"] == OLD
    assert answer(run, node, TASK)["previous"]["version"] == OLD
    if switches(node):
        # All of the set came in one transaction of the package manager.
        last = shell(node, "cat /var/log/apt/history.log").rpartition("Start-Date")[2]
        for name in ("nvidia-fabricmanager", "libnvidia-nscq", "libnvidia-compute-580"):
            assert f"{name}:amd64 ({OLD}-0ubuntu1, {NEW}-0ubuntu1)" in last


def test_downgrade(node, source, before, mig_unit):
    reached(node, source=source, version=OLD)
    there(node, OLD, "580")
    assert mig_unit() == [OLD]
    # The rule started the service with the module, before there was an instance.
    started = shell(node, "journalctl -u nvidia-cdi-refresh -o cat | grep -c ^Starting")
    assert int(started) >= 2
    assert specification(node) == [OLD, '"0"', '"0:0"']


def test_previous_is_put_back(node, source, before, mig_unit):
    run = steps.apply(node, source=source, version="previous")
    assert run.status == 0, words(run)
    there(node, NEW, "580")
    assert mig_unit() == [NEW]
    assert specification(node) == [NEW, '"0"', '"0:0"']
    # What the rule alone leaves: the specification is of the module without instances.
    shell(node, ": > /run/standin-mig-boot")
    reload_alone(node)
    assert (mig_unit(), specification(node)) == ([NEW], [NEW, '"0"'])
    shell(node, "systemctl start nvidia-persistenced; systemctl start nvidia-fabricmanager || :")


def test_lost_hold_is_seen_and_repaired(node, source, before):
    assert_converged(node, source=source, branch="580")
    name = sorted(installed(node))[0]
    shell(node, f"apt-mark unhold {name}")
    if switches(node):
        drift(node)
    run = steps.apply(node, source=source, branch="580")
    assert run.status == 0, words(run)
    assert name in held(node)
    there(node, NEW, "580")


def drift(node):
    """One part of the set goes to another version, and one is removed: by hand, as people do."""
    shell(
        node,
        "export DEBIAN_FRONTEND=noninteractive; apt-get install -q -y --allow-downgrades "
        f"--allow-change-held-packages nvidia-fabricmanager={OLD}-0ubuntu1; "
        "apt-get remove -q -y --allow-change-held-packages libnvidia-nscq; "
        "systemctl start nvidia-fabricmanager || true",
    )
    verdict = verified(node)
    assert (verdict["ok"], verdict["code"]) == (False, "fabric_manager_version"), verdict
    assert OLD in verdict["evidence"] and "nvidia_driver" in verdict["next_step"]


def test_lost_file_and_module_come_back(node, source, before):
    shell(node, "rm /etc/modprobe.d/kubegpu-nouveau.conf")
    daemons = "nvidia-persistenced" + (" nvidia-fabricmanager" if switches(node) else "")
    shell(node, f"systemctl stop {daemons}; modprobe -r nvidia-uvm; modprobe -r nvidia")
    assert facts(node)["driver"]["loaded"] is None
    converge(node, source=source, branch="580")
    assert "blacklist nouveau" in shell(node, "cat /etc/modprobe.d/kubegpu-nouveau.conf")
    there(node, NEW, "580")


def test_other_branch_with_other_names(node, source, before):
    converge(node, source=source, version=NEXT_OLD)
    there(node, NEXT_OLD, "595")
    if source == "nvidia":
        assert "nvidia-open" in installed(node)
        assert f"nvidia-driver-pinning-{NEXT_OLD}" in installed(node)
    assert not [name for name in installed(node) if "-580" in name and "firmware" not in name]


def test_newest_of_a_branch(node, source, before):
    """A branch is met by any version in it; the newer one comes when it is asked for."""
    assert_converged(node, source=source, branch="595")
    reached(node, source=source, version=NEXT)
    there(node, NEXT, "595")


def test_back_to_the_older_branch(node, source, before):
    reached(node, source=source, version=NEW)
    there(node, NEW, "580")


def test_module_in_use_is_told_and_left_alone(node, source, before):
    """The packages come, the module stays: the reboot is the admin's to allow."""
    shell(
        node, "systemd-run --quiet --unit=standin-training bash -c 'exec 7</dev/nvidia0; sleep 900'"
    )
    pid = shell(node, "systemctl show -P MainPID standin-training").strip()
    # From then on it has the device open.
    shell(node, f"timeout 60 sh -c 'until test -e /proc/{pid}/fd/7; do sleep 0.1; done'")
    run = steps.apply(node, "--diff", source=source, version=OLD)
    assert run.status == 0, words(run)
    said = answer(run, node, TASK)
    assert said["reboot_required"] is True
    assert pid in said["reboot_reason"], said["reboot_reason"]
    assert shell(node, "systemctl is-active standin-training").strip() == "active"
    driver = facts(node)["driver"]
    assert (driver["loaded"], driver["installed"], driver["pending_reboot"]) == (NEW, OLD, True)


def test_reboot_where_it_is_allowed_and_no_second_one(node, source, before):
    boot = shell(node, "cat /proc/sys/kernel/random/boot_id")
    run = steps.apply(node, source=source, version=OLD, reboot=True)
    assert run.status == 0, words(run)
    assert shell(node, "cat /proc/sys/kernel/random/boot_id") != boot
    # The newer kernel's modules were made with the running one's.
    there(node, OLD, "580")
    boot = shell(node, "cat /proc/sys/kernel/random/boot_id")
    assert_converged(node, source=source, version=OLD, reboot=True)
    assert shell(node, "cat /proc/sys/kernel/random/boot_id") == boot


def test_removal_gives_the_node_back(node, source, before, rests):
    converge(node, state="absent")
    assert installed(node) == {}
    assert configuration(node) == rests
    assert facts(node)["driver"]["loaded"] is None
    assert etc(node) == before
    assert dpkg_is_consistent(node)
    assert not held(node)
    assert not shell(node, "ls -A /var/lib/kubegpu 2>/dev/null || true").strip()
    assert "kubegpu" not in shell(node, "cat /boot/initrd.img-$(uname -r)")
