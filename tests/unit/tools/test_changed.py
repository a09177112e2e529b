# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The table of ``make test CHANGED=1`` knows every file and every stage."""

from __future__ import annotations

import fnmatch
import subprocess
from pathlib import Path

import pytest

from tests.tools import changed
from tests.tools.environments import REPOSITORY, checkout_files

FILES = checkout_files()


def test_every_file_has_a_row_or_importers():
    unknown = [path for path in FILES if changed.row_of(path) is None]
    assert [path for path in unknown if not path.startswith("plugins/")] == []
    assert [path for path in unknown if not changed.importers(path)] == []


def test_every_row_fits_a_file_that_no_row_before_it_takes():
    for number, (glob, _stages) in enumerate(changed.TABLE):
        before = [other for other, _row in changed.TABLE[:number]]
        fits = [path for path in FILES if fnmatch.fnmatchcase(path, glob)]
        left = [path for path in fits if not any(fnmatch.fnmatchcase(path, o) for o in before)]
        assert left, f"{glob} is idle"


def test_the_stages_are_those_of_noxfile():
    text = (REPOSITORY / "noxfile.py").read_text(encoding="utf-8")
    body = text[text.index("STAGES: dict") :].partition("\n}\n")[0]
    names = {line.split('"')[1] for line in body.splitlines() if line.startswith('    "')}
    assert names == changed.EVERY
    assert all(row <= changed.EVERY for _glob, row in changed.TABLE)


@pytest.mark.parametrize(
    ("path", "among", "not_among"),
    [
        ("docs/design.md", {"lint", "build"}, {"unit", "fleet"}),
        (
            "plugins/module_utils/_containerd/plan.py",
            {"unit", "engines", "fleet", "cluster"},
            {"packages"},
        ),
        (
            "plugins/filter/gpu_hosts.py",
            {"controller", "drivers", "fleet", "cluster"},
            {"engines"},
        ),
        ("docs/verify.md", {"unit"}, {"fleet"}),
        ("plugins/module_utils/_packages/apt.py", {"unit", "packages", "drivers"}, {"engines"}),
        ("plugins/module_utils/_kube/client.py", {"unit", "cluster"}, {"engines", "packages"}),
        ("plugins/module_utils/_kube/api.py", {"cluster"}, {"packages"}),
        ("plugins/plugin_utils/_fetch.py", {"controller", "drivers"}, {"engines"}),
        ("tests/integration/fleet/playbooks.py", {"fleet", "drivers", "cluster"}, {"packages"}),
        ("tests/unit/module_process.py", {"unit", "engines", "cluster"}, {"fleet"}),
        (
            "tests/unit/plugins/module_utils/_formats/test_toml_edit.py",
            {"unit"},
            {"engines", "build"},
        ),
        ("tests/testbed/nodes.py", {"fleet", "drivers", "cluster"}, {"build"}),
        ("a file that nobody knows", changed.EVERY, set()),
    ],
)
def test_what_a_change_touches(path, among, not_among):
    stages = changed.stages_of([path])
    assert among <= stages and not stages & not_among


def git(folder: Path, *arguments: str) -> None:
    who = ["-c", "user.name=test", "-c", "user.email=test@example.invalid"]
    subprocess.run(["git", *who, *arguments], cwd=folder, check=True, capture_output=True)


def test_what_differs_from_the_branch_point(tmp_path, monkeypatch):
    monkeypatch.setattr(changed, "REPOSITORY", tmp_path)
    git(tmp_path, "init", "-q", "-b", "main")
    (tmp_path / "old").write_text("1")
    git(tmp_path, "add", "-A")
    git(tmp_path, "commit", "-qm", "first")
    assert changed.changed_files() is None, "main without an upstream has no branch point"

    git(tmp_path, "checkout", "-qb", "topic")
    assert changed.changed_files() == []
    (tmp_path / "committed").write_text("1")
    git(tmp_path, "add", "-A")
    git(tmp_path, "commit", "-qm", "second")
    (tmp_path / "old").write_text("2")
    (tmp_path / "new").write_text("1")
    assert changed.changed_files() == ["committed", "new", "old"]

    git(tmp_path, "checkout", "-q", "main")
    git(tmp_path, "update-ref", "refs/remotes/origin/main", "main")
    assert changed.changed_files() == ["new", "old"], "the upstream's main is where main left it"
