# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Removal of the handler from files that were edited since."""

from __future__ import annotations

import tomllib

from hypothesis import given, settings
from hypothesis import strategies as st

from ansible_collections.kubegpu.nodes.plugins.module_utils._containerd.plan import plan_present
from ansible_collections.kubegpu.nodes.plugins.module_utils._containerd.record import HandlerRecord
from ansible_collections.kubegpu.nodes.plugins.module_utils._containerd.types import Request, State
from ansible_collections.kubegpu.nodes.plugins.module_utils._containerd.undo import plan_absent
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
    return State(
        version=version,
        files=(ConfigFile(ROOT, text, tomllib.loads(text or "")),),
        drop_in=ConfigFile(DROP_IN, None, {}),
    )


def present(text, **options):
    (edit,) = plan_present(Request(**options), here(text), tomllib.loads).edits
    return edit


def absent(text, handler_records, **options):
    planned = plan_absent(
        Request(state="absent", **options),
        here(text),
        handler_records,
        tomllib.loads,
        bool(handler_records),
    )
    edits = {edit.path: edit.after for edit in planned.edits}
    return edits.get(ROOT, text), planned.reasons


def history(edit, **more):
    return {ROOT: HandlerRecord(edit.before, edit.after, edit.changes, **more)}


LINES = st.lists(st.sampled_from(["a\n", "b\n", "\n", "# c\n", "d = 1\n", "[e]\n"]), max_size=8)


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
    options = {"set_default": default, "cdi": True if cdi else None}
    edit = present(text, **options)
    assert plan_present(Request(**options), here(edit.after), tomllib.loads).edits == ()
    left, _reasons = absent(edit.after, history(edit))
    assert left == text


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
    assert any("is removed" in reason for reason in reasons)


def test_unrecorded_drop_in_of_ours_goes_as_a_file():
    made = present(BASE)
    drop_in = (
        "version = 2\n" + made.after[made.after.index(f"[{CRI}.containerd.runtimes.nvidia]") :]
    )
    drop_in = drop_in[: drop_in.index("[debug]")]
    node = State(
        version=(2, 1),
        files=(
            ConfigFile(ROOT, BASE, tomllib.loads(BASE)),
            ConfigFile(DROP_IN, drop_in, tomllib.loads(drop_in)),
        ),
        drop_in=ConfigFile(DROP_IN, drop_in, tomllib.loads(drop_in)),
    )
    planned = plan_absent(Request(state="absent"), node, {}, tomllib.loads)
    assert [(edit.path, edit.after) for edit in planned.edits] == [(DROP_IN, None)]
