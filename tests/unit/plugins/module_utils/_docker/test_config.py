# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.kubegpu.nodes.plugins.module_utils._core.errors import InputError
from ansible_collections.kubegpu.nodes.plugins.module_utils._docker import config
from ansible_collections.kubegpu.nodes.plugins.module_utils._docker.config import (
    check_result,
    configure,
    remove,
    verify,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._docker.record import Record
from ansible_collections.kubegpu.nodes.plugins.module_utils._docker.types import Request

PATH = "/usr/bin/nvidia-container-runtime"
NAME = "daemon.json"
NEW = (28, 5, 2)
REQUEST = Request("nvidia", True, PATH, None, False, None)
GONE = replace(REQUEST, present=False)


def read(text, version=NEW):
    return config.read(text, NAME, version)


def configured(text, request=REQUEST, record=None):
    return configure(read(text), request, record or Record())


def removed(edited, text=None, request=GONE):
    document = edited.document if text is None else read(text)
    return remove(document, request, edited.record)


def data(edited):
    return json.loads(edited.document.text)


# -- what is in the file -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"runtimes": {}, "runtimes": {}}', "runtimes occurs twice"),
        ('{"runtimes": {"a": {}, "a": {}}}', "a occurs twice"),
        ('{"features": {"cdi": true, "cdi": false}}', "cdi occurs twice"),
        ('{"features": []}', "features is array"),
        ('{"default-runtime": 1}', "default-runtime is not a string"),
        ("7", "the file is number"),
    ],
)
def test_what_cannot_be_edited_safely_is_refused(text, words):
    with pytest.raises(InputError) as caught:
        read(text)
    assert words in caught.value.cause
    assert f"{NAME}, line 1" in caught.value.cause
    assert caught.value.next_step


def test_repeated_key_that_is_none_of_ours_is_left_alone():
    text = '{"debug": true, "debug": false}'
    assert configured(text).document.text.startswith('{"debug": true, "debug": false, "runtimes"')


@pytest.mark.parametrize("key", ["path", "Path", "PATH"])
def test_keys_of_an_entry_are_found_as_go_finds_them(key):
    edited = configured(f'{{"runtimes": {{"nvidia": {{"{key}": "/old"}}}}}}')
    assert data(edited)["runtimes"]["nvidia"] == {key: PATH}


def test_key_written_in_two_ways_is_refused():
    with pytest.raises(InputError, match="path occurs twice"):
        configured('{"runtimes": {"nvidia": {"path": "/a", "Path": "/b"}}}')


@pytest.mark.parametrize(
    ("entry", "arguments", "after"),
    [
        (None, None, {"path": PATH}),
        (None, ("--x",), {"path": PATH, "runtimeArgs": ["--x"]}),
        (None, (), {"path": PATH}),
        ("null", None, {"path": PATH}),
        ("{}", None, {"path": PATH}),
        ({"path": "/old", "runtimeArgs": ["-a"]}, None, {"path": PATH, "runtimeArgs": ["-a"]}),
        ({"path": PATH, "runtimeArgs": ["-a"]}, (), {"path": PATH, "runtimeArgs": []}),
        ({"path": PATH, "runtimeArgs": None}, (), {"path": PATH, "runtimeArgs": None}),
        ({"path": PATH, "more": 1}, ("b",), {"path": PATH, "more": 1, "runtimeArgs": ["b"]}),
        ({"runtimeArgs": []}, None, {"runtimeArgs": [], "path": PATH}),
    ],
)
def test_entry(entry, arguments, after):
    raw = entry if isinstance(entry, str) else json.dumps(entry)
    text = "{}" if entry is None else f'{{"runtimes": {{"nvidia": {raw}}}}}'
    edited = configured(text, replace(REQUEST, runtime_args=arguments))
    assert data(edited)["runtimes"]["nvidia"] == after
    # What it was before comes back, whatever it was.
    if edited.record.names:
        assert json.loads(removed(edited).document.text) == json.loads(text)
    else:
        assert edited.document.text == text


def test_runc_shim_gets_the_binary_as_its_option():
    text = '{"runtimes": {"nvidia": {"runtimeType": "io.containerd.runc.v2"}}}'
    entry = data(configured(text))["runtimes"]["nvidia"]
    assert entry == {"runtimeType": "io.containerd.runc.v2", "options": {"BinaryName": PATH}}
    assert removed(configured(text)).document.text == text


def test_other_shim_is_not_made_nvidias():
    text = '{"runtimes": {"nvidia": {"runtimeType": "io.containerd.kata.v2"}}}'
    with pytest.raises(InputError, match=r"io\.containerd\.kata\.v2"):
        configured(text)


def test_shim_excludes_arguments():
    text = '{"runtimes": {"nvidia": {"runtimeType": "io.containerd.runc.v2"}}}'
    with pytest.raises(InputError, match="excludes runtimeArgs"):
        configured(text, replace(REQUEST, runtime_args=("-a",)))


