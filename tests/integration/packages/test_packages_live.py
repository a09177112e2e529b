# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""package_repository, package_set and container_toolkit_config with the real apt and dpkg.

The node is a Debian root file system without python3-apt, entered by chroot. The packages are
stand-ins; apt, dpkg, their repository and its signature are real. Each test leaves the node as it
found it.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.integration.packages import standin_repository as standin
from tests.integration.packages.chroot_node import ChrootNode, base_tree, difference, unpacked
from tests.testbed.mirror import debian_mirror

SUITE = "bookworm"
ARCHIVE, ASIDE = "etc/apt/sources.list", "root/sources.list"
SET = dict.fromkeys(standin.SET, "1.20.0-1")
LOCKED = ("nvidia-*", "libnvidia-*", "cuda-drivers", "!nvidia-container-*", "!libnvidia-container*")
OPEN = ("libnvidia-cfg1", "libnvidia-compute", "nvidia-dkms-open", "nvidia-kernel-common")

pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason="chroot needs root"),
    pytest.mark.skipif(
        not all(map(shutil.which, ("mmdebstrap", "apt-ftparchive", "gpg", "dpkg-deb"))),
        reason="mmdebstrap, apt-utils, gnupg or dpkg is not installed",
    ),
    pytest.mark.skipif(platform.machine() != "x86_64", reason="the stand-in packages are amd64"),
]


class Node(ChrootNode):
    """A root file system, the repository beside it, and Ansible on it."""

    look = (
        "dpkg-query -W -f '${Package} ${Version} ${db:Status-Want} ${db:Status-Status}\\n';"
        " apt-mark showauto | sed 's/^/auto /'"
    )

    def __init__(self, root: Path, work: Path):
        super().__init__(root, work)
        web = standin.signed("toolkit-deb", "deb/amd64", [Path(standin.__file__)], standin.build)
        self.key, self.fingerprint = ((web / x).read_text() for x in ("key", "fingerprint"))
        self.server = standin.serve(web)
        self.url = f"http://127.0.0.1:{self.server.server_port}/stable/deb"

    def repository(self, **options):
        return {
            "name": "kubegpu-test",
            "url": self.url,
            "key": self.key,
            "key_fingerprints": [self.fingerprint],
            **options,
        }

    def present(self, version="1.20.0-1", **options):
        packages = dict.fromkeys(standin.SET, version)
        return self.run("package_set", name="toolkit", packages=packages, **options)

    def absent(self):
        return self.run("package_set", name="toolkit", state="absent")

    def toolkit(self):
        return [line for line in self.packages() if "nvidia" in line]

    def etc(self):
        return self.shell(
            "cd / && find etc ! -name ld.so.cache -printf '%M %u:%g %p %l\\n' | LC_ALL=C sort; "
            "find etc -type f ! -name ld.so.cache -print0 | LC_ALL=C sort -z | xargs -0 sha256sum; "
            "ls -A /var/lib/kubegpu 2>&1"
        ).splitlines()


@pytest.fixture(scope="module")
def node(tmp_path_factory):
    if debian_mirror() is None:
        pytest.skip("no Debian mirror can be reached")
    root = unpacked(base_tree(SUITE, "python3", "python3-apt"), "packages")
    made = None
    try:
        # Debian's archive has nothing that the sets need, and its lists are long.
        (root / ARCHIVE).rename(root / ASIDE)
        made = Node(root, tmp_path_factory.mktemp("packages"))
        yield made
    finally:
        if made:
            made.server.shutdown()
        shutil.rmtree(root)


@pytest.fixture
def bare(node):
    """The node; after the test it has to be as it was."""
    before = (node.packages(), node.etc())
    yield node
    assert difference(before[0], node.packages()) == []
    assert difference(before[1], node.etc()) == []


