# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The inputs of facts/runtimes.md that concern Docker, by number, judged by the real dockerd.

Each is edited by the real module, started with the real dockerd of three versions, asked over its
API, reloaded, and given back.
"""

from __future__ import annotations

import json
import os
import stat

import pytest

from tests.integration.engines.docker_inputs.daemon import VERSIONS
from tests.integration.engines.docker_inputs.node import Node

HUGE = "9223372036854775807"


@pytest.fixture(params=VERSIONS)
def node(request, tmp_path_factory, monkeypatch):
    made = Node(request.param, tmp_path_factory.mktemp("d"), monkeypatch)
    yield made
    made.close()


def added(text, line_end="\n"):
    """Return the lines of ours in a text."""
    return [line for line in text.split(line_end) if "nvidia" in line]


def round_trip(node, content, mode=0o640, **options):
    """Present, started, again, absent, absent again; return the text and dockerd's answer."""
    if content is not None:
        node.config.write_bytes(content)
        node.config.chmod(mode)
    first = node.predicted(set_default=True, **options)
    assert first["changed"]
    written = node.config.read_bytes()
    if content is not None:
        assert stat.S_IMODE(node.config.stat().st_mode) == mode
    if node.version != "20.10":
        assert node.dockerd.validate().returncode == 0
    node.start()
    info = node.dockerd.info()
    assert info["DefaultRuntime"] == "nvidia"
    assert info["Runtimes"]["nvidia"]["path"] == node.runtime
    node.dockerd.stop()
    again = node.predicted(set_default=True, **options)
    assert not again["changed"]
    assert again["diff"] == []
    absent = node.predicted(state="absent")
    assert absent["changed"]
    if content is None:
        assert not node.config.exists()
    else:
        assert node.config.read_bytes() == content
        assert stat.S_IMODE(node.config.stat().st_mode) == mode
    assert not node.predicted(state="absent")["changed"]
    assert node.leftovers() == []
    return written.decode("utf-8-sig"), info


def test_input_6_no_file(node):
    text, _info = round_trip(node, None)
    assert json.loads(text)["default-runtime"] == "nvidia"


def test_input_6_64_bit_integers(node):
    content = (
        f'{{\n  "max-concurrent-downloads": 3,\n  "default-shm-size": "64M",\n'
        f'  "default-ulimits": {{"core": {{"Name": "core", "Hard": {HUGE}, "Soft": {HUGE}}}}}\n}}\n'
    ).encode()
    text, _info = round_trip(node, content)
    assert text.count(HUGE) == 2


@pytest.mark.full(why="another content that is kept")
def test_input_6_other_features_stay_with_cdi_on(node):
    content = b'{\n    "features": {\n        "buildkit": true\n    }\n}\n'
    text, info = round_trip(node, content, cdi=True)
    assert json.loads(text)["features"] == {"buildkit": True, "cdi": True}
    if node.version != "20.10":
        assert info["CDISpecDirs"]


def test_input_6_existing_runtime_args_stay(node):
    content = (
        b'{\n    "runtimes": {\n        "nvidia": {\n            "path": "/opt/old",\n'
        b'            "runtimeArgs": ["--debug"]\n        }\n    }\n}\n'
    )
    text, info = round_trip(node, content)
    assert '"runtimeArgs": ["--debug"]' in text
    assert info["Runtimes"]["nvidia"]["runtimeArgs"] == ["--debug"]


def test_input_6_trailing_data(node):
    """20.10 runs with it: it stays. Newer ones do not start: refused by line, nothing written."""
    content = b'{\n    "debug": false\n}\n{"left": "behind"}\n'
    if node.version == "20.10":
        text, _info = round_trip(node, content)
        assert text.endswith('}\n{"left": "behind"}\n')
        return
    node.config.write_bytes(content)
    answer = node.run()
    assert answer["failed"]
    assert "line 4" in answer["msg"]
    assert str(node.config) in answer["msg"]
    assert node.config.read_bytes() == content
    assert "after top-level value" in node.dockerd.words_of_refusal()


@pytest.mark.full(
    *(
        f"{version}-{name}"
        for version in VERSIONS
        for name in ("null", "null line", "empty", "white space")
    ),
    why="another file without settings than 'runtimes null'; the unit tests of the editor have it",
)
@pytest.mark.parametrize(
    "content",
    [b"null", b"null\n", b'{"runtimes": null}', b"", b" \n\t\n", b"\xef\xbb\xbf{}\n"],
    ids=["null", "null line", "runtimes null", "empty", "white space", "byte order mark"],
)
def test_input_6_what_the_tool_panics_or_fails_on(node, content):
    round_trip(node, content)


def test_input_6_byte_order_mark_stays_in_front(node):
    """Where dockerd takes it: 20.10 does not start with one, so there it goes."""
    mark = b"" if node.version == "20.10" else b"\xef\xbb\xbf"
    node.config.write_bytes(b'\xef\xbb\xbf{\r\n\t"debug": false\r\n}\r\n')
    node.predicted()
    written = node.config.read_bytes()
    assert written.startswith(mark + b'{\r\n\t"debug": false,\r\n\t"runtimes"')
    assert written.count(b"\n") == written.count(b"\r\n")
    assert written.endswith(b"\r\n}\r\n")


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (b'{\n    // no\n    "debug": true\n}\n', 2),
        (b"[]\n", 1),
        (b'{\n    "debug": true\n', 3),
        (b'{\n    "runtimes": []\n}\n', 2),
    ],
    ids=["comment", "array", "truncated", "runtimes a list"],
)
def test_what_dockerd_refuses_is_refused_by_line(node, content, line):
    node.config.write_bytes(content)
    answer = node.run()
    assert answer["failed"]
    assert f"{node.config}, line {line}:" in answer["msg"]
    assert "Next step:" in answer["msg"]
    assert node.config.read_bytes() == content
    assert node.leftovers() == []
    assert str(node.config) in node.dockerd.words_of_refusal()


