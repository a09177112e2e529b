# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The whole fact, on the machines of the fixtures (real ids, made trees) and on made nodes."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._facts.gather import (
    gather,
    read_nvml,
    read_packages,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._facts.problems import (
    find_problems,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._facts.runtimes import RuntimePaths
from ansible_collections.kubegpu.nodes.plugins.module_utils._host.bounded import Hang
from ansible_collections.kubegpu.nodes.plugins.module_utils._host.command import Result
from ansible_collections.kubegpu.nodes.plugins.module_utils._host.reader import NodeReader
from tests.unit.fixtures.machines import MACHINES
from tests.unit.fixtures.make_tree import main, make_machine, write
from tests.unit.plugins.module_utils._hardware.test_nvml import (
    SMI_LIST,
    SMI_STANDIN_535_54_03,
    StandinNvml,
)
from tests.unit.plugins.module_utils._hardware.test_vgpu_licence import GUEST

# DESIGN section 3, and what the roles were promised beside it.
KEYS = {
    "": "os as_root python gpus nvswitches nvswitch_bridges kernel_drivers device_nodes driver "
    "secure_boot blocked_modules gpudirect_modules "
    "nouveau kernels cuda container_toolkit cdi_specifications podman selinux "
    "amd_container_toolkit amd_driver repositories "
    "runtimes kubelet nvml mig exporter acceptance verification_due "
    "driver_hang problems",
    "os": "family id version codename archive arch kernel package_manager hostname fqdn machine_id "
    "boot_id image image_system upstream product libc",
    "python": "version tomlkit pynvml",
    "driver": "loaded installed userland kernel_module coherent_memory source packages dkms held "
    "unheld streams pending_reboot services configuration managed pending previous recorded_files "
    "uninstaller container",
    "nouveau": "loaded blocked modules",
    "cuda": "toolkits driver_supports packages held unheld configuration host_compilers compiler",
    "container_toolkit": "version packages held cdi_spec config driver_roots obsolete_packages",
    "runtimes": "containerd docker crio",
}
GPU_KEYS = (
    "address vendor vendor_id device_id subsystem_vendor_id subsystem_device_id class generation "
    "product kernel_driver virtual_function vgpu"
)
NO_GUEST = (False, None, None, None)
CANNOT_TELL = (None, None, None, None)

# Machine: vendor, GPUs, generation, product, vGPU, NVSwitches, problems besides the missing
# container runtime.
EXPECTED: dict[str, tuple[str, int, str, str | None, tuple[Any, ...], int, list[str]]] = {
    "p4": ("nvidia", 1, "pascal", "Tesla P4", NO_GUEST, 0, []),
    "v100x4": ("nvidia", 4, "volta", "Tesla V100-SXM2-32GB", NO_GUEST, 0, []),
    "t4-vgpu": (
        "nvidia",
        1,
        "turing",
        "GRID T4",
        (True, "460.16", "r460_00", None),
        0,
        ["vgpu_guest_without_grid_driver"],
    ),
    "t4-vgpu-no-root": (
        "nvidia",
        1,
        "turing",
        "GRID T4",
        (True, None, None, None),
        0,
        ["vgpu_guest_without_grid_driver"],
    ),
    "a10-2q": (
        "nvidia",
        1,
        "ampere",
        "A10",
        (True, "535.129.03", "r535_00", None),
        0,
        ["vgpu_guest_without_grid_driver"],
    ),
    "a10-no-root": ("nvidia", 1, "ampere", "A10", CANNOT_TELL, 0, []),
    "a100x8": ("nvidia", 8, "ampere", "A100-SXM4-80GB", NO_GUEST, 6, []),
    "a100-sriov": ("nvidia", 3, "ampere", "A100 80GB PCIe", NO_GUEST, 0, []),
    "h100x8": ("nvidia", 8, "hopper", "H100 80GB HBM3", NO_GUEST, 4, []),
    "h200x8": ("nvidia", 8, "hopper", "H200", NO_GUEST, 4, []),
    "gh200": ("nvidia", 1, "hopper", "GH200 120GB", NO_GUEST, 0, []),
    "gb200x4": ("nvidia", 4, "blackwell", "GB200", NO_GUEST, 0, []),
    "k80": ("nvidia", 2, "kepler", "Tesla K80", NO_GUEST, 0, ["legacy_gpu"]),
    "v100-b200-mixed": ("nvidia", 2, "volta", "Tesla V100-PCIE-32GB", NO_GUEST, 0, []),
    "rtx4090-workstation": ("nvidia", 1, "ada", "GeForce RTX 4090", NO_GUEST, 0, []),
    "dgx-station": ("nvidia", 4, "ampere", "A100-SXM4-80GB", NO_GUEST, 0, []),
    "t1000": ("nvidia", 1, "turing", "T1000", NO_GUEST, 0, []),
    "nvidia-unknown": ("nvidia", 1, "unknown", None, NO_GUEST, 0, ["unknown_gpu"]),
    "mi300x8": ("amd", 8, "CDNA 3", "Instinct MI300X", CANNOT_TELL, 0, []),
    "intel-max": ("intel", 2, "Xe-HPC", "Data Center GPU Max 1550", CANNOT_TELL, 0, []),
    "intel-flex": ("intel", 2, "Xe-HPG", "Data Center GPU Flex 140", CANNOT_TELL, 0, []),
    "centos7": ("nvidia", 1, "pascal", "Tesla P4", NO_GUEST, 0, ["os_unsupported"]),
}
WITHOUT_GPU = ("none", "none-but-screens")


def facts(root: Path) -> dict[str, Any]:
    return gather(NodeReader(str(root)), RuntimePaths())


def test_every_machine_has_an_expectation() -> None:
    assert set(MACHINES) == {*EXPECTED, *WITHOUT_GPU}


@pytest.mark.parametrize("name", EXPECTED)
def test_machine(tmp_path: Path, name: str) -> None:
    vendor, count, generation, product, vgpu, nvswitches, problems = EXPECTED[name]
    node = facts(make_machine(tmp_path, MACHINES[name]))
    first = node["gpus"][0]
    assert len(node["gpus"]) == count
    assert {gpu["vendor"] for gpu in node["gpus"]} == {vendor}
    assert (first["generation"], first["product"]) == (generation, product)
    assert tuple(first["vgpu"].values()) == vgpu
    assert node["nvswitches"] == nvswitches
    assert [problem["code"] for problem in node["problems"]] == [
        *problems,
        "no_container_runtime",
    ]
    assert all(set(gpu) == set(GPU_KEYS.split()) for gpu in node["gpus"])


@pytest.mark.parametrize("name", WITHOUT_GPU)
def test_machine_without_a_gpu(tmp_path: Path, name: str) -> None:
    node = facts(make_machine(tmp_path, MACHINES[name]))
    assert node["gpus"] == []
    assert node["problems"] == []
    assert node["nvml"] is None


def test_virtual_functions_are_marked(tmp_path: Path) -> None:
    node = facts(make_machine(tmp_path, MACHINES["a100-sriov"]))
    assert [gpu["virtual_function"] for gpu in node["gpus"]] == [False, True, True]
    assert node["gpus"][0]["kernel_driver"] == "nvidia"


def test_mixed_machine_tells_its_cards_apart(tmp_path: Path) -> None:
    node = facts(make_machine(tmp_path, MACHINES["v100-b200-mixed"]))
    assert [gpu["generation"] for gpu in node["gpus"]] == ["volta", "blackwell"]


@pytest.mark.parametrize("filled", [False, True])
def test_every_key_is_always_there(tmp_path: Path, filled: bool) -> None:
    if filled:
        make_machine(tmp_path, MACHINES["h100x8"])
        write(tmp_path, "/usr/bin/containerd")
        write(tmp_path, "/usr/bin/dockerd")
    node = facts(tmp_path)
    for name, keys in KEYS.items():
        assert set(node[name] if name else node) == set(keys.split())


def test_command_line_makes_trees(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path), "p4", "none"]) == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["none", "p4"]
    assert main([]) == main([str(tmp_path), "nonsense"]) == 2
    assert "nonsense" in capsys.readouterr().err


