# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What package managers say when they fail, explained."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._host.access import Barrier
from ansible_collections.kubegpu.nodes.plugins.module_utils._host.space import FileSystem
from ansible_collections.kubegpu.nodes.plugins.module_utils._packages.failures import (
    Circumstances,
    cause_of,
    explain,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._packages.obstacles import Obstacle

GIB = 1 << 30
EVIDENCE = Path(__file__).parents[3] / "fixtures" / "driver_evidence"
INITRAMFS = """\
Setting up linux-image-6.1.0-40-amd64 (6.1.153-1) ...
update-initramfs: Generating /boot/initrd.img-6.1.0-40-amd64
cat: write error: No space left on device
E: mkinitramfs failure cat 1
update-initramfs: failed for /boot/initrd.img-6.1.0-40-amd64 with 1.
run-parts: /etc/kernel/postinst.d/initramfs-tools exited with return code 1
dpkg: error processing package linux-image-6.1.0-40-amd64 (--configure):
 installed linux-image-6.1.0-40-amd64 package post-installation script subprocess returned error
E: Sub-process /usr/bin/dpkg returned an error code (1)
"""


def system(point, free=GIB, **more):
    return FileSystem(point, free=free, size=4 * GIB, **more)


def seen(*systems, kernels="apt-get autoremove --purge"):
    return Circumstances(remove_kernels=kernels, file_systems=systems)


@pytest.mark.parametrize(
    ("words", "cause"),
    [
        # Words of apt 2.6 (Debian 12) and 3.0 (Debian 13), and of Ansible's module.
        ("E: Could not get lock /var/lib/dpkg/lock-frontend. It is held by process 1", "its lock"),
        ("dpkg: error: dpkg frontend lock was locked by another process with pid 12", "its lock"),
        ("dpkg: error: cannot write: No space left on device", "disk of this node is full"),
        ("E: You don't have enough free space in /var/cache/apt/archives/.", "disk of this node"),
        ("W: GPG error: http://m InRelease: ... NO_PUBKEY DDCAE044F796ECB0", "signature"),
        ("E: The repository 'http://m  InRelease' is not signed.", "signature"),
        ("E: Packages need to be removed but remove is disabled.", "removing other packages"),
        (
            "E: Failed to fetch http://m/a.deb  404  Not Found [IP: ::1 80]",
            "has a.deb, and its server has no such file (404)",
        ),
        (
            "E: Could not open lock file /var/lib/dpkg/lock-frontend - open (13: Permission denied)"
            "\nE: Unable to acquire the dpkg frontend lock (/var/lib/dpkg/lock-frontend), are you "
            "root?",
            "not run as root",
        ),
        (
            "Error: This command has to be run with superuser privileges (under the root user on "
            "most systems).",
            "not run as root",
        ),
        (
            "E: Failed to fetch https://m/InRelease  Certificate verification failed: The "
            "certificate is NOT trusted.  Could not handshake",
            "certificate of a repository's server",
        ),
        (
            "E: Failed to fetch https://m/InRelease  401  Unauthorized [IP: ::1 443]",
            "refuses access",
        ),
        (
            "Errors during downloading metadata for repository 'cuda':\n  - Status code: 403 for "
            "https://m/repodata/repomd.xml (IP: ::1)\nError: Failed to download metadata",
            "refuses access",
        ),
        ("E: Failed to fetch http://m/a  407  Proxy Authentication Required", "proxy"),
        (
            "E: Release file for http://m/InRelease is not valid yet (invalid for another 3h). "
            "Updates for this repository will not be applied.",
            "clock",
        ),
        (
            "All matches were filtered out by exclude filtering for argument: nvidia-open\nError: "
            "Unable to find a match: nvidia-open",
            "hides a package",
        ),
        ("E: Failed to fetch http://m/a.deb  Hash Sum mismatch", "not the one"),
        ("Failed to update apt cache after 1 retries: ", "cannot be reached"),
        ("E: Version '9' for 'a' was not found", "no repository"),
        ("no available installation candidate for a=9", "no repository"),
        (" a : Depends: b (= 2) but it is not going to be installed\nE: Unmet dependencies", "met"),
        ("E: Sub-process /usr/bin/dpkg returned an error code (1)", "script failed"),
        ("something new", "package manager failed"),
    ],
)
def test_failures_are_explained(words, cause):
    error = explain(words, "The set")
    assert cause in error.cause
    assert error.evidence.splitlines()[-1].strip() in words
    assert error.next_step


def test_what_a_failing_build_prints_besides_is_not_its_cause():
    """DKMS makes a self-signed certificate for its key: recorded on Debian 13."""
    output = (EVIDENCE / "debian13-nvidia-open-550.163.01-apt.txt").read_text(encoding="utf-8")
    assert "self signed certificate" in output
    assert explain(output, "The set").code == "package_script_failed"


@pytest.mark.parametrize(
    "words",
    [
        "Curl error (60): SSL peer certificate or SSH remote key was not OK for https://m/x "
        "[SSL certificate problem: self-signed certificate]",
        "certificate verify failed: self-signed certificate in certificate chain (_ssl.c:1028)",
        "ERROR: cannot verify m's certificate:  Self-signed certificate encountered.",
    ],
)
def test_a_certificate_of_a_repository_is_one(words):
    assert explain(words, "The set").code == "repository_certificate"


def test_the_file_for_which_there_is_no_space_is_named():
    """dpkg says it in a line below its error."""
    line = "cannot copy extracted data for './usr/src/a': failed to write (No space left on device)"
    words = f"dpkg: error processing archive /tmp/a.deb (--unpack):\n {line}\nSelecting b.\n"
    error = explain(words, "The set")
    assert "disk of this node is full" in error.cause
    assert error.evidence.splitlines()[1] == line and "Selecting" not in error.evidence


@pytest.mark.parametrize(
    "facts",
    [(), (system("/"), system("/boot", 3 << 20))],
    ids=["the text alone", "and the node"],
)
def test_a_full_boot_is_named_and_its_old_kernels(facts):
    error = explain(INITRAMFS, "The set", seen(*facts))
    assert error.cause.startswith("The set: The file system /boot ")
    assert "update-initramfs: Generating /boot/initrd.img-6.1.0-40-amd64" in error.evidence
    assert "cat: write error: No space left on device" in error.evidence
    assert "old kernels by apt-get autoremove --purge" in error.next_step
    assert "/var/cache" not in error.next_step
    assert bool(facts) == ("/boot: 3 of 4096 MiB free" in error.evidence)


def test_the_node_decides_where_scripts_write_temporary_files_too():
    """mkinitramfs works in /var/tmp; the message names the file in /boot."""
    error = explain(INITRAMFS, "The set", seen(system("/boot"), system("/var", 0), system("/")))
    assert "file system /var " in error.cause and "Free space on /var" in error.next_step


@pytest.mark.parametrize(
    ("words", "point"),
    [
        ("Error Summary\nDisk Requirements:\n   At least 43MB more space needed on the /boot "
         "filesystem.", "/boot"),
        ("installing package kernel-core-6.1.x86_64 needs 30MB more space on the /boot filesystem",
         "/boot"),
        ("installing package cuda-13.x86_64 needs 5GB on the / filesystem", "/"),
        ("cannot copy extracted data for './usr/src/a' to '/usr/src/a.dpkg-new': failed to write "
         "(No space left on device)", "/usr"),
        ("dpkg: error: unable to fill /var/lib/dpkg/updates/tmp.i with padding: No space left on "
         "device", "/var"),
        ("E: You don't have enough free space in /var/cache/apt/archives/.", "/var"),
        ("E: Write error - write (28: No space left on device) [IP: ::1 80]\n"
         "E: Failed to fetch http://m/boot/a.deb", "/opt"),
    ],
)  # fmt: skip
def test_the_file_system_of_the_path_is_named(words, point):
    """The address of a repository is no path; then the node alone tells."""
    systems = [system(name) for name in ("/", "/boot", "/usr", "/var")]
    error = explain(words, "x", seen(*systems, system("/opt", 0)))
    assert f"file system {point} of this node" in error.cause


def test_without_inodes_is_not_without_space():
    systems = (system("/"), system("/usr", free_files=0, files=65536))
    words = "dpkg: error: unable to create '/usr/src/x.dpkg-new': No space left on device"
    error = explain(words, "x", seen(*systems))
    assert "/usr of this node has no free inodes" in error.cause
    assert "/usr: 1024 of 4096 MiB free, 0 of 65536 inodes free" in error.evidence


@pytest.mark.parametrize(
    ("words", "point"),
    [
        ("dpkg: error processing a.deb (--unpack):\n unable to create '/usr/bin/x.dpkg-new' "
         "(while processing './usr/bin/x'): Read-only file system", "/usr"),
        ("E: Could not open lock file /var/lib/dpkg/lock-frontend - open (30: Read-only file "
         "system)\nE: Unable to acquire the dpkg frontend lock (/var/lib/dpkg/lock-frontend), are "
         "you root?", "/var"),
        ("error: can't create transaction lock on /usr/share/rpm/.rpm.lock (Read-only file system)",
         "/usr"),
    ],
)  # fmt: skip
def test_a_read_only_file_system_is_no_lock(words, point):
    systems = (system("/"), system("/usr", read_only=True), system("/var", read_only=True))
    error = explain(words, "x", seen(*systems))
    assert error.cause == f"x: The file system {point} is mounted read-only."
    assert "Read-only file system" in error.evidence
    assert "read-only" in explain(words, "x").cause


def test_the_variable_of_the_role_and_the_holder_of_the_lock_are_named():
    words = (
        "E: Could not get lock /var/lib/dpkg/lock-frontend. It is held by process 4711 "
        "(unattended-upgr)"
    )
    error = explain(words, "x", Circumstances(lock_option="kubegpu_packages.lock_timeout"))
    assert "holds its lock: unattended-upgr, process 4711." in error.cause
    assert "raise kubegpu_packages.lock_timeout" in error.next_step
    assert "raise lock_timeout" in explain(words, "x").next_step


def test_a_key_that_the_user_of_apt_cannot_read_is_not_a_wrong_key():
    words = "W: GPG error: http://m InRelease: ... NO_PUBKEY DDCAE044F796ECB0"
    barrier = Barrier("/etc/apt/keyrings", folder=True, mode=0o700)
    cause, next_step, _code = cause_of(words, Circumstances(unreadable=(barrier,))) or ("", "", "")
    assert "the folder /etc/apt/keyrings has mode 0700" in cause
    assert next_step == "Run chmod 0755 /etc/apt/keyrings, then run again."
    assert "signature" in (cause_of(words) or ("",))[0]


def test_what_is_listed_and_not_installable_names_the_setting():
    words = "no available installation candidate for nvidia-container-toolkit=1.20.1-1"
    pin = Obstacle("nvidia-container-toolkit", "priority -1 by /etc/apt/preferences.d/x", "Change.")
    error = explain(words, "x", Circumstances(obstacles=(pin,)))
    assert error.cause == "x: nvidia-container-toolkit: priority -1 by /etc/apt/preferences.d/x."
    assert error.evidence == words and error.next_step == "Change."
    assert "no repository" in explain(words, "x").cause
