# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The runner of mutants: its table is whole, its mutants are defects, its sample comes again."""

from __future__ import annotations

import ast
import json
import subprocess
import sys

import pytest

from tests.tools import mutate
from tests.tools.environments import REPOSITORY
from tests.tools.mutate_areas import AREAS, source, unit_tests
from tests.tools.mutate_mutants import Mutant, is_another_program, mutants


@pytest.mark.parametrize("area", AREAS)
def test_each_file_that_the_table_names_is_there_and_has_tests(area):
    for name, words in AREAS[area].items():
        assert (REPOSITORY / source(name)).is_file()
        paths = unit_tests(words)
        assert paths and len(paths) == len(set(paths))
        assert [path for path in paths if not (REPOSITORY / path).is_file()] == []


def test_no_file_is_in_two_areas():
    names = [name for files in AREAS.values() for name in files]
    assert len(names) == len(set(names))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a < b", {"a <= b", "a >= b"}),
        ("a in b not in c", {"a not in b not in c", "a in b in c"}),
        ("a and b", {"((a) or (b))", "((b))", "((a))"}),
        ("not a", {"(a)"}),
        ("[x for x in y if x]", {"[x for x in y if True]"}),
        ("a | b", {"((a) & (b))"}),
        ("'text' + a", set()),
        ("any(a)", {"all(a)"}),
        ("a.strip()", {"a"}),
        ("a['name']", {"a['name~']"}),
        ("f(3, True)", {"f(4, True)", "f(3, False)"}),
        ("say('some words')", set()),
        ("InputError('text', next_step=a < b)", set()),
    ],
)
def test_mutants_of_an_expression(text, expected):
    whole = f"value = {text}\n"
    assert {one.apply(whole).removeprefix("value = ")[:-1] for one in mutants(whole)} == expected


FUNCTION = '''\
def found(ä: str | None, all_of: list[str] = []) -> str | None:
    """Text of a function."""
    for one in all_of:
        if one.ready:
            check(one)
    try:
        self.x = f"{ä + 1}"
    except ValueError:
        return None
    raise InputError("no" if ä else "yes")
'''


def test_mutants_of_statements():
    found = {(one.line, one.what) for one in mutants(FUNCTION)}
    assert found == {
        (4, "loop ends after one round"),
        (4, "condition turned round"),
        (5, "statement removed"),
        (7, "statement removed"),
        (9, "exception not handled"),
        (9, "statement removed"),
        (10, "statement removed"),
    }


def test_a_mutant_changes_its_line_only_and_is_another_program():
    for one in mutants(FUNCTION):
        assert is_another_program(FUNCTION, one)
        ast.parse(one.apply(FUNCTION))
        lines = one.apply(FUNCTION).splitlines()
        assert lines[: one.line - 1] == FUNCTION.splitlines()[: one.line - 1]
    same = Mutant(1, 4, "(1)", "1", "brackets")
    assert not is_another_program("a = (1)\n", same)


def test_a_sample_comes_again_with_its_seed_and_is_the_same_for_an_area_alone():
    both = mutate.chosen(["records", "labels"], 5, 7)
    assert len(both) == 10
    assert [work for work in both if work.area == "labels"] == mutate.chosen(["labels"], 5, 7)
    assert both != mutate.chosen(["records", "labels"], 5, 8)
    only = mutate.chosen(["records"], None, 7, r"/file_record\.py:\d+:")
    assert only and {work.path for work in only} == {source("_record/file_record")}


@pytest.mark.parametrize("words", [["--area", "none"], ["--number", "many"]])
def test_an_unknown_area_or_number_is_refused(words, capsys):
    with pytest.raises(SystemExit):
        mutate.main(words)
    assert "--number is" in (said := capsys.readouterr().err) or "no such area: none" in said


@pytest.mark.full(why="six runs of pytest; it is no part of the collection")
def test_the_worker_tells_what_is_caught_and_puts_the_file_back(tmp_path):
    """Real tests in a folder: one defect is seen, one is not, one never ends."""
    (tmp_path / "test_it.py").write_text("import it\ndef test_it(): assert it.double(2) == 4\n")
    (tmp_path / "it.py").write_text("def double(x): return x * 2\n")
    job = {"tests": ["test_it.py"], "options": ["-p", "no:cacheprovider"], "cpu": 2, "seconds": 300}
    texts = [
        "def double(x): return x * 3\n",
        "def double(x): return x + 2\n",
        "def double(x):\n    while True: pass\n",
        "def double(x:\n",
    ]
    jobs = [job, *({**job, "path": "it.py", "text": text} for text in texts), job]
    done = subprocess.run(
        [sys.executable, str(REPOSITORY / "tests/tools/mutate_worker.py")],
        input="".join(json.dumps(one) + "\n" for one in jobs),
        cwd=tmp_path, capture_output=True, text=True, check=True, timeout=300,
    )  # fmt: skip
    ends = [json.loads(line)["end"] for line in done.stdout.splitlines()]
    assert ends == ["passed", "failed", "passed", "time limit", "failed", "passed"]


def test_the_table_of_results():
    results = mutate.Results()
    results.ends.update({("labels", "failed"): 2, ("labels", "time limit"): 1})
    results.ends.update({("labels", "passed"): 1, ("keys", "passed"): 1})
    rows = [line.split() for line in mutate.table(["labels", "keys"], results).splitlines()[1:]]
    assert rows == [
        ["labels", "4", "3", "1", "75", "%"],
        ["keys", "1", "0", "1", "0", "%"],
        ["all", "5", "3", "2", "60", "%"],
    ]