@pytest.fixture
def unhelped(node):
    """The node without python3-apt, which Ansible's own module then brings from Debian."""
    (node.root / ASIDE).rename(node.root / ARCHIVE)
    node.shell("apt-get update; apt-get autoremove -y --purge python3-apt")
    assert not any(line.startswith("python3-apt ") for line in node.packages())
    yield
    node.shell("apt-get install -y --no-install-recommends python3-apt")
    (node.root / ARCHIVE).rename(node.root / ASIDE)
    node.shell("apt-get update; apt-get clean")


@pytest.fixture
def ready(bare):
    """The node with the repository."""
    bare.run("package_repository", **bare.repository())
    yield bare
    bare.absent()
    bare.run("package_repository", name="kubegpu-test", state="absent")


@pytest.mark.full(why="a node without python3-apt, which comes from Debian's archive")
def test_check_mode_on_a_bare_node_predicts_the_run(unhelped, bare):
    """Neither repository nor package is there, and check mode says what will be."""
    packages = {"name": "toolkit", "packages": SET}
    said = [
        bare.task("package_repository", check=True, **bare.repository()),
        bare.task("package_set", check=True, **packages),
    ]
    did = [
        bare.task("package_repository", **bare.repository()),
        bare.task("package_set", **packages),
    ]
    assert [x["changed"] for x in did] == [True, True]
    assert [x["diff"] for x in said] == [x["diff"] for x in did]
    # python3-apt came along with Ansible's own module, and goes with the set.
    assert any(line.startswith("python3-apt ") for line in bare.packages())
    assert bare.absent()["changed"]
    bare.run("package_repository", name="kubegpu-test", state="absent")


def test_install_again_upgrade_downgrade_absent(ready):
    first = ready.present("1.19.0-1")
    assert first["changed"]
    assert len([line for line in ready.toolkit() if " 1.19.0-1 hold installed" in line]) == 4
    assert not ready.present("1.19.0-1")["changed"]
    assert "1.19.0-1 held" in ready.present("1.20.0-1")["diff"][0]["before"]
    assert len([line for line in ready.toolkit() if " 1.20.0-1 hold installed" in line]) == 4
    ready.present("1.17.8-1")
    assert len([line for line in ready.toolkit() if " 1.17.8-1 hold installed" in line]) == 4
    # A hold means it: nothing of the set moves by itself.
    assert "1.20.0-1" not in ready.shell("apt-get -s upgrade | grep ^Inst")
    ready.shell("apt-mark unhold libnvidia-container1")
    assert ready.present("1.17.8-1")["reasons"] == ["libnvidia-container1 is not held."]
    assert ready.absent()["changed"]
    assert not ready.absent()["changed"]
    assert ready.toolkit() == []


@pytest.mark.full(why="another state before than test_install_again_upgrade_downgrade_absent")
def test_what_was_there_before_comes_back(ready):
    """An older toolkit, a part of it automatic, with nvidia-docker2 and its daemon.json."""
    ready.shell(
        "apt-get update && apt-get install -y nvidia-container-toolkit=1.17.8-1"
        " nvidia-container-toolkit-base=1.17.8-1 libnvidia-container-tools=1.17.8-1"
        " libnvidia-container1=1.17.8-1 && apt-get -y remove nvidia-container-toolkit"
        " && apt-get install -y nvidia-docker2 && apt-mark auto libnvidia-container1"
        " && apt-mark hold libnvidia-container1"
        " && echo '{\"debug\": true}' >/etc/docker/daemon.json"
    )
    before = ready.packages()
    daemon = (ready.root / "etc/docker/daemon.json").read_text()
    assert "debug" in daemon
    ready.present(obsolete=["nvidia-docker2"])
    assert len([line for line in ready.toolkit() if " 1.20.0-1 hold installed" in line]) == 4
    # Removed, not purged: the admin's file stays.
    assert (ready.root / "etc/docker/daemon.json").read_text() == daemon
    ready.absent()
    assert difference(before, ready.packages()) == []
    ready.shell(
        "apt-mark unhold libnvidia-container1; apt-get -y purge 'nvidia-*' 'libnvidia-*'"
        " libstandin-helper; rm -rf /etc/docker"
    )


