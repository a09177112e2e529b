# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The role amd_container_toolkit with the real apt, from AMD's package to the teardown.

The node is a Debian root file system with the name of Ubuntu 24.04 and the PCI tree of eight
MI300X, entered by chroot. apt, dpkg, the repository and its signature are real; the package is a
stand-in with the scripts of AMD's, which remove other programs' files.
"""

from __future__ import annotations

import base64
import json
import os
import platform
import shutil
import stat
from dataclasses import replace
from pathlib import Path

import pytest

from tests.integration.packages import standin_amd
from tests.integration.packages import standin_repository as standin
from tests.integration.packages.chroot_node import ChrootNode, base_tree, difference, unpacked
from tests.testbed.mirror import debian_mirror
from tests.unit.fixtures.machines import MACHINES
from tests.unit.fixtures.make_tree import make_machine, write

UBUNTU = 'ID=ubuntu\nID_LIKE=debian\nVERSION_ID="24.04"\nVERSION_CODENAME=noble\nNAME=Ubuntu\n'
NVIDIA_SPEC = "cdiVersion: 0.5.0\nkind: nvidia.com/gpu\n"
DAEMON = '{"features": {"cdi": true}, "debug": true}\n'
SPEC = "etc/cdi/amd.json"

pytestmark = [
    pytest.mark.full(why="another vendor's package in the real apt"),
    pytest.mark.skipif(os.geteuid() != 0, reason="chroot needs root"),
    pytest.mark.skipif(
        not all(map(shutil.which, ("mmdebstrap", "apt-ftparchive", "gpg", "dpkg-deb"))),
        reason="mmdebstrap, apt-utils, gnupg or dpkg is not installed",
    ),
    pytest.mark.skipif(platform.machine() != "x86_64", reason="the stand-in packages are amd64"),
]


class Node(ChrootNode):
    """A node with AMD GPUs, and the role on it."""

    look = "dpkg-query -W -f '${Package} ${Version} ${db:Status-Want} ${db:Status-Status}\\n'"

    def __init__(self, root: Path, work: Path):
        super().__init__(root, work)
        web = standin.kept(
            "toolkit-amd", [Path(standin_amd.__file__), Path(standin.__file__)], standin_amd.build
        )
        self.server = standin.serve(web)
        fingerprint = (web / "fingerprint").read_text()
        self.key = work / "rocm.gpg.key"
        self.key.write_text((web / "key").read_text())
        self.variables = {
            "amd_container_toolkit_enabled": True,
            "amd_container_toolkit_repository": {
                "url": f"http://127.0.0.1:{self.server.server_port}/apt",
                "key_file": str(self.key),
                "key_fingerprints": [fingerprint],
            },
        }

    def role(self, entry="main", *, check=False, **variables):
        """Run the role; return the answers of its tasks, without what was skipped."""
        answers = self.tasks(
            ("gpu_node_facts", {}),
            (
                "ansible.builtin.include_role",
                {"name": "kubegpu.nodes.amd_container_toolkit", "tasks_from": entry},
                {"vars": {**self.variables, **variables}},
            ),
            check=check,
        )
        return [answer for answer in answers if not answer.get("skipped")]

    def render(self, *numbers):
        folder = self.root / "dev/dri"
        folder.mkdir(exist_ok=True)
        for old in folder.iterdir():
            old.unlink()
        for number in numbers:
            # The numbers of /dev/null: a device that every kernel has.
            os.mknod(folder / f"renderD{number}", 0o666 | stat.S_IFCHR, os.makedev(1, 3))

    def etc(self):
        return self.shell(
            "cd / && find etc ! -name ld.so.cache -type f -print0 | LC_ALL=C sort -z |"
            " xargs -0 sha256sum; ls -A /var/lib/kubegpu 2>&1"
        ).splitlines()

    def devices(self):
        spec = json.loads((self.root / SPEC).read_text())
        return [one["name"] for one in spec["devices"]]


def failed(answers):
    return [answer["msg"] for answer in answers if answer.get("failed")]


def changed(answers):
    return [answer for answer in answers if answer.get("changed")]


def diffs(answers):
    return [answer.get("diff") for answer in changed(answers)]


@pytest.fixture(scope="module")
def node(tmp_path_factory):
    if debian_mirror() is None:
        pytest.skip("no Debian mirror can be reached")
    root = unpacked(base_tree("bookworm", "python3", "python3-apt"), "amd")
    made = None
    try:
        # Debian's archive has nothing that the toolkit needs, and its lists are long.
        (root / "etc/apt/sources.list").unlink()
        # The PCI tree alone: the files beside it are empty stand-ins of the system's.
        make_machine(root, replace(MACHINES["mi300x8"], files={}))
        for path, text in {
            "/etc/os-release": UBUNTU,
            "/sys/module/amdgpu/drivers/x": "",
            "/etc/cdi/nvidia.yaml": NVIDIA_SPEC,
            "/etc/docker/daemon.json": DAEMON,
        }.items():
            (root / path.lstrip("/")).unlink(missing_ok=True)
            write(root, path, text)
        made = Node(root, tmp_path_factory.mktemp("amd"))
        made.render(128, 129)
        yield made
    finally:
        if made:
            made.server.shutdown()
        shutil.rmtree(root)


def others_are_untouched(node):
    assert (node.root / "etc/cdi/nvidia.yaml").read_text() == NVIDIA_SPEC
    assert (node.root / "etc/docker/daemon.json").read_text() == DAEMON


def test_s17_check_run_again_upgrade_other_devices_and_teardown(node):
    before = (node.packages(), node.etc())
    older = {"amd_container_toolkit_version": "1.2.0"}
    said = node.role(check=True, **older)
    assert failed(said) == [] and node.packages() == before[0]
    did = node.role(**older)
    assert failed(did) == [] and len(changed(did)) == 3
    assert diffs(said) == diffs(did)
    assert "amd-container-toolkit 1.2.0~24.04 hold installed" in node.packages()
    assert node.devices() == ["0", "1", "all"]
    others_are_untouched(node)
    # A converged node: facts and plan alone.
    again = node.role(**older)
    assert failed(again) == [] and changed(again) == []
    # AMD's script removes /etc/cdi and edits daemon.json in an upgrade.
    made = (node.root / SPEC).read_text()
    newer = {"amd_container_toolkit_version": "1.3.0"}
    assert len(changed(node.role(**newer))) == 1
    assert "amd-container-toolkit 1.3.0~24.04 hold installed" in node.packages()
    assert (node.root / SPEC).read_text() == made
    others_are_untouched(node)
    # The partitions of a card changed.
    node.render(128, 129, 130)
    (one,) = changed(node.role())
    assert "made for" in one["reasons"][0]
    assert node.devices() == ["0", "1", "2", "all"]
    assert changed(node.role()) == []
    said, did = node.role("teardown", check=True), node.role("teardown")
    assert failed(did) == [] and len(changed(did)) == 3
    assert diffs(said) == diffs(did)
    others_are_untouched(node)
    node.render(128, 129)
    assert difference(before[0], node.packages()) == []
    assert difference(before[1], node.etc()) == []
    assert changed(node.role("teardown")) == []


def test_files_of_a_run_that_was_killed_in_the_package_manager_are_restored(node):
    """As after a kill between the removal by the package's script and the restoring."""
    node.role()
    path = node.root / "var/lib/kubegpu/state.json"
    state = json.loads(path.read_text())
    state["values"]["package_set_preserved:amd-container-toolkit"] = _saved(node)
    path.write_text(json.dumps(state))
    shutil.rmtree(node.root / "etc/cdi")
    (node.root / "etc/docker/daemon.json").write_text("{}\n")
    said, did = node.role(check=True), node.role()
    assert failed(did) == [] and len(changed(said)) == len(changed(did))
    assert "restored, since the run before was killed" in str(did)
    others_are_untouched(node)
    assert node.devices() == ["0", "1", "all"]
    assert changed(node.role()) == []
    node.role("teardown")


def _saved(node):
    files = ("etc/cdi/nvidia.yaml", SPEC, "etc/docker/daemon.json")
    return [
        {
            "path": f"/{name}",
            "content": base64.b64encode((node.root / name).read_bytes()).decode(),
            "mode": 0o644,
            "uid": 0,
            "gid": 0,
        }
        for name in files
    ]


def test_a_node_without_the_driver_is_refused_before_anything_is_changed(node):
    module = node.root / "sys/module/amdgpu"
    module.rename(node.root / "sys/module/aside")
    before = node.etc()
    try:
        answers = node.role()
    finally:
        (node.root / "sys/module/aside").rename(module)
    (message,) = failed(answers)
    assert "amdgpu is not loaded" in message
    assert difference(before, node.etc()) == []