def test_input_7_only_the_file_that_is_named_is_written(node):
    """The tool overwrote another file where its drop-in path was empty."""
    answer = node.run(config_path="")
    assert answer["failed"]
    other = node.folder / "other.json"
    assert node.predicted(config_path=str(other))["changed"]
    assert other.exists()
    assert not node.config.exists()


def test_input_8_failed_write_leaves_the_old_file(node, monkeypatch):
    content = b'{\n    "debug": true\n}\n'
    node.config.write_bytes(content)
    real = os.rename

    def full(source, target):
        if str(target) == str(node.config):
            raise OSError(28, "No space left on device")
        real(source, target)

    monkeypatch.setattr(os, "rename", full)
    answer = node.run()
    assert answer["failed"]
    assert "Free space" in answer["msg"]
    assert node.config.read_bytes() == content
    assert not list(node.folder.glob(".daemon.json.*"))
    monkeypatch.setattr(os, "rename", real)
    assert node.predicted()["changed"]
    assert node.predicted(state="absent")["changed"]
    assert node.config.read_bytes() == content


def test_input_8_what_dockerd_refuses_is_not_written(node):
    """An unknown key was there before: dockerd's words, and nothing is written."""
    content = b'{\n    "no-such-option": 1\n}\n'
    node.config.write_bytes(content)
    answer = node.run()
    if node.version == "20.10":
        # It cannot validate (23.0 and newer can); the key is not ours to judge, and it stays.
        assert answer["changed"]
        assert "no-such-option" in node.config.read_text()
        assert node.predicted(state="absent")["changed"]
    else:
        assert answer["failed"]
        assert "no-such-option" in answer["msg"]
        assert "before this change too" in answer["msg"]
    assert node.config.read_bytes() == content


def test_input_12_removal_restores_the_default_of_before(node):
    content = (
        b'{\n    "default-runtime": "kata",\n'
        b'    "runtimes": {\n        "kata": {\n            "path": "/opt/kata"\n'
        b"        }\n    }\n}\n"
    )
    round_trip(node, content)


@pytest.mark.full(why="the unit tests of the editor edit in between, too")
def test_input_12_removal_keeps_what_somebody_added_since(node):
    node.config.write_bytes(b'{\n    "default-runtime": "runc",\n    "debug": false\n}\n')
    node.predicted(set_default=True, cdi=True)
    text = node.config.read_text().replace(
        '"debug": false', '"debug": false,\n    "log-driver": "json-file"'
    )
    node.config.write_text(text)
    assert node.predicted(state="absent")["changed"]
    assert node.config.read_bytes() == (
        b'{\n    "default-runtime": "runc",\n    "debug": false,\n'
        b'    "log-driver": "json-file"\n}\n'
    )
    assert not node.predicted(state="absent")["changed"]
    assert node.leftovers() == []


def test_input_15_two_runtimes_in_either_order_of_removal(node):
    for order in (("nvidia", "nvidia-cdi"), ("nvidia-cdi", "nvidia")):
        assert not node.config.exists()
        assert node.predicted(set_default=True)["changed"]
        assert node.predicted(name="nvidia-cdi", runtime_args=["--cdi"])["changed"]
        assert not node.predicted(set_default=True)["changed"]
        assert not node.predicted(name="nvidia-cdi", runtime_args=["--cdi"])["changed"]
        node.start()
        runtimes = node.dockerd.info()["Runtimes"]
        assert {"nvidia", "nvidia-cdi"} <= set(runtimes)
        assert runtimes["nvidia-cdi"]["runtimeArgs"] == ["--cdi"]
        node.dockerd.stop()
        for name in order:
            assert node.predicted(name=name, state="absent")["changed"]
        assert node.leftovers() == []


@pytest.mark.parametrize(
    "options",
    [
        {"name": "runc"},
        {"name": "a b"},
        {"name": ""},
        {"runtime_path": "bin/x"},
        {"runtime_path": "/no/such/program"},
        {"docker_version": "new"},
    ],
    ids=str,
)
def test_input_15_names_and_paths_are_validated(node, options):
    answer = node.run(**options)
    assert answer["failed"]
    assert "Next step:" in answer["msg"]
    assert not node.config.exists()
    assert node.leftovers() == []


@pytest.mark.full(why="the inputs of number 6 in one file")
def test_scenario_8_hand_written_file_keeps_everything(node):
    content = (
        b'{\n  "registry-mirrors": ["https://mirror.example"],\n'
        b'  "exec-opts": ["native.cgroupdriver=cgroupfs"],\n  "log-driver": "json-file",\n'
        b'  "log-opts": {\n    "max-size": "100m"\n  },\n'
        b'  "max-concurrent-uploads":   5\n}\n'
    )
    text, _info = round_trip(node, content)
    assert text.startswith(content.decode().rstrip("}\n"))
