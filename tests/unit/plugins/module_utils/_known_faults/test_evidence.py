# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Evidence from trees of files and from what commands said; nothing fails where they are not."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._host.command import Result
from ansible_collections.kubegpu.nodes.plugins.module_utils._host.reader import NodeReader
from ansible_collections.kubegpu.nodes.plugins.module_utils._known_faults import codes
from ansible_collections.kubegpu.nodes.plugins.module_utils._known_faults.evidence import (
    Environment,
    collect,
    mok_enrolled,
    mok_key,
    read_environment,
    uptime,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._known_faults.evidence_types import (
    Gpu,
    plain_line,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._known_faults.kernel_lines import (
    interesting,
    kernel_lines,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._known_faults.on_node import diagnose
from tests.unit.fixtures.make_tree import write

FIXTURES = Path(__file__).parents[4] / "unit" / "fixtures" / "driver_evidence"
MAKE_LOG = FIXTURES / "debian13-nvidia-open-550.163.01-linux-6.12.117.make.log"
APT = FIXTURES / "debian13-nvidia-open-550.163.01-apt.txt"
KERNEL = "6.12.117+deb13-amd64"
PLACE = "var/lib/dkms/nvidia-current-open/550.163.01"
GPU = {
    "address": "0000:01:00.0", "vendor": "nvidia", "vendor_id": "10de", "device_id": "2330",
    "product": None, "generation": "hopper",
    "vgpu": {"guest": None, "host_driver_version": None, "host_driver_branch": None},
}  # fmt: skip


def node(**driver):
    facts = {
        "os": {"id": "debian", "kernel": KERNEL},
        "gpus": [GPU, {**GPU, "vendor": "amd"}],
        "driver": {
            "loaded": None, "installed": None, "userland": None, "kernel_module": None, "dkms": [],
        },
        "secure_boot": None,
        "nouveau": {"loaded": None, "blocked": None},
        "kernels": [{"version": KERNEL, "running": True, "headers": True}],
    }  # fmt: skip
    facts["driver"].update(driver)
    return facts


class Commands(NodeReader):
    """A tree of files, and a list of what commands say there (``live`` is not needed)."""

    def __init__(self, root, answers):
        super().__init__(str(root))
        self.answers = answers
        self.asked = []

    def run(self, argv, timeout=30):
        self.asked.append(tuple(argv))
        return self.answers.get(tuple(argv), Result(127, "", f"{argv[0]}: no such program"))


def test_an_empty_node(tmp_path):
    evidence = collect(NodeReader(str(tmp_path)), node())
    assert evidence.gpus == (Gpu("0000:01:00.0", "NVIDIA GPU 2330", "hopper"),)
    assert (evidence.headers, evidence.grid, evidence.may_load) == (True, None, None)
    assert diagnose(evidence).code == codes.UNKNOWN


@pytest.mark.parametrize(
    ("on_disk", "driver", "said"),
    [(True, None, False), (True, "580.95.05", True), (False, None, None)],
)
def test_whether_the_running_kernel_has_the_module(tmp_path, on_disk, driver, said):
    facts = node()
    facts["kernels"][0].update(on_disk=on_disk, driver=driver)
    assert collect(NodeReader(str(tmp_path)), facts).on_disk is said


def test_headers_whose_files_are_gone_are_found_by_their_packages(tmp_path):
    mine = ("6.12.117+deb13-amd64", "6.12.117+deb13-common")
    for name in (*mine, "6.12.11-amd64", "6.12.11-common", "amd64"):
        write(tmp_path, f"var/lib/dpkg/info/linux-headers-{name}.list", "/.\n")
    write(tmp_path, "var/lib/dpkg/info/linux-headers-6.12.117+deb13:amd64.list", "/.\n")
    facts = node()
    assert collect(NodeReader(str(tmp_path)), facts).headers_packages == ()
    facts["kernels"][0]["headers"] = False
    assert collect(NodeReader(str(tmp_path)), facts).headers_packages == (
        "linux-headers-6.12.117+deb13",
        *(f"linux-headers-{name}" for name in mine),
    )


def test_a_failed_build_is_found_and_explained(tmp_path):
    write(tmp_path, f"{PLACE}/build/make.log", MAKE_LOG.read_bytes())
    failed = [{"kernel": KERNEL, "version": "550.163.01", "state": "failed"}]
    words = APT.read_text(encoding="utf-8")
    evidence = collect(NodeReader(str(tmp_path)), node(dkms=failed), output=words)
    assert [build.name for build in evidence.dkms] == ["nvidia-current-open"]
    finding = diagnose(evidence)
    assert finding.code == codes.BUILD_FAILED
    assert finding.details["log"] == f"/{PLACE}/build/make.log"
    assert "nv-pci.c:237:9" in finding.details["error"]


def test_a_log_that_is_left_of_the_other_kind_of_modules_is_no_failure(tmp_path):
    write(tmp_path, f"{PLACE}/build/make.log", MAKE_LOG.read_bytes())
    built = [{"kernel": KERNEL, "version": "550.163.01", "state": "installed"}]
    evidence = collect(NodeReader(str(tmp_path)), node(dkms=built))
    assert [build.state for build in evidence.dkms] == ["installed"]


def test_what_is_shown_has_no_password_and_an_end(tmp_path):
    words = "x" * 200_000 + "\nErr:1 https://user:secret@mirror.example/ubuntu"
    evidence = collect(NodeReader(str(tmp_path)), node(), output=words)
    assert len(evidence.output) < 70_000
    assert "secret" not in evidence.output and "https://***@mirror.example" in evidence.output


@pytest.mark.parametrize(
    ("files", "grid"),
    [
        ({}, None),
        ({"usr/bin/nvidia-smi": ""}, False),
        ({"usr/bin/nvidia-smi": "", "usr/bin/nvidia-gridd": ""}, True),
    ],
)
def test_grid(tmp_path, files, grid):
    for path, text in files.items():
        write(tmp_path, path, text)
    assert collect(NodeReader(str(tmp_path)), node()).grid is grid
    assert collect(NodeReader(str(tmp_path)), node(), grid=True).grid is True


STATUS = "Name:\tpython3\nCapInh:\t0000000000000000\nCapEff:\t{}\n"


@pytest.mark.parametrize(
    ("files", "environment", "why"),
    [
        ({}, Environment(), ""),
        ({"proc/self/status": STATUS.format("000001ffffffffff")}, Environment(None, True), ""),
        (
            {"proc/self/status": STATUS.format("00000000a80425fb"), "run/systemd/container":
             "docker\n"},
            Environment("docker", False), "a container (docker)",
        ),
        (
            {"proc/self/status": STATUS.format("0000000000000000")},
            Environment(None, False), "CAP_SYS_MODULE",
        ),
        ({".dockerenv": ""}, Environment("docker"), "container (docker)"),
        ({"run/.containerenv": ""}, Environment("podman"), "container (podman)"),
        ({"proc/1/environ": "TERM=x\0container=lxc\0"}, Environment("lxc"), "container (lxc)"),
        (
            {"proc/sys/kernel/modules_disabled": "1\n",
             "proc/self/status": STATUS.format("000001ffffffffff")},
            Environment(None, True, True), "until the next boot",
        ),
    ],
)  # fmt: skip
def test_environment(tmp_path, files, environment, why):
    for path, text in files.items():
        write(tmp_path, path, text)
    found = read_environment(NodeReader(str(tmp_path)))
    assert found == environment
    assert (why in found.why_not) if why else found.why_not == ""
    assert found.may_load is (False if environment.disabled else environment.capable)


def test_environment_of_this_machine():
    found = read_environment(NodeReader("/"))
    assert found.capable in (True, False)
    assert (uptime(NodeReader("/")) or 0) > 0


LINES = [
    "[    1.000000] nvidia: loading out-of-tree module taints kernel.",
    "[    5.000000] NVRM: API mismatch: the client has the version 535.247.01, but",
    "               NVRM: this kernel module has the version 535.230.02.  Please",
    "[    6.000000] usb 1-1: new device",
    "[  100.500000] NVRM: The NVIDIA GPU 0000:01:00.0 (PCI ID: 10de:1db6)",
    "               NVRM: installed in this system is not supported by open",
    "[  101.000000] eth0: link up",
]


def test_old_lines_are_left_out_with_those_that_belong_to_them():
    assert interesting(LINES) == (*LINES[:3], *LINES[4:6])
    assert interesting(LINES, since=50.0) == tuple(LINES[4:6])
    assert interesting(LINES, since=200.0) == ()
    assert len(interesting([f"[ {n}.0] NVRM: x" for n in range(1000)])) == 200


def test_the_journal_is_asked_where_dmesg_may_not_be_read(tmp_path):
    journal = ("journalctl", "-k", "-b", "-n", "5000", "-o", "short-monotonic", "--no-pager")
    lines = "[   12.5] gpu1 kernel: NVRM: No NVIDIA devices probed.\n"
    refused = Result(1, "", "dmesg: read kernel buffer failed: Operation not permitted")
    answers = {
        ("dmesg", "--color=never"): refused, ("dmesg",): refused, journal: Result(0, lines, ""),
    }  # fmt: skip
    reader = Commands(tmp_path, answers)
    assert [plain_line(line) for line in kernel_lines(reader)] == [
        "NVRM: No NVIDIA devices probed."
    ]
    assert reader.asked[-1] == journal
    assert kernel_lines(Commands(tmp_path, {})) == ()


def test_mok_key(tmp_path):
    reader = NodeReader(str(tmp_path))
    assert mok_key(reader) is None
    write(tmp_path, "var/lib/dkms/mok.pub")
    assert mok_key(reader) == "/var/lib/dkms/mok.pub"
    write(tmp_path, "var/lib/shim-signed/mok/MOK.der")
    assert mok_key(reader) == "/var/lib/shim-signed/mok/MOK.der"
    write(tmp_path, "etc/keys/mine.der")
    write(
        tmp_path, "etc/dkms/framework.conf",
        '# mok_certificate=/no/where\nmok_certificate="/etc/keys/mine.der"\n',
    )  # fmt: skip
    assert mok_key(reader) == "/etc/keys/mine.der"
    write(tmp_path, "etc/dkms/framework.conf.d/x.conf", "mok_certificate=/gone\n")
    assert mok_key(reader) == "/etc/keys/mine.der"


@pytest.mark.parametrize(
    ("answer", "enrolled"),
    [
        (Result(1, "/k is already enrolled\n", ""), True),
        (Result(0, "/k is not enrolled\n", ""), False),
        (Result(1, "/k is already in the enrollment request\n", ""), False),
        (Result(1, "", "EFI variables are not supported on this system\n"), None),
        (Result(127, "", "mokutil: no such program"), None),
    ],
)
def test_mok_enrolled(tmp_path, answer, enrolled):
    reader = Commands(tmp_path, {("mokutil", "--test-key", "/k"): answer})
    assert mok_enrolled(reader, "/k") is enrolled
    assert mok_enrolled(reader, None) is None


def test_nvidia_smi_is_heard_on_both_streams(tmp_path):
    said = Result(0, "No devices were found\n", "warning\n")
    evidence = collect(Commands(tmp_path, {("nvidia-smi", "-L"): said}), node())
    assert evidence.nvml == "No devices were found\n\nwarning"


def test_this_machine_can_be_looked_at():
    """The real /proc and whatever commands are here; no runner means that none is run."""
    assert collect(NodeReader("/"), node()).kernel == KERNEL