class Node(NodeReader):
    """A node whose commands and libraries answer from tables (a stand-in)."""

    def __init__(self, root: Path, library: Any = None, **commands: Result) -> None:
        super().__init__(str(root))
        self.library = library
        self.commands = commands
        self.asked: list[list[str]] = []

    def run(self, argv: Any, timeout: int = 30) -> Result | None:
        self.asked.append(list(argv))
        return self.commands.get(argv[0].replace("-", "_"))

    def ask(self, argv: Any, seconds: int) -> tuple[Result | None, Hang | None]:
        answer = self.run(argv, seconds)
        late = answer is not None and answer.rc == 124
        return answer, Hang(argv[0], 7, float(seconds), "D", None, True) if late else None

    def import_library(self, module: str) -> Any | None:
        return self.library


def test_the_licence_of_a_guest(tmp_path: Path) -> None:
    place = make_machine(tmp_path, MACHINES["a10-2q"])
    for status, state, problem in (
        ("Unlicensed (Restricted)", "unlicensed", True),
        ("Licensed (Expiry: Permanent)", "licensed", False),
    ):
        smi = GUEST.format(mode="VGPU", status=status).replace("00000002:00:00.0", "0:00:07.0")
        node = gather(Node(place, nvidia_smi=Result(0, smi, "")), RuntimePaths())
        (gpu,) = node["gpus"]
        assert gpu["vgpu"]["licence"]["state"] == state
        assert [set(one) & {"licence"} for one in node["nvml"]["devices"]] == [set()]
        codes = [one["code"] for one in node["problems"]]
        assert ("vgpu_unlicensed" in codes) == problem