@pytest.mark.full(why="another fault of an install")
def test_a_version_that_is_not_there_names_those_that_are(ready):
    answer = ready.task("package_set", name="toolkit", packages={"libnvidia-container1": "9-1"})
    assert answer["failed"]
    assert "1.20.0-1, 1.19.0-1, 1.17.8-1" in answer["msg"]
    assert ready.toolkit() == []


@pytest.mark.full(why="another fault of an install")
def test_another_repository_that_cannot_be_reached_does_not_stop_it(ready):
    broken = ready.root / "etc/apt/sources.list.d/broken.list"
    broken.write_text("deb http://127.0.0.2:9/debian bookworm main\n")
    ready.shell("rm -rf /var/lib/apt/lists/127.0.0.*")
    try:
        assert ready.present()["changed"]
    finally:
        broken.unlink()


@pytest.mark.full(why="another fault of an install")
def test_a_half_configured_package_is_repaired_or_explained(ready):
    (ready.root / "fail").touch()
    ready.shell("apt-get update; apt-get install -y standin-dkms")
    assert any("standin-dkms 1 install half-configured" in line for line in ready.packages())
    answer = ready.task("package_set", name="toolkit", packages=SET)
    assert answer["failed"]
    assert "standin-dkms" in answer["msg"]
    assert "script" in answer["msg"]
    (ready.root / "fail").unlink()
    answer = ready.run("package_set", name="toolkit", packages=SET)
    assert answer["broken"] == {"standin-dkms": "half-configured"}
    assert any("standin-dkms 1 install installed" in line for line in ready.packages())
    ready.shell("apt-get -y purge standin-dkms")


@pytest.mark.full(why="unit tests have stand-ins of apt; here apt itself reads the saved packages")
def test_saved_packages_are_installed_after_their_repository_is_gone(ready):
    old = dict.fromkeys(SET, "1.19.0-1")
    ready.present("1.19.0-1")
    saved = {"name": "saved", "state": "saved", "packages": old}
    assert ready.run("package_set", **saved)["not_available"] == []
    assert not ready.run("package_set", **saved)["changed"]
    ready.present("1.20.0-1")
    (source,) = (ready.root / "etc/apt/sources.list.d").glob("kubegpu-test.*")
    aside = ready.root / "root/aside"
    source.rename(aside)
    ready.shell("apt-get update; apt-get clean")
    asked = {"name": "x", "state": "available", "packages": SET}
    assert ready.task("package_set", **asked)["not_available"] == sorted(SET)
    assert ready.task("package_set", **{**asked, "packages": old})["not_available"] == []
    ready.present("1.19.0-1")
    assert len([line for line in ready.toolkit() if " 1.19.0-1 hold installed" in line]) == 4
    aside.rename(source)
    assert ready.run("package_set", **{**saved, "packages": {}})["changed"]
    ready.shell("apt-get update")
    assert not (ready.root / "var/lib/kubegpu-packages").exists()


@pytest.mark.full(why="another fault of an install")
def test_nothing_else_is_removed(ready):
    ready.present("1.17.8-1")
    ready.shell("apt-get install -y standin-user")
    before = ready.packages()
    assert any(line.startswith("standin-user ") for line in before)
    for options in ({"packages": SET}, {"state": "absent"}):
        answer = ready.task("package_set", name="toolkit", **options)
        assert answer["failed"]
        assert "standin-user" in answer["msg"]
        assert ready.packages() == before
    ready.shell("apt-get -y purge standin-user")


def test_a_wrong_key_adds_nothing(bare):
    before = bare.etc()
    answer = bare.task("package_repository", **bare.repository(key_fingerprints=["0" * 40]))
    assert answer["failed"]
    assert bare.fingerprint in answer["msg"]
    assert bare.etc() == before


