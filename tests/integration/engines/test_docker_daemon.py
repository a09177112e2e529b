# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""docker_runtime and a dockerd that runs: reload, restart, conflict, failure, repair.

dockerd is the real one of three versions. systemd is a stand-in that signals and starts it.
"""

from __future__ import annotations

import json
import time

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._docker import apply as docker_apply
from tests.integration.engines.docker_inputs.daemon import VERSIONS
from tests.integration.engines.docker_inputs.node import Node

RELOADS = {"reload": True}


@pytest.fixture(params=VERSIONS)
def node(request, tmp_path_factory, monkeypatch):
    made = Node(request.param, tmp_path_factory.mktemp("d"), monkeypatch)
    yield made
    made.close()


@pytest.fixture
def running(node):
    node.config.write_text('{\n    "debug": false\n}\n')
    node.start()
    return node


def systemctl(node):
    """Return what was done to the unit, looking aside."""
    log = node.folder / "systemctl.log"
    done = log.read_text().split() if log.exists() else []
    return [verb for verb in done if verb in ("reload", "restart")]


def test_reload_applies_runtime_and_default_in_the_same_process(running):
    pid = running.dockerd.pid
    answer = running.predicted(set_default=True, **RELOADS)
    assert answer["changed"]
    assert answer["reloaded"]
    assert not answer["reload_required"]
    assert answer["default_runtime"] == "nvidia"
    info = running.dockerd.info()
    assert info["DefaultRuntime"] == "nvidia"
    assert info["Runtimes"]["nvidia"]["path"] == running.runtime
    again = running.predicted(set_default=True, **RELOADS)
    assert not again["changed"]
    assert systemctl(running) == ["reload"]
    assert running.dockerd.pid == pid


def test_reload_that_was_lost_is_made_up_for_by_the_next_run(running):
    answer = running.predicted()
    assert answer["changed"]
    assert answer["reload_required"]
    assert "does not know the runtime nvidia" in answer["reload_reason"]
    assert "nvidia" not in running.dockerd.info()["Runtimes"]
    assert running.pending().code == "docker_reload_required"
    answer = running.predicted(**RELOADS)
    assert running.pending() is None
    assert answer["changed"], "the file is right, the daemon is not"
    assert answer["diff"] == []
    assert "nvidia" in running.dockerd.info()["Runtimes"]


@pytest.mark.parametrize(
    "before",
    [
        '{\n    "debug": false\n}\n',
        pytest.param(None, marks=pytest.mark.full(why="no file before")),
        pytest.param('{"runtimes": {}}', marks=pytest.mark.full(why="another file before")),
    ],
)
def test_absent_takes_runtime_and_default_out_of_the_running_daemon(node, before):
    """A plain reload does not, and kills 20.10: the way over is one file in between."""
    node.config.write_text("{}" if before is None else before)
    node.start()
    if before is None:
        node.config.unlink()
    node.predicted(set_default=True, **RELOADS)
    assert node.dockerd.info()["DefaultRuntime"] == "nvidia"
    answer = node.predicted(state="absent", **RELOADS)
    assert answer["changed"]
    info = node.dockerd.info()
    assert info["DefaultRuntime"] == "runc"
    assert "nvidia" not in info["Runtimes"]
    assert (node.config.read_text() if node.config.exists() else None) == before
    again = node.predicted(state="absent", **RELOADS)
    assert not again["changed"]
    assert not again["reload_required"]
    assert node.leftovers() == []
    assert systemctl(node) == ["reload", "reload"]


@pytest.mark.full(why="the other direction of a reload that was lost")
def test_absent_without_reload_says_what_is_still_to_be_done(running):
    running.predicted(set_default=True, **RELOADS)
    answer = running.predicted(state="absent")
    assert answer["reload_required"]
    assert any("plain reload removes nothing" in reason for reason in answer["reasons"])
    assert running.predicted(state="absent", **RELOADS)["changed"]
    assert running.dockerd.info()["DefaultRuntime"] == "runc"


def test_default_that_is_no_longer_requested_is_removed_from_the_daemon(running):
    running.predicted(set_default=True, **RELOADS)
    answer = running.predicted(set_default=False, **RELOADS)
    assert answer["changed"]
    info = running.dockerd.info()
    assert info["DefaultRuntime"] == "runc"
    assert "nvidia" in info["Runtimes"]
    assert "default-runtime" not in json.loads(running.config.read_text())


def test_gpus_needs_a_restart_and_every_run_says_so_until_it_happens(running):
    time.sleep(0.05)
    running.install_hook()
    for _run in range(2):
        answer = running.predicted(**RELOADS)
        assert answer["restart_required"]
        assert "nvidia-container-runtime-hook" in answer["restart_reason"]
    # A verification without a container has the same reason.
    waits = running.pending()
    assert (waits.code, waits.evidence) == ("docker_restart_required", answer["restart_reason"])
    answer = running.predicted(restart="always", **RELOADS)
    assert running.pending() is None
    assert answer["changed"]
    assert answer["restarted"]
    assert not answer["restart_required"]
    assert "nvidia-container-runtime-hook" in answer["restart_reason"]
    assert not answer["file_changed"]
    answer = running.predicted(restart="always", **RELOADS)
    assert not answer["changed"] and answer["restart_reason"] is None
    # An upgrade of the toolkit gives the hook a new change time; dockerd keeps what it found.
    running.install_hook()
    assert not running.predicted(restart="always", **RELOADS)["changed"]
    assert systemctl(running).count("restart") == 1


def test_restart_if_idle_restarts_where_nothing_runs(running):
    time.sleep(0.05)
    running.install_hook()
    answer = running.predicted(restart="if_idle", **RELOADS)
    assert answer["restarted"]
    assert "nvidia" in running.dockerd.info()["Runtimes"]


@pytest.mark.full(why="test_gpus_needs_a_restart_... with the hook")
def test_without_hook_no_restart_is_asked_for(running):
    answer = running.predicted(**RELOADS)
    assert not answer["restart_required"]
    assert any("is not installed" in reason for reason in answer["reasons"])


@pytest.mark.full(why="the runtime of another vendor")
def test_s17_amds_runtime_beside_nvidias(running):
    running.predicted(set_default=True, **RELOADS)
    program = running.bin / "amd-container-runtime"
    program.write_text('#!/bin/sh\nexec runc "$@"\n')
    program.chmod(0o755)
    amd = {"name": "amd", "runtime_path": str(program), **RELOADS}
    answer = running.predicted(**amd)
    assert answer["changed"] and answer["reloaded"] and not answer["restart_required"]
    # NVIDIA's hook is nothing that AMD's containers need.
    assert not any("hook" in reason for reason in answer["reasons"])
    info = running.dockerd.info()
    assert {"amd", "nvidia"} < set(info["Runtimes"]) and info["DefaultRuntime"] == "nvidia"
    assert info["Runtimes"]["amd"]["path"] == str(program)
    assert not running.predicted(**amd)["changed"]
    assert not running.predicted(set_default=True, **RELOADS)["changed"]
    assert running.predicted(**{**amd, "state": "absent"})["changed"]
    info = running.dockerd.info()
    assert "amd" not in info["Runtimes"] and info["DefaultRuntime"] == "nvidia"
    running.predicted(state="absent", **RELOADS)
    assert running.config.read_text() == '{\n    "debug": false\n}\n'
    assert running.leftovers() == []


def test_cdi_needs_a_restart_before_28_and_nothing_from_then_on(running):
    answer = running.predicted(cdi=True, **RELOADS)
    assert answer["restart_required"] is (running.version == "26.1")
    if running.version == "20.10":
        assert any("has no CDI" in reason for reason in answer["reasons"])
    answer = running.predicted(cdi=True, restart="always", **RELOADS)
    assert answer["restarted"] is (running.version == "26.1")
    assert not running.predicted(cdi=True, restart="always", **RELOADS)["changed"]
    if running.version != "20.10":
        assert running.dockerd.info()["CDISpecDirs"]


def refused_for(node, name, **options):
    """Run the module; return its words, having seen that they name unit file and flag."""
    before = node.config.read_bytes()
    answer = node.run(**options)
    assert answer["failed"]
    assert f"{node.folder}/docker.service: {name}" in answer["msg"]
    assert f"Remove {name.split()[0]} from {node.folder}/docker.service" in answer["msg"]
    assert node.config.read_bytes() == before
    assert node.leftovers() == []
    return answer["msg"]


def test_conflict_with_default_runtime_in_the_unit_is_found_before_dockerd_finds_it(running):
    flag = "--default-runtime=runc"
    running.unit([flag])
    assert not running.run(check=True).get("failed"), "no conflict where no default is requested"
    words = refused_for(running, "--default-runtime runc", set_default=True)
    assert "dockerd does not start like that" in words
    # dockerd says the same, later and with the node down.
    running.dockerd.stop()
    running.config.write_text('{"default-runtime": "runc"}')
    assert "specified both as a flag and in the configuration" in (
        running.dockerd.words_of_refusal(flag)
    )


@pytest.mark.full(why="another option of the unit")
def test_conflict_with_add_runtime_in_the_unit_is_found_before_a_reload_loses_it(running):
    flag = "--add-runtime=x=/bin/true"
    running.unit([flag])
    assert "forgets those of its command line" in refused_for(running, "--add-runtime x=/bin/true")
    # dockerd does.
    running.dockerd.stop()
    running.config.write_text('{"runtimes": {"n": {"path": "/bin/true"}}}')
    running.dockerd.start(flag, path=running.path)
    assert {"x", "n"} <= set(running.dockerd.info()["Runtimes"])
    running.dockerd.reload()
    assert "x" not in running.dockerd.info()["Runtimes"]


@pytest.mark.full(why="another option of the unit")
def test_conflict_with_feature_in_the_unit_is_found_before_dockerd_finds_it(running):
    flag = "--feature=cdi=false"
    running.unit([flag])
    refused_for(running, "--feature cdi=false", cdi=True)
    running.dockerd.stop()
    running.config.write_text('{"features": {"cdi": true}}')
    words = running.dockerd.words_of_refusal(flag)
    if running.version == "28.5":
        assert "specified both as a flag and in the configuration" in words
    else:
        assert "dockerd --help" in words, "it does not know the flag"


def test_flag_of_the_running_daemon_is_found_where_the_unit_does_not_show_it(node):
    node.config.write_text("{}")
    node.dockerd.start("--add-runtime=x=/bin/true", path=node.path)
    answer = node.run()
    assert answer["failed"]
    assert f"process {node.dockerd.pid}" in answer["msg"]


def test_other_file_that_dockerd_reads_is_named(running):
    other = running.folder / "elsewhere.json"
    running.config.write_text("{}")
    answer = running.run(config_path=str(other))
    assert answer["failed"]
    assert f"Set config_path: {running.config}" in answer["msg"]


def test_restart_that_fails_puts_the_old_file_back(running):
    """The runtime is fine, the daemon does not come up: the admin broke its unit meanwhile."""
    time.sleep(0.05)
    running.install_hook()
    before = running.config.read_bytes()
    given = json.loads((running.folder / "argv.json").read_text())
    broken = {**given, "argv": [*given["argv"], "--no-such-flag"]}
    (running.folder / "argv.json").write_text(json.dumps(broken))
    answer = running.run(restart="always", **RELOADS)
    assert answer["failed"]
    assert "was restored" in answer["msg"]
    assert "dockerd still does not run" in answer["msg"]
    last = running.dockerd.log.read_text().strip().splitlines()[-1]
    assert last in answer["msg"], "the journal is quoted"
    assert running.config.read_bytes() == before
    assert running.leftovers() == []


@pytest.mark.full(why="test_restart_that_fails_... puts it back, too")
def test_reload_that_is_not_taken_puts_the_old_file_back(running, monkeypatch):
    """Somebody's later edit of another file in the way: dockerd keeps its old configuration."""
    before = running.config.read_bytes()
    systemctl_path = running.bin / "systemctl"
    script = systemctl_path.read_text()
    systemctl_path.write_text(script.replace("exec ", '[ "$1" = reload ] && exit 0\nexec '))
    monkeypatch.setattr(docker_apply, "RELOAD_SECONDS", 1.0)
    answer = running.run(set_default=True, **RELOADS)
    assert answer["failed"]
    assert "was restored; dockerd runs again with it" in answer["msg"]
    assert "did not take the runtimes" in answer["msg"]
    assert running.config.read_bytes() == before
    assert running.leftovers() == []


def test_stopped_docker_is_configured_and_not_started(node):
    node.config.write_text("{}")
    answer = node.predicted(restart="always", **RELOADS)
    assert answer["changed"]
    assert not answer["restarted"]
    assert not answer["reloaded"]
    assert systemctl(node) == []
