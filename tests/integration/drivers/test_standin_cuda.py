# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The life of CUDA toolkits on a stand-in of Ubuntu 24.04: packages, a runfile, the default.

Packages, runfile and their nvcc are stand-ins; apt, dpkg and update-alternatives are real. The
steps run in this order on one node.
"""

from __future__ import annotations

import hashlib

import pytest

from tests.integration.drivers.steps import (
    QUIET_CALLS,
    dpkg_is_consistent,
    etc,
    facts,
    held,
    shell,
    words,
)
from tests.integration.fleet.playbooks import play
from tests.testbed import calls, runfile

NODE = "drv-ubuntu24"
pytestmark = [
    pytest.mark.xdist_group(NODE),
    pytest.mark.full(why="toolkits in a driver's place: sets as those of the stage packages"),
]

BOTH = ["12.9", "13.0"]
CHIP = "/opt/standin/pci/0000:00:08.0/device"
A10 = "0x2236"
# The node has no host compiler, and the stand-in of nvcc needs none.
ANY_COMPILER = "/usr/bin/true"


@pytest.fixture(scope="module")
def node(fleet):
    return fleet[NODE]


@pytest.fixture(scope="module")
def before(node):
    """/etc and /usr/local of the bare node."""
    return look(node)


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    """A stand-in of NVIDIA's runfile of CUDA 12.4.1, as a request."""
    path = runfile.write(tmp_path_factory.mktemp("runfile"), "12.4.1_550.54.15", kind="cuda")
    checksum = hashlib.sha256(path.read_bytes()).hexdigest()
    return {"path": str(path), "checksum": f"sha256:{checksum}"}


def look(node):
    return etc(node), shell(node, "ls -lA --time-style=+ /usr/local").splitlines()


def apply(node, *options, **request):
    """Run CUDA's part of site; names of the request are the role's without its prefix."""
    variables = {f"cuda_toolkit_{name}": value for name, value in request.items()}
    arguments = ("--tags", "cuda", "--limit", node.name, *options)
    return play("site", *arguments, variables=variables)


def converge(node, **request):
    """Check mode, the run, and a second run: equal diffs, then nothing, and no call for it."""
    check = apply(node, "--check", "--diff", **request)
    assert check.status == 0, words(check)
    run = apply(node, "--diff", **request)
    assert run.status == 0, words(run)
    assert run.stats[node.name]["changed"] >= 1, words(run)
    assert check.changed() == run.changed()
    assert_converged(node, **request)
    return run


def reached(node, **request):
    """The run and a second one: where check mode was shown before."""
    run = apply(node, **request)
    assert run.status == 0, words(run)
    assert run.stats[node.name]["changed"] >= 1, words(run)
    assert_converged(node, **request)


def assert_converged(node, **request):
    calls.reset([node])
    again = apply(node, **request)
    assert again.status == 0, words(again)
    assert again.stats[node.name]["changed"] == 0, again.changed()
    assert calls.count([node])[node.name] <= QUIET_CALLS


def default(node):
    """Where the link leads, and the compiler that a login shell finds."""
    link = shell(node, "readlink -f /usr/local/cuda").strip()
    said = shell(node, "env -i bash -lc 'nvcc --version'")
    return link, said.partition("release ")[2].partition(",")[0]


@pytest.mark.parametrize(("chip", "name"), [("0x1db1", "volta"), ("0x1bb3", "pascal")])
def test_gpu_that_cuda_13_has_dropped_is_refused(node, before, chip, name):
    shell(node, f"echo {chip} >{CHIP}")
    try:
        run = apply(node, versions=BOTH)
    finally:
        shell(node, f"echo {A10} >{CHIP}")
    assert run.status != 0
    assert "CUDA 13.0 has dropped" in words(run)
    assert name in words(run)
    assert "ask for CUDA 12.9 or older" in words(run)
    assert look(node) == before


def test_driver_that_is_too_old_is_refused(node, before):
    run = apply(node, versions=BOTH, driver_version="575.57.08")
    assert run.status != 0
    assert "Driver 575.57.08 cannot run CUDA 13.0" in words(run)
    assert "install driver 580 or newer" in words(run)
    assert look(node) == before


def test_two_versions_side_by_side_with_the_older_one_as_default(node, before):
    converge(node, versions=BOTH, default="12.9")
    assert default(node) == ("/usr/local/cuda-12.9", "12.9")
    kits = facts(node)["cuda"]["toolkits"]
    assert [(kit["version"], kit["default"], kit["source"]) for kit in kits] == [
        ("12.9.1", True, "package"),
        ("13.0.2", False, "package"),
    ]
    # What came along is held too.
    assert {"cuda-toolkit-12-9", "cuda-nvcc-12-9", "cuda-toolkit-13-0", "cuda-cudart-13-0"} <= held(
        node
    )
    # The default's libraries come first.
    loader = shell(node, "cat /etc/ld.so.conf.d/kubegpu-cuda.conf").split("\n")
    assert loader[1:3] == ["/usr/local/cuda/lib64", "/usr/local/cuda-13.0/lib64"]
    folders = shell(
        node, "ldconfig -v 2>/dev/null | sed -n 's/: (from .*//p' | xargs readlink -f"
    ).split()
    libraries = [f"/usr/local/cuda-{number}/targets/x86_64-linux/lib" for number in BOTH]
    assert folders[0] == libraries[0]
    assert libraries[1] in folders


