# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A run of pytest leaves out the files that passed before, alone and with xdist's workers."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.tools.environments import REPOSITORY

pytestmark = pytest.mark.full(why="the full tier alone leaves out what passed")

PLUGIN = """
from tests.tools import passed
passed.file_digests = lambda stage: dict.fromkeys(
    ("test_a.py", "test_b.py"), open("digest", encoding="utf-8").read()
)
from tests.tools.passed_files import *
"""


@pytest.fixture
def project(tmp_path):
    (tmp_path / "with_digests.py").write_text(PLUGIN, encoding="utf-8")
    (tmp_path / "digest").write_text("first", encoding="utf-8")
    passes = "def test_one(): pass\ndef test_two(): pass\n"
    (tmp_path / "test_a.py").write_text(passes, encoding="utf-8")
    (tmp_path / "test_b.py").write_text("def test_one(): assert 0\n", encoding="utf-8")
    return tmp_path


def run(project, *words):
    argv = ["-m", "pytest", "-q", "-p", "with_digests", "-p", "no:cacheprovider", *words]
    options = [f"--passed-folder={project / 'notes'}", "--passed-stage=x"]
    done = subprocess.run(
        [sys.executable, *argv, *options],
        cwd=project,
        env={**os.environ, "PYTHONPATH": f"{project}:{REPOSITORY}"},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout


@pytest.mark.parametrize(
    "words",
    [
        [],
        pytest.param(["-n", "2"], id="workers"),
    ],
)
def test_only_what_failed_runs_again_until_what_it_depends_on_changes(project, words):
    code, printed = run(project, *words)
    assert (code, "1 failed, 2 passed" in printed) == (1, True), printed
    failure = project / "notes" / "test_b.failed"
    assert "test_b.py::test_one, call" in failure.read_text(encoding="utf-8")

    code, printed = run(project, *words)
    assert (code, "1 failed" in printed, "2 passed" in printed) == (1, True, False), printed
    assert "left out, since they passed with what they depend on: 1 files" in printed

    (project / "test_b.py").write_text("def test_one(): pass\n", encoding="utf-8")
    assert run(project, *words)[0] == 0
    assert not failure.exists()
    code, printed = run(project, *words)
    assert (code, "passed in" in printed) == (0, False), printed

    (project / "digest").write_text("other", encoding="utf-8")
    code, printed = run(project, *words)
    assert (code, "3 passed" in printed) == (0, True), printed


def test_a_file_of_which_some_tests_did_not_run_has_not_passed(project):
    (project / "test_a.py").write_text(
        "import pytest\ndef test_one(): pass\ndef test_two(): pytest.exit('stopped')\n",
        encoding="utf-8",
    )
    run(project)
    assert not list(project.glob("notes/*.passed"))