GPU = [{"vendor": "nvidia"}]


def test_nvml_by_the_library_first(tmp_path: Path) -> None:
    node = Node(tmp_path, StandinNvml())
    nvml, complaint, hang = read_nvml(node, GPU)
    assert nvml is not None
    assert (nvml["driver_version"], complaint, hang, node.asked) == ("535.54.03", "", None, [])


def test_nvml_by_nvidia_smi(tmp_path: Path) -> None:
    nvml, complaint, _hang = read_nvml(
        Node(tmp_path, nvidia_smi=Result(0, SMI_STANDIN_535_54_03, "")), GPU
    )
    assert nvml is not None
    assert (nvml["cuda_version"], complaint) == ("12.2", "")


def test_with_a_corrupted_inforom_the_document_is_read_all_the_same(tmp_path: Path) -> None:
    warned = f"{SMI_STANDIN_535_54_03}WARNING: infoROM is corrupted at gpu 0000:3B:00.0\n"
    nvml, complaint, _hang = read_nvml(Node(tmp_path, nvidia_smi=Result(14, warned, "")), GPU)
    assert nvml is not None
    assert (nvml["cuda_version"], complaint) == ("12.2", "")


def test_the_profiles_of_mig_devices_are_asked_for_where_they_lack(tmp_path: Path) -> None:
    class Lists(Node):
        def run(self, argv: Any, timeout: int = 30) -> Result | None:
            answer = super().run(argv, timeout)
            return Result(0, SMI_LIST, "") if argv == ["nvidia-smi", "-L"] else answer

    node = Lists(tmp_path, nvidia_smi=Result(0, SMI_STANDIN_535_54_03, ""))
    nvml, _complaint, _hang = read_nvml(node, GPU)
    assert nvml is not None
    (mig,) = nvml["devices"][0]["mig_devices"]
    assert mig["name"] == "NVIDIA A100-SXM4-80GB MIG 2g.20gb"
    # Without MIG devices there is nothing to ask.
    plain = SMI_STANDIN_535_54_03.replace("mig_device>", "other>")
    node = Lists(tmp_path, nvidia_smi=Result(0, plain, ""))
    read_nvml(node, GPU)
    assert node.asked == [["nvidia-smi", "-q", "-x"]]


MISMATCH = "Failed to initialize NVML: Driver/library version mismatch"


@pytest.mark.parametrize(
    ("answer", "complaint"),
    [
        (None, ""),
        (Result(127, "", "nvidia-smi: no such program"), ""),
        (Result(18, MISMATCH + "\n", ""), MISMATCH),
        (Result(0, "No devices were found", ""), "nvidia-smi printed no XML"),
    ],
)
def test_nvml_that_does_not_answer(tmp_path: Path, answer: Result | None, complaint: str) -> None:
    node = Node(tmp_path, **({} if answer is None else {"nvidia_smi": answer}))
    nvml, said, hang = read_nvml(node, GPU)
    assert hang is None
    assert nvml is None
    assert said.startswith(complaint)
    assert bool(said) is bool(complaint)


def test_nvml_of_a_library_that_does_not_start(tmp_path: Path) -> None:
    class Broken:
        @staticmethod
        def nvmlInit() -> None:
            raise RuntimeError("Driver Not Loaded")

    assert read_nvml(Node(tmp_path, Broken()), GPU) == (None, "Driver Not Loaded", None)


