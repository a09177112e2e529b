# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What package managers say when they fail, explained."""

from __future__ import annotations

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._packages.failures import explain


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
            "cannot be reached",
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


def test_the_file_for_which_there_is_no_space_is_named():
    """dpkg says it in a line below its error."""
    line = "cannot copy extracted data for './usr/src/a': failed to write (No space left on device)"
    words = f"dpkg: error processing archive /tmp/a.deb (--unpack):\n {line}\nSelecting b.\n"
    error = explain(words, "The set")
    assert "disk of this node is full" in error.cause
    assert error.evidence.splitlines()[1] == line and "Selecting" not in error.evidence