def test_an_earlier_entry_gives_way_and_comes_back(bare):
    old = bare.root / "etc/apt/sources.list.d/old.list"
    # An admin's old entry, as one finds them; ours must switch it off and never trust by it.
    old.write_text(f"deb [trusted=yes] {bare.url}/$(ARCH) /\n")
    bare.run("package_repository", **bare.repository())
    assert "Conflicting" not in bare.shell("apt-get update 2>&1")
    assert old.read_text().startswith("#kubegpu:")
    bare.run("package_repository", name="kubegpu-test", state="absent")
    assert not old.read_text().startswith("#")
    old.unlink()


@pytest.mark.full(why="configuration through an upgrade; the story of the fleet sets it")
def test_configuration_and_all_is_given_back(ready):
    ready.present()
    config = ready.root / "etc/nvidia-container-runtime/config.toml"
    before = config.read_bytes()
    settings = {"nvidia-container-cli.no-cgroups": True}
    assert ready.run("container_toolkit_config", settings=settings)["changed"]
    assert b"no-cgroups = true" in config.read_bytes()
    assert not ready.run("container_toolkit_config", settings=settings)["changed"]
    # An upgrade keeps what was set, and asks nobody.
    ready.present("1.19.0-1")
    assert b"no-cgroups = true" in config.read_bytes()
    ready.run("container_toolkit_config", state="absent")
    assert config.read_bytes() == before


@pytest.mark.full(why="another fault of an install")
def test_a_full_disk_is_named(ready):
    ready.present("1.19.0-1")
    lists = ready.root / "var/cache/apt/archives"
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4k", "none", str(lists)], check=True)
    try:
        answer = ready.task("package_set", name="toolkit", packages=SET)
    finally:
        subprocess.run(["umount", str(lists)], check=True)
    assert answer["failed"]
    assert "Next step:" in answer["msg"]
    assert ready.present()["changed"]


@pytest.mark.full(why="another fault of an install; unit tests have the output of apt")
def test_a_pin_is_named_with_its_file(ready):
    """pop-os/pop#1708: a pin of a distribution on packages of NVIDIA."""
    pin = ready.root / "etc/apt/preferences.d/12-apt-pin.pref"
    pin.write_text(
        "Package: nvidia-container-toolkit* libnvidia-container*\n"
        "Pin: release *\n"
        "Pin-Priority: -1\n"
    )
    try:
        answer = ready.task("package_set", name="toolkit", packages=SET)
    finally:
        pin.unlink()
    assert answer["failed"], answer
    assert "/etc/apt/preferences.d/12-apt-pin.pref" in answer["msg"]
    assert "priority -1" in answer["msg"] and "1.20.0-1" in answer["msg"]


@pytest.mark.full(why="another fault of a repository; unit tests have stand-ins of the programs")
def test_a_folder_of_keys_that_only_root_enters_is_named(bare):
    """ANXS/postgresql#615: the umask of root was 077 when somebody made it."""
    folder = bare.root / "etc/apt/keyrings"
    mode = folder.stat().st_mode
    folder.chmod(0o700)
    try:
        answer = bare.task("package_repository", **bare.repository())
    finally:
        folder.chmod(mode)
    assert answer["failed"], answer
    assert answer["evidence"] == "the folder /etc/apt/keyrings has mode 0700"


@pytest.mark.full(why="the hook of apt; a unit test has the environment of the module")
def test_the_hook_of_needrestart_is_suspended_and_what_waits_is_listed(ready):
    """debops/debops#2668: a stand-in for the hook of needrestart records its environment."""
    hook, program = (
        ready.root / "etc/apt/apt.conf.d/99needrestart",
        ready.root / "usr/sbin/needrestart",
    )
    hook.write_text('DPkg::Post-Invoke {"env > /root/needrestart-env";};\n')
    program.write_text("#!/bin/sh\necho NEEDRESTART-SVC: standin.service\n")
    program.chmod(0o755)
    try:
        answer = ready.task("package_set", name="toolkit", packages=SET)
        seen = (ready.root / "root/needrestart-env").read_text()
        detached = ready.task("package_set", name="toolkit", state="absent", background=True)
        again = (ready.root / "root/needrestart-env").read_text()
    finally:
        for path in (hook, program, ready.root / "root/needrestart-env"):
            path.unlink(missing_ok=True)
    assert not answer.get("failed") and not detached.get("failed"), (answer, detached)
    for lines in (seen.splitlines(), again.splitlines()):
        assert "NEEDRESTART_SUSPEND=1" in lines
        assert "TMPDIR=/var/cache/kubegpu/packages-toolkit" in lines
    assert not (ready.root / "var/cache/kubegpu/packages-toolkit").exists()
    assert answer["services_to_restart"] == ["standin.service"]