def test_nvml_of_a_library_that_hangs(tmp_path: Path) -> None:
    """A driver in trouble does not come back from the call (an ioctl that nothing interrupts)."""

    class Hanging:
        @staticmethod
        def nvmlInit() -> None:
            time.sleep(60)

    nvml, said, hang = read_nvml(Node(tmp_path, Hanging()), GPU, 1)
    assert nvml is None and said == "NVML (pynvml) did not answer in 1 seconds"
    assert hang is not None and hang.program == "pynvml"


def test_a_driver_that_hangs_is_told_and_not_asked_again(tmp_path: Path) -> None:
    node = Node(tmp_path, nvidia_smi=Result(124, "<?xml", ""))
    nvml, said, hang = read_nvml(node, GPU, 7)
    assert (nvml, said) == (None, "nvidia-smi -q -x did not answer in 7 seconds")
    assert hang == Hang("nvidia-smi", 7, 7.0, "D", None, True)
    assert node.asked == [["nvidia-smi", "-q", "-x"]]


def test_the_driver_is_not_asked_beside_a_program_that_an_earlier_run_left(tmp_path: Path) -> None:
    process = tmp_path / "proc" / "4242"
    process.mkdir(parents=True)
    (process / "comm").write_text("nvidia-smi\n")
    (process / "status").write_text("State:\tD (disk sleep)\nShdPnd:\t0000000000000100\n")
    node = Node(tmp_path, nvidia_smi=Result(0, "", ""))
    nvml, _said, hang = read_nvml(node, GPU, 7)
    assert nvml is None and node.asked == []
    assert hang == Hang("nvidia-smi", 4242, 0.0, "D", None, True)


def test_secrets_in_what_the_driver_says_are_covered(tmp_path: Path) -> None:
    said = "failed: https://ops:hunter2@proxy.example/x NVIDIA_TOKEN=hunter2"
    node = Node(tmp_path, nvidia_smi=Result(9, said, ""))
    assert read_nvml(node, GPU)[1] == "failed: https://***@proxy.example/x NVIDIA_TOKEN=***"


@pytest.mark.parametrize(
    ("answer", "complaint"),
    [
        (Result(139, "", ""), "nvidia-smi -q -x was ended by signal 11."),
        (Result(-11, "<?xml version", ""), "nvidia-smi -q -x was ended by signal 11."),
        (Result(1, "", ""), "nvidia-smi -q -x ended with status 1."),
    ],
)
def test_how_nvidia_smi_died_is_said(tmp_path: Path, answer: Result, complaint: str) -> None:
    """Seen with Debian's 535 and 550 on a mock NVML, where nvidia-smi -L answered."""
    assert read_nvml(Node(tmp_path, nvidia_smi=answer), GPU) == (None, complaint, None)


def test_nobody_is_asked_where_no_nvidia_gpu_is(tmp_path: Path) -> None:
    node = Node(tmp_path)
    assert read_nvml(node, [{"vendor": "amd"}]) == (None, "", None)
    assert node.asked == []


@pytest.mark.parametrize(("machine", "asked"), [("none", False), ("p4", True)])
def test_daemons_are_asked_where_a_gpu_is(tmp_path: Path, machine: str, asked: bool) -> None:
    root = make_machine(tmp_path, MACHINES[machine])
    write(root, "/usr/bin/containerd")
    write(root, "/run/systemd/system/x")
    dump = 'version = 2\n[plugins."io.containerd.grpc.v1.cri".containerd]\nx = 1\n'
    node = Node(
        root,
        systemctl=Result(1, "", ""),
        **{"/usr/bin/containerd": Result(0, dump, "")},
    )
    containerd = gather(node, RuntimePaths())["runtimes"]["containerd"]
    assert (containerd["cri_enabled"], bool(node.asked)) == (asked or None, asked)
    containerd = gather(node, RuntimePaths(), fresh=True)["runtimes"]["containerd"]
    assert containerd["cri_enabled"] and [argv[0] for argv in node.asked if "dump" in argv]