def test_the_default_is_changed_and_changed_back(node, before):
    converge(node, versions=BOTH)
    assert default(node) == ("/usr/local/cuda-13.0", "13.0")
    reached(node, versions=BOTH, default="12.9")
    assert default(node) == ("/usr/local/cuda-12.9", "12.9")


def test_libraries_for_the_default(node, before):
    request = {
        "versions": BOTH,
        "default": "12.9",
        "libraries": {"cudnn": "9.10", "nccl": "2.27.7"},
    }
    converge(node, **request)
    assert_converged(node, **{**request, "libraries": {"cudnn": "", "nccl": ""}})
    found = facts(node)["cuda"]["packages"]
    assert found["cudnn9-cuda-12"] == "9.10.2.21-1"
    assert found["libnccl2"] == found["libnccl-dev"] == "2.27.7-1+cuda12.9"
    assert {"cudnn9-cuda-12", "libcudnn9-cuda-12", "libnccl2"} <= held(node)
    # Those for another default take their place.
    reached(node, versions=BOTH, libraries={"cudnn": "", "nccl": ""})
    found = facts(node)["cuda"]["packages"]
    assert found["libnccl2"] == found["libnccl-dev"] == "2.28.3-1+cuda13.0"
    assert "libcudnn9-cuda-13" in found and "libcudnn9-cuda-12" not in found


def test_drift_is_seen_and_repaired(node, before):
    shell(node, "apt-mark unhold cuda-toolkit-13-0; rm /etc/profile.d/kubegpu-cuda.sh")
    shell(node, "update-alternatives --set cuda /usr/local/cuda-13.0")
    converge(node, versions=BOTH, default="12.9")
    assert "cuda-toolkit-13-0" in held(node)
    assert default(node) == ("/usr/local/cuda-12.9", "12.9")


def test_runfile_without_host_compiler_is_refused_before_it_runs(node, before, file):
    run = apply(node, versions=["12.4.1"], runfiles={"12.4.1": file})
    assert run.status != 0
    assert "There is no g++ on this node" in words(run)
    assert facts(node)["cuda"]["toolkits"][0]["version"] == "12.9.1"


def test_runfile_with_a_wrong_checksum_is_not_run(node, before, file):
    wrong = {**file, "checksum": f"sha256:{'0' * 64}"}
    run = apply(node, versions=["12.4.1"], runfiles={"12.4.1": wrong}, host_compiler=ANY_COMPILER)
    assert run.status != 0
    assert "0" * 64 in words(run)
    assert "/usr/local/cuda-12.4" not in shell(node, "ls -d /usr/local/cuda*")


def test_runfile_beside_the_packages(node, before, file):
    """The installer takes the link for itself; the default is the requested one all the same."""
    request = {
        "versions": [*BOTH, "12.4.1"],
        "runfiles": {"12.4.1": file},
        "host_compiler": ANY_COMPILER,
    }
    converge(node, default="12.9", **request)
    assert default(node) == ("/usr/local/cuda-12.9", "12.9")
    assert shell(node, "readlink /usr/local/cuda").strip() == "/etc/alternatives/cuda"
    assert not shell(node, "cat /var/lib/kubegpu-standin/cuda-installed-a-driver", check=False)
    assert not shell(node, "ls -A /var/cache/kubegpu", check=False).strip()
    reached(node, default="12.4.1", **request)
    assert default(node) == ("/usr/local/cuda-12.4", "12.4")


def test_version_that_is_no_longer_asked_for_stays_and_is_told(node, before):
    # The set of packages is changed, too, without the one that stays in it.
    shell(node, "apt-mark unhold cuda-toolkit-13-0")
    run = apply(node, versions=["13.0"])
    assert run.status == 0, words(run)
    assert {"cuda-toolkit-12-9", "cuda-toolkit-13-0", "cuda-nvcc-12-9"} <= held(node)
    assert {"12.9.1", "13.0.2"} <= {kit["version"] for kit in facts(node)["cuda"]["toolkits"]}
    assert "12.9.1 (/usr/local/cuda-12.9) is installed but not requested" in run.output
    assert_converged(node, versions=["13.0"])


def test_teardown_gives_the_node_back(node, before):
    arguments = ("--limit", node.name, "--diff")
    check = play("teardown", "--check", *arguments)
    assert check.status == 0, words(check)
    run = play("teardown", *arguments)
    assert run.status == 0, words(run)
    assert check.changed() == run.changed()
    assert look(node) == before
    assert not held(node)
    assert dpkg_is_consistent(node)
    assert not shell(node, "ls -A /var/lib/kubegpu 2>/dev/null || true").strip()
    again = play("teardown", *arguments)
    assert again.stats[node.name]["changed"] == 0, again.changed()
