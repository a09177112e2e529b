# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.kubegpu.nodes.plugins.module_utils._core.errors import InputError
from ansible_collections.kubegpu.nodes.plugins.module_utils._formats import json_edit as jt


def document(text: str, **options: Any) -> jt.Document:
    return jt.parse(text, "daemon.json", **options)


def added(text: str) -> str:
    """The edit that docker_runtime makes."""
    doc = document(text).ensure_object([]).ensure_object(["runtimes"])
    entry = {"path": "/usr/bin/nvidia-container-runtime"}
    return doc.set(["runtimes", "nvidia"], doc.dump(entry, ["runtimes", "nvidia"])).text


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param(
            "",
            '{\n    "runtimes": {\n        "nvidia": {\n'
            '            "path": "/usr/bin/nvidia-container-runtime"\n        }\n    }\n}\n',
            id="empty",
        ),
        pytest.param(
            "\ufeff",
            '\ufeff{\n    "runtimes": {\n        "nvidia": {\n'
            '            "path": "/usr/bin/nvidia-container-runtime"\n        }\n    }\n}\n',
            id="byte order mark only",
        ),
        pytest.param(
            '{\n\t"debug": true\n}\n',
            '{\n\t"debug": true,\n\t"runtimes": {\n\t\t"nvidia": {\n'
            '\t\t\t"path": "/usr/bin/nvidia-container-runtime"\n\t\t}\n\t}\n}\n',
            id="tabs",
        ),
        pytest.param(
            '{\r\n  "debug": true\r\n}',
            '{\r\n  "debug": true,\r\n  "runtimes": {\r\n    "nvidia": {\r\n'
            '      "path": "/usr/bin/nvidia-container-runtime"\r\n    }\r\n  }\r\n}',
            id="CRLF without a last line end",
        ),
        pytest.param(
            '{"a":1,"b":9223372036854775807}',
            '{"a":1,"b":9223372036854775807,'
            '"runtimes":{"nvidia":{"path":"/usr/bin/nvidia-container-runtime"}}}',
            id="one tight line",
        ),
        pytest.param(
            '{"a": 1, "b": 2}\n',
            '{"a": 1, "b": 2, '
            '"runtimes": {"nvidia": {"path": "/usr/bin/nvidia-container-runtime"}}}\n',
            id="one loose line",
        ),
        pytest.param(
            '{\n  "runtimes": {"k": {"path": "/k"}},\n  "x": 1.50\n}\n',
            '{\n  "runtimes": {"k": {"path": "/k"}, '
            '"nvidia": {"path": "/usr/bin/nvidia-container-runtime"}},\n  "x": 1.50\n}\n',
            id="object on one line in a file of lines",
        ),
        pytest.param(
            '{\n  "runtimes": null,\n  "x": 1e3\n}\n',
            '{\n  "runtimes": {\n    "nvidia": {\n'
            '      "path": "/usr/bin/nvidia-container-runtime"\n    }\n  },\n  "x": 1e3\n}\n',
            id="runtimes null",
        ),
    ],
)
def test_new_member_is_written_in_the_manner_of_the_file(before: str, after: str) -> None:
    assert added(before) == after


def test_list_of_plain_values_is_written_on_one_line() -> None:
    doc = document("").ensure_object([])
    assert '"runtimeArgs": ["--a", "b"]' in doc.dump(
        {"path": "/x", "runtimeArgs": ["--a", "b"]}, ["r"]
    )


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ('{\n  // why\n  "a": 1\n}', 2, "no comments"),
        ("# why\n{}", 1, "no comments"),
        ('{\n  "a": 1', 2, "a comma or '}'"),
        ('{"a": 1,}', 1, "a key in double quotes"),
        ('{"a"\n 1}', 2, "a colon"),
        ('{"a": nul}', 1, "a value"),
        ('{"a": NaN}', 1, "a value"),
        ('{"a": 01}', 1, "a comma or"),
        ('{"a": "x\ty"}', 1, "string"),
        ('{"a": "x', 1, "string"),
        ('{"a": "\\x"}', 1, "string"),
        ("{}\ngarbage", 2, "something follows"),
        ("[" * 5000, 1, "deep"),
    ],
)
def test_what_is_not_json_is_refused_with_file_line_and_cause(
    text: str, line: int, words: str
) -> None:
    with pytest.raises(InputError) as caught:
        document(text)
    assert caught.value.cause.startswith(f"daemon.json, line {line}: ")
    assert words in caught.value.cause
    assert f"line {line}" in caught.value.next_step


def test_error_does_not_quote_a_line_that_may_hold_a_secret() -> None:
    with pytest.raises(InputError) as caught:
        document('{"token": "hunter2" "a": 1}')
    assert "hunter2" not in str(caught.value)


def test_utf_16_is_refused() -> None:
    with pytest.raises(InputError, match="UTF-16"):
        jt.decode("{}".encode("utf-16"), "daemon.json")


def test_bytes_that_are_not_utf_8_survive() -> None:
    content = b'{"a": "\xff\xfe"}'
    doc = document(jt.decode(content, "x"))
    assert doc.set(["b"], "1").encode() == b'{"a": "\xff\xfe", "b": 1}'