def test_packages_of_rpm(tmp_path: Path) -> None:
    write(tmp_path, "/var/lib/rpm/rpmdb.sqlite")
    write(tmp_path, "/etc/dnf/plugins/versionlock.list", "nvidia-container-toolkit-0:*\n")
    line = "nvidia-container-toolkit\t0:1.20.0-1\tx86_64\tNVIDIA\n"
    (package,), refusal = read_packages(Node(tmp_path, rpm=Result(0, line, "")), "rhel")
    assert refusal == ""
    assert (package.version, package.held) == ("1.20.0-1", True)
    # rpm is not to be had; or it cannot read its database, which is no empty one.
    assert read_packages(Node(tmp_path), "rhel") == ((), "")
    words = "error: cannot open Packages database in /var/lib/rpm"
    node = Node(tmp_path, rpm=Result(1, "", f"{words}\n"))
    assert read_packages(node, "rhel") == ((), words)
    write(tmp_path, "/etc/os-release", 'ID="rocky"\nVERSION_ID="9.4"\nID_LIKE="rhel"\n')
    problems = {one["code"]: one for one in gather(node, RuntimePaths())["problems"]}
    problem = problems["packages_unreadable"]
    assert problem["evidence"] == words and "rebuilddb" in problem["next_step"]


def node_with(**changes: Any) -> dict[str, Any]:
    """Return the facts of a healthy node with one T4, with changes below (driver__loaded=...)."""
    node: dict[str, Any] = {
        "os": {"id": "debian", "version": "12", "kernel": "6.1.0"},
        "gpus": [
            {
                "address": "0000:3b:00.0",
                "vendor": "nvidia",
                "vendor_id": "10de",
                "device_id": "1eb8",
                "subsystem_vendor_id": "10de",
                "subsystem_device_id": "12a2",
                "class": "0302",
                "generation": "turing",
                "product": "Tesla T4",
                "vgpu": {"guest": False, "host_driver_version": None, "host_driver_branch": None},
            }
        ],
        "driver": {
            "loaded": "580.95.05",
            "installed": "580.95.05",
            "userland": "580.95.05",
            "dkms": [],
            "pending_reboot": False,
        },
        "nouveau": {"loaded": False, "blocked": False},
        "nvml": None,
        "runtimes": {"containerd": {}, "docker": {"version": "26"}, "crio": None},
    }
    for path, value in changes.items():
        table = node
        *parents, last = path.split("__")
        for parent in parents:
            table = table[parent]
        table[last] = value
    return node


@pytest.mark.parametrize(
    ("changes", "complaint", "codes"),
    [
        pytest.param({}, "", [], id="healthy"),
        pytest.param(
            {"driver__userland": "580.105.08"},
            "",
            ["driver_library_mismatch"],
            id="libraries newer",
        ),
        pytest.param({}, MISMATCH, ["driver_library_mismatch"], id="NVML says so"),
        pytest.param({}, "Insufficient Permissions", ["driver_not_answering"], id="mute"),
        pytest.param({"driver__loaded": None}, "not loaded", [], id="no driver yet"),
        pytest.param({"driver__pending_reboot": True}, "", ["pending_reboot"], id="reboot"),
        pytest.param(
            {"driver__loaded": None, "nouveau__loaded": True}, "", ["nouveau_loaded"], id="nouveau"
        ),
        pytest.param(
            {"driver__loaded": None, "nouveau__loaded": True, "nouveau__modules": ["nova_core"]},
            "",
            ["nouveau_loaded"],
            id="nova",
        ),
        pytest.param(
            {"driver__dkms": [{"kernel": "6.1.0", "version": "550.163.01", "state": "failed"}]},
            "",
            ["dkms_build_failed"],
            id="build failed",
        ),
        pytest.param(
            {"driver__dkms": [{"kernel": "5.10.0", "version": "550.163.01", "state": "failed"}]},
            "",
            [],
            id="build failed for a kernel that does not run",
        ),
        pytest.param({"runtimes__docker": None}, "", ["no_container_runtime"], id="no runtime"),
        pytest.param(
            {"os__id": "centos", "os__version": "7"}, "", ["os_unsupported"], id="CentOS 7"
        ),
        pytest.param({"os__id": "centos", "os__version": "9"}, "", [], id="CentOS Stream 9"),
    ],
)
def test_problems(changes: dict[str, Any], complaint: str, codes: list[str]) -> None:
    problems = find_problems(node_with(**changes), complaint)
    assert [problem.code for problem in problems] == codes
    for problem in problems:
        assert list(problem.as_problem()) == ["code", "cause", "evidence", "next_step"]
        assert all(problem.as_problem().values())


def test_cards_of_one_kind_are_one_problem() -> None:
    node = node_with()
    node["gpus"] = [{**node["gpus"][0], "device_id": "102d"}] * 8
    assert [problem.code for problem in find_problems(node, "")] == ["legacy_gpu"]
