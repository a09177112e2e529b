# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The proof with the real nvcc, where there is one on this machine. No GPU is needed."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._core.errors import KubegpuError
from ansible_collections.kubegpu.nodes.plugins.module_utils._cuda.compiler import (
    CompileTest,
    nvcc_release,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._cuda.config_files import LINK
from ansible_collections.kubegpu.nodes.plugins.module_utils._cuda.host import CudaNode
from ansible_collections.kubegpu.nodes.plugins.module_utils._cuda.link import (
    ALTERNATIVES,
    Link,
    LinkChange,
    set_link,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._host.command import Result
from ansible_collections.kubegpu.nodes.plugins.module_utils._host.reader import NodeReader
from ansible_collections.kubegpu.nodes.plugins.module_utils._nvidia.cuda_releases import (
    ARCHITECTURES,
)

CUDA = Path("/usr/local/cuda")
FIXTURES = Path(__file__).parents[3] / "fixtures/cuda"


def run(argv, timeout=60, environment=None):
    environment = {**os.environ, **(environment or {})}
    program = shutil.which(argv[0], path=environment["PATH"])
    if program is None:
        return Result(127, "", f"{argv[0]}: no such program")
    done = subprocess.run(
        [program, *argv[1:]], env=environment, capture_output=True, text=True, check=False,
        timeout=timeout,
    )  # fmt: skip
    return Result(done.returncode, done.stdout, done.stderr)


@pytest.fixture
def real():
    """Return the release and folder of the real toolkit."""
    if not (CUDA / "bin/nvcc").exists() or shutil.which("g++") is None:
        pytest.skip("no CUDA toolkit with a host compiler is here")
    found = nvcc_release(run([str(CUDA / "bin/nvcc"), "--version"]).stdout)
    return found[0], str(CUDA.resolve())


@pytest.fixture
def node():
    return CudaNode(run, NodeReader("/", run))


def test_the_real_compiler_is_proven_without_a_gpu(real, node, tmp_path):
    version, host = node.test_compiler(CompileTest(*real, "sm_90"), str(tmp_path))
    assert host == ""
    assert version.startswith(f"{real[0]}.")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.full("ampere", "ada", "hopper", why="another architecture of the generation 'turing'")
@pytest.mark.parametrize("generation", ["turing", "ampere", "ada", "hopper"])
def test_generations_that_every_recent_toolkit_knows(real, node, tmp_path, generation):
    node.test_compiler(CompileTest(*real, ARCHITECTURES[generation]), str(tmp_path))


def test_a_generation_that_the_toolkit_has_dropped(real, node, tmp_path):
    with pytest.raises(KubegpuError, match="not compile for sm_35"):
        node.test_compiler(CompileTest(*real, "sm_35"), str(tmp_path))
    assert list(tmp_path.iterdir()) == []


def test_a_host_compiler_that_is_not_there(real, node, tmp_path):
    with pytest.raises(KubegpuError, match="no host compiler that it takes"):
        node.test_compiler(CompileTest(*real, "sm_90", "/nonexistent/g++"), str(tmp_path))


@pytest.mark.parametrize("name", ["gcc-12", "debian-no-compiler"])
def test_another_host_compiler_is_tried_before_giving_up(tmp_path, name):
    """Stand-in for an nvcc that takes g++-11 only, with the words of the real one."""
    words = (FIXTURES / f"compile-11.8.89-{name}.txt").read_text(encoding="utf-8")
    (tmp_path / "usr/bin").mkdir(parents=True)
    for number in (11, 12):
        (tmp_path / f"usr/bin/g++-{number}").touch()

    def standin(argv, timeout=60, environment=None):
        if argv[1] == "--version":
            return Result(0, "Cuda compilation tools, release 11.8, V11.8.89\n", "")
        good = "-ccbin" in argv and argv[argv.index("-ccbin") + 1].endswith("g++-11")
        return Result(0, "", "") if good else Result(1, "", words)

    node = CudaNode(standin, NodeReader(str(tmp_path), standin))
    proof = CompileTest("11.8", "/usr", "sm_70")
    assert node.test_compiler(proof, str(tmp_path)) == ("11.8.89", "/usr/bin/g++-11")
    (tmp_path / "usr/bin/g++-11").unlink()
    with pytest.raises(KubegpuError, match="host compiler"):
        node.test_compiler(proof, str(tmp_path))


def test_a_toolkit_that_is_not_there(node, tmp_path):
    with pytest.raises(KubegpuError, match="is not there"):
        node.test_compiler(CompileTest("12.9", str(tmp_path / "cuda-12.9"), None), str(tmp_path))


@pytest.mark.parametrize("path", ["/", "/usr/local", "/usr/local/cuda-12.9/..", "/usr/local/cuda"])
def test_nothing_but_a_toolkits_folder_is_ever_removed(node, path):
    with pytest.raises(KubegpuError, match="not the folder of a CUDA toolkit"):
        node.remove(path)
    with pytest.raises(KubegpuError, match="not the folder of a CUDA toolkit"):
        node.uninstall(path)


@pytest.fixture
def links(tmp_path):
    """A root folder in which two toolkits are alternatives; update-alternatives is the real one."""
    if shutil.which("update-alternatives") is None:
        pytest.skip("no update-alternatives is here")
    for folder in ("etc/alternatives", "var/lib/dpkg/alternatives", "var/log"):
        (tmp_path / folder).mkdir(parents=True)
    node = CudaNode(run, NodeReader(str(tmp_path), run))
    for number in ("12.9", "13.0"):
        (tmp_path / f"usr/local/cuda-{number}/bin").mkdir(parents=True)
        path = f"/usr/local/cuda-{number}"
        command = ("update-alternatives", "--install", LINK, "cuda", path, number.replace(".", ""))
        node.change_link(LinkChange(Link(), Link(), (command,)))
    return node, tmp_path / LINK[1:]


def test_a_link_that_was_made_past_the_alternatives_is_seen_and_repaired(links):
    node, link = links
    through = os.readlink(link)
    assert node.read_link().target == "/usr/local/cuda-13.0"
    link.unlink()
    link.symlink_to("/usr/local/cuda-12.9")
    now = node.read_link()
    assert (now.kind, now.target) == (ALTERNATIVES, "/usr/local/cuda-12.9")
    change = set_link(LINK, now, "/usr/local/cuda-13.0")
    assert change.changed
    node.change_link(change)
    assert os.readlink(link) == through
    assert node.read_link().target == "/usr/local/cuda-13.0"


@pytest.mark.parametrize("there", [True, False])
def test_the_installer_does_not_keep_the_link(links, tmp_path, there):
    """A stand-in of the installer; the real one makes the link too."""
    node, link = links
    if not there:
        link.unlink()
    before = os.readlink(link) if there else None
    file, programs = tmp_path / "cuda.run", tmp_path / "usr/local/cuda-12.4/bin"
    file.write_text(
        f"mkdir -p {programs}; touch {programs}/nvcc; ln -sfn /usr/local/cuda-12.4 {link}\n"
    )
    node.install("12.4", str(file), "/usr/local/cuda-12.4", [], 60)
    assert (os.readlink(link) if link.is_symlink() else None) == before
