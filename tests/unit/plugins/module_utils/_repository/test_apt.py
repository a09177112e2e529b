# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Entries of apt that are switched off and on again."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.kubegpu.nodes.plugins.module_utils._core.errors import InputError
from ansible_collections.kubegpu.nodes.plugins.module_utils._repository.apt import disable, enable
from ansible_collections.kubegpu.nodes.plugins.module_utils._repository.apt_parser import parse

URL = "https://nvidia.example/stable/deb/$(ARCH)"


LIST = "old.list"


SOURCES = "old.sources"


@pytest.mark.parametrize(
    ("name", "before", "after"),
    [
        pytest.param(
            LIST,
            "deb [arch=amd64] https://nvidia.example/stable/deb/amd64 /  # by hand",
            "#kubegpu:x:- deb [arch=amd64] https://nvidia.example/stable/deb/amd64 /  # by hand",
            id="line without end",
        ),
        pytest.param(
            LIST,
            "deb https://nvidia.example/stable/deb amd64/\n",
            "#kubegpu:x:- deb https://nvidia.example/stable/deb amd64/\n",
            id="path in the suite",
        ),
        pytest.param(
            LIST,
            "# deb https://nvidia.example/stable/deb/amd64 /\n",
            "# deb https://nvidia.example/stable/deb/amd64 /\n",
            id="is off already",
        ),
        pytest.param(
            SOURCES,
            "Types: deb\nURIs: https://nvidia.example/stable/deb/amd64\nSuites: /\n",
            "#kubegpu:x:+\nEnabled: no\n"
            "Types: deb\nURIs: https://nvidia.example/stable/deb/amd64\nSuites: /\n",
            id="stanza",
        ),
        pytest.param(
            SOURCES,
            "Types: deb\nenabled: yes\nURIs: https://nvidia.example/stable/deb/amd64\nSuites: /",
            "Types: deb\n#kubegpu:x:- enabled: yes\n#kubegpu:x:+\nEnabled: no\n"
            "URIs: https://nvidia.example/stable/deb/amd64\nSuites: /",
            id="stanza that says it is on",
        ),
        pytest.param(
            SOURCES,
            "Types: deb\nURIs: http://a.example/\n https://nvidia.example/stable/deb/amd64\n"
            "# why\nSuites: /\n",
            "Types: deb\n#kubegpu:x:- URIs: http://a.example/\n"
            "#kubegpu:x:-  https://nvidia.example/stable/deb/amd64\n# why\n"
            "#kubegpu:x:+\nURIs: http://a.example/\nSuites: /\n",
            id="one of two addresses, folded",
        ),
        pytest.param(
            SOURCES,
            "Types: deb\nURIs: https://nvidia.example/stable/deb/amd64\nSuites: /\nEnabled: no\n",
            "Types: deb\nURIs: https://nvidia.example/stable/deb/amd64\nSuites: /\nEnabled: no\n",
            id="stanza is off already",
        ),
    ],
)
def test_disable_and_enable(name, before, after):
    text, gone = disable(before, name, "x", [URL], "amd64")
    assert text == after
    assert bool(gone) is (before != after)
    assert enable(text, "x") == before
    assert disable(text, name, "x", [URL], "amd64") == (text, ())


def test_enable_keeps_what_somebody_wrote_in_the_place_of_ours():
    assert enable("#kubegpu:x:+\nEnabled: yes\nTypes: deb\n", "x") == "Enabled: yes\nTypes: deb\n"


def test_enable_is_for_one_name_only():
    text = "#kubegpu:other:- deb http://a.example/ /\n"
    assert enable(text, "x") == text


def test_one_entry_with_suites_of_which_only_some_are_the_repository_is_refused():
    text = "Types: deb\nURIs: https://nvidia.example/stable/deb\nSuites: amd64/ arm64/\n"
    with pytest.raises(InputError, match="line 1"):
        disable(text, SOURCES, "x", [URL], "amd64")


def test_a_suite_belongs_to_the_identity_of_an_ordinary_repository():
    text = "deb http://a.example/debian stable main\ndeb http://a.example/debian sid main\n"
    after, gone = disable(text, LIST, "x", ["http://a.example/debian/dists/sid"])
    assert gone == ("http://a.example/debian sid",)
    assert after.startswith("deb http://a.example/debian stable main\n#kubegpu:x:- deb")


WORDS = st.sampled_from(
    [
        "deb https://nvidia.example/stable/deb/amd64 /",
        "deb [signed-by=/k] https://nvidia.example/stable/deb/$(ARCH) /",
        "deb http://a.example/ stable main",
        "# a comment",
        "#deb https://nvidia.example/stable/deb/amd64 /",
        "",
        "Types: deb",
        "URIs: https://nvidia.example/stable/deb/amd64",
        "URIs: http://a.example/",
        "URIs: http://a.example/ https://nvidia.example/stable/deb/amd64/",
        "Suites: /",
        "Enabled: yes",
        "Enabled: no",
        "Signed-By:",
        " -----BEGIN PGP PUBLIC KEY BLOCK-----",
        " .",
        "not understood",
    ]
)


@given(st.lists(WORDS, max_size=14), st.sampled_from([LIST, SOURCES]), st.booleans())
def test_round_trip_and_other_entries_survive(lines, name, ends):
    text = "\n".join(lines) + ("\n" if ends and lines else "")
    after, _gone = disable(text, name, "x", [URL], "amd64")
    assert disable(after, name, "x", [URL], "amd64")[0] == after
    back = enable(after, "x")
    assert back.rstrip("\n") == text.rstrip("\n")

    def others(content):
        return [
            (uri, entry.suites, entry.enabled)
            for entry in parse(name, content)
            for uri in entry.uris
            if "nvidia" not in uri and not any("nvidia" in other for other in entry.uris)
        ]

    assert [x for x in others(text) if x in others(after)] == others(text)