@pytest.mark.parametrize(
    "text", ["", " \n\t\n", "null", "null\n", "{}", '{"a": 1}', '{"features": {"b": false}}']
)
def test_configuring_twice_changes_nothing_more(text):
    request = replace(REQUEST, set_default=True, cdi=True, runtime_args=("-a",))
    once = configured(text, request)
    twice = configure(once.document, request, once.record)
    assert twice.document.text == once.document.text
    assert twice.record == once.record
    assert twice.reasons == ()


def test_default_is_reverted_when_no_longer_requested_and_only_if_managed():
    once = configured('{"default-runtime": "runc"}', replace(REQUEST, set_default=True))
    back = configure(once.document, REQUEST, once.record)
    assert data(back)["default-runtime"] == "runc"
    assert "default-runtime" in data(configured('{"default-runtime": "nvidia"}'))


def test_cdi_off_is_not_written_where_nothing_switches_it_on():
    assert "features" not in data(configured("{}", replace(REQUEST, cdi=False)))
    edited = configured('{"features": {"cdi": true}}', replace(REQUEST, cdi=False))
    assert data(edited)["features"] == {"cdi": False}


# -- taking out ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("entry", "goes"),
    [
        ({"path": PATH}, True),
        ({"path": PATH, "runtimeArgs": []}, True),
        ({"path": PATH, "runtimeArgs": ["-a"]}, False),
        ({"path": "/other"}, False),
        ({"path": PATH, "options": {}}, False),
    ],
)
def test_without_a_record_only_what_equals_ours_goes(entry, goes):
    text = json.dumps({"runtimes": {"nvidia": entry}, "default-runtime": "nvidia"})
    after = remove(read(text), GONE, Record())
    assert data(after) == ({"runtimes": {}} if goes else json.loads(text))
    assert after.reasons


def test_entry_that_somebody_changed_since_stays_and_is_said():
    once = configured("{}")
    text = once.document.text.replace(f'"{PATH}"', f'"{PATH}", "runtimeArgs": ["-x"]')
    after = removed(once, text)
    assert data(after)["runtimes"]["nvidia"]["runtimeArgs"] == ["-x"]
    assert "runtimes.nvidia was changed since: kept" in after.reasons


def test_entry_that_somebody_only_formatted_anew_goes():
    once = configured('{"a": 1}')
    text = json.dumps(json.loads(once.document.text), indent=7)
    assert data(removed(once, text)) == {"a": 1}


def test_default_never_points_at_a_runtime_that_is_gone():
    before = '{"default-runtime": "kata", "runtimes": {"kata": {"path": "/k"}}}'
    once = configured(before, replace(REQUEST, set_default=True))
    text = once.document.delete(["runtimes", "kata"]).text
    assert data(removed(once, text)) == {"runtimes": {}}
    # Somebody made ours the default since.
    once = configured("{}")
    text = once.document.set(["default-runtime"], '"nvidia"').text
    assert data(removed(once, text)) == {}


@pytest.mark.parametrize("first", ["a", "b"])
def test_two_names_in_either_order(first):
    before = '{"default-runtime": "runc", "x": 1}'
    request = {n: replace(REQUEST, name=n, set_default=True, cdi=True) for n in "ab"}
    edited = configured(before, request["a"])
    edited = configure(edited.document, request["b"], edited.record)
    assert data(edited)["default-runtime"] == "b"
    for name in (first, "b" if first == "a" else "a"):
        edited = removed(edited, request=replace(request[name], present=False))
        assert data(edited).get("default-runtime") != name
        if name == first:
            assert data(edited)["features"] == {"cdi": True}, "the other name needs it"
    assert edited.document.text == before
    assert edited.record == Record()


def test_record_round_trip():
    record = configured("null", replace(REQUEST, set_default=True)).record
    assert Record.from_json(json.loads(json.dumps(record.to_json()))) == record


_EXTRA = st.dictionaries(
    st.sampled_from(["debug", "log-opts", "dns", "mtu"]),
    st.one_of(st.booleans(), st.integers(0, 2**63 - 1), st.just({"k": [1, {"v": None}]})),
)
_RUNTIMES = st.one_of(
    st.none(),
    st.dictionaries(
        st.sampled_from(["kata", "nvidia", "crun"]),
        st.sampled_from([{"path": "/x"}, {"path": PATH}, {"path": "/y", "runtimeArgs": ["-a"]}]),
    ),
)


@given(
    _EXTRA,
    _RUNTIMES,
    st.booleans(),
    st.sampled_from([None, True]),
    st.sampled_from([None, 2, "\t"]),
    st.booleans(),
)
def test_remove_after_configure_is_the_very_text(extra, runtimes, default, cdi, indent, blank):
    text = json.dumps(
        {**extra, "runtimes": runtimes} if runtimes is not None else extra, indent=indent
    )
    text = "{ }\n" if blank else text
    edited = configured(text, replace(REQUEST, set_default=default, cdi=cdi))
    check_result(edited.document)
    verify(read(text), edited.document, "nvidia")
    if edited.record.names:
        assert removed(edited).document.text == text


def test_default_that_does_not_exist_is_refused():
    with pytest.raises(InputError, match="default-runtime is zz"):
        check_result(read('{"default-runtime": "zz"}'))
    for good in ("runc", "io.containerd.runc.v2", "/usr/bin/shim"):
        check_result(read(json.dumps({"default-runtime": good})))
