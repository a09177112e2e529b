# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whether the answer of a node has the form that the other code of the controller reads.

The form is checked once, where an answer arrives: in the action. A host whose answer has another
form fails by itself. ``_forms_data.py`` has the forms. Keys that a form does not name are kept, and
count for the limits: nothing reads them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from ansible_collections.kubegpu.nodes.plugins.module_utils._core.errors import KubegpuError
from ansible_collections.kubegpu.nodes.plugins.module_utils._core.failure import failure

from ._forms_data import CLUSTER_MODULES, FORMS, PACKAGE_ARGUMENTS, TASKS
from ._forms_facts_data import ANY

#: Returns what is wrong with a value, beginning with the path below it; empty if nothing is.
Check = Callable[[Any], str]

CODE = "other_form"
_FACT = "gpu_node"
_OF_ANSIBLE = ("warnings", "deprecations", "exception", "invocation")
_MOST_VALUES, _MOST_VALUES_OF_CLUSTER = 200_000, 5_000_000
_MOST_CHARACTERS = 64 << 20
_MOST_LEVELS = 64
_MOST_WHOLE = 1 << 64
_MOST_NAME = 100
_KINDS: Mapping[str, tuple[type, ...]] = {
    "text": (str,),
    "word": (str,),
    "flag": (bool,),
    "whole": (int,),
    "number": (int, float),
    "list": (list,),
    "mapping": (dict,),
}
# Other values are of the action, such as the time at which a reboot began.
_OF_JSON = (str, int, float, list, dict)
_WORDS = {"flag": "true or false", "whole": "a whole number", "word": "a text"}
# Python reads no number of more than 4,300 digits, and versions have numbers.
_MOST_OF_WORD = 4000
# Places of MIG instances are counted one by one.
_MOST_OF_SMALL = 1000


def answer_fault(module: str, answer: Mapping[str, Any]) -> str:
    """Return what is wrong with the result of a module; empty if nothing is.

    :param module: its short name.
    """
    own = {
        name: value
        for name, value in answer.items()
        if not _is_of_ansible(name) and (value is None or isinstance(value, _OF_JSON))
    }
    most = _MOST_VALUES_OF_CLUSTER if module in CLUSTER_MODULES else _MOST_VALUES
    # A failure has what was there before it, and a task that was skipped has nothing.
    ended = bool(answer.get("failed") or answer.get("skipped"))
    return _bounds(own, most) or _compiled(module, ended)(own)


def facts_fault(node: Any) -> str:
    """Return what is wrong with a fact ``gpu_node``; empty if nothing is."""
    return _bounds(node, _MOST_VALUES) or _compiled(_FACT, False)(node)


def tasks_fault(module: str, tasks: Any) -> str:
    """Return what is wrong with what the phase ``plan`` of a module returned for its action."""
    wrong = _bounds(tasks, _MOST_VALUES) or _check(TASKS[module])(tasks)
    if wrong:
        return wrong
    for number, call in enumerate(tasks["calls"] if module == "package_set" else ()):
        for name in call["arguments"].keys() - PACKAGE_ARGUMENTS:
            return f".calls[{number}].arguments has {str(name)[:_MOST_NAME]!r}"
    return ""


def tasks_failure(module: str, tasks: Any) -> dict[str, Any]:
    """Return the failure about what a module returned for its action; empty if nothing is."""
    wrong = tasks_fault(module, tasks)
    return failure(_error(module, f"._tasks{wrong}")) if wrong else {}


def facts_failure(node: Any) -> dict[str, Any]:
    """Return the failure about a fact ``gpu_node`` that an action has read; empty without one."""
    wrong = facts_fault(node)
    return failure(_error("gpu_node_facts", f".ansible_facts.{_FACT}{wrong}")) if wrong else {}


def checked(action: Any, result: dict[str, Any]) -> dict[str, Any]:
    """Return the result of an action, or a failure if it has another form.

    :param action: the action plugin; its file has the name of its module.
    """
    if result.get("unreachable") or "ansible_job_id" in result:
        return result
    module = type(action).__module__.rpartition(".")[2]
    wrong = answer_fault(module, result)
    if not wrong:
        return result
    return {
        "failed": True,
        "changed": result.get("changed") is True,
        **failure(_error(module, wrong)),
    }


def _error(module: str, wrong: str) -> KubegpuError:
    return KubegpuError(
        f"The answer of {module} has an unexpected format.",
        evidence=f"the answer{wrong}",
        next_step="See what answers for this host: its Python (ansible_python_interpreter), sudo, "
        "and the machine itself, which may not be in your hands any more. If it is a good one, "
        "report this line.",
        code=CODE,
    )


def cached_error(wrong: str) -> KubegpuError:
    """Return the error about a fact ``gpu_node`` that did not arrive in this run.

    :param wrong: of :func:`facts_fault`.
    """
    return KubegpuError(
        "Its facts have an unexpected format: this release of the collection writes another one.",
        evidence=f"ansible_facts.{_FACT}{wrong}",
        next_step="Remove the host from the cache of facts (ansible.cfg, fact_caching), and run "
        "again. If it has no cache, report it with this line.",
        code=CODE,
    )


def _is_of_ansible(name: Any) -> bool:
    """Return whether Ansible itself puts a key into results, with objects of its own."""
    return name in _OF_ANSIBLE or str(name).startswith("_ansible_")