OF_DRIVERS = pytest.mark.full(why="a failing build; test_faults of the stage drivers has one")


def driver(version, name="nvidia-open", **options):
    """Return the request for a driver, as a plan of it would be."""
    return {
        "name": "driver",
        "packages": {name: f"{version}*"},
        "optional": {"libstandin-helper": None, "linux-headers-none": None},
        "lock": {"patterns": list(LOCKED), "version": version},
        **options,
    }


def standing(node):
    """Return version and state of what the lock covers."""
    return {
        name: " ".join(words)
        for line in node.packages()
        for name, *words in [line.split()]
        if name.startswith(("nvidia-", "libnvidia-", "cuda-"))
    }


def locked(version, *names):
    set_ = dict.fromkeys((*OPEN, *names), f"{version}-1 hold installed")
    return {**set_, "nvidia-settings": "570.133.20-1 hold installed"}


@pytest.fixture
def driven(ready):
    """The node with the repository, and afterwards without a driver."""
    yield ready
    for path in ready.root.glob("fail-*"):
        path.unlink()
    ready.run("package_set", name="driver", state="absent")
    assert standing(ready) == {}


@pytest.mark.full(why="a set that is locked as a whole; the stage drivers installs one")
def test_a_driver_and_all_that_comes_along_is_one_locked_set(driven):
    driven.shell("apt-get update")
    answer = driven.run("package_set", **driver("595.58.03", background=True))
    assert answer["diff"][0]["after"] == "libstandin-helper any\nnvidia-open 595.58.03* held\n"
    assert answer["packages"]["nvidia-open"] == {"version": "595.58.03-1", "held": True}
    assert standing(driven) == locked("595.58.03", "nvidia-open")
    # What was named for its version alone stays automatic; the optional one was asked for.
    automatic = [line.split()[1] for line in driven.packages() if line.startswith("auto ")]
    assert {*OPEN} <= {*automatic}
    assert "libstandin-helper" not in automatic
    assert any(line == "libstandin-helper 1 install installed" for line in driven.packages())
    assert not driven.run("package_set", **driver("595.58.03"))["changed"]

    driven.shell("apt-mark unhold libnvidia-cfg1")
    answer = driven.run("package_set", **driver("595.58.03"))
    assert answer["reasons"] == ["libnvidia-cfg1 is not held."]
    assert "libnvidia-cfg1 595.58.03-1\n" in answer["diff"][0]["before"]

    assert driven.run("package_set", **driver("595.71.05"))["changed"]
    assert standing(driven) == locked("595.71.05", "nvidia-open")
    # A branch is met by every version in it, and moves nothing.
    branch = driver("595.", packages={"nvidia-open": "595.*"})
    assert not driven.run("package_set", **branch)["changed"]
    assert driven.run("package_set", **driver("595.58.03"))["changed"]
    assert standing(driven) == locked("595.58.03", "nvidia-open")
    # A part that an upgrade took comes back.
    driven.shell("apt-mark unhold nvidia-kernel-common; apt-get upgrade -y")
    assert standing(driven)["nvidia-kernel-common"].startswith("595.71.05-1")
    answer = driven.run("package_set", **driver("595.58.03"))
    assert "nvidia-kernel-common is 595.71.05-1, requested is 595.58.03*." in answer["reasons"]
    assert standing(driven) == locked("595.58.03", "nvidia-open")


