# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What keeps another user of the node from a file."""

from __future__ import annotations

import os
import pwd
import subprocess

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._host.access import (
    barrier,
    sandbox_user,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._host.command import Result


def refuses(argv, timeout=60, environment=None):
    return Result(1, "", "")


@pytest.fixture
def keyring(tmp_path):
    path = tmp_path / "keyrings" / "key.gpg"
    path.parent.mkdir()
    path.write_text("key")
    for place in (path.parent, *path.parents):
        if place.is_relative_to(tmp_path.parents[-2]) and place != place.parent:
            os.chmod(place, 0o755) if place.owner() == pwd.getpwuid(os.getuid()).pw_name else None
    path.chmod(0o644)
    return path


def test_a_folder_that_only_root_enters_is_named(keyring):
    assert barrier(refuses, str(keyring)) is None
    keyring.parent.chmod(0o700)
    found = barrier(refuses, str(keyring))
    assert found is not None and found.path == str(keyring.parent)
    assert found.shown() == f"the folder {keyring.parent} has mode 0700"
    assert found.command() == f"chmod 0755 {keyring.parent}"


def test_a_file_that_only_root_reads_is_named(keyring):
    keyring.chmod(0o600)
    found = barrier(refuses, str(keyring))
    assert found is not None
    assert (found.path, found.folder, found.command()) == (
        str(keyring), False, f"chmod 0644 {keyring}",
    )  # fmt: skip


def test_a_folder_above_counts_for_a_file_that_is_not_there_yet(keyring):
    keyring.parent.chmod(0o711)
    assert barrier(refuses, str(keyring.parent / "new.gpg")) is None
    keyring.parent.chmod(0o700)
    found = barrier(refuses, str(keyring.parent / "new.gpg"))
    assert found is not None and found.path == str(keyring.parent)


@pytest.mark.parametrize(
    "answer",
    [
        Result(0, "", ""),
        Result(127, "", "setpriv: no such program"),
        Result(1, "", "setpriv: failed to get user id of _apt"),
    ],
    ids=["an ACL lets the user in", "no program", "no such user"],
)
def test_only_what_the_node_confirms_counts(keyring, answer):
    keyring.parent.chmod(0o700)
    assert barrier(lambda *_args, **_more: answer, str(keyring)) is None


def test_the_user_of_apt_is_read():
    for answer, user in (
        (Result(0, "root\n", ""), ""),
        (Result(0, "\n", ""), "_apt"),
        (Result(0, "other\n", ""), "other"),
        (Result(127, "", ""), "_apt"),
    ):
        assert sandbox_user(lambda *_args, said=answer, **_more: said) == user


@pytest.mark.skipif(os.getuid() != 0, reason="only root becomes another user")
def test_the_real_programs(keyring):
    def run(argv, timeout=60, environment=None):
        changed = [word.replace("nogroup", "0") for word in argv]
        done = subprocess.run(changed, capture_output=True, text=True, check=False)
        return Result(done.returncode, done.stdout, done.stderr)

    keyring.parent.chmod(0o700)
    found = barrier(run, str(keyring), "nobody")
    assert found is not None
