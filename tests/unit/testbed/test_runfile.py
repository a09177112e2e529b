# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The stand-in installers run, with the arguments that the collection gives them, and what they
leave is read by the facts. All below a folder.
"""

from __future__ import annotations

import json
import os
import subprocess

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._facts.gather import gather
from ansible_collections.kubegpu.nodes.plugins.module_utils._facts.runtimes import RuntimePaths
from ansible_collections.kubegpu.nodes.plugins.module_utils._host.reader import NodeReader
from ansible_collections.kubegpu.nodes.plugins.module_utils._known_faults import codes
from ansible_collections.kubegpu.nodes.plugins.module_utils._known_faults.evidence import collect
from ansible_collections.kubegpu.nodes.plugins.module_utils._known_faults.on_node import diagnose
from ansible_collections.kubegpu.nodes.plugins.module_utils._nvidia.checksum import (
    checksum_from_text,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._nvidia.runfile import (
    cuda_arguments,
    install_arguments,
    parse_name,
    uninstall_arguments,
    unpacked_in,
)
from tests.testbed.runfile import FAILURES, write

KERNEL = "6.1.0-56-amd64"


@pytest.fixture
def run(tmp_path):
    root = tmp_path / "root"
    (root / "proc/sys/kernel").mkdir(parents=True)
    (root / "proc/sys/kernel/osrelease").write_text(f"{KERNEL}\n")

    def run(program, *arguments):
        return subprocess.run(
            ["sh", str(program), *arguments], capture_output=True, text=True, check=False,
            env={**os.environ, "STANDIN_ROOT": str(root), "STANDIN_KERNEL": KERNEL}, timeout=60,
        )  # fmt: skip

    run.root = root
    run.reader = NodeReader(str(root))
    return run


def driver(run):
    return gather(run.reader, RuntimePaths())["driver"]


def tree(root):
    return sorted(
        str(path.relative_to(root))
        for path in root.rglob("*")
        if not path.is_dir() and "var/log/" not in str(path) and "/proc/" not in str(path)
    )


def test_name_and_checksum(tmp_path):
    path = write(tmp_path, "580.95.05")
    assert parse_name(path.name).version == "580.95.05"
    text = (tmp_path / f"{path.name}.sha256sum").read_text()
    assert len(checksum_from_text(text, path.name, "sums")) == 64
    assert parse_name(write(tmp_path, "13.0.2_580.95.05", kind="cuda").name).cuda == "13.0.2"
    with pytest.raises(ValueError, match="there are build"):
        write(tmp_path, "580.95.05", fail="otherwise")


@pytest.mark.parametrize("dkms", [True, False])
@pytest.mark.parametrize("kernel_module", ["open", "proprietary"])
def test_install_upgrade_uninstall(run, tmp_path, kernel_module, dkms):
    before = tree(run.root)
    first = write(tmp_path, "580.95.05")
    done = run(first, *install_arguments("580.95.05", kernel_module, dkms, load=False))
    assert done.returncode == 0, done.stderr
    assert "is now complete" in done.stdout
    found = driver(run)
    assert found["installed"] == found["userland"] == "580.95.05"
    assert found["source"] == "runfile"
    if dkms:
        assert found["dkms"] == [{"kernel": KERNEL, "version": "580.95.05", "state": "installed"}]
        assert found["kernel_module"] == kernel_module
    log = (run.root / "var/log/nvidia-installer.log").read_text()
    assert log.startswith("nvidia-installer log file '/var/log/nvidia-installer.log'\n")
    assert "    --skip-module-load\n" in log
    second = write(tmp_path, "595.58.03")
    done = run(second, *install_arguments("595.58.03", kernel_module, dkms, running=True))
    assert done.returncode == 0, done.stderr
    assert "existing driver will be uninstalled" in done.stdout
    found = driver(run)
    assert found["installed"] == found["userland"] == "595.58.03"
    assert not list(run.root.rglob("*580.95.05*"))
    command = uninstall_arguments(str(run.root / "usr/bin/nvidia-uninstall"))
    done = run(*command)
    assert done.returncode == 0 and "is complete" in done.stdout
    assert tree(run.root) == before
    assert driver(run)["installed"] is None


def test_what_is_there_already_stays(run, tmp_path):
    """Another module in the index, a library folder, a real nvidia-smi."""
    (run.root / "usr/bin").mkdir(parents=True)
    (run.root / "usr/bin/nvidia-smi").write_text("mine")
    (run.root / "usr/lib/x86_64-linux-gnu").mkdir(parents=True)
    index = run.root / f"lib/modules/{KERNEL}/modules.dep"
    index.parent.mkdir(parents=True)
    index.write_text("kernel/fs/ext4/ext4.ko:\n")
    run(write(tmp_path, "580.95.05"), *install_arguments("580.95.05", "open", True))
    assert index.read_text().splitlines() == [
        "kernel/fs/ext4/ext4.ko:", "updates/dkms/nvidia.ko:",
        "updates/dkms/nvidia-uvm.ko: updates/dkms/nvidia.ko",
    ]  # fmt: skip
    if os.uname().machine == "x86_64":
        assert (run.root / "usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1").is_symlink()
    run(*uninstall_arguments(str(run.root / "usr/bin/nvidia-uninstall")))
    assert tree(run.root) == [f"lib/modules/{KERNEL}/modules.dep", "usr/bin/nvidia-smi"]
    assert index.read_text() == "kernel/fs/ext4/ext4.ko:\n"


@pytest.mark.parametrize(
    ("version", "arguments", "option"),
    [
        ("580.95.05", ["--silent", "--no-such-option"], "--no-such-option"),
        ("470.256.02", ["--silent", "-m=kernel"], "-m"),
        ("535.288.01", ["--silent", "--skip-module-load"], "--skip-module-load"),
    ],
)
def test_options_that_it_does_not_know(run, tmp_path, version, arguments, option):
    done = run(write(tmp_path, version), *arguments)
    assert done.returncode == 1
    assert f'unrecognized option: "{option}"' in done.stderr
    assert tree(run.root) == []


@pytest.mark.parametrize("version", ["470.256.02", "535.288.01", "580.95.05", "620.10.01"])
def test_our_arguments_are_known_to_every_branch(run, tmp_path, version):
    arguments = install_arguments(
        version, "proprietary", True, load=False, running=True, compute_only=True, kernel=KERNEL,
    )  # fmt: skip
    more, _environment = unpacked_in(str(tmp_path))
    done = run(write(tmp_path, version), *arguments, *more)
    assert done.returncode == 0, done.stderr


def test_it_asks_no_question(run, tmp_path):
    assert run(write(tmp_path, "580.95.05")).returncode == 1
    done = run(write(tmp_path, "580.95.05"), "--info")
    assert done.returncode == 0 and "580.95.05" in done.stdout and tree(run.root) == []


@pytest.mark.parametrize(
    ("fail", "code"),
    [
        ("build", codes.BUILD_FAILED), ("headers", codes.NO_HEADERS), ("nouveau", codes.NOUVEAU),
        ("in-use", codes.IN_USE), ("disk", codes.DISK_FULL), ("load", codes.UNKNOWN),
    ],
)  # fmt: skip
def test_failures_are_recognised(run, tmp_path, fail, code):
    done = run(write(tmp_path, "580.95.05", fail=fail), "--silent", "-m=kernel-open", "--dkms")
    assert done.returncode == 1 and FAILURES[fail] in done.stderr
    node = gather(run.reader, RuntimePaths())
    evidence = collect(run.reader, node, wanted="580.95.05", output=done.stdout + done.stderr)
    finding = diagnose(evidence)
    assert finding.code == code
    if fail == "build":
        assert "nv-pci.c:237:9: error: too few arguments" in finding.evidence
        assert "log: /var/log/nvidia-installer.log" in finding.evidence


def test_cuda(run, tmp_path):
    path = "/usr/local/cuda-13.0"
    done = run(write(tmp_path, "13.0.2_580.95.05", kind="cuda"), *cuda_arguments(path))
    assert done.returncode == 0, done.stderr
    target = run.root / path.lstrip("/")
    assert json.loads((target / "version.json").read_text())["cuda"]["version"] == "13.0.2"
    assert "Driver:   Not Selected" in done.stdout
    assert not (run.root / "var/lib/kubegpu-standin").exists()
    source = tmp_path / "probe.cu"
    source.write_text("__global__ void f() {}\n")
    nvcc = target / "bin/nvcc"
    assert "release 13.0, V13.0.2" in run(nvcc, "--version").stdout
    assert run(nvcc, "-o", str(tmp_path / "probe"), str(source)).returncode == 0
    assert (tmp_path / "probe").exists()
    assert run(nvcc, str(tmp_path / "gone.cu")).returncode == 1
    assert run(*uninstall_arguments(str(target / "bin/cuda-uninstaller"))).returncode == 0
    assert tree(run.root) == []


def test_cuda_refuses_and_fails(run, tmp_path):
    good = write(tmp_path, "12.8.1_570.124.06", kind="cuda")
    for arguments in (["--silent"], ["--toolkit"], ["--silent", "--toolkit", "--foo"]):
        assert run(good, *arguments).returncode == 1
    assert tree(run.root) == []
    assert run(good, "--silent", "--driver").returncode == 0
    assert tree(run.root) == ["var/lib/kubegpu-standin/cuda-installed-a-driver"]
    bad = write(tmp_path, "12.8.1_570.124.06", kind="cuda", fail="disk")
    done = run(bad, *cuda_arguments("/usr/local/cuda-12.8"))
    assert done.returncode == 1 and "cuda-installer.log" in done.stderr
    assert "No space left" in (run.root / "var/log/cuda-installer.log").read_text()