@pytest.mark.full(why="another set; the stage drivers installs one that is pinned")
def test_the_package_that_pins_comes_first_and_goes_last(driven):
    pinning = {"name": "pinning", "packages": {"nvidia-driver-pinning-595.58.03": None}}
    assert driven.run("package_set", **pinning, hold=False)["changed"]
    assert driven.run("package_set", **driver("595.58.03"))["changed"]
    assert standing(driven)["nvidia-kernel-common"] == "595.58.03-1 hold installed"
    # The lock covers it too, once it is there.
    assert standing(driven)["nvidia-driver-pinning-595.58.03"] == "595.58.03-1 hold installed"
    assert driven.run("package_set", name="driver", state="absent")["changed"]
    assert driven.run("package_set", name="pinning", state="absent")["changed"]


@OF_DRIVERS
def test_a_first_install_whose_build_fails_is_taken_back(driven):
    (driven.root / "fail-595.58.03-1").touch()
    answer = driven.task("package_set", **driver("595.58.03", background=True))
    assert answer["failed"]
    assert "own script failed" in answer["msg"]
    assert "nvidia-dkms-open" in answer["msg"]
    assert "half-configured" in standing(driven)["nvidia-dkms-open"]
    # What a killed dpkg leaves besides.
    status = driven.shell("dpkg-query --status base-files")
    (driven.root / "var/lib/dpkg/updates/0000").write_text(status)
    assert driven.run("package_set", name="driver", state="absent")["changed"]
    assert standing(driven) == {}
    assert driven.shell("dpkg --audit; apt-get check 2>&1 | grep ^E") == ""


@OF_DRIVERS
def test_an_upgrade_whose_build_fails_goes_back_to_what_was_there(driven):
    assert driven.run("package_set", **driver("595.58.03"))["changed"]
    (driven.root / "fail-595.71.05-1").touch()
    assert driven.task("package_set", **driver("595.71.05"))["failed"]
    assert "595.71.05-1 install half-configured" in standing(driven)["nvidia-dkms-open"]
    answer = driven.run("package_set", **driver("595.58.03"))
    assert "nvidia-dkms-open" in answer["broken"]
    assert standing(driven) == locked("595.58.03", "nvidia-open")
    assert driven.shell("dpkg --audit; apt-get check 2>&1 | grep ^E") == ""
    assert not driven.run("package_set", **driver("595.58.03"))["changed"]


@OF_DRIVERS
def test_the_same_wish_goes_on_after_the_build_was_repaired(driven):
    (driven.root / "fail-595.58.03-1").touch()
    assert driven.task("package_set", **driver("595.58.03"))["failed"]
    (driven.root / "fail-595.58.03-1").unlink()
    assert driven.run("package_set", **driver("595.58.03"))["changed"]
    assert standing(driven) == locked("595.58.03", "nvidia-open")
    assert not driven.run("package_set", **driver("595.58.03"))["changed"]


@OF_DRIVERS
def test_the_other_kernel_module_takes_the_place_of_the_first_and_back(driven):
    assert driven.run("package_set", **driver("595.58.03"))["changed"]
    obsolete = {"obsolete": ["nvidia-open", "nvidia-dkms-open"]}
    (driven.root / "fail-595.71.05-1").touch()
    other = driver("595.71.05", "cuda-drivers", **obsolete)
    assert driven.task("package_set", **other)["failed"]
    assert "half-configured" in standing(driven)["nvidia-dkms"]
    # Back, with nothing said about what the failed change had brought.
    assert driven.run("package_set", **driver("595.58.03"))["changed"]
    assert {
        name: text for name, text in standing(driven).items() if text.endswith(" installed")
    } == locked("595.58.03", "nvidia-open")
    assert driven.shell("dpkg --audit") == ""
    (driven.root / "fail-595.71.05-1").unlink()
    assert driven.run("package_set", **other)["changed"]
    assert standing(driven)["nvidia-dkms"] == "595.71.05-1 hold installed"
    assert not driven.run("package_set", **other)["changed"]
