# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Options are read by the validator of Ansible's modules; the sentence of a refusal is ours."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator
from ansible.module_utils.parsing.convert_bool import BOOLEANS_FALSE, BOOLEANS_TRUE

from ansible_collections.kubegpu.nodes.plugins.module_utils._core.errors import InputError
from ansible_collections.kubegpu.nodes.plugins.module_utils._core.options import (
    argument_spec,
    expected,
    read_arguments,
)


@dataclass(frozen=True)
class Request:
    name: str = "a"
    hold: bool = True
    seconds: int = 5
    dkms: str = "auto"
    hosts: tuple[str, ...] = ()
    rows: Mapping[str, Any] = field(default_factory=dict)
    runfile: Mapping[str, Any] | None = None


SPEC = argument_spec(
    Request,
    dkms={"choices": ["auto", "true", "false"]},
    runfile={"type": "dict", "options": {"url": {"type": "str"}, "remote": {"type": "bool"}}},
)


def test_a_spec_has_type_and_default_of_each_field() -> None:
    assert SPEC["hosts"] == {"type": "list", "elements": "str", "default": []}
    assert SPEC["rows"] == {"type": "dict", "default": {}}
    assert [SPEC[name]["type"] for name in ("name", "hold", "seconds")] == ["str", "bool", "int"]
    assert Request(**read_arguments(SPEC, {})) == Request()
    assert Request(**read_arguments(SPEC, dict.fromkeys(SPEC))) == Request()


@pytest.mark.parametrize("value", sorted(BOOLEANS_TRUE | BOOLEANS_FALSE, key=repr))
def test_booleans_are_those_of_ansible(value: Any) -> None:
    assert read_arguments(SPEC, {"hold": value})["hold"] is (value in BOOLEANS_TRUE)


def test_values_as_inventories_write_them() -> None:
    assert read_arguments(SPEC, {"name": " a "})["name"] == "a"
    assert read_arguments(SPEC, {"hosts": ("a", "b")})["hosts"] == ("a", "b")
    given = {"name": 580, "hold": " No", "seconds": "7", "dkms": True, "hosts": "a, b"}
    values = read_arguments(SPEC, {**given, "rows": "a=b", "other": 1})
    assert Request(**values) == Request("580", False, 7, "true", ("a", "b"), {"a": "b"})


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("hold", "perhaps", "has to be true or false.\nSeen: my_hold: 'perhaps'"),
        ("hold", "", "has to be true or false."),
        ("hold", 2, "has to be true or false."),
        ("hold", [], "has to be true or false."),
        ("seconds", "soon", "has to be a whole number."),
        ("dkms", "TRUE", "has to be one of auto, true, false."),
        ("dkms", "maybe", "has to be one of auto, true, false.\nSeen: my_dkms: 'maybe'"),
        ("hosts", {"password": "hunter2"}, "has to be a list of texts.\nSeen: my_hosts: a mapping"),
        ("rows", ["a"], "has to be a mapping."),
        ("runfile", "x.run", "has to be a mapping made of url, remote."),
        ("runfile", {"uri": "x"}, "made of url, remote.\nSeen: my_runfile.uri is unknown"),
        (
            "runfile",
            {"remote": "maybe"},
            ".remote has to be true or false.\nSeen: my_runfile.remote",
        ),
        ("rows", "hunter2", "has to be a mapping.\nSeen: my_rows: a text"),
    ],
)
def test_a_wrong_value_is_refused_as_the_module_refuses_it(
    name: str, value: Any, text: str
) -> None:
    with pytest.raises(InputError) as caught:
        read_arguments(SPEC, {name: value}, "my_")
    assert str(caught.value).startswith(f"my_{name}") and text in str(caught.value)
    assert ArgumentSpecValidator(SPEC).validate({name: value}).error_messages


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ({"seconds": "x", "hold": "x"}, "hold"),
        ({"runfile": 0, "seconds": "x"}, "seconds"),
        ({"runfile": 0}, "runfile"),
    ],
)
def test_of_several_wrong_values_the_first_of_the_spec_is_named(
    given: dict[str, Any], name: str
) -> None:
    with pytest.raises(InputError, match=f"^my_{name} has to be"):
        read_arguments(SPEC, given, "my_")


def test_an_option_that_has_to_be_there_is_named() -> None:
    spec: dict[str, dict[str, Any]] = {
        "name": {"type": "str"},
        "state": {"type": "str", "required": True},
    }
    with pytest.raises(InputError, match=r"^state has to be a text"):
        read_arguments(spec, {"name": "a"})


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        ({"type": "list", "elements": "str"}, "a list of texts"),
        ({"type": "list", "elements": "str", "choices": ["a", "b"]}, "made of a, b"),
        ({"type": "str", "choices": [True, "x"]}, "one of True, x"),
        ({"type": "raw"}, "raw"),
        ({}, "a text"),
    ],
)
def test_what_a_value_has_to_be(rule: dict[str, Any], text: str) -> None:
    assert expected(rule) == text