@cache
def _compiled(module: str, failed: bool) -> Check:
    form = FORMS.get(module, {})
    return _check(_with_less(form) if failed else form)


def _with_less(form: Mapping[str, Any]) -> dict[str, Any]:
    """Return the form of an answer without an end: each key, and the fact, may be missing.

    Of a node that is read for the first time such an answer has the interpreter that Ansible found.
    """
    optional = {f"{name.rstrip('?')}?": one for name, one in form.items()}
    if "ansible_facts?" in optional:
        optional["ansible_facts?"] = {
            f"{name.rstrip('?')}?": one for name, one in optional["ansible_facts?"].items()
        }
    return optional


def _check(form: Any) -> Check:
    """Return the check for a form (see ``_forms_facts_data.py``)."""
    if isinstance(form, tuple):
        return _or_null(_check(form[0]))
    if isinstance(form, list):
        return _list(_check(form[0]))
    if isinstance(form, dict):
        return _each(_check(form["*"])) if "*" in form else _mapping(form)
    if isinstance(form, re.Pattern):
        return _text(form)
    if form == ANY:
        return lambda _value: ""
    return _or_null(_scalar(form[:-1])) if form.endswith("?") else _scalar(form)


def _or_null(check: Check) -> Check:
    return lambda value: "" if value is None else check(value)


def _scalar(kind: str) -> Check:
    if kind in _BOUNDED:
        return _BOUNDED[kind]
    types = _KINDS[kind]
    number = kind in ("whole", "number")

    def check(value: Any) -> str:
        if isinstance(value, types) and not (number and isinstance(value, bool)):
            return ""
        return _other(value, _WORDS.get(kind, f"a {kind}"))

    return check


def _whole(value: Any) -> str:
    good = isinstance(value, int) and not isinstance(value, bool)
    return "" if good else _other(value, _WORDS["whole"])


def _word(value: Any) -> str:
    if not isinstance(value, str):
        return _other(value, "a text")
    return "" if len(value) <= _MOST_OF_WORD else f" has more than {_MOST_OF_WORD} characters"


def _small(value: Any) -> str:
    wrong = _whole(value)
    return wrong or ("" if 0 <= value <= _MOST_OF_SMALL else f" is {value}")


_BOUNDED: Mapping[str, Check] = {"small": _small, "word": _word}


def _text(pattern: re.Pattern[str]) -> Check:
    def check(value: Any) -> str:
        if not isinstance(value, str):
            return _other(value, "a text")
        return "" if pattern.fullmatch(value) else f" is {value[:_MOST_NAME]!r}"

    return check


def _list(check: Check) -> Check:
    def each(value: Any) -> str:
        if not isinstance(value, list):
            return _other(value, "a list")
        for number, one in enumerate(value):
            wrong = check(one)
            if wrong:
                return f"[{number}]{wrong}"
        return ""

    return each


def _each(check: Check) -> Check:
    def each(value: Any) -> str:
        if not isinstance(value, dict):
            return _other(value, "a mapping")
        for name, one in value.items():
            wrong = check(one)
            if wrong:
                return f".{str(name)[:_MOST_NAME]}{wrong}"
        return ""

    return each


def _mapping(form: Mapping[str, Any]) -> Check:
    checks = [(name.rstrip("?"), name[-1:] != "?", _check(one)) for name, one in form.items()]

    def check(value: Any) -> str:
        if not isinstance(value, dict):
            return _other(value, "a mapping")
        for name, needed, one in checks:
            if name in value:
                wrong = one(value[name])
                if wrong:
                    return f".{name}{wrong}"
            elif needed:
                return f" has no {name}"
        return ""

    return check


def _other(value: Any, expected: str) -> str:
    found = "null" if value is None else type(value).__name__
    for kind, types in _KINDS.items():
        if isinstance(value, types):
            found = _WORDS.get(kind, f"a {kind}")
            break
    return f" is {found}, not {expected}"


def _bounds(value: Any, most: int) -> str:
    """Return what is wrong with the size of a value, with its numbers and its texts."""
    values = characters = level = 0
    row = [value]
    while row:
        level += 1
        values += len(row)
        if level > _MOST_LEVELS or values > most:
            what = f"{_MOST_LEVELS} levels" if level > _MOST_LEVELS else f"{most} values"
            return f" has more than {what}"
        below: list[Any] = []
        for one in row:
            if isinstance(one, str):
                characters += len(one)
                if not one.isascii() and not _is_unicode(one):
                    return f" has a text that is not Unicode: {one[:_MOST_NAME]!r}"
            elif isinstance(one, dict):
                below += one
                below += one.values()
            elif isinstance(one, (list, tuple)):
                below += one
            elif isinstance(one, (int, float)):
                if not (math.isfinite(one) if isinstance(one, float) else abs(one) < _MOST_WHOLE):
                    return f" has a number that is too large or none: {_short(one)}"
            elif one is not None:
                return f" has a value of the type {type(one).__name__}"
        if characters > _MOST_CHARACTERS:
            return f" has more than {_MOST_CHARACTERS} characters"
        row = below
    return ""


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _short(number: float) -> str:
    # The text of a whole number with thousands of digits is refused by Python.
    return str(number) if isinstance(number, float) else f"{number.bit_length()} bits"
