# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the end of a run says, and which stages a resumed run leaves out."""

from __future__ import annotations

import subprocess
import tomllib

import pytest

from tests.tools import changed, passed, report
from tests.tools.environments import REPOSITORY
from tests.tools.stages import Result

BUDGET = REPOSITORY / "tests" / "budget.toml"


@pytest.fixture
def reports(tmp_path):
    def junit(name, *cases):
        inside = "".join(
            f'<testcase classname="tests.unit.test_{name}" name="{test}" time="{seconds}"/>'
            for test, seconds in cases
        )
        text = f"<testsuites><testsuite>{inside}</testsuite></testsuites>"
        (tmp_path / f"{name}.xml").write_text(text, encoding="utf-8")

    junit("unit", ("test_a[1]", 0.5), ("test_b", 12.25))
    junit("unit-python3.9", ("test_a[1]", 3.0))
    junit("fleet", ("test_site", 80.0))
    return tmp_path


def result(name, cpu, code=0):
    return Result(name, code, 10.0, cpu, REPOSITORY / "no.log")


def test_slowest_tests_of_the_stages_that_ran(reports):
    lines = report.slowest_tests(reports, ["unit"])
    assert [line.split()[0] for line in lines] == ["12.2", "3.0", "0.5"]
    assert lines[0].endswith("tests.unit.test_unit::test_b")
    assert "fleet" in report.slowest_tests(reports, ["unit", "fleet"])[0]


def test_ten_lines_are_enough(reports):
    cases = "".join(f'<testcase classname="x" name="t{n}" time="{n}"/>' for n in range(50))
    (reports / "many.xml").write_text(f"<testsuite>{cases}</testsuite>", encoding="utf-8")
    assert len(report.slowest_tests(reports, ["many"])) == report.SLOWEST


def test_only_a_stage_half_over_its_budget_is_told(tmp_path):
    budget = tmp_path / "budget.toml"
    budget.write_text("[cpu_seconds]\nunit = 100\nfleet = 100\n", encoding="utf-8")
    lines = report.over_budget(budget, [result("unit", 149.0), result("fleet", 151.0)])
    assert len(lines) == 1
    assert lines[0].startswith("fleet took 151 CPU seconds; budget.toml expects 100")


def test_the_budget_has_every_stage():
    assert set(tomllib.loads(BUDGET.read_text(encoding="utf-8"))["cpu_seconds"]) == changed.EVERY


def test_the_table_says_how_each_stage_ended():
    lines = report.table([result("unit", 31.4), result("fleet", 9.9, code=1)])
    assert [line.split() for line in lines[1:]] == [
        ["fleet", "FAILED", "10", "10"],
        ["unit", "passed", "10", "31"],
    ]


def test_processors_work(reports):
    assert report.busy_seconds() > 0


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    monkeypatch.setattr("tests.tools.environments.REPOSITORY", tmp_path)
    monkeypatch.setattr(passed, "REPOSITORY", tmp_path)
    # Their results are kept for the process, and would be those of this checkout.
    monkeypatch.setattr(changed, "_imports", dict)
    monkeypatch.setattr(changed, "imports_of", lambda _path: frozenset())
    (tmp_path / ".gitignore").write_text("/build/\n", encoding="utf-8")
    (tmp_path / "noxfile.py").write_text("1", encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize("name", ["KUBEGPU_PROPERTY_SEED", "KUBEGPU_NODES"])
def test_a_setting_counts_and_the_seed_that_each_run_draws_does_not(checkout, monkeypatch, name):
    test = checkout / "tests" / "integration" / "packages" / "test_x.py"
    test.parent.mkdir(parents=True)
    test.write_text("1", encoding="utf-8")
    monkeypatch.delenv(name, raising=False)
    stages, files = passed.digests(), passed.file_digests("packages")
    monkeypatch.setenv(name, "7")
    same = name == "KUBEGPU_PROPERTY_SEED"
    assert (passed.digests() == stages) is same and files
    assert (passed.file_digests("packages") == files) is same


def test_a_stage_has_passed_while_its_files_are_the_same(checkout):
    folder = checkout / "build"
    before = passed.digests()
    assert set(before) == changed.EVERY
    assert not passed.has_passed(folder, "unit", before["unit"])

    passed.note(folder, "unit", before["unit"])
    assert passed.has_passed(folder, "unit", passed.digests()["unit"])
    assert not passed.has_passed(folder, "fleet", before["fleet"])

    (checkout / "noxfile.py").chmod(0o755)
    assert passed.digests()["unit"] != before["unit"], "a mode counts"
    (checkout / "noxfile.py").chmod(0o644)
    (checkout / "galaxy.yml").write_text("", encoding="utf-8")
    assert passed.digests()["unit"] != before["unit"], "so does a new file"
    (checkout / "galaxy.yml").unlink()
    assert passed.has_passed(folder, "unit", passed.digests()["unit"])


def test_a_file_counts_for_the_stages_that_it_touches(checkout):
    before = passed.digests()
    test = checkout / "tests" / "integration" / "fleet" / "test_x.py"
    test.parent.mkdir(parents=True)
    test.write_text("1", encoding="utf-8")
    after = passed.digests()
    touched = {stage for stage, digest in after.items() if digest != before[stage]}
    assert touched == {"lint", "sanity", "fleet"}


def test_a_file_of_tests_depends_on_the_stage_but_on_no_other_file_of_tests(checkout):
    folder = checkout / "tests" / "integration" / "fleet"
    folder.mkdir(parents=True)
    for name in ("test_a.py", "test_b.py", "steps.py"):
        (folder / name).write_text("1", encoding="utf-8")
    one, other = (f"tests/integration/fleet/test_{name}.py" for name in "ab")
    before = passed.file_digests("fleet")
    assert set(before) == {one, other}

    (folder / "test_a.py").write_text("2", encoding="utf-8")
    after = passed.file_digests("fleet")
    assert (after[one] != before[one], after[other] != before[other]) == (True, False)

    (folder / "steps.py").write_text("2", encoding="utf-8")
    assert not set(after.items()) & set(passed.file_digests("fleet").items())
    assert passed.file_digests("engines") == {}


def test_a_setting_that_lets_a_run_do_less_counts(checkout, monkeypatch):
    before = passed.digests()
    monkeypatch.setenv("KUBEGPU_NODES", "gpu1")
    assert not set(before.items()) & set(passed.digests().items())