def test_trailing_data_is_kept_where_it_is_allowed() -> None:
    doc = document('{"a": 1}\nrest', trailing=True)
    assert doc.trailing == "rest"
    assert doc.set(["a"], "2").delete(["a"]).text == "{}\nrest"


@pytest.mark.parametrize(
    ("text", "after"),
    [
        ('{"a": 1, "b": 2, "c": 3}', '{"a": 1, "c": 3}'),
        ('{"a": 1, "b": 2}', '{"a": 1}'),
        ('{"b": 2, "a": 1}', '{"a": 1}'),
        ('{\n  "a": 1,\n  "b": 2\n}\n', '{\n  "a": 1\n}\n'),
        ('{\n  "b": 2,\n  "a": 1\n}\n', '{\n  "a": 1\n}\n'),
        ('{\n  "b": 2\n}\n', "{}\n"),
        ('{"a": 1}', '{"a": 1}'),
    ],
)
def test_delete_takes_the_comma_and_the_line_along(text: str, after: str) -> None:
    assert document(text).delete(["b"]).text == after


def test_value_that_is_not_an_object_is_not_replaced() -> None:
    with pytest.raises(InputError, match=r"line 2: runtimes is an array, not an object"):
        document('{\n"runtimes": []}').ensure_object(["runtimes"])


def test_redaction_keeps_lines_and_hides_secrets() -> None:
    text = (
        '{\n  "log-opts": {"splunk-token": "abc", "tag": "x"},\n'
        '  "proxies": {"http-proxy": "http://me:pw@proxy:3128"},\n  "auths": {"r": ["k", 7]}\n}\n'
    )
    shown = jt.redact(document(text))
    assert shown.count("\n") == text.count("\n")
    for secret in ("abc", "pw", "me:", '"k"', "7"):
        assert secret not in shown
    assert '"tag": "x"' in shown
    assert "@proxy:3128" in shown


# -- properties ------------------------------------------------------------------------------

_SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=8),
)
_KEYS = st.text(max_size=6).filter(lambda key: key not in ("runtimes", "nvidia"))
_VALUES = st.recursive(
    _SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(_KEYS, inner, max_size=3)),
    max_leaves=8,
)
_OBJECTS = st.dictionaries(_KEYS, _VALUES, max_size=4)


@st.composite
def files(draw: Any) -> str:
    """Ordinary and odd texts of an object, some of which have runtimes of their own."""
    data = dict(draw(_OBJECTS))
    if draw(st.booleans()):
        data["runtimes"] = draw(st.one_of(st.none(), st.dictionaries(_KEYS, _OBJECTS, max_size=2)))
    indent = draw(st.sampled_from([None, 1, 2, 4, "\t"]))
    separators = draw(st.sampled_from([(",", ":"), (", ", ": "), (",", ": "), (" ,", " : ")]))
    text = json.dumps(data, indent=indent, separators=separators, ensure_ascii=draw(st.booleans()))
    text = draw(st.sampled_from(["", "\ufeff"])) + draw(st.sampled_from(["", "\n", " "])) + text
    text += draw(st.sampled_from(["", "\n", "\n\n"]))
    return text.replace("\n", "\r\n") if draw(st.booleans()) else text


@given(files())
def test_scanner_agrees_with_json(text: str) -> None:
    doc = document(text)
    theirs = json.loads(doc.root.raw, parse_int=jt.Number, parse_float=jt.Number)
    assert doc.data() == theirs


@given(files())
def test_adding_twice_is_adding_once_for_data(text: str) -> None:
    once = document(added(text))
    assert once.get(["runtimes", "nvidia"]).data() == {"path": "/usr/bin/nvidia-container-runtime"}
    assert added(once.text) == once.text


@given(files())
def test_adding_changes_no_other_data_and_no_other_line(text: str) -> None:
    before, after = document(text), document(added(text))
    old, new = before.data(), after.data()
    assert new["runtimes"].pop("nvidia")
    assert new["runtimes"] == (old.pop("runtimes", None) or {})
    new.pop("runtimes")
    assert new == old
    if before.root.members and "\n" in before.root.raw and before.get(["runtimes"]) is None:
        kept = [line.rstrip(",\r") for line in after.text.split("\n")]
        for line in text.split("\n"):
            assert line.rstrip(",\r") in kept


@given(files(), st.sampled_from(["k", "runtimes2"]), _VALUES)
def test_removing_what_was_added_gives_the_very_text(text: str, key: str, value: Any) -> None:
    doc = document(text)
    if doc.get([key]) is not None or not doc.root.members:
        return
    edited = doc.set([key], doc.dump(value, [key]))
    assert json.loads(json.dumps(value)) == json.loads(edited.get([key]).raw)
    assert edited.delete([key]).text == text


@given(st.text(max_size=40))
def test_scanner_accepts_what_json_accepts_and_nothing_else(text: str) -> None:
    def constant(_name: str) -> None:
        raise ValueError

    try:
        json.loads(text, parse_constant=constant)
        valid = True
    except ValueError:
        valid = not text.strip(" \t\r\n") or text.startswith("\ufeff")
        if text.startswith("\ufeff"):
            return
    try:
        document(text)
        assert valid
    except InputError:
        assert not valid
