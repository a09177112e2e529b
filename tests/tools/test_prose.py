# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a message of another program means is known in one place: ``_known_faults``.

A pattern of words elsewhere is a second table, which no case of ``tests/reports`` proves and which
facts do not decide; and one on a sentence of this collection changes what it does with each
rewording. Found are regular expressions and comparisons (``"some words" in text``, ``startswith``,
``partition``) with two words in a row, also where a constant of the module has them.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

PLUGINS = Path(__file__).parents[2] / "plugins"
KNOWLEDGE = "module_utils/_known_faults/"
#: Files that read documents and tables of other programs, by what these are: their form is fixed
#: by the program, and nothing is decided by the words of a sentence.
DOCUMENTS = {
    "the frame of a key in PEM or OpenPGP": (
        "module_utils/_core/redact.py", "module_utils/_formats/openpgp.py",
        "module_utils/_node_texts/read.py", "module_utils/_toolkit/facts.py",
    ),
    "files of the kernel below /proc, and the head of DKMS's make.log": (
        "module_utils/_driver/facts.py", "module_utils/_facts/driver_trouble.py",
        "plugin_utils/_job_step.py",
    ),
    "a value in nvidia-smi -q -x, a name of a product that NVML returns": (
        "module_utils/_hardware/nvml.py", "module_utils/_mig/plan.py",
    ),
    "the tables of nvidia-smi mig, also empty ones": ("module_utils/_mig/facts.py",),
    "the rows of nvidia-smi and of /dev/kmsg, in a program of one file that imports nothing": (
        "module_utils/_exporter/program.py",
    ),
    "the table of dnf's transaction, the elements of zypper's XML, the fields of apt's deb822": (
        "module_utils/_packages/dnf.py", "module_utils/_packages/zypper.py",
        "module_utils/_repository/apt.py",
    ),
    "how Python shows an object, taken out of a message": ("module_utils/_kube/errors.py",),
    "lines of logs that come into a bundle, or do not": (
        "module_utils/_node_texts/data.py",
    ),
    "the command line of Ansible, which the same file writes": ("module_utils/_core/commands.py",),
    "a mark that the same file writes into a file or into Slurm's Reason": (
        "module_utils/_containerd/template_block.py", "module_utils/_host_maintenance/slurm.py",
    ),
}  # fmt: skip
ALLOWED = {name for names in DOCUMENTS.values() for name in names}
_TWO_WORDS = re.compile(r"[A-Za-z']{3,}[,:]?(?: |\\s[+*]?| \+)(?:\((?:\?:)?)?[A-Za-z]{2,}")
_REGEX = {"compile", "search", "match", "fullmatch", "finditer", "findall", "sub", "split"}
_COMPARING = {"startswith", "endswith", "partition", "rpartition", "removeprefix", "removesuffix"}


def constants(tree: ast.Module) -> dict[str, ast.expr]:
    """The values of the names that a module sets."""
    return {
        target.id: node.value
        for node in tree.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }


def with_loops(tree: ast.Module) -> dict[str, ast.expr]:
    """The same with the variables of loops over them: ``any(one in text for one in _WORDS)``."""
    named: dict[str, ast.expr] = constants(tree)
    for node in ast.walk(tree):
        if (
            isinstance(node, (ast.comprehension, ast.For))
            and isinstance(node.target, ast.Name)
            and isinstance(node.iter, ast.Name)
            and node.iter.id in named
        ):
            named[node.target.id] = named[node.iter.id]
    return named


def texts(node: ast.expr, named: dict[str, ast.expr]) -> Iterator[str]:
    """The literal texts in an expression, and in the constants that it names."""
    for one in ast.walk(node):
        if isinstance(one, ast.Constant) and isinstance(one.value, (str, bytes)):
            yield one.value if isinstance(one.value, str) else one.value.decode("latin-1")
        elif isinstance(one, ast.Name) and one.id in named:
            yield from texts(named[one.id], {})


def looked_for(node: ast.AST) -> ast.expr | None:
    """What a call or a comparison looks for in a text."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args:
        of_re = isinstance(node.func.value, ast.Name) and node.func.value.id == "re"
        if (of_re and node.func.attr in _REGEX) or node.func.attr in _COMPARING:
            return node.args[0]
    if isinstance(node, ast.Compare) and isinstance(node.ops[0], (ast.In, ast.NotIn)):
        return node.left
    return None


def reads_words(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Line and text of each place that looks for words in a text."""
    named = with_loops(tree)
    for node in ast.walk(tree):
        wanted = looked_for(node)
        for words in texts(wanted, named) if wanted is not None else ():
            if _TWO_WORDS.search(words):
                yield getattr(node, "lineno", 0), words


def found() -> dict[str, list[str]]:
    places: dict[str, list[str]] = {}
    for path in sorted(PLUGINS.rglob("*.py")):
        name = path.relative_to(PLUGINS).as_posix()
        if not name.startswith(KNOWLEDGE):
            for line, words in reads_words(ast.parse(path.read_text(encoding="utf-8"))):
                places.setdefault(name, []).append(f"{name}:{line}: {words[:100]!r}")
    return places


def test_what_messages_mean_is_known_in_one_place():
    places = [one for name, lines in found().items() if name not in ALLOWED for one in lines]
    assert places == [], (
        "Next step: make it a rule of _known_faults and ask explain, use a code or another field; "
        "a reader of another program's document gets a line in DOCUMENTS"
    )


def test_each_exception_is_one():
    assert ALLOWED - set(found()) == set()


def test_what_a_file_writes_and_finds_again_is_written_nowhere_else():
    """So that no rewording of a text changes what is found."""
    literals = {
        "ansible-playbook kubegpu.nodes.": "module_utils/_core/commands.py",
        "# BEGIN kubegpu.nodes": "module_utils/_containerd/template_block.py",
        "kubegpu.nodes maintenance ": "module_utils/_host_maintenance/slurm.py",
    }
    for literal, owner in literals.items():
        writers = {
            path.relative_to(PLUGINS).as_posix()
            for path in PLUGINS.rglob("*.py")
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
            if isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and node.value.startswith(literal)
        }
        assert writers == {owner}, literal


@pytest.mark.parametrize("code", [
    "if 'no space left' in text: pass",
    "X = re.compile(r'GPU is lost|other')",
    "_A = ('one', 'is locked by')\nany(one in text for one in _A)",
    "text.startswith('The installer of')",
    "_P = r'another words'\nre.search(_P, text)",
])  # fmt: skip
def test_a_pattern_of_words_is_found(code):
    assert list(reads_words(ast.parse(code)))


@pytest.mark.parametrize("code", [
    "if 'nvidia' in text: pass",
    "re.compile(r'^(\\d+) (\\d+)$')",
    "name.startswith(('linux-image-', 'kmod-nvidia'))",
    "print('two words')",
])  # fmt: skip
def test_a_fixed_form_is_none(code):
    assert not list(reads_words(ast.parse(code)))
