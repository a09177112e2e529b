# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Modules of dnf 4.14.0: its files, its list, the commands that switch."""

from __future__ import annotations

import subprocess

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._packages import dnf_streams as modules
from ansible_collections.kubegpu.nodes.plugins.module_utils._packages.streams import DISABLED, NONE

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
    text = modules.entry("nvidia-driver", stream)
    assert f"state={state}\n" in text
    assert modules.parse("nvidia-driver", text) == stream


def test_entries_of_dnf():
    assert modules.entry("nvidia-driver", "580-open") == ENABLED
    assert modules.parse("nvidia-driver", ENABLED.replace("enabled", "1")) == "580-open"
    for text in ("", "stream=x", "[other]\nstream=x\nstate=enabled\n"):
        assert modules.parse("nvidia-driver", text) == NONE


def test_the_list():
    assert modules.parse_list(LIST) == {"nvidia-driver": ("580-dkms", "580-open")}


def test_a_switch_is_a_reset_and_an_enable():
    program = ("dnf", "-C")
    now = {"a": "1", "b": NONE, "c": "3", "d": "4"}
    wanted = {"a": "2", "b": "1", "c": NONE, "d": DISABLED}
    assert [" ".join(argv) for argv in modules.commands(program, now, wanted)] == [
        "dnf -C module reset a",
        "dnf -C module enable a:2",
        "dnf -C module enable b:1",
        "dnf -C module reset c",
        "dnf -C module reset d",
        "dnf -C module disable d",
    ]


def test_other_streams_are_seen_without_a_change(tmp_path):
    """The script, with folders of the test's own in place of dnf's and of the mount."""
    assert modules.assuming({}) == ()
    words = modules.assuming({"nvidia-driver": "580-open"})
    script = words[4].replace('mount -t tmpfs -o mode=0755 tmpfs "$0"', 'set -- "$@" && cd "$0"')
    (tmp_path / "plugins").mkdir()
    done = subprocess.run(
        ["sh", "-c", script.replace("cp -a . ", "true "), str(tmp_path), *words[6:], "echo", "ok"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout == "ok\n"
    assert (tmp_path / "modules.d" / "nvidia-driver.module").read_text() == ENABLED
