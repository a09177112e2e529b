# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Taking our lines out of a text that somebody else edited since."""

from __future__ import annotations

import tomllib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ansible_collections.kubegpu.nodes.plugins.module_utils._containerd.plan import plan_present
from ansible_collections.kubegpu.nodes.plugins.module_utils._containerd.types import (
    Change,
    FileEdit,
    Node,
    Request,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._containerd.undo import (
    History,
    continued,
    plan_absent,
    undo_lines,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._runtime.config_file import ConfigFile
from tests.tools import tiers
from tests.unit.toml_documents import documents

ROOT = "/etc/containerd/config.toml"
DROP_IN = "/etc/containerd/conf.d/99-nvidia.toml"
CRI = 'plugins."io.containerd.grpc.v1.cri"'
BASE = (
    "# head\nversion = 2\n\n"
    f"[{CRI}.containerd.runtimes.runc]\n"
    '  runtime_type = "io.containerd.runc.v2"\n\n'
    "[debug]\n"
    '  level = "info"\n'
)


def here(text, version=(1, 7)):
    return Node(
        version=version,
        files=(ConfigFile(ROOT, text, tomllib.loads(text or "")),),
        drop_in=ConfigFile(DROP_IN, None, {}),
    )


def present(text, **wishes):
    (edit,) = plan_present(Request(**wishes), here(text), tomllib.loads).edits
    return edit


def absent(text, histories, **wishes):
    planned = plan_absent(
        Request(state="absent", **wishes), here(text), histories, tomllib.loads, bool(histories)
    )
    edits = {edit.path: edit.after for edit in planned.edits}
    return edits.get(ROOT, text), planned.reasons


def history(edit, **more):
    return {ROOT: History(edit.before, edit.after, edit.changes, **more)}


@pytest.mark.parametrize(
    ("base", "ours", "current", "left", "conflict"),
    [
        ("a\nb\n", "a\nX\nb\n", "a\nX\nb\nc\n", "a\nb\nc\n", False),
        ("a\nb\n", "a\nX\nb\n", "0\na\nX\nb\n", "0\na\nb\n", False),
        ("a\nb\n", "a\nX\nb\n", "a\nb\n", "a\nb\n", False),
        ("a\nb\n", "a\nX\nY\nb\n", "a\nX\n# c\nY\nb\n", "a\n# c\nb\n", False),
        ("a\nb\n", "a\nX\nY\nb\n", "a\nX\nforeign\nY\nb\n", "a\nX\nforeign\nY\nb\n", True),
        ("a\nb\nc\n", "a\nB\nc\n", "a\nB\nc\nd\n", "a\nb\nc\nd\n", False),
        ("a\nb\nc\n", "a\nB\nc\n", "a\nother\nc\n", "a\nother\nc\n", True),
        ("a\nb\nc\n", "a\nc\n", "a\nc\nd\n", "a\nb\nc\nd\n", False),
        ("a", "a\nX\n", "a\nX\nd\n", "a\nd\n", False),
        ("a", "a\nX\n", "a\nX\n", "a", False),
        ("", "X\n", "X\nd\n", "d\n", False),
        # The old last line had no line end, and a line of somebody else's comes after it.
        ("a", "a\nX\n", "a\n# c\nX\n", "a\n# c\n", False),
        ("a\r\nb", "a\r\nb\r\nX\r\n", "a\r\nb\r\n# c\r\nX\r\n", "a\r\nb\r\n# c\r\n", False),
        # A table as a whole between ours, and one that begins in the middle of a line run.
        ("a\nb\n", "a\n[X]\n[Y]\nb\n", "a\n[X]\n[d]\ne\n[Y]\nb\n", "a\n[d]\ne\nb\n", False),
        (
            "a\nb\n",
            "a\n[X]\n[Y]\nb\n",
            "a\n[X]\ne\n[d]\n[Y]\nb\n",
            "a\n[X]\ne\n[d]\n[Y]\nb\n",
            True,
        ),
    ],
)
def test_undo_lines(base, ours, current, left, conflict):
    assert undo_lines(base, ours, current) == (left, conflict)


LINES = st.lists(st.sampled_from(["a\n", "b\n", "\n", "# c\n", "d = 1\n", "[e]\n"]), max_size=8)


@settings(max_examples=200 if tiers.is_full() else 25, deadline=None)
@given(LINES, LINES, st.integers(0, 8))
def test_undoing_an_insertion_gives_the_base_back(base, block, at):
    ours = base[:at] + block + base[at:]
    assert undo_lines("".join(base), "".join(ours), "".join(ours)) == ("".join(base), False)


@settings(max_examples=100 if tiers.is_full() else 25, deadline=None)
@given(LINES)
def test_foreign_lines_at_either_end_survive(extra):
    edit = present(BASE)
    foreign = [line for line in extra if line.startswith("#") or line == "\n"]
    current = "# first\n" + edit.after + "".join(foreign)
    left, _reasons = absent(current, history(edit))
    assert left == "# first\n" + BASE + "".join(foreign)


@settings(max_examples=150 if tiers.is_full() else 25, deadline=None)
@given(documents(), st.booleans(), st.booleans())
def test_adding_twice_changes_nothing_and_removing_gives_every_byte_back(text, default, cdi):
    """The way by lines, which is taken when somebody edited; else the old bytes are there."""
    newline = "\r\n" if "\r\n" in text else "\n"
    text = text.rstrip("\r\n") + newline + BASE[7:].replace("\n", newline)
    wishes = {"set_default": default, "cdi": True if cdi else None}
    edit = present(text, **wishes)
    assert plan_present(Request(**wishes), here(edit.after), tomllib.loads).edits == ()
    left, _reasons = absent(edit.after, history(edit))
    assert left == text


def test_record_survives_json():
    edit = present(BASE, set_default=True)
    kept = History.from_json(History(edit.before, edit.after, edit.changes).to_json())
    assert (kept.base, kept.ours, kept.changes) == (edit.before, edit.after, edit.changes)


def test_file_rewritten_by_somebody_else_is_undone_by_meaning():
    """As ``containerd config migrate`` does: no line of ours is left, but the handler is."""
    edit = present(BASE, set_default=True)
    rewritten = (
        "version = 3\n[plugins]\n[plugins.'io.containerd.cri.v1.runtime']\n"
        "[plugins.'io.containerd.cri.v1.runtime'.containerd]\ndefault_runtime_name = 'nvidia'\n"
        "[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.nvidia]\n"
        "runtime_type = 'io.containerd.runc.v2'\n"
        "[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.nvidia.options]\n"
        "BinaryName = '/usr/bin/nvidia-container-runtime'\n"
        "[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc]\n"
        "runtime_type = 'io.containerd.runc.v2'\n"
    )
    planned = plan_absent(
        Request(state="absent"), here(rewritten, (2, 1)), history(edit), tomllib.loads, True
    )
    data = tomllib.loads(planned.edits[0].after)
    assert data["plugins"]["io.containerd.cri.v1.runtime"]["containerd"] == {
        "runtimes": {"runc": {"runtime_type": "io.containerd.runc.v2"}}
    }


def test_a_handler_made_of_crun_is_known_without_a_record():
    """With it a runc was written down, which it would be made of now."""
    crun = BASE.replace("runtimes.runc]", "runtimes.crun]").replace(
        "\n\n[debug]",
        f"\n[{CRI}.containerd.runtimes.crun.options]\n    NoPivotRoot = true\n\n[debug]",
    )
    left, reasons = absent(present(crun).after, {})
    runtimes = tomllib.loads(left)["plugins"]["io.containerd.grpc.v1.cri"]["containerd"]["runtimes"]
    assert set(runtimes) == {"crun", "runc"}, reasons


def test_handler_that_somebody_edited_stays_and_is_reported():
    edit = present(BASE)
    edited = edit.after.replace(
        '  BinaryName = "/usr/bin/nvidia-container-runtime"\n',
        '  BinaryName = "/opt/mine"\n  Root = "/mine"\n',
    )
    assert edited != edit.after
    left, reasons = absent(edited, history(edit))
    assert left == edited
    assert any("edited since" in reason for reason in reasons)


def test_file_of_ours_with_a_setting_of_somebody_else_stays_complete():
    edit = present(None)
    current = edit.after + "\n[debug]\n  level = 'info'\n"
    left, _reasons = absent(current, history(edit))
    data = tomllib.loads(left)
    assert data["version"] == 2
    assert data["debug"] == {"level": "info"}
    assert "nvidia" not in left


def test_file_of_ours_without_anything_else_goes():
    edit = present(None)
    left, _reasons = absent(edit.after + "\n", history(edit))
    assert left is None


def test_another_handler_of_ours_keeps_what_it_needs():
    first = present(None)
    second = present(first.after, name="second")
    left, _reasons = absent(second.after, history(first, shared=True))
    runtimes = tomllib.loads(left)["plugins"]["io.containerd.grpc.v1.cri"]["containerd"]["runtimes"]
    assert set(runtimes) == {"runc", "second"}


def test_unrecorded_handler_that_is_the_default_takes_the_default_with_it():
    text = present(BASE, set_default=True).after
    left, reasons = absent(text, {})
    assert tomllib.loads(left) == tomllib.loads(BASE)
    assert any("is dropped" in reason for reason in reasons)


def test_unrecorded_drop_in_of_ours_goes_as_a_file():
    made = present(BASE)
    drop_in = (
        "version = 2\n" + made.after[made.after.index(f"[{CRI}.containerd.runtimes.nvidia]") :]
    )
    drop_in = drop_in[: drop_in.index("[debug]")]
    node = Node(
        version=(2, 1),
        files=(
            ConfigFile(ROOT, BASE, tomllib.loads(BASE)),
            ConfigFile(DROP_IN, drop_in, tomllib.loads(drop_in)),
        ),
        drop_in=ConfigFile(DROP_IN, drop_in, tomllib.loads(drop_in)),
    )
    planned = plan_absent(Request(state="absent"), node, {}, tomllib.loads)
    assert [(edit.path, edit.after) for edit in planned.edits] == [(DROP_IN, None)]


def test_second_edit_keeps_the_first_before():
    first = present(BASE)
    past = continued(None, first, foreign=False, fresh=False)
    second = present(first.after, runtime_path="/opt/other")
    past = continued(past, second, foreign=False, fresh=False)
    assert (past.base, past.ours) == (BASE, second.after)
    (change,) = past.changes
    assert change.before == ()
    assert change.after[0]["options"] == {"BinaryName": "/opt/other"}


def test_foreign_edit_between_two_of_ours_is_part_of_the_base():
    first = present(BASE)
    past = continued(None, first, foreign=False, fresh=False)
    second = present(first.after + "# foreign\n", set_default=True)
    past = continued(past, second, foreign=True, fresh=False)
    assert past.base == BASE + "# foreign\n"


def test_file_that_was_undone_by_hand_begins_anew():
    first = present(BASE)
    past = continued(None, first, foreign=False, fresh=False)
    edit = FileEdit(ROOT, BASE, first.after, (Change(("a",), (), (1,)),))
    assert continued(past, edit, foreign=False, fresh=True).changes == edit.changes
