# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Edits that are refused, and edits in several files."""

from __future__ import annotations

import tomllib
from dataclasses import replace

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._containerd.edit import Editor
from ansible_collections.kubegpu.nodes.plugins.module_utils._containerd.plan import plan_present
from ansible_collections.kubegpu.nodes.plugins.module_utils._containerd.types import (
    Change,
    Request,
    State,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._containerd.undo import plan_absent
from ansible_collections.kubegpu.nodes.plugins.module_utils._containerd.values import value_at
from ansible_collections.kubegpu.nodes.plugins.module_utils._core.errors import KubegpuError
from ansible_collections.kubegpu.nodes.plugins.module_utils._runtime.config_file import ConfigFile

CRI = 'plugins."io.containerd.grpc.v1.cri"'
RUNC = (
    f"[{CRI}.containerd.runtimes.runc]\n"
    '  runtime_type = "io.containerd.runc.v2"\n'
    f"[{CRI}.containerd.runtimes.runc.options]\n"
    "  SystemdCgroup = true\n"
)
TEXT = f"version = 2\n\n{RUNC}"
CRI_PATH = ("plugins", "io.containerd.grpc.v1.cri")
DEFAULT = (*CRI_PATH, "containerd", "default_runtime_name")
OURS = (
    f"[{CRI}.containerd.runtimes.nvidia]\n"
    '  runtime_type = "io.containerd.runc.v2"\n'
    f"[{CRI}.containerd.runtimes.nvidia.options]\n"
    '  BinaryName = "/usr/bin/nvidia-container-runtime"\n'
    "  SystemdCgroup = true\n"
)


def config(path, text):
    return ConfigFile(path, text, tomllib.loads(text))


def node(*texts):
    files = tuple(config(f"/etc/{number}.toml", text) for number, text in enumerate(texts))
    return State(version=(1, 7), files=files, drop_in=ConfigFile("/etc/99-nvidia.toml", None, {}))


# -- containerd: the plan ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (TEXT + OURS.replace("nvidia]", "other]"), "does not mean what was intended"),
        ("version = 2\n" + OURS, "does not mean what was intended"),
        (TEXT + OURS + "x = [\n", "cannot be edited safely"),
    ],
    ids=["something else", "something is lost", "no TOML"],
)
def test_a_text_that_does_not_mean_what_was_intended_is_refused(text, words):
    editor = Editor(tomllib.loads)
    editor.open(config("/c.toml", TEXT))
    editor.set_table(
        "/c.toml",
        (*CRI_PATH, "containerd", "runtimes", "nvidia"),
        tomllib.loads(OURS)["plugins"]["io.containerd.grpc.v1.cri"]["containerd"]["runtimes"][
            "nvidia"
        ],
    )
    (edit,) = editor.edits()
    assert tomllib.loads(edit.after) == tomllib.loads(TEXT + OURS)
    editor.replace_text("/c.toml", text)
    with pytest.raises(KubegpuError, match=words) as caught:
        list(editor.edits())
    assert "nothing was written" in caught.value.cause


def test_a_second_spelling_of_our_program_goes_from_every_file():
    """Options are read without regard to case: two of them contradict each other."""
    twice = OURS + '  binaryName = "/usr/bin/runc"\n'
    (edit,) = plan_present(Request(), node(TEXT + twice), tomllib.loads).edits
    assert tomllib.loads(edit.after) == tomllib.loads(TEXT + OURS)


def test_every_entry_of_our_name_goes_where_there_is_no_record():
    """An older tool wrote into the file, and somebody's copy of that into an imported one."""
    planned = plan_absent(
        Request(state="absent"), node(TEXT + OURS, TEXT + OURS), {}, tomllib.loads
    )
    assert {edit.path for edit in planned.edits} == {"/etc/0.toml", "/etc/1.toml"}
    for edit in planned.edits:
        assert tomllib.loads(edit.after) == tomllib.loads(TEXT)


@pytest.mark.parametrize("default", ["kata", "runc", "nvidia"])
def test_only_a_default_of_our_name_goes_with_the_handler_that_has_no_record(default):
    line = f'[{CRI}.containerd]\n  default_runtime_name = "{default}"\n'
    given = node(TEXT + OURS + line)
    (edit,) = plan_absent(Request(state="absent"), given, {}, tomllib.loads).edits
    left = value_at(tomllib.loads(edit.after), DEFAULT)
    assert left == (() if default == "nvidia" else (default,))


@pytest.mark.parametrize(
    ("change", "left"),
    [
        (Change(DEFAULT, ("crun",), ("nvidia",)), ("crun",)),
        (Change(DEFAULT, (), ("nvidia",)), ()),
        # An earlier run of ours made another one the default, or something else nvidia.
        (Change(DEFAULT, ("crun",), ("gpu",)), ("nvidia",)),
        (Change((*CRI_PATH, "x"), ("crun",), ("nvidia",)), ("nvidia",)),
        (None, ("nvidia",)),
    ],
)
def test_a_default_is_ours_only_where_an_earlier_run_made_it(change, left):
    line = f'[{CRI}.containerd]\n  default_runtime_name = "nvidia"\n'
    earlier = {"/etc/0.toml": () if change is None else (change,)}
    given = replace(node(TEXT + OURS + line), handler_changes=earlier)
    planned = plan_present(Request(), given, tomllib.loads)
    text = planned.edits[0].after if planned.edits else given.files[0].text
    assert value_at(tomllib.loads(text), DEFAULT) == left
