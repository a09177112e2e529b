# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Files that keep their content although the scripts of packages change them."""

from __future__ import annotations

import shutil
import stat

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._core.errors import InputError
from ansible_collections.kubegpu.nodes.plugins.module_utils._packages import preserve
from ansible_collections.kubegpu.nodes.plugins.module_utils._record.store import StateStore


@pytest.fixture
def etc(tmp_path):
    folder = tmp_path / "etc/cdi"
    folder.mkdir(parents=True)
    (folder / "nvidia.yaml").write_bytes(b"cdiVersion: 0.6.0\n\xff")
    (folder / "sub").mkdir()
    (tmp_path / "etc/daemon.json").write_text("{}\n")
    (tmp_path / "etc/daemon.json").chmod(0o600)
    return tmp_path / "etc"


def test_files_that_a_script_removes_or_changes_are_restored(etc, tmp_path):
    state = tmp_path / "state.json"
    store = StateStore(str(state))
    patterns = [f"{etc}/cdi/*", f"{etc}/daemon.json", f"{etc}/missing.json"]
    with store.transaction():
        preserve.save(store, "toolkit", patterns)
        # The scripts of the package.
        shutil.rmtree(etc / "cdi")
        (etc / "daemon.json").write_text('{"features": {}}\n')
        (etc / "new.json").write_text("x")
    # Another run, after this one was killed.
    store = StateStore(str(state))
    gone = [str(etc / "cdi/nvidia.yaml"), str(etc / "daemon.json")]
    assert preserve.differing(store, "toolkit") == gone
    assert preserve.differing(store, "driver") == []
    with store.transaction():
        # What is saved is older than what the scripts left.
        preserve.save(store, "toolkit", patterns)
        preserve.restore(store, "toolkit")
    assert (etc / "cdi/nvidia.yaml").read_bytes() == b"cdiVersion: 0.6.0\n\xff"
    assert (etc / "daemon.json").read_text() == "{}\n"
    assert stat.S_IMODE((etc / "daemon.json").stat().st_mode) == 0o600
    assert (etc / "new.json").exists() and not (etc / "missing.json").exists()
    assert not state.exists(), "the record is gone with what it had"


def test_only_absolute_paths():
    preserve.check_patterns(["/etc/cdi/*"])
    with pytest.raises(InputError, match=r"etc/cdi"):
        preserve.check_patterns(["etc/cdi/*"])
