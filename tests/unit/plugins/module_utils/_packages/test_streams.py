# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Streams of modules in a package set, and the files and commands of dnf 4.14.0 for them."""

from __future__ import annotations

import subprocess

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._core.errors import InputError
from ansible_collections.kubegpu.nodes.plugins.module_utils._packages import streams as modules
from ansible_collections.kubegpu.nodes.plugins.module_utils._packages.module_files import (
    DISABLED,
    NONE,
    parse_module_file,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._packages.types import (
    StreamRecord,
    Streams,
)

DRIVER = "nvidia-driver"


def test_only_what_differs_is_switched_and_said():
    streams = Streams({DRIVER: "580-open", "nodejs": "20"}, {DRIVER: "580-dkms", "nodejs": "20"})
    assert streams.changes == {DRIVER: "580-dkms"}
    assert streams.reasons(present=True) == (
        "The stream of the module nvidia-driver is 580-open, requested is 580-dkms.",
    )
    assert Streams({}, {DRIVER: NONE}).changes == {}


@pytest.mark.parametrize(
    ("earlier", "now", "after"),
    [
        # As we made it, or left half way: what was there before comes back.
        (NONE, "580-open", NONE),
        ("595-open", "580-open", "595-open"),
        ("595-open", NONE, "595-open"),
        (DISABLED, "580-open", DISABLED),
        # Somebody has switched since: it is his.
        (NONE, "610-open", "610-open"),
        ("595-open", DISABLED, DISABLED),
    ],
)
def test_given_back(earlier, now, after):
    kept = StreamRecord({DRIVER: earlier}, {DRIVER: "580-open"})
    assert modules.restored_streams(kept, {DRIVER: now}).after == {DRIVER: after}


def test_the_record_keeps_what_was_first_seen():
    first = modules.record_streams(StreamRecord(), Streams({DRIVER: NONE}, {DRIVER: "580-open"}))
    second = modules.record_streams(first, Streams({DRIVER: "580-open"}, {DRIVER: "595-open"}))
    assert second == StreamRecord({DRIVER: NONE}, {DRIVER: "595-open"})
    assert not StreamRecord() and second


def test_what_no_repository_has():
    streams = Streams({DRIVER: NONE}, {DRIVER: "999-open"})
    offered = {DRIVER: ("580-open", "580-dkms")}
    assert modules.unavailable_streams(streams, offered) == ("nvidia-driver:999-open",)
    assert modules.unavailable_streams(Streams({DRIVER: "x"}, {DRIVER: NONE}), {}) == ()
    assert modules.without_unavailable(streams, offered).after == {DRIVER: NONE}
    error = modules.not_offered(("nvidia-driver:999-open",), offered, "")
    assert "nvidia-driver: 580-open, 580-dkms" in error.evidence
    said = "repomd.xml GPG signature verification error: Bad GPG signature"
    told = modules.not_offered(("nvidia-driver:999-open",), {}, said)
    assert "signature is not accepted" in told.cause and "no such module" in told.evidence


@pytest.mark.parametrize("streams", [{"a b": "x"}, {"a": "-x"}, {"a": ""}, {"a": "../x"}])
def test_names_that_could_mean_anything_else(streams):
    with pytest.raises(InputError, match="module_streams"):
        modules.check(streams)


def test_shown():
    assert modules.shown({"b": DISABLED, "a": "1", "c": NONE}) == "module a:1\nmodule b:disabled\n"


# As dnf 4.14.0 wrote it.
ENABLED = "[nvidia-driver]\nname=nvidia-driver\nstream=580-open\nprofiles=\nstate=enabled\n"


LIST = """a
Name          Stream   Profiles Summary
nvidia-driver 580-dkms default  stand-in
nvidia-driver 580-open [e] default  stand-in

Hint: [d]efault, [e]nabled, [x]disabled, [i]nstalled
"""


@pytest.mark.parametrize(
    ("stream", "state"), [("580-open", "enabled"), (NONE, ""), (DISABLED, "disabled")]
)
def test_an_entry_is_read_as_it_is_written(stream, state):
    text = modules.module_file("nvidia-driver", stream)
    assert f"state={state}\n" in text
    assert parse_module_file("nvidia-driver", text) == stream


def test_entries_of_dnf():
    assert modules.module_file("nvidia-driver", "580-open") == ENABLED
    assert parse_module_file("nvidia-driver", ENABLED.replace("enabled", "1")) == "580-open"
    for text in ("", "stream=x", "[other]\nstream=x\nstate=enabled\n"):
        assert parse_module_file("nvidia-driver", text) == NONE


def test_the_list():
    assert modules.parse_module_list(LIST) == {"nvidia-driver": ("580-dkms", "580-open")}


def test_a_switch_is_a_reset_and_an_enable():
    program = ("dnf", "-C")
    now = {"a": "1", "b": NONE, "c": "3", "d": "4"}
    wanted = {"a": "2", "b": "1", "c": NONE, "d": DISABLED}
    assert [" ".join(argv) for argv in modules.switch_commands(program, now, wanted)] == [
        "dnf -C module reset a",
        "dnf -C module enable a:2",
        "dnf -C module enable b:1",
        "dnf -C module reset c",
        "dnf -C module reset d",
        "dnf -C module disable d",
    ]


def test_other_streams_are_seen_without_a_change(tmp_path):
    """The script, with folders of the test's own in place of dnf's and of the mount."""
    assert modules.with_streams_prefix({}) == ()
    words = modules.with_streams_prefix({"nvidia-driver": "580-open"})
    script = words[4].replace('mount -t tmpfs -o mode=0755 tmpfs "$0"', 'set -- "$@" && cd "$0"')
    (tmp_path / "plugins").mkdir()
    done = subprocess.run(
        ["sh", "-c", script.replace("cp -a . ", "true "), str(tmp_path), *words[6:], "echo", "ok"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout == "ok\n"
    assert (tmp_path / "modules.d" / "nvidia-driver.module").read_text() == ENABLED
