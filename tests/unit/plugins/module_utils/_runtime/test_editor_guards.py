# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The guards of Docker's editor: each stops an edit that would be a mistake of our own.

A mistake is made on purpose where no input is known that makes it, and the guard has to see it.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._core.errors import KubegpuError
from ansible_collections.kubegpu.nodes.plugins.module_utils._docker import apply as docker_apply
from ansible_collections.kubegpu.nodes.plugins.module_utils._docker import config as docker
from ansible_collections.kubegpu.nodes.plugins.modules import docker_runtime
from tests.unit.module_process import run_module

BEFORE = """{
  "debug": true,
  "live-restore": true,
  "features": {"buildkit": true},
  "runtimes": {"crun": {"path": "/usr/bin/crun"}, "kata": {"path": "/opt/kata"}}
}
"""


@pytest.mark.parametrize(
    ("after", "words"),
    [
        (BEFORE.replace("/usr/bin/crun", "/usr/bin/runc"), "other runtimes"),
        (BEFORE.replace('"crun": {"path": "/usr/bin/crun"}, ', ""), "other runtimes"),
        (BEFORE.replace('"buildkit": true', '"buildkit": false'), "other features"),
        (BEFORE.replace('"debug": true', '"debug": false'), "other settings"),
        (BEFORE.replace('  "debug": true,\n', ""), "other settings"),
        (BEFORE.replace("{\n", '{\n  "more": 1,\n', 1), "other settings"),
        (
            BEFORE.replace('"debug"', '"x"').replace("live-restore", "debug").replace(
                '"x"', '"live-restore"'
            ),
            "other settings",
        ),
        (BEFORE + '{"left": "behind"}\n', "other settings"),
    ],
    ids=[
        "runtime changed", "runtime lost", "feature changed", "setting changed", "setting lost",
        "setting added", "order changed", "data behind",
    ],
)  # fmt: skip
def test_docker_sees_an_edit_of_what_is_not_ours(after, words):
    before = docker.read(BEFORE, "daemon.json", (20, 10))
    with pytest.raises(KubegpuError, match=f"would have changed {words}"):
        docker.verify(before, docker.read(after, "daemon.json", (20, 10)), "nvidia")


@pytest.mark.parametrize("state", ["present", "absent"])
def test_docker_asks_that_guard_before_it_writes(tmp_path, monkeypatch, state):
    """The edit goes wrong on purpose: another runtime of the admin's is changed with ours."""
    path = tmp_path / "daemon.json"
    path.write_text(BEFORE)
    arguments = {
        "config_path": str(path),
        "state_path": str(tmp_path / "var" / "state.json"),
        "runtime_path": "/bin/true",
        "unit": "kubegpu-test-no-such-unit",
        "socket": str(tmp_path / "no.sock"),
        "docker_version": "28.5.2",
        "validate": False,
    }
    if state == "absent":
        assert run_module(docker_runtime.main, arguments)["changed"]
        # Edited since, so that the old bytes cannot come back as a whole.
        path.write_text(path.read_text().replace('"debug": true', '"debug": false'))
    name = {"present": "configure", "absent": "remove"}[state]
    real = getattr(docker, name)

    def wrong(document, *arguments):
        edited = real(document, *arguments)
        text = edited.document.text.replace("/opt/kata", "/opt/other")
        return replace(edited, document=docker.read(text, "daemon.json", (28, 5)))

    monkeypatch.setattr(docker_apply, name, wrong)
    before = path.read_text()
    answer = run_module(docker_runtime.main, {**arguments, "state": state})
    assert answer.get("failed"), answer
    assert "would have changed other runtimes" in answer["msg"]
    assert path.read_text() == before
