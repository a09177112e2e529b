# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._docker import config, daemon
from ansible_collections.kubegpu.nodes.plugins.module_utils._docker.daemon import (
    parse_version,
    transition,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._docker.flags import parse_flags
from ansible_collections.kubegpu.nodes.plugins.module_utils._docker.types import (
    Info,
    Needs,
    Request,
    Running,
)

PATH = "/usr/bin/nvidia-container-runtime"
NAME = "daemon.json"
NEW = (28, 5, 2)
REQUEST = Request("nvidia", True, PATH, None, False, None)


def read(text):
    return config.read(text, NAME, NEW)


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("Docker version 20.10.24+dfsg1, build 5d6db84", (20, 10, 24)),
        ("Docker version 18.09.9, build 039a7df", (18, 9, 9)),
        ("Docker version 29.0.0-rc.1, build x", (29, 0, 0)),
        ("17.05.0-ce", (17, 5, 0)),
        ("28.5", (28, 5)),
        ("none", None),
    ],
)
def test_version(text, numbers):
    assert parse_version(text) == numbers


INFO = Info({"runc": {"path": "runc"}, "nvidia": {"path": PATH}}, "runc", "28.5.2")
FILE = json.dumps({"runtimes": {"nvidia": {"path": PATH}}})


def needs(text=FILE, request=REQUEST, version=NEW, **running):
    return daemon.needs(read(text), request, Running(**{"active": True, **running}), version)


def test_dockerd_that_has_it_all_needs_nothing():
    assert needs(info=INFO, hook_path="/h") == Needs()


@pytest.mark.parametrize(
    ("info", "words"),
    [
        (replace(INFO, runtimes={}), "does not know the runtime nvidia"),
        (replace(INFO, runtimes={"nvidia": {"path": "/b"}}), "has /b for the runtime nvidia"),
        (
            replace(INFO, runtimes={"nvidia": {"path": PATH, "runtimeArgs": ["-a"]}}),
            "other arguments",
        ),
        (replace(INFO, runtimes={**INFO.runtimes, "old": {}}), "still has the runtime old"),
        (replace(INFO, default_runtime="nvidia"), "default runtime is nvidia"),
    ],
)
def test_difference_between_file_and_dockerd_needs_a_reload(info, words):
    wanted = needs(info=info)
    assert words in "".join(wanted.reload)
    assert wanted.restart == ()


def test_flags_of_the_command_line_are_no_difference():
    info = replace(INFO, runtimes={**INFO.runtimes, "x": {}}, default_runtime="x")
    given_flags = parse_flags(["dockerd", "--add-runtime=x=/x", "--default-runtime", "x"])
    assert needs(info=info, flags=given_flags).reload == ()


def test_stopped_dockerd_needs_nothing():
    assert needs(active=False, hook_path="/h", started_before_hook=True) == Needs()


def test_hook_installed_after_the_start_needs_a_restart():
    wanted = needs(info=INFO, hook_path="/h", started_before_hook=True)
    assert "/h" in wanted.restart[0]


@pytest.mark.parametrize("version", [(18, 9, 9), (17, 5, 0), (1, 13, 1)])
def test_scenario_7_docker_before_19_03_is_told_that_gpus_does_not_exist(version):
    info = replace(INFO, version=".".join(map(str, version)))
    wanted = needs(info=info, version=version, hook_path="/h", started_before_hook=True)
    assert wanted.restart == ()
    assert "has no --gpus (it came with 19.03)" in wanted.notes[0]
    assert "--runtime=nvidia" in wanted.notes[0]


def test_docker_19_03_is_not_told_so():
    assert needs(info=replace(INFO, version="19.03.15"), hook_path="/h").notes == ()


def test_amds_runtime_needs_no_hook_of_nvidia():
    amd = replace(REQUEST, name="amd", runtime_path="/usr/local/bin/amd-container-runtime")
    info = replace(INFO, version="28.5.2")
    assert needs(request=amd, info=info) == Needs()
    assert needs(request=amd, info=info, hook_path="/h", started_before_hook=True) == Needs()
    assert needs(info=info).notes, "NVIDIA's needs it"


def test_version_of_the_running_dockerd_counts_not_of_the_installed():
    wanted = needs(info=replace(INFO, version="18.09.9"), version=NEW)
    assert "18.09.9" in wanted.notes[0]


def test_dockerd_that_does_not_answer_is_reloaded_only_for_a_change():
    assert needs(hook_path="/h", file_changes=False).reload == ()
    wanted = needs(hook_path="/h", file_changes=True)
    assert wanted.reload
    assert "is unknown whether" in wanted.notes[0]


@pytest.mark.parametrize(
    ("text", "version", "directories", "restart"),
    [
        ('{"features": {"cdi": true}}', "26.1.5", (), True),
        ('{"features": {"cdi": true}}', "26.1.5", ("/etc/cdi",), False),
        ("{}", "26.1.5", (), False),
        ("{}", "26.1.5", ("/etc/cdi",), True),
        ("{}", "28.5.2", ("/etc/cdi",), False),
        ('{"features": {"cdi": false}}', "28.5.2", ("/etc/cdi",), True),
        ('{"features": {"cdi": true}}', "28.5.2", ("/etc/cdi",), False),
        ("{}", "28.1.0", (), False),
        ("{}", "28.1.0", ("/etc/cdi",), False),
        ('{"features": {"cdi": true}}', "20.10.24", None, False),
        ('{"features": {"cdi": true}, "cdi-spec-dirs": [""]}', "26.1.5", (), False),
    ],
)
def test_cdi_is_compared_with_what_dockerd_was_started_with(text, version, directories, restart):
    info = replace(INFO, version=version, cdi_directories=directories)
    assert bool(needs(text, info=info, hook_path="/h").restart) is restart


@pytest.mark.parametrize(
    ("live", "containers", "idle"),
    [(True, 5, True), (False, 0, True), (False, 2, False), (None, None, None), (None, 0, True)],
)
def test_idle(live, containers, idle):
    info = replace(INFO, live_restore=live, containers_running=containers)
    assert info.idle is idle


@pytest.mark.parametrize("answer", [None, [], {}, {"Runtimes": None}, {"message": "no"}])
def test_answer_that_is_none(answer):
    assert Info.from_api(answer) is None


def test_transition_names_what_a_reload_would_not_take_back():
    info = replace(INFO, default_runtime="nvidia")
    running = Running(active=True, info=info)
    between = transition(read('{"debug": true}'), info, running)
    assert json.loads(between.text) == {
        "debug": True,
        "runtimes": {},
        "default-runtime": "runc",
    }
    assert transition(read(FILE), INFO, running) is None, "a plain reload does it"
    # 20.10 dies of this file in a plain reload, when its default is nvidia.
    between = transition(read('{"runtimes": {"m": {"path": "/m"}}}'), info, running)
    assert json.loads(between.text)["default-runtime"] == "runc"
    flagged = replace(running, flags={"default-runtime": ("x",)})
    assert transition(read("{}"), info, flagged) is None
