# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._core.errors import KubegpuError
from ansible_collections.kubegpu.nodes.plugins.module_utils._driver.apply.installer import (
    execute_runfile,
    uninstall_runfile,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._host.command import Result
from tests.unit.fixtures.driver_nodes import OK, StandinRunner


def test_uninstallers():
    run = StandinRunner(**{"/usr/bin/nvidia-uninstall": OK, "/usr/bin/nvidia-installer": OK})
    run.answers = {"/usr/bin/nvidia-uninstall": OK, "/usr/bin/nvidia-installer": OK}
    uninstall_runfile(run, "/usr/bin/nvidia-uninstall")
    uninstall_runfile(run, "/usr/bin/nvidia-installer")
    assert run.calls == [
        "/usr/bin/nvidia-uninstall --silent",
        "/usr/bin/nvidia-installer --uninstall --silent",
    ]
    with pytest.raises(KubegpuError, match="not there"):
        uninstall_runfile(run, None)
    with pytest.raises(KubegpuError, match="uninstaller failed"):
        uninstall_runfile(run, "/usr/bin/other")


def test_an_installer_that_fails_quotes_its_log(tree):
    reader = tree(var__log__nvidia_installer="", **{"var__log__nvidia-installer.log": "ERROR: x\n"})
    run = StandinRunner(sh=Result(1, "", "failed"))
    runfile = {"file": "/c/a.run", "arguments": ["--silent"], "version": "580.1"}
    with pytest.raises(KubegpuError) as caught:
        execute_runfile(run, reader, runfile, 60)
    assert "ERROR: x" in caught.value.evidence
    (call,) = run.calls
    assert call.startswith("sh /c/a.run --silent --tmpdir=")
    assert call.endswith("/var/cache/kubegpu/unpacked/driver")


def test_an_installer_that_was_changed_is_not_run(tree):
    runfile = {"file": "/c/a.run", "arguments": [], "version": "580.1", "sha256": "a" * 64}
    run = StandinRunner(sh=OK, sha256sum=Result(0, f"{'b' * 64}  /c/a.run\n", ""))
    with pytest.raises(KubegpuError, match="not the file any more") as caught:
        execute_runfile(run, tree(), runfile, 60)
    assert "b" * 64 in caught.value.evidence
    assert run.calls == ["sha256sum /c/a.run"]
    # A name with a backslash is told with one before the sum.
    run = StandinRunner(sh=OK, sha256sum=Result(0, f"\\{'a' * 64}  /c/a.run\n", ""))
    execute_runfile(run, tree(), runfile, 60)
    assert [call.partition(" --tmpdir=")[0] for call in run.calls[1:]] == ["sh /c/a.run"]
    with pytest.raises(KubegpuError, match="no such program"):
        execute_runfile(StandinRunner(sh=OK), tree(), runfile, 60)


def test_an_installer_that_was_stopped(tree):
    runfile = {"file": "/c/a.run", "arguments": [], "version": "580.1"}
    with pytest.raises(KubegpuError, match="after 60 seconds") as caught:
        execute_runfile(StandinRunner(sh=Result(124, "x", "")), tree(), runfile, 60)
    assert "build_timeout" in caught.value.next_step
