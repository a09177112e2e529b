# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import tomlkit
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.kubegpu.nodes.plugins.module_utils._runtime.toml_settings import (
    Seen,
    plan_absent,
    plan_present,
)


def parse(text):
    return tomlkit.parse(text).unwrap()


def recorded(plan):
    return Seen(plan.text, recorded=True, ours=plan.ours, tables=plan.tables)


ROOT = st.lists(
    st.sampled_from(["# a comment", "", "disable-require = false", "#a = 1", "b = [ 'x' ] # b"]),
    max_size=4,
    unique=True,
)
SECTION = st.lists(
    st.sampled_from(
        ["# inside", "", "no-cgroups = false", "#root = 'x'", "  load = true", "n = 7"]
    ),
    max_size=5,
    unique=True,
)
SETTINGS = st.dictionaries(
    st.sampled_from(["disable-require", "new", "cli.no-cgroups", "cli.new", "other.deep.key"]),
    st.one_of(st.booleans(), st.integers(0, 9), st.text(max_size=4), st.lists(st.text(max_size=3))),
    min_size=1,
)


@given(ROOT, st.booleans(), SECTION, SETTINGS, SETTINGS)
def test_adding_twice_is_adding_once_and_taking_back_gives_the_text(
    root, has_section, section, settings, more
):
    text = "".join(f"{line}\n" for line in [*root, *(["[cli]", *section] if has_section else [])])
    first = plan_present(settings, Seen(text), parse)
    again = plan_present(settings, recorded(first), parse)
    assert (again.text, again.ours, again.tables) == (first.text, first.ours, first.tables)
    second = plan_present(more, recorded(first), parse)
    # The record says: edited since, so our own values are taken out one by one.
    back = plan_absent({}, recorded(second), parse)
    assert parse(back.text) == parse(text)

    def foreign(content):
        return [
            line for line in content.splitlines() if line.startswith(("#", "  load", "b ", "n "))
        ]

    assert foreign(back.text) == foreign(text)
    assert foreign(first.text) == foreign(text)
